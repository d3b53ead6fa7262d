// Sorts the samples of a chunk by their spans, stably; compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_SPLINE_SPAN_SORT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SPLINE_SPAN_SORT_INL_H_
#undef GRADLOOM_KERNELS_SPLINE_SPAN_SORT_INL_H_
#else
#define GRADLOOM_KERNELS_SPLINE_SPAN_SORT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <type_traits>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/spline.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::HWY_NAMESPACE::unroll;

// Samples are named by 16 times their index in the chunk: from this the addressing modes of the processor reach all
// that belongs to a sample.
inline constexpr std::size_t kSampleUnit = 16;

// Hides what is known about a pointer, so that two loads through it stay two loads, and pointers to columns stay apart.
template <class T>
HWY_INLINE void forget([[maybe_unused]] T*& p) {
#if HWY_TARGET <= HWY_AVX2 && HWY_COMPILER_GCC_ACTUAL
  asm volatile("" : "+r"(p));
#endif
}

// What belongs to a sample in an array with `stride` numbers per sample.
template <std::size_t stride, class T>
HWY_INLINE T* of_sample(T* first, std::size_t sample) {
  static_assert(stride * sizeof(T) % kSampleUnit == 0);
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(first) + sample * (stride * sizeof(T) / kSampleUnit));
}

// Sorting may write so many numbers beyond the last sample.
inline constexpr std::size_t kSortOverrun = 32;

// Stable counting sort.
HWY_NOINLINE inline void sort_many_spans(const std::uint16_t* HWY_RESTRICT span, std::size_t count, unsigned grid,
                                         std::uint16_t* HWY_RESTRICT samples, std::uint16_t* HWY_RESTRICT start) {
  std::uint16_t next[kMaxGrid + 1];
  std::fill_n(next, grid + 1, std::uint16_t{0});
  for (std::size_t s = 0; s < count; ++s) ++next[span[s] + 1];
  for (unsigned g = 0; g < grid; ++g) {
    next[g + 1] = static_cast<std::uint16_t>(next[g + 1] + next[g]);
    start[g] = next[g];
  }
  start[grid] = next[grid];
  for (std::size_t s = 0; s < count; ++s) samples[next[span[s]]++] = static_cast<std::uint16_t>(s * kSampleUnit);
}

inline constexpr unsigned kFewSpans = HWY_TARGET <= HWY_AVX3_DL ? 32 : 16;

#if HWY_TARGET <= HWY_AVX3_DL
// The same for at most kFewSpans spans: the samples of each span, compressed.
HWY_INLINE void sort_few_spans(const std::uint16_t* HWY_RESTRICT span, std::size_t count, unsigned grid,
                               std::uint16_t* HWY_RESTRICT samples, std::uint16_t* HWY_RESTRICT start) {
  constexpr hn::CappedTag<std::uint16_t, 32> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  static_assert(lanes <= kSortOverrun);
  hn::Vec<decltype(d)> spans[kChunk / lanes];
  const std::size_t all = divide_up(count, lanes);
  for (std::size_t w = 0; w < all; ++w) {
    // Lanes beyond the last sample belong to no span.
    const auto present = hn::FirstN(d, std::min(lanes, count - w * lanes));
    spans[w] = hn::IfThenElse(present, hn::MaskedLoad(present, d, span + w * lanes), hn::Set(d, 0xffff));
  }
  const auto positions = hn::Mul(hn::Iota(d, 0), hn::Set(d, kSampleUnit));
  std::uint16_t* to = samples;
  for (unsigned g = 0; g < grid; ++g) {
    start[g] = static_cast<std::uint16_t>(to - samples);
    const auto wanted = hn::Set(d, static_cast<std::uint16_t>(g));
    auto here = positions;
    for (std::size_t w = 0; w < all; ++w) {
      const auto mask = hn::Eq(spans[w], wanted);
      hn::StoreU(hn::Compress(here, mask), d, to);
      to += hn::CountTrue(d, mask);
      here = hn::Add(here, hn::Set(d, lanes * kSampleUnit));
    }
  }
  start[grid] = static_cast<std::uint16_t>(count);
}
#elif HWY_TARGET <= HWY_AVX2
// For each byte the positions of its bits, in units of samples, the first one lowest.
struct BitPositions {
  std::uint64_t of[256] = {};
  constexpr BitPositions() {
    for (unsigned byte = 0; byte < 256; ++byte)
      for (unsigned bit = 0, n = 0; bit < 8; ++bit)
        if (byte >> bit & 1) of[byte] |= std::uint64_t{bit * kSampleUnit} << (8 * n++);
  }
};
alignas(64) inline constexpr BitPositions kBitPositions;

// The same for at most kFewSpans spans: a mask of the samples of each span, and from a table where its bits are.
HWY_INLINE void sort_few_spans(const std::uint16_t* HWY_RESTRICT span, std::size_t count, unsigned grid,
                               std::uint16_t* HWY_RESTRICT samples, std::uint16_t* HWY_RESTRICT start) {
  constexpr std::size_t kWord = 32;
  __m256i words[kChunk / kWord];  // the spans as bytes
  const std::size_t full = count / kWord, all = divide_up(count, kWord);
  const auto load = [](const std::uint16_t* from) GRADLOOM_UNROLLED {
    const auto* at = reinterpret_cast<const __m256i*>(from);
    const __m256i mixed = _mm256_packus_epi16(_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1));
    return _mm256_permute4x64_epi64(mixed, 0xd8);
  };
  for (std::size_t w = 0; w < full; ++w) words[w] = load(span + w * kWord);
  if (full != all) {
    std::uint16_t tail[kWord];
    std::fill_n(tail, kWord, std::uint16_t{kFewSpans});
    std::copy(span + full * kWord, span + count, tail);
    words[full] = load(tail);
  }
  std::uint16_t* to = samples;
  for (unsigned g = 0; g < grid; ++g) {
    start[g] = static_cast<std::uint16_t>(to - samples);
    const __m256i wanted = _mm256_set1_epi8(static_cast<char>(g));
    for (std::size_t w = 0; w < all; ++w) {
      const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(words[w], wanted)));
      unroll<4>([&](auto n) GRADLOOM_UNROLLED {
        const std::uint32_t byte = mask >> (8 * n) & 255;
        const __m128i first = _mm_set1_epi16(static_cast<short>((w * kWord + 8 * n) * kSampleUnit));
        const __m128i positions = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&kBitPositions.of[byte]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_add_epi16(first, _mm_cvtepu8_epi16(positions)));
        to += std::popcount(byte);
      });
    }
  }
  start[grid] = static_cast<std::uint16_t>(count);
}
#endif

HWY_INLINE void sort_by_span(const std::uint16_t* span, std::size_t count, unsigned grid, std::uint16_t* samples,
                             std::uint16_t* start) {
#if HWY_TARGET <= HWY_AVX2
  if (grid <= kFewSpans) return sort_few_spans(span, count, grid, samples, start);
#endif
  sort_many_spans(span, count, grid, samples, start);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#endif  // per target
