// weight_gradient and bias_gradient on SIMD. The samples of a chunk are sorted by span; then either one row of the
// gradient with many outputs is summed at a time (small chunks, whose dl_dy fits the first-level cache), or the p + 1
// rows of a span with few outputs.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/spline/weight_gradient_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>
#include <cstring>

#include "gradloom/kernels/spline/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::HWY_NAMESPACE::Index;
using kernels::HWY_NAMESPACE::pin;
using kernels::HWY_NAMESPACE::Tag;
using kernels::HWY_NAMESPACE::unroll;

// A sample in sorted order: where its dl_dy and its basis value of row 0 (which need not exist) lie, in bytes.
struct SortedSample {
  std::uint32_t dl_dy;
  std::int32_t value;
};

// One input and one chunk of samples.
template <class T>
struct SortedChunk {
  SortedSample samples[kChunk];
  std::uint16_t start[kMaxGrid + 1];  // samples of span g: start[g] .. start[g + 1]
  const T* value;                     // of the chunk's first sample
  const T* base;
};

// Stable counting sort; the counters live in memory.
template <class T>
HWY_NOINLINE void sort_many_spans(const std::uint16_t* HWY_RESTRICT span, std::size_t count, unsigned grid,
                                  std::size_t q, SortedChunk<T>* HWY_RESTRICT chunk) {
  std::uint16_t next[kMaxGrid + 1];
  std::fill_n(next, grid + 1, std::uint16_t{0});
  for (std::size_t s = 0; s < count; ++s) ++next[span[s] + 1];
  for (unsigned g = 0; g < grid; ++g) {
    next[g + 1] = static_cast<std::uint16_t>(next[g + 1] + next[g]);
    chunk->start[g] = next[g];
  }
  chunk->start[grid] = next[grid];
  for (std::size_t s = 0; s < count; ++s) {
    const std::size_t g = span[s];
    chunk->samples[next[g]++] = {static_cast<std::uint32_t>(s * kPanel * sizeof(T)),
                                 static_cast<std::int32_t>((s * q - g) * sizeof(T))};
  }
}

// The same for at most 8 spans: one register holds all counters, a byte each. While samples are placed, the counter of
// a span may overflow only when no sample of a later span exists.
template <class T>
HWY_INLINE void sort_few_spans(const std::uint16_t* HWY_RESTRICT span, std::size_t count, unsigned grid, std::size_t q,
                               SortedChunk<T>* HWY_RESTRICT chunk) {
  static_assert(kChunk <= 256);
  std::uint64_t counts[2] = {0, 0};  // of the even and odd samples: at most 128 each
  std::size_t s = 0;
  for (; s + 2 <= count; s += 2) {
    counts[0] += std::uint64_t{1} << (8 * span[s]);
    counts[1] += std::uint64_t{1} << (8 * span[s + 1]);
  }
  if (s < count) counts[0] += std::uint64_t{1} << (8 * span[s]);
  std::uint64_t next = 0;
  std::uint32_t below = 0;
  for (unsigned g = 0; g < grid; ++g) {
    chunk->start[g] = static_cast<std::uint16_t>(below);
    next |= static_cast<std::uint64_t>(below & 255) << (8 * g);
    below += static_cast<std::uint8_t>(counts[0] >> (8 * g));
    below += static_cast<std::uint8_t>(counts[1] >> (8 * g));
  }
  chunk->start[grid] = static_cast<std::uint16_t>(count);
  // Both offsets of a sample in one word.
  constexpr std::uint64_t kValueUnit = std::uint64_t{sizeof(T)} << 32;
  const std::uint64_t step = q * kValueUnit + kPanel * sizeof(T);
  std::uint64_t offsets = 0;
  char* sorted = reinterpret_cast<char*>(chunk->samples);
  for (s = 0; s < count; ++s, offsets += step) {
    const std::uint64_t g = span[s], entry = offsets - g * kValueUnit;
    std::memcpy(sorted + (next >> (8 * g) & 255) * sizeof(entry), &entry, sizeof(entry));
    next += std::uint64_t{1} << (8 * g);
  }
}

