// forward on SIMD, in one of two ways. In the order of samples: registers hold up to 8 vectors of outputs; inputs are
// taken in blocks whose weights fit the first-level cache, and all samples pass a block before the next one. Sorted,
// with AVX-512: the p + 1 rows of a span stay in registers while its samples pass, and the outputs of a tile of samples
// in the first-level cache.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/spline/forward_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/degree-inl.h"
#include "gradloom/kernels/spline/pack-inl.h"
#include "gradloom/kernels/spline/span_sort-inl.h"
// clang-format on

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/full_vectors.h"
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

// One block of inputs and outputs; strides count elements.
template <class T>
struct ForwardBlock {
  const T* weight;  // first input, row 0, first output of the block
  std::size_t input_stride, row_stride, base_offset;
  const T* value;  // first input, sample 0
  std::size_t value_stride;
  const std::uint16_t* span;
  const T* base;
  std::size_t sample_stride;  // from one input to the next, in spans and base values
  std::size_t inputs;
  unsigned degree;
  const T* bias;  // of the first output when this is the first block of inputs and there is a bias
  bool first;
  T* y;  // first output, sample 0
  std::size_t panel_stride;
};

// `count` vectors of outputs for `width` consecutive samples.
template <int kDegree, bool kBase, std::size_t count, std::size_t width, class T>
HWY_INLINE void forward_samples(const ForwardBlock<T>& b, std::size_t sample) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), per_panel = kPanel / lanes;
  using V = hn::Vec<Tag<T>>;
  constexpr std::size_t q_fixed = kDegree ? basis_stride(kDegree) : 0;
  const std::size_t q = kDegree ? q_fixed : basis_stride(b.degree);
  const std::size_t row_stride = b.row_stride, input_stride = b.input_stride, sample_stride = b.sample_stride;
  const std::size_t value_stride = b.value_stride, panel_stride = b.panel_stride, base_offset = b.base_offset;

  V acc[width * count];
  T* y = b.y + sample * kPanel;
  if (b.first) {
    if (b.bias) {
      unroll<width * count>([&](auto n) GRADLOOM_UNROLLED { acc[n] = hn::LoadU(d, b.bias + (n % count) * lanes); });
    } else {
      unroll<width * count>([&](auto n) GRADLOOM_UNROLLED { acc[n] = hn::Zero(d); });
    }
  } else {
    unroll<width * count>([&](auto n) GRADLOOM_UNROLLED {
      constexpr std::size_t v = n % count, s = n / count;
      acc[n] = hn::LoadU(d, y + (v / per_panel) * panel_stride + (v % per_panel) * lanes + s * kPanel);
    });
  }

  const T* weight = b.weight;
  const T* value = b.value + sample * q;
  const std::uint16_t* span = b.span + sample;
  const T* base = kBase ? b.base + sample : nullptr;
  for (std::size_t left = b.inputs; left != 0; --left) {
    const T* row[width];
    unroll<width>([&](auto s) GRADLOOM_UNROLLED { row[s] = weight + span[s] * row_stride; });
    const auto add_row = [&](const T* factors) GRADLOOM_UNROLLED {
      unroll<width>([&](auto s) GRADLOOM_UNROLLED {
        const V factor = hn::Set(d, factors[s * q]);
        unroll<count>([&](auto v) GRADLOOM_UNROLLED {
          V& a = acc[s * count + v];
          a = mul_add(factor, hn::LoadU(d, row[s] + v * lanes), a);
          pin(a);
        });
        row[s] += row_stride;
      });
    };
    if constexpr (kDegree != 0) {
      unroll<kDegree + 1>([&](auto k) GRADLOOM_UNROLLED { add_row(value + k); });
    } else {
      for (unsigned k = 0; k <= b.degree; ++k) add_row(value + k);
    }
    if constexpr (kBase) {
      const T* base_row = weight + base_offset;
      unroll<width>([&](auto s) GRADLOOM_UNROLLED {
        const V factor = hn::Set(d, base[s]);
        unroll<count>([&](auto v) GRADLOOM_UNROLLED {
          V& a = acc[s * count + v];
          a = mul_add(factor, hn::LoadU(d, base_row + v * lanes), a);
          pin(a);
        });
      });
      base += sample_stride;
    }
    weight += input_stride;
    value += value_stride;
    span += sample_stride;
  }

  unroll<width * count>([&](auto n) GRADLOOM_UNROLLED {
    constexpr std::size_t v = n % count, s = n / count;
    hn::StoreU(acc[n], d, y + (v / per_panel) * panel_stride + (v % per_panel) * lanes + s * kPanel);
  });
}

