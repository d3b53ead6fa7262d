// weight_gradient and bias_gradient on SIMD. The samples of a chunk are sorted by span; then either one row of the
// gradient with many outputs is summed at a time (small chunks, whose dl_dy fits the first-level cache), or the p + 1
// rows of a span with few outputs.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/spline/weight_gradient_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/degree-inl.h"
#include "gradloom/kernels/spline/span_sort-inl.h"
// clang-format on

#include <algorithm>
#include <bit>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/spline/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::HWY_NAMESPACE::Index;
using kernels::HWY_NAMESPACE::mul_add;
using kernels::HWY_NAMESPACE::pin;
using kernels::HWY_NAMESPACE::Tag;
using kernels::HWY_NAMESPACE::unroll;
using kernels::HWY_NAMESPACE::WideTag;

inline constexpr std::size_t kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;

// One input and one chunk of samples.
template <class T>
struct SortedChunk {
  std::uint16_t samples[kChunk + kSortOverrun];  // by span, then by index
  std::uint16_t start[kMaxGrid + 1];             // samples of span g: start[g] .. start[g + 1]
  const T* value;                                // of the chunk's first sample
  const T* base;
};

enum class Write { store, add };

template <class T, class V>
HWY_INLINE void write_sum(Write write, V sum, T* to) {
  constexpr hn::DFromV<V> d;
  hn::StoreU(write == Write::store ? sum : hn::Add(hn::LoadU(d, to), sum), d, to);
}

// One row, `count` vectors of outputs: the sum of factor(n, sample) * dl_dy over the samples start[n] .. start[n + 1],
// n = 0..lists-1.
template <std::size_t count, class T, class Factor>
HWY_INLINE void sum_row(const std::uint16_t* samples, const std::uint16_t* start, std::size_t lists, const T* dl_dy,
                        std::size_t panel_stride, Write write, T* HWY_RESTRICT gradient, Factor&& factor) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), per_panel = kPanel / lanes;
  using V = hn::Vec<Tag<T>>;
  V acc[count];
  unroll<count>([&](auto v) GRADLOOM_UNROLLED { acc[v] = hn::Zero(d); });
  constexpr std::size_t panels = divide_up(count, per_panel);
  const T* panel[panels];
  panel[0] = dl_dy;
  if constexpr (panels > 1)
    unroll<panels - 1>([&](auto n) GRADLOOM_UNROLLED { panel[n + 1] = panel[n] + panel_stride; });
  for (std::size_t n = 0; n < lists; ++n) {
    const std::uint16_t* const to = samples + start[n + 1];
    for (const std::uint16_t* from = samples + start[n]; from != to; ++from) {
      const std::size_t sample = *from;
      const V f = hn::Set(d, *factor(n, sample));
      unroll<count>([&](auto v) GRADLOOM_UNROLLED {
        const V dy = hn::LoadU(d, of_sample<kPanel>(panel[v / per_panel], sample) + (v % per_panel) * lanes);
        acc[v] = mul_add(f, dy, acc[v]);
        pin(acc[v]);
      });
    }
  }
  unroll<count>([&](auto v) GRADLOOM_UNROLLED { write_sum(write, acc[v], gradient + v * lanes); });
}

// All rows of one input but the base row, one row at a time; any degree.
template <std::size_t count, class T>
HWY_NOINLINE void by_row(const Shape& shape, const SortedChunk<T>& chunk, const T* dl_dy, std::size_t panel_stride,
                         Write write, T* gradient) {
  const std::size_t out = shape.out_padded(), q = basis_stride(shape.degree);
  const unsigned p = shape.degree, grid = shape.grid;
  for (unsigned r = 0; r < grid + p; ++r) {
    const unsigned first = r > p ? r - p : 0, end = std::min(r + 1, grid);
    if (chunk.start[first] == chunk.start[end]) continue;
    const T* value = chunk.value + (r - first);
    sum_row<count>(chunk.samples, chunk.start + first, end - first, dl_dy, panel_stride, write, gradient + r * out,
                   [value, q](std::size_t n, std::size_t sample)
                       GRADLOOM_UNROLLED { return value + sample / kSampleUnit * q - n; });
  }
}