template <class T>
HWY_INLINE void sort_by_span(const std::uint16_t* span, std::size_t count, unsigned grid, std::size_t q,
                             SortedChunk<T>* chunk) {
#if HWY_TARGET == HWY_AVX2
  if (grid <= 8) return sort_few_spans(span, count, grid, q, chunk);
#endif
  sort_many_spans(span, count, grid, q, chunk);
}

template <class T>
HWY_INLINE const T* at_byte(const T* p, std::ptrdiff_t bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(p) + bytes);
}

enum class Write { store, add };

template <class T, class V>
HWY_INLINE void write_sum(Write write, V sum, T* to) {
  constexpr Tag<T> d;
  hn::StoreU(write == Write::store ? sum : hn::Add(hn::LoadU(d, to), sum), d, to);
}

// Row sums of `count` vectors of outputs over sorted samples [from, to): factor(sample) * dl_dy.
template <std::size_t count, class T, class Factor>
HWY_INLINE void sum_row(const SortedSample* from, const SortedSample* to, const T* dl_dy, std::size_t panel_stride,
                        Write write, T* HWY_RESTRICT gradient, Factor&& factor) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), per_panel = kPanel / lanes;
  using V = hn::Vec<Tag<T>>;
  V acc[count];
  unroll<count>([&](auto v) GRADLOOM_UNROLLED { acc[v] = hn::Zero(d); });
  constexpr std::size_t panels = (count + per_panel - 1) / per_panel;
  const T* panel[panels];
  panel[0] = dl_dy;
  if constexpr (panels > 1)
    unroll<panels - 1>([&](auto n) GRADLOOM_UNROLLED { panel[n + 1] = panel[n] + panel_stride; });
  for (; from != to; ++from) {
    const std::size_t offset = from->dl_dy;
    const V f = hn::Set(d, *factor(from));
    unroll<count>([&](auto v) GRADLOOM_UNROLLED {
      const V dy = hn::LoadU(d, at_byte(panel[v / per_panel], offset) + (v % per_panel) * lanes);
      acc[v] = hn::Add(acc[v], hn::Mul(f, dy));
      pin(acc[v]);
    });
  }
  unroll<count>([&](auto v) GRADLOOM_UNROLLED { write_sum(write, acc[v], gradient + v * lanes); });
}

// All rows of one input, one row at a time.
template <std::size_t count, class T>
HWY_NOINLINE void by_row(const Shape& shape, const SortedChunk<T>& chunk, const T* dl_dy, std::size_t panel_stride,
                         Write write, T* gradient) {
  const std::size_t out = shape.out_padded();
  const SortedSample* samples = chunk.samples;
  const unsigned p = shape.degree, grid = shape.grid;
  for (unsigned r = 0; r < grid + p; ++r) {
    const std::size_t from = chunk.start[r > p ? r - p : 0], to = chunk.start[std::min(r + 1, grid)];
    if (from == to) continue;
    const T* value = chunk.value + r;
    sum_row<count>(samples + from, samples + to, dl_dy, panel_stride, write, gradient + r * out,
                   [value](const SortedSample* s) GRADLOOM_UNROLLED { return at_byte(value, s->value); });
  }
}

// The base row of one input.
template <std::size_t count, class T>
HWY_NOINLINE void base_row(const Shape& shape, const SortedChunk<T>& chunk, const T* dl_dy, std::size_t panel_stride,
                           Write write, T* gradient) {
  const T* base = chunk.base;
  sum_row<count>(chunk.samples, chunk.samples + chunk.start[shape.grid], dl_dy, panel_stride, write,
                 gradient + (shape.rows() - 1) * shape.out_padded(),
                 [base](const SortedSample* s) GRADLOOM_UNROLLED { return at_byte(base, s->dl_dy / kPanel); });
}

