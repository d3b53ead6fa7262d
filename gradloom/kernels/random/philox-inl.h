// Philox on lanes, compiled once per instruction set; lanes are counters.
#if defined(GRADLOOM_KERNELS_RANDOM_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_RANDOM_PHILOX_INL_H_
#undef GRADLOOM_KERNELS_RANDOM_PHILOX_INL_H_
#else
#define GRADLOOM_KERNELS_RANDOM_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "gradloom/base/random.h"
#include "gradloom/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::random {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// Of philox4x32.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

// philox4x32 of `counters` counters {first, c[1], c[2], c[3]}, {first + 1, ...}: four words each, one after the other.
template <std::size_t counters, class D>
HWY_INLINE void random_words(D d32, std::uint32_t first, const std::array<std::uint32_t, 4>& c,
                             const std::array<std::uint32_t, 2>& key, std::uint32_t* HWY_RESTRICT words) {
  if constexpr (hn::MaxLanes(d32) < 4) {
    for (std::uint32_t i = 0; i < counters; ++i) {
      const auto w = philox4x32({first + i, c[1], c[2], c[3]}, key);
      std::copy(w.begin(), w.end(), words + 4 * i);
    }
  } else {
    const hn::Repartition<std::uint64_t, D> d;
    using V = hn::Vec<decltype(d)>;
    constexpr std::size_t lanes = hn::MaxLanes(d), kTogether = 4;
    static_assert(counters % (lanes * kTogether) == 0);
    const auto m0 = hn::BitCast(d32, hn::Set(d, kMultiplier0)), m1 = hn::BitCast(d32, hn::Set(d, kMultiplier1));
    const V low = hn::Set(d, 0xffffffffu);
    std::uint64_t pairs[2 * lanes];
    for (std::size_t i = 0; i < counters; i += lanes * kTogether) {
      // A word is the lower half of a lane; what stands above it is never looked at.
      V c0[kTogether], c1[kTogether], c2[kTogether], c3[kTogether];
      unroll<kTogether>([&](auto t) GRADLOOM_UNROLLED {
        c0[t] = hn::Add(hn::Set(d, first + i + t * lanes), hn::Iota(d, 0));
        c1[t] = hn::Set(d, c[1]), c2[t] = hn::Set(d, c[2]), c3[t] = hn::Set(d, c[3]);
      });
      std::uint32_t key0 = key[0], key1 = key[1];
      for (int round = 0; round < kRounds; ++round) {
        const V k0 = hn::Set(d, key0), k1 = hn::Set(d, key1);
        unroll<kTogether>([&](auto t) GRADLOOM_UNROLLED {
          const V a = hn::MulEven(hn::BitCast(d32, c0[t]), m0), b = hn::MulEven(hn::BitCast(d32, c2[t]), m1);
          c0[t] = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1[t]), k0);
          c2[t] = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3[t]), k1);
          c1[t] = b, c3[t] = a;
        });
        key0 += kWeyl0, key1 += kWeyl1;
      }
      unroll<kTogether>([&](auto t) GRADLOOM_UNROLLED {
        const V left = hn::Or(hn::And(c0[t], low), hn::ShiftLeft<32>(c1[t]));
        const V right = hn::Or(hn::And(c2[t], low), hn::ShiftLeft<32>(c3[t]));
        hn::StoreInterleaved2(left, right, d, pairs);
        std::memcpy(words + 4 * (i + t * lanes), pairs, sizeof(pairs));
      });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::random
HWY_AFTER_NAMESPACE();

#endif  // per target