template <int kDegree, bool kBase, std::size_t count, class T>
HWY_NOINLINE void forward_block(const ForwardBlock<T>& b, Range samples) {
  // At least eight independent sums hide the latency of an addition.
  constexpr std::size_t width = count > 4 ? 1 : count == 4 ? 2 : count == 3 ? 3 : 4;
  std::size_t s = samples.begin;
  if constexpr (width > 1)
    for (; s + width <= samples.end; s += width) forward_samples<kDegree, kBase, count, width>(b, s);
  for (; s < samples.end; ++s) forward_samples<kDegree, kBase, count, 1>(b, s);
}

#if HWY_TARGET <= HWY_AVX3
// The outputs of so many samples, 64 at a time, fit the first-level cache.
inline constexpr std::size_t kTileSamples = 128, kTileInputs = 16;

// A tile of samples of one input.
struct SortedTile {
  std::uint16_t samples[kTileSamples + kSortOverrun];  // by span, then by index
  std::uint16_t start[kFewSpans + 1];
};

// Whether a span has enough samples to pay for loading its rows and for loading and storing their outputs.
HWY_INLINE bool sorting_pays(const Shape& shape, Range samples) {
  const std::size_t count = std::min(samples.end - samples.begin, kTileSamples);
  return shape.grid <= kFewSpans && count >= 32 && count >= 3 * shape.grid;
}

// One input, `count` vectors of outputs: y += its p + 1 rows times the values of each sample of the tile.
template <int kDegree, bool kBase, std::size_t count>
HWY_NOINLINE void forward_sorted(const SortedTile& tile, unsigned grid, const float* weight, std::size_t row_stride,
                                 const float* value, const float* base, float* y, std::size_t panel_stride) {
  constexpr WideTag<float> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), rows = kDegree + 1;
  static_assert(lanes == kPanel);
  // Beside the rows: the outputs of a sample and a factor.
  constexpr bool base_in_registers = (rows + 2) * count + 1 <= 31;
  using V = hn::Vec<WideTag<float>>;
  float* column[count];
  unroll<count>([&](auto v) GRADLOOM_UNROLLED {
    column[v] = y + v * panel_stride;
    forget(column[v]);
  });
  const float* base_row = weight + (grid + kDegree) * row_stride;
  V base_weight[count];
  if constexpr (kBase && base_in_registers)
    unroll<count>([&](auto v) GRADLOOM_UNROLLED {
      base_weight[v] = hn::LoadU(d, base_row + v * lanes);
      pin(base_weight[v]);
    });
  for (unsigned g = 0; g < grid; ++g, weight += row_stride) {
    const std::uint16_t* from = tile.samples + tile.start[g];
    const std::uint16_t* const to = tile.samples + tile.start[g + 1];
    if (from == to) continue;
    V row[rows * count];
    unroll<rows * count>([&](auto n) GRADLOOM_UNROLLED {
      row[n] = hn::LoadU(d, weight + n / count * row_stride + n % count * lanes);
      pin(row[n]);
    });
    do {
      const std::size_t sample = *from;
      const float* factors = of_sample<basis_stride(kDegree)>(value, sample);
      V sum[count];
      unroll<count>([&](auto v) GRADLOOM_UNROLLED {
        sum[v] = hn::LoadU(d, of_sample<kPanel>(column[v], sample));
        pin(sum[v]);
      });
      unroll<rows>([&](auto k) GRADLOOM_UNROLLED {
        const V factor = hn::Set(d, factors[k]);
        unroll<count>([&](auto v) GRADLOOM_UNROLLED { sum[v] = mul_add(factor, row[k * count + v], sum[v]); });
      });
      if constexpr (kBase) {
        const V factor = hn::Set(d, base[sample / kSampleUnit]);
        unroll<count>([&](auto v) GRADLOOM_UNROLLED {
          const V w = base_in_registers ? base_weight[v] : hn::LoadU(d, base_row + v * lanes);
          sum[v] = mul_add(factor, w, sum[v]);
        });
      }
      unroll<count>([&](auto v) GRADLOOM_UNROLLED { hn::StoreU(sum[v], d, of_sample<kPanel>(column[v], sample)); });
    } while (++from != to);
  }
}