// The samples of one span: `count` vectors of p + 1 rows, and of the base row. The first row is complete afterwards and
// is written; the others wait in `open` (p rows, then the base row) for the next span.
template <int kDegree, bool kBase, std::size_t count, class T>
HWY_INLINE void sum_span(const SortedSample* from, const SortedSample* to, const T* value, const T* base,
                         const T* dl_dy, std::size_t panel_stride, Write write, T* HWY_RESTRICT open,
                         T* HWY_RESTRICT row) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), rows = kDegree + 1, sums = (rows + (kBase ? 1 : 0)) * count;
  using V = hn::Vec<Tag<T>>;
  V acc[sums];
  unroll<sums>([&](auto a) GRADLOOM_UNROLLED {
    constexpr std::size_t r = a / count;
    if constexpr (r == kDegree)
      acc[a] = hn::Zero(d);
    else
      acc[a] = hn::LoadU(d, open + (r > kDegree ? a - count : a) * lanes);
  });
  for (; from != to; ++from) {
    const std::size_t offset = from->dl_dy;
    const T* factors = at_byte(value, from->value);
    V dy[count];
    unroll<count>([&](auto v) GRADLOOM_UNROLLED {
      constexpr std::size_t j = v * lanes;
      dy[v] = hn::LoadU(d, at_byte(dl_dy + (j / kPanel) * panel_stride, offset) + j % kPanel);
    });
    unroll<rows>([&](auto k) GRADLOOM_UNROLLED {
      const V f = hn::Set(d, factors[k]);
      unroll<count>([&](auto v) GRADLOOM_UNROLLED {
        V& sum = acc[k * count + v];
        sum = hn::Add(sum, hn::Mul(f, dy[v]));
        pin(sum);
      });
    });
    if constexpr (kBase) {
      const V f = hn::Set(d, *at_byte(base, offset / kPanel));
      unroll<count>([&](auto v) GRADLOOM_UNROLLED {
        V& sum = acc[rows * count + v];
        sum = hn::Add(sum, hn::Mul(f, dy[v]));
        pin(sum);
      });
    }
  }
  unroll<sums>([&](auto a) GRADLOOM_UNROLLED {
    if constexpr (a < count)
      write_sum(write, acc[a], row + a * lanes);
    else
      hn::StoreU(acc[a], d, open + (a - count) * lanes);
  });
}

// All rows of one input, span by span with p + 1 rows in registers.
template <int kDegree, bool kBase, std::size_t count, class T>
HWY_NOINLINE void by_span(const Shape& shape, const SortedChunk<T>& chunk, const T* dl_dy, std::size_t panel_stride,
                          Write write, T* gradient) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  const std::size_t out = shape.out_padded(), grid = shape.grid;
  alignas(64) T open[(kDegree + 1) * count * lanes];
  for (std::size_t n = 0; n < (kDegree + 1) * count; ++n) hn::StoreU(hn::Zero(d), d, open + n * lanes);
  const std::uint16_t* start = chunk.start;
  T* row = gradient;
  for (std::size_t g = 0; g < grid; ++g, row += out) {
    const std::size_t window = start[g > kDegree ? g - kDegree : 0];  // first sample that this row takes
    if (start[g + 1] == window) continue;                             // none: all open sums are zero
    sum_span<kDegree, kBase, count>(chunk.samples + start[g], chunk.samples + start[g + 1], chunk.value + g, chunk.base,
                                    dl_dy, panel_stride, write, open, row);
  }
  for (std::size_t k = 0; k < kDegree; ++k) {
    const std::size_t first = grid + k > kDegree ? grid + k - kDegree : 0;
    if (start[first] == start[grid]) continue;
    for (std::size_t v = 0; v < count; ++v)
      write_sum(write, hn::LoadU(d, open + (k * count + v) * lanes), row + k * out + v * lanes);
  }
  if constexpr (kBase)
    for (std::size_t v = 0; v < count; ++v)
      write_sum(write, hn::LoadU(d, open + (kDegree * count + v) * lanes),
                gradient + (shape.rows() - 1) * out + v * lanes);
}

// What the first chunk leaves untouched, when overwriting: rows without samples, and the lanes beyond OutL.
template <class T>
HWY_INLINE void zero_untouched(const Shape& shape, const SortedChunk<T>& chunk, T* gradient) {
  const std::size_t out = shape.out_padded(), lanes = shape.out_lanes(), rows = shape.rows();
  const unsigned p = shape.degree, grid = shape.grid;
  for (unsigned r = 0; r < grid + p; ++r)
    if (chunk.start[r > p ? r - p : 0] == chunk.start[std::min(r + 1, grid)])
      std::fill_n(gradient + r * out, out, T(0));
  if (lanes != out)
    for (std::size_t r = 0; r < rows; ++r) std::fill(gradient + r * out + lanes, gradient + (r + 1) * out, T(0));
}

inline constexpr std::size_t kInputsAtOnce = 8;