// The base row of one input.
template <std::size_t count, class T>
HWY_NOINLINE void base_row(const Shape& shape, const SortedChunk<T>& chunk, const T* dl_dy, std::size_t panel_stride,
                           Write write, T* gradient) {
  const T* base = chunk.base;
  const std::uint16_t start[2] = {0, chunk.start[shape.grid]};
  sum_row<count>(chunk.samples, start, 1, dl_dy, panel_stride, write,
                 gradient + (shape.rows() - 1) * shape.out_padded(),
                 [base](std::size_t, std::size_t sample) GRADLOOM_UNROLLED { return base + sample / kSampleUnit; });
}

// All rows of one input but the base row, `count` vectors of outputs from vector `first` on. The p + 1 rows of a span
// stay in registers while its samples pass; then the first of them is complete, and the others move up.
template <int kDegree, std::size_t count, class D, class T>
HWY_NOINLINE void by_span(D d, const Shape& shape, const SortedChunk<T>& chunk, const T* dl_dy,
                          std::size_t panel_stride, std::size_t first, Write write, T* gradient) {
  constexpr std::size_t lanes = hn::MaxLanes(d), per_panel = kPanel / lanes, rows = kDegree + 1;
  // What does not fit the registers beside the sums, a factor and a product is read from memory each time.
  constexpr std::size_t in_registers = std::min(count, kRegisters - 2 - rows * count);
  static_assert(rows * count + 2 < kRegisters);
  using V = hn::Vec<D>;
  const std::size_t out = shape.out_padded(), grid = shape.grid;
  const T* column[count];
  unroll<count>([&](auto v) GRADLOOM_UNROLLED {
    column[v] = dl_dy + (first + v) / per_panel * panel_stride + (first + v) % per_panel * lanes;
    forget(column[v]);
  });
  const std::uint16_t* start = chunk.start;
  const T* value = chunk.value;
  T* row = gradient + first * lanes;
  V sum[rows * count];
  unroll<rows * count>([&](auto a) GRADLOOM_UNROLLED { sum[a] = hn::Zero(d); });
  for (std::size_t g = 0; g < grid; ++g, row += out) {
    const std::uint16_t* const to = chunk.samples + start[g + 1];
    for (const std::uint16_t* from = chunk.samples + start[g]; from != to; ++from) {
      const std::size_t sample = *from;
      const T* factors = of_sample<basis_stride(kDegree)>(value, sample);
      const T* last = of_sample<kPanel>(column[count - 1], sample);
      V dy[count];
      unroll<in_registers>([&](auto v)
                               GRADLOOM_UNROLLED { dy[v] = hn::LoadU(d, of_sample<kPanel>(column[v], sample)); });
      unroll<rows>([&](auto k) GRADLOOM_UNROLLED {
        const V factor = hn::Set(d, factors[k]);
        unroll<count>([&](auto v) GRADLOOM_UNROLLED {
          V& s = sum[k * count + v];
          if constexpr (v < in_registers) {
            s = mul_add(factor, dy[v], s);
          } else {
            static_assert(v + 1 == count);
            forget(last);
            s = mul_add(factor, hn::LoadU(d, last), s);
          }
        });
      });
    }
    // No sample since the one that opened this row: all sums are zero.
    if (start[g + 1] == start[g > kDegree ? g - kDegree : 0]) continue;
    unroll<count>([&](auto v) GRADLOOM_UNROLLED { write_sum(write, sum[v], row + v * lanes); });
    unroll<rows * count>([&](auto a) GRADLOOM_UNROLLED {
      if constexpr (a < kDegree * count)
        sum[a] = sum[a + count];
      else
        sum[a] = hn::Zero(d);
    });
  }
  unroll<kDegree>([&](auto k) GRADLOOM_UNROLLED {
    if (start[grid + k > kDegree ? grid + k - kDegree : 0] != start[grid])
      unroll<count>([&](auto v) GRADLOOM_UNROLLED { write_sum(write, sum[k * count + v], row + k * out + v * lanes); });
  });
}

