// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/random/random_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/random/philox-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>

#include "gradloom/kernels/random/random.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::random {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// The first words of `count` positions.
void first_words(const RandomStream& stream, std::uint32_t first, std::size_t count, std::uint32_t* HWY_RESTRICT to) {
  constexpr std::size_t kCounters = 32;
  std::uint32_t words[4 * kCounters];
  for (std::size_t n = 0; n < count; n += kCounters) {
    random_words<kCounters>(Tag<std::uint32_t>(), first + static_cast<std::uint32_t>(n), stream.counter(), stream.key(),
                            words);
    for (std::size_t i = 0; i < std::min(kCounters, count - n); ++i) to[n + i] = words[4 * i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::random
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::random {
HWY_EXPORT(first_words);

void random_words(Variant variant, const RandomStream& stream, std::uint32_t first, std::span<std::uint32_t> words) {
  if (variant == Variant::fast) return HWY_DYNAMIC_DISPATCH(first_words)(stream, first, words.size(), words.data());
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(stream.bits(first++) >> 32);
}

void draws(Variant variant, const RandomStream& stream, std::uint32_t first, double probability,
           std::span<std::uint8_t> yes) {
  constexpr std::size_t kPiece = 256;
  std::uint32_t words[kPiece];
  for (std::size_t n = 0; n < yes.size(); n += kPiece) {
    const std::size_t count = std::min(kPiece, yes.size() - n);
    const std::uint32_t at = first + static_cast<std::uint32_t>(n);
    random_words(variant, stream, at, {words, count});
    for (std::size_t i = 0; i < count; ++i) {
      // The number that decides lies between low and low + 2^-32; only when that is not enough are all its bits asked.
      const double low = words[i] * 0x1p-32;
      yes[n + i] = low + 0x1p-32 <= probability ||
                   (low < probability && stream.uniform(at + static_cast<std::uint32_t>(i)) < probability);
    }
  }
}

template <class T>
void open_uniform(Variant variant, const RandomStream& stream, std::uint32_t first, std::span<T> u) {
  constexpr std::size_t kPiece = 256;
  std::uint32_t words[kPiece];
  for (std::size_t n = 0; n < u.size(); n += kPiece) {
    const std::size_t count = std::min(kPiece, u.size() - n);
    random_words(variant, stream, first + static_cast<std::uint32_t>(n), {words, count});
    for (std::size_t i = 0; i < count; ++i) u[n + i] = (static_cast<T>(words[i] >> 9) + T(0.5)) * T(0x1p-23);
  }
}

template void open_uniform<float>(Variant, const RandomStream&, std::uint32_t, std::span<float>);
template void open_uniform<double>(Variant, const RandomStream&, std::uint32_t, std::span<double>);

}  // namespace gradloom::kernels::random
#endif