template <int kDegree, bool kBase>
void forward_sorted_degree(const Layer<float>& layer, const LayerTape<float>& tape, Range samples, float* y) {
  constexpr WideTag<float> d;
  constexpr std::size_t q = basis_stride(kDegree);
  const Shape& shape = layer.shape;
  const std::size_t stride = tape.pitch(), out = shape.out_padded(), vectors = out / kPanel, size = shape.rows() * out;
  SortedTile tiles[kTileInputs];
  for (std::size_t first = samples.begin; first < samples.end; first += kTileSamples) {
    const std::size_t count = std::min(kTileSamples, samples.end - first);
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto start = layer.bias ? hn::LoadU(d, layer.bias + v * kPanel) : hn::Zero(d);
      float* to = y + (v * stride + first) * kPanel;
      for (std::size_t s = 0; s < count; ++s) hn::StoreU(start, d, to + s * kPanel);
    }
    for (std::size_t i = 0; i < shape.in; i += kTileInputs) {
      const std::size_t inputs = std::min(kTileInputs, shape.in - i);
      for (std::size_t n = 0; n < inputs; ++n)
        sort_few_spans(tape.span + (i + n) * stride + first, count, shape.grid, tiles[n].samples, tiles[n].start);
      for (std::size_t v = 0; v < vectors;) {
        const auto some = [&](auto columns) GRADLOOM_UNROLLED {
          for (std::size_t n = 0; n < inputs; ++n) {
            const std::size_t at = (i + n) * stride + first;
            forward_sorted<kDegree, kBase, columns>(tiles[n], shape.grid, layer.weight + (i + n) * size + v * kPanel,
                                                    out, tape.value + at * q, kBase ? tape.base_value + at : nullptr,
                                                    y + (v * stride + first) * kPanel, stride * kPanel);
          }
          v += columns;
        };
        const std::size_t left = vectors - v;
        if (left >= 4)
          some(Index<4>{});
        else if (left >= 2)
          some(Index<2>{});
        else
          some(Index<1>{});
      }
    }
    // The lanes beyond OutL: a value that is NaN leaves them so.
    if (shape.out_lanes() == out) continue;
    float* beyond = y + ((vectors - 1) * stride + first) * kPanel + kLanes;
    for (std::size_t s = 0; s < count; ++s) std::fill_n(beyond + s * kPanel, kLanes, 0.0f);
  }
}
#endif

template <int kDegree, bool kBase, class T>
void forward_degree(const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  constexpr std::size_t kCacheBudget = 20 * 1024;  // bytes of weights in one block of inputs
  const Shape& shape = layer.shape;
  const std::size_t stride = tape.pitch(), q = basis_stride(shape.degree), rows = shape.rows(),
                    out = shape.out_padded();
  const std::size_t vectors = round_up(shape.out, kLanes) / lanes;
  if (samples.begin >= samples.end) return;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kDegree != 0 && std::is_same_v<T, float>)
    if (full_vectors() && sorting_pays(shape, samples))
      return forward_sorted_degree<kDegree, kBase>(layer, tape, samples, y);
#endif
  alignas(64) T packed[kPackedBytes / sizeof(T)];
  const bool many = samples.end - samples.begin >= kManySamples;

  for (std::size_t v = 0; v < vectors;) {
    const std::size_t left = vectors - v, count = left >= 8 ? 8 : left >= 4 ? 4 : left;
    const std::size_t j = v * lanes;
    // Two inputs at least, even if they do not fit: otherwise loading and storing the sums costs more than the rows.
    const std::size_t block = std::clamp<std::size_t>(kCacheBudget / (rows * count * lanes * sizeof(T)), 2, 16);
    ForwardBlock<T> b;
    b.value_stride = stride * q;
    b.sample_stride = stride;
    b.degree = shape.degree;
    b.panel_stride = stride * kPanel;
    b.y = y + (j / kPanel) * b.panel_stride + j % kPanel;
    for (std::size_t i = 0; i == 0 || i < shape.in; i += block) {
      b.weight = layer.weight + i * rows * out + j;
      b.row_stride = out;
      b.value = tape.value + i * b.value_stride;
      b.span = tape.span + i * stride;
      b.base = kBase ? tape.base_value + i * stride : nullptr;
      b.inputs = std::min(block, shape.in - i);
      if (const std::size_t columns = count * lanes;
          many && out >= 2 * columns && b.inputs * rows * columns <= std::size(packed)) {
        pack_rows(b.weight, out, b.inputs * rows, columns, packed);
        b.weight = packed;
        b.row_stride = columns;
      }
      b.input_stride = rows * b.row_stride;
      b.base_offset = (rows - 1) * b.row_stride;
      b.first = i == 0;
      b.bias = layer.bias ? layer.bias + j : nullptr;
      switch (count) {
        case 8:
          forward_block<kDegree, kBase, 8>(b, samples);
          break;
        case 4:
          forward_block<kDegree, kBase, 4>(b, samples);
          break;
        case 3:
          forward_block<kDegree, kBase, 3>(b, samples);
          break;
        case 2:
          forward_block<kDegree, kBase, 2>(b, samples);
          break;
        default:
          forward_block<kDegree, kBase, 1>(b, samples);
          break;
      }
    }
    v += count;
  }
  for (std::size_t j = vectors * lanes; j < out; j += kLanes)
    for (std::size_t s = samples.begin; s < samples.end; ++s)
      std::fill_n(y + ((j / kPanel) * stride + s) * kPanel + j % kPanel, kLanes, T(0));
}

template <class T>
void forward(const Layer<T>& layer, const LayerTape<T>& tape, Range samples, T* y) {
  for_degree(layer.shape.degree, layer.shape.base,
             [&](auto degree, auto base) GRADLOOM_UNROLLED { forward_degree<degree, base>(layer, tape, samples, y); });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
GRADLOOM_EXPORT(forward);
}  // namespace gradloom::kernels::spline
#endif