// What a chunk that is stored leaves untouched: rows without samples, and the lanes beyond OutL.
template <class T>
HWY_INLINE void empty_untouched(const Shape& shape, const SortedChunk<T>& chunk, T nothing, T* gradient) {
  constexpr Tag<T> d;
  const std::size_t out = shape.out_padded(), lanes = shape.out_lanes(), rows = shape.rows();
  const unsigned p = shape.degree, grid = shape.grid;
  for (unsigned r = 0; r < grid + p; ++r)
    if (chunk.start[r > p ? r - p : 0] == chunk.start[std::min(r + 1, grid)])
      std::fill_n(gradient + r * out, out, nothing);
  if (lanes == out) return;
  T* beyond = gradient + lanes;
  for (std::size_t r = 0; r < rows; ++r, beyond += out)
    unroll<kLanes / hn::MaxLanes(d)>(
        [&](auto v) GRADLOOM_UNROLLED { hn::StoreU(hn::Set(d, nothing), d, beyond + v * hn::MaxLanes(d)); });
}

inline constexpr std::size_t kInputsAtOnce = 8;

// Some inputs, one chunk, all outputs. kDegree 0: any degree, always row by row. The dl_dy of a few outputs stays in
// the first-level cache while all inputs take it. Calls each(n) before the first sums of the n-th of these inputs.
template <int kDegree, bool kBase, class T>
HWY_INLINE void chunk_gradient(const Shape& shape, const SortedChunk<T>* chunks, std::size_t inputs, const T* dl_dy,
                               std::size_t panel_stride, Write write, T* gradient, InputHook each) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  const std::size_t vectors = shape.out_lanes() / lanes, size = shape.rows() * shape.out_padded();
  bool told = false;
  const auto each_input = [&](auto&& f) GRADLOOM_UNROLLED {
    for (std::size_t i = 0; i < inputs; ++i) {
      if (!told) each(i);
      f(chunks[i], gradient + i * size);
    }
    told = true;
  };
  const auto column = [&](std::size_t v) GRADLOOM_UNROLLED {
    const std::size_t j = v * lanes;
    return dl_dy + (j / kPanel) * panel_stride + j % kPanel;
  };
  for (std::size_t v = 0; kDegree != 0 && v < vectors;) {
    // `count` vectors of the tag, from v on.
    const auto spans = [&](auto d, auto count) GRADLOOM_UNROLLED {
      constexpr std::size_t wide = hn::MaxLanes(d) / lanes;
      each_input([&](const SortedChunk<T>& chunk, T* to) GRADLOOM_UNROLLED {
        by_span<kDegree ? kDegree : 1, count>(d, shape, chunk, dl_dy, panel_stride, v / wide, write, to);
      });
      v += count * wide;
    };
    const std::size_t left = vectors - v;
#if HWY_TARGET <= HWY_AVX3
    // 32 registers hold the sums of four vectors up to degree 5.
    if (constexpr WideTag<T> wide; left >= 4 * hn::MaxLanes(wide) / lanes) {
      spans(wide, Index<4>{});
      continue;
    }
#endif
    constexpr Tag<T> d;
    if (kDegree <= 3 && left >= 3 && left != 4)
      spans(d, Index < kDegree <= 3 ? 3 : 1 > {});
    else if (left >= 2)
      spans(d, Index<2>{});
    else
      spans(d, Index<1>{});
  }
  for (std::size_t v = 0; (kDegree == 0 || kBase) && v < vectors;) {
    const auto rows = [&](auto count) GRADLOOM_UNROLLED {
      each_input([&](const SortedChunk<T>& chunk, T* to) GRADLOOM_UNROLLED {
        if (kDegree == 0) by_row<count>(shape, chunk, column(v), panel_stride, write, to + v * lanes);
        if (kBase) base_row<count>(shape, chunk, column(v), panel_stride, write, to + v * lanes);
      });
      v += count;
    };
    const std::size_t left = vectors - v;
    if (left >= 8)
      rows(Index<8>{});
    else if (left >= 4)
      rows(Index<4>{});
    else
      rows(Index<1>{});
  }
}

