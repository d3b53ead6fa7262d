// Random bits for dropout; lanes are counters of Philox.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/rowwise/dropout_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>
#include <cstring>

#include "gradloom/base/random.h"
#include "gradloom/kernels/rowwise/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::rowwise {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// Of philox4x32.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

// philox4x32 of `counters` counters from `first` on, four words of 32 bits each, one after the other.
template <std::size_t counters, class D>
HWY_INLINE void random_words(D d32, std::uint32_t first, const DropoutKey& k, std::uint32_t* HWY_RESTRICT words) {
  if constexpr (hn::MaxLanes(d32) < 4) {
    for (std::uint32_t i = 0; i < counters; ++i) {
      const auto w = philox4x32({first + i, k.sample, k.epoch, k.use}, k.key);
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
        c1[t] = hn::Set(d, k.sample), c2[t] = hn::Set(d, k.epoch), c3[t] = hn::Set(d, k.use);
      });
      std::uint32_t key0 = k.key[0], key1 = k.key[1];
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

void keep_numbers(const DropoutKey& k, std::size_t begin, std::size_t end, std::uint8_t* HWY_RESTRICT keep) {
  constexpr std::size_t kCounters = 32, kNumbers = 8 * kCounters;
  std::uint32_t words[4 * kCounters];
  std::uint16_t halves[kNumbers];
  std::uint8_t kept[kNumbers];
  const auto least = static_cast<std::uint16_t>(std::min(k.threshold, 0xffffu));
  const std::uint8_t any = k.threshold > 0xffffu ? 0 : 1;
  for (std::size_t n = begin; n < end; n += kNumbers) {
    random_words<kCounters>(Tag<std::uint32_t>(), static_cast<std::uint32_t>(n / 8), k, words);
    std::memcpy(halves, words, sizeof(words));  // the lower half of a word comes first
    for (std::size_t i = 0; i < kNumbers; ++i) kept[i] = halves[i] >= least ? any : 0;
    std::memcpy(keep + n, kept, std::min(kNumbers, end - n));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::rowwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::rowwise {
HWY_EXPORT(keep_numbers);
namespace fast {
void keep_numbers(const DropoutKey& k, std::size_t begin, std::size_t end, std::uint8_t* keep) {
  HWY_DYNAMIC_DISPATCH(keep_numbers)(k, begin, end, keep);
}
}  // namespace fast
}  // namespace gradloom::kernels::rowwise
#endif