// Some inputs, one chunk, all outputs. kDegree 0: any degree, always row by row. The dl_dy of a few outputs stays in
// the first-level cache while all inputs take it.
template <int kDegree, bool kBase, class T>
HWY_INLINE void chunk_gradient(const Shape& shape, const SortedChunk<T>* chunks, std::size_t inputs,
                               std::size_t samples, const T* dl_dy, std::size_t panel_stride, Write write,
                               T* gradient) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  constexpr std::size_t kRowBudget = 20 * 1024;  // bytes of dl_dy that stay in the first-level cache beside the rest
  constexpr bool base_with_span = kBase && kDegree <= 4;
  const std::size_t vectors = shape.out_lanes() / lanes, size = shape.rows() * shape.out_padded();
  const bool rows_at_once = kDegree == 0 || samples * 8 * lanes * sizeof(T) <= kRowBudget;
  for (std::size_t v = 0; v < vectors;) {
    const std::size_t left = vectors - v, j = v * lanes;
    const T* dy = dl_dy + (j / kPanel) * panel_stride + j % kPanel;
    const auto rows = [&](auto count) GRADLOOM_UNROLLED {
      for (std::size_t i = 0; i < inputs; ++i) {
        by_row<count>(shape, chunks[i], dy, panel_stride, write, gradient + i * size + j);
        if (kBase) base_row<count>(shape, chunks[i], dy, panel_stride, write, gradient + i * size + j);
      }
      v += count;
    };
    const auto spans = [&](auto count) GRADLOOM_UNROLLED {
      for (std::size_t i = 0; i < inputs; ++i) {
        by_span<kDegree, base_with_span, count>(shape, chunks[i], dy, panel_stride, write, gradient + i * size + j);
        if (kBase && !base_with_span)
          base_row<count>(shape, chunks[i], dy, panel_stride, write, gradient + i * size + j);
      }
      v += count;
    };
    if (rows_at_once && left >= 8) {
      rows(Index<8>{});
    } else if constexpr (kDegree != 0) {
      if (kDegree <= 3 && left == 3)
        spans(Index<3>{});
      else if (left >= 2)
        spans(Index<2>{});
      else
        spans(Index<1>{});
    } else if (left >= 4) {
      rows(Index<4>{});
    } else {
      rows(Index<1>{});
    }
  }
}

template <int kDegree, bool kBase, class T>
void weight_gradient_degree(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
                            GradientMode mode, T* dl_dw) {
  const std::size_t q = basis_stride(shape.degree), batch = tape.batch, size = shape.rows() * shape.out_padded();
  if (mode == GradientMode::overwrite && batch == 0)
    std::fill(dl_dw + inputs.begin * size, dl_dw + inputs.end * size, T(0));
  SortedChunk<T> chunks[kInputsAtOnce];
  for (std::size_t i = inputs.begin; i < inputs.end; i += kInputsAtOnce) {
    const std::size_t at_once = std::min(kInputsAtOnce, inputs.end - i);
    T* gradient = dl_dw + i * size;
    for (std::size_t first = 0; first < batch; first += kChunk) {
      const std::size_t count = std::min(kChunk, batch - first);
      const Write write = mode == GradientMode::overwrite && first == 0 ? Write::store : Write::add;
      for (std::size_t n = 0; n < at_once; ++n) {
        const std::size_t at = (i + n) * batch + first;
        SortedChunk<T>& chunk = chunks[n];
        sort_by_span(tape.span + at, count, shape.grid, q, &chunk);
        chunk.value = tape.value + at * q;
        chunk.base = kBase ? tape.base_value + at : nullptr;
        if (write == Write::store) zero_untouched(shape, chunk, gradient + n * size);
      }
      chunk_gradient<kDegree, kBase>(shape, chunks, at_once, count, dl_dy + first * kPanel, batch * kPanel, write,
                                     gradient);
    }
  }
}