template <int kDegree, bool kBase, class T>
void weight_gradient_degree(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
                            const reduce::TreeSum<T>& dl_dw, InputHook each) {
  const std::size_t q = basis_stride(shape.degree), batch = tape.batch, stride = tape.pitch();
  const std::size_t size = shape.rows() * shape.out_padded();
  if (dl_dw.leaf + leaves(batch) == 0)
    std::fill(dl_dw.root + inputs.begin * size, dl_dw.root + inputs.end * size, T(0));
  SortedChunk<T> chunks[kInputsAtOnce];
  for (std::size_t i = inputs.begin; i < inputs.end; i += kInputsAtOnce) {
    const std::size_t at_once = std::min(kInputsAtOnce, inputs.end - i);
    const reduce::TreeSum<T> sum = dl_dw.at(i * size);
    for (std::size_t first = 0; first < batch; first += kChunk) {
      const std::size_t count = std::min(kChunk, batch - first);
      const std::size_t leaf = sum.leaf + first / kChunk;
      const reduce::LeafPlace place = reduce::place_of(leaf);
      const Write write = place.store ? Write::store : Write::add;
      T* gradient = sum.level(place.level);
      for (std::size_t n = 0; n < at_once; ++n) {
        const std::size_t at = (i + n) * stride + first;
        SortedChunk<T>& chunk = chunks[n];
        sort_by_span(tape.span + at, count, shape.grid, chunk.samples, chunk.start);
        chunk.value = tape.value + at * q;
        chunk.base = kBase ? tape.base_value + at : nullptr;
        if (place.store) empty_untouched(shape, chunk, sum.nothing(leaf), gradient + n * size);
      }
      const bool is_last = first + count == batch;
      chunk_gradient<kDegree, kBase>(shape, chunks, at_once, dl_dy + first * kPanel, stride * kPanel, write, gradient,
                                     [&](std::size_t n) {
                                       if (is_last) each(i + n);
                                     });
      reduce::merge_levels(sum, leaf, 0, at_once * size);
    }
    if (sum.complete) reduce::finish_levels(sum, sum.leaf + leaves(batch), 0, at_once * size);
  }
}

template <class T>
void weight_gradient(const Shape& shape, const LayerTape<T>& tape, const T* dl_dy, Range inputs,
                     const reduce::TreeSum<T>& dl_dw, InputHook each) {
  for_degree(shape.degree, shape.base, [&](auto degree, auto base) GRADLOOM_UNROLLED {
    weight_gradient_degree<degree, base>(shape, tape, dl_dy, inputs, dl_dw, each);
  });
}

// `count` vectors of the bias, from dl_db[from] on. Additions of one sum wait for each other; those of several vectors
// do not.
template <std::size_t count, class T>
HWY_INLINE void bias_vectors(SampleExtent batch, const T* dl_dy, std::size_t from, const reduce::TreeSum<T>& dl_db) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  using V = hn::Vec<Tag<T>>;
  const T* column[count];
  unroll<count>([&](auto v) GRADLOOM_UNROLLED {
    const std::size_t j = from + v * lanes;
    column[v] = dl_dy + j / kPanel * batch.stride * kPanel + j % kPanel;
  });
  const std::size_t all = dl_db.leaf + leaves(batch.count), end = from + count * lanes;
  if (all == 0) std::fill(dl_db.root + from, dl_db.root + end, T(0));
  for (std::size_t first = 0; first < batch.count; first += kChunk) {
    const std::size_t leaf = dl_db.leaf + first / kChunk;
    const reduce::LeafPlace place = reduce::place_of(leaf);
    const Write write = place.store ? Write::store : Write::add;
    T* to = dl_db.level(place.level) + from;
    V sum[count];
    unroll<count>([&](auto v) GRADLOOM_UNROLLED { sum[v] = hn::Zero(d); });
    for (std::size_t s = first; s < std::min(first + kChunk, batch.count); ++s)
      unroll<count>([&](auto v) GRADLOOM_UNROLLED { sum[v] = hn::Add(sum[v], hn::LoadU(d, column[v] + s * kPanel)); });
    unroll<count>([&](auto v) GRADLOOM_UNROLLED { write_sum(write, sum[v], to + v * lanes); });
    reduce::merge_levels(dl_db, leaf, from, end);
  }
  if (dl_db.complete) reduce::finish_levels(dl_db, all, from, end);
}

template <class T>
void bias_gradient(const Shape& shape, SampleExtent batch, const T* dl_dy, const reduce::TreeSum<T>& dl_db) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>()), many = 8, of_panel = kPanel / lanes;
  const std::size_t out = shape.out_padded();
  std::size_t j = 0;
  for (; j + many * lanes <= out; j += many * lanes) bias_vectors<many>(batch, dl_dy, j, dl_db);
  for (; j < out; j += kPanel) bias_vectors<of_panel>(batch, dl_dy, j, dl_db);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
GRADLOOM_EXPORT(weight_gradient);
GRADLOOM_EXPORT(bias_gradient);
}  // namespace gradloom::kernels::spline
#endif