template <bool kBase, class T>
void weight_gradient_base(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs, GradientMode mode,
                          T* dl_dw) {
#if HWY_TARGET <= HWY_AVX2  // the other instruction sets make do with one row at a time
  switch (shape.degree) {
    case 2:
      return weight_gradient_degree<specialised(2), kBase>(shape, tape, dl_dy, inputs, mode, dl_dw);
    case 3:
      return weight_gradient_degree<specialised(3), kBase>(shape, tape, dl_dy, inputs, mode, dl_dw);
    case 4:
      return weight_gradient_degree<specialised(4), kBase>(shape, tape, dl_dy, inputs, mode, dl_dw);
    case 5:
      return weight_gradient_degree<specialised(5), kBase>(shape, tape, dl_dy, inputs, mode, dl_dw);
    default:
      break;
  }
#endif
  weight_gradient_degree<0, kBase>(shape, tape, dl_dy, inputs, mode, dl_dw);
}

template <class T>
void weight_gradient_any(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs, GradientMode mode,
                         T* dl_dw) {
  if (shape.base)
    weight_gradient_base<true>(shape, tape, dl_dy, inputs, mode, dl_dw);
  else
    weight_gradient_base<false>(shape, tape, dl_dy, inputs, mode, dl_dw);
}

template <class T>
void bias_gradient_any(const Shape& shape, std::size_t batch, const T* dl_dy, GradientMode mode, T* dl_db) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), per_panel = kPanel / lanes;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t panel = 0; panel < shape.out_padded() / kPanel; ++panel) {
    for (std::size_t v = 0; v < per_panel; ++v) {
      T* to = dl_db + panel * kPanel + v * lanes;
      const T* dy = dl_dy + panel * batch * kPanel + v * lanes;
      if (mode == GradientMode::overwrite) hn::StoreU(hn::Zero(d), d, to);
      for (std::size_t first = 0; first < batch; first += kChunk) {
        V acc = hn::Zero(d);
        for (std::size_t s = first; s < std::min(first + kChunk, batch); ++s)
          acc = hn::Add(acc, hn::LoadU(d, dy + s * kPanel));
        const bool store = mode == GradientMode::overwrite && first == 0;
        hn::StoreU(store ? acc : hn::Add(hn::LoadU(d, to), acc), d, to);
      }
    }
  }
}

void weight_gradient_float(const Shape& shape, const LayerTape<float>& tape, const float* dl_dy, Range inputs,
                           GradientMode mode, float* dl_dw) {
  weight_gradient_any(shape, tape, dl_dy, inputs, mode, dl_dw);
}
void weight_gradient_double(const Shape& shape, const LayerTape<double>& tape, const double* dl_dy, Range inputs,
                            GradientMode mode, double* dl_dw) {
  weight_gradient_any(shape, tape, dl_dy, inputs, mode, dl_dw);
}
void bias_gradient_float(const Shape& shape, std::size_t batch, const float* dl_dy, GradientMode mode, float* dl_db) {
  bias_gradient_any(shape, batch, dl_dy, mode, dl_db);
}
void bias_gradient_double(const Shape& shape, std::size_t batch, const double* dl_dy, GradientMode mode,
                          double* dl_db) {
  bias_gradient_any(shape, batch, dl_dy, mode, dl_db);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
HWY_EXPORT(weight_gradient_float);
HWY_EXPORT(weight_gradient_double);
HWY_EXPORT(bias_gradient_float);
HWY_EXPORT(bias_gradient_double);
namespace fast {
void weight_gradient(const Shape& shape, const LayerTape<float>& tape, const float* dl_dy, Range inputs,
                     GradientMode mode, float* dl_dw) {
  HWY_DYNAMIC_DISPATCH(weight_gradient_float)(shape, tape, dl_dy, inputs, mode, dl_dw);
}
void weight_gradient(const Shape& shape, const LayerTape<double>& tape, const double* dl_dy, Range inputs,
                     GradientMode mode, double* dl_dw) {
  HWY_DYNAMIC_DISPATCH(weight_gradient_double)(shape, tape, dl_dy, inputs, mode, dl_dw);
}
void bias_gradient(const Shape& shape, std::size_t batch, const float* dl_dy, GradientMode mode, float* dl_db) {
  HWY_DYNAMIC_DISPATCH(bias_gradient_float)(shape, batch, dl_dy, mode, dl_db);
}
void bias_gradient(const Shape& shape, std::size_t batch, const double* dl_dy, GradientMode mode, double* dl_db) {
  HWY_DYNAMIC_DISPATCH(bias_gradient_double)(shape, batch, dl_dy, mode, dl_db);
}
}  // namespace fast
}  // namespace gradloom::kernels::spline
#endif
