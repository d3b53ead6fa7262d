// input_gradient on SIMD. 8 inputs take their dot products with the gradient of 64 outputs of a sample, lane by lane of
// a panel; one transposition at the end adds up the lanes of all 8. What a dot product is taken with is a difference of
// two rows. Differences are packed, once for all samples; few samples, or large grids, subtract as they go.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/spline/input_gradient_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
#include "gradloom/kernels/spline/degree-inl.h"
#include "gradloom/kernels/spline/pack-inl.h"
// clang-format on

#include <algorithm>

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

inline constexpr std::size_t kGroup = 8;  // inputs whose lanes are added up together
inline constexpr std::size_t kBlockPanels = kBlock / kPanel;

// One group of inputs and one block of outputs; strides count elements.
template <class T>
struct InputGradientBlock {
  const T* weight;  // first input, row 0, first output of the block; rows, or packed differences of rows
  bool subtract;    // these are rows, and their differences are wanted
  std::size_t input_stride, row_stride, base_offset;
  const T* slope;  // first input, sample 0
  std::size_t slope_stride;
  const std::uint16_t* span;
  const T* base;
  std::size_t sample_stride;  // from one input to the next, in spans and base values
  std::size_t inputs;         // <= kGroup
  unsigned degree, slopes;
  std::size_t panels;  // of outputs, <= kBlockPanels
  const T* dl_dy;      // first output of the block, sample 0
  std::size_t panel_stride;
  bool first;  // store, or add to what is there
  T* dl_dx;    // first input, sample 0
};

// The sums over the 16 lanes of each of 8 inputs, in the order of the contract, to consecutive elements.
template <class T>
HWY_INLINE void add_lanes(const T* HWY_RESTRICT lanes_of, bool first, T* HWY_RESTRICT result) {
#if HWY_TARGET <= HWY_AVX2
  constexpr Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  // By transposing on the way: input i becomes lane i of the result.
  if constexpr (std::is_same_v<T, float>) {
    const hn::Repartition<double, Tag<float>> d64;
    V t[8], e[4], g[2];
    unroll<8>([&](auto i) GRADLOOM_UNROLLED {
      const T* from = lanes_of + i * kPanel;
      t[i] = hn::Add(hn::LoadU(d, from), hn::LoadU(d, from + 8));
    });
    unroll<4>([&](auto i) GRADLOOM_UNROLLED {
      e[i] = hn::Add(hn::ConcatLowerLower(d, t[i + 4], t[i]), hn::ConcatUpperUpper(d, t[i + 4], t[i]));
    });
    unroll<2>([&](auto i) GRADLOOM_UNROLLED {
      g[i] = hn::Add(hn::InterleaveLower(d, e[2 * i], e[2 * i + 1]), hn::InterleaveUpper(d, e[2 * i], e[2 * i + 1]));
    });
    const auto g0 = hn::BitCast(d64, g[0]), g1 = hn::BitCast(d64, g[1]);
    const V sum =
        hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, g0, g1)), hn::BitCast(d, hn::InterleaveUpper(d64, g0, g1)));
    hn::StoreU(first ? sum : hn::Add(hn::LoadU(d, result), sum), d, result);
    return;
  }
#endif
  for (std::size_t i = 0; i < kGroup; ++i) {
    T t[kPanel];
    std::copy_n(lanes_of + i * kPanel, kPanel, t);
    for (std::size_t half = kPanel / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) t[l] = t[l] + t[l + half];
    result[i] = first ? t[0] : result[i] + t[0];
  }
}

#if HWY_TARGET <= HWY_AVX2
// What moves from one input to the next.
struct InputPointers {
  const float* weight;
  const std::uint16_t* span;
  const float* slope;
  const float* base;
};

// `width` inputs of one sample, `panels` times 16 outputs: the lanes of each input. Several inputs at once have enough
// independent sums to hide the latency of an addition. The distance of two rows is known when this is compiled, so
// that one register reaches all rows of an input.
template <int kDegree, bool kBase, std::size_t panels, std::size_t width, class V>
HWY_INLINE void some_inputs(const InputGradientBlock<float>& b, const V* dy, InputPointers& at, float* lanes_of) {
  constexpr hn::DFromV<V> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kPanel / lanes;
  constexpr std::size_t n = kDegree + (kBase ? 1 : 0), row_stride = panels * kPanel;
  const float* rows[width];
  const float* base_row[width];
  unroll<width>([&](auto w) GRADLOOM_UNROLLED {
    const float* weight = at.weight + w * b.input_stride;
    rows[w] = weight + at.span[w * b.sample_stride] * row_stride;
    base_row[w] = weight + b.base_offset;
  });
  V sums[width * n * parts];
  unroll<panels * parts>([&](auto v) GRADLOOM_UNROLLED {
    unroll<width * n>([&](auto r) GRADLOOM_UNROLLED {
      constexpr std::size_t w = r / n, k = r % n;
      const float* row = k < kDegree ? rows[w] + k * row_stride : base_row[w];
      const V weight = hn::LoadU(d, row + v * lanes);
      V& sum = sums[r * parts + v % parts];
      if constexpr (v < parts)
        sum = hn::Mul(dy[v], weight);
      else
        sum = mul_add(dy[v], weight, sum);
      pin(sum);
    });
  });
  unroll<width>([&](auto w) GRADLOOM_UNROLLED {
    const float* slope = at.slope + w * b.slope_stride;
    V t[parts];
    unroll<n>([&](auto k) GRADLOOM_UNROLLED {
      const V rises = hn::Set(d, k < kDegree ? slope[k] : at.base[w * b.sample_stride]);
      unroll<parts>([&](auto part) GRADLOOM_UNROLLED {
        const V& sum = sums[(w * n + k) * parts + part];
        if constexpr (k == 0)
          t[part] = hn::Mul(rises, sum);
        else
          t[part] = mul_add(rises, sum, t[part]);
      });
    });
    unroll<parts>([&](auto part) GRADLOOM_UNROLLED { hn::StoreU(t[part], d, lanes_of + w * kPanel + part * lanes); });
  });
  at.weight += width * b.input_stride;
  at.span += width * b.sample_stride;
  at.slope += width * b.slope_stride;
  if constexpr (kBase) at.base += width * b.sample_stride;
}

// Rows `panels` * 16 numbers apart.
template <int kDegree, bool kBase, std::size_t panels>
HWY_NOINLINE void input_gradient_panels(const InputGradientBlock<float>& b, Range samples) {
  constexpr WideTag<float> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kPanel / lanes, n = kDegree + (kBase ? 1 : 0);
  // With 512 bits four or two inputs at once: 6 to 12 sums. With 256 bits the two halves of a panel are enough.
  constexpr std::size_t width = parts > 1 ? 1 : n <= 3 ? 4 : 2;
  using V = hn::Vec<WideTag<float>>;
  alignas(64) float lanes_of[kGroup * kPanel] = {};  // of inputs that do not exist: zero
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    V dy[panels * parts];
    unroll<panels * parts>([&](auto v) GRADLOOM_UNROLLED {
      dy[v] = hn::LoadU(d, b.dl_dy + v / parts * b.panel_stride + s * kPanel + v % parts * lanes);
    });
    InputPointers at = {b.weight, b.span + s, b.slope + s * basis_stride(kDegree), kBase ? b.base + s : nullptr};
    std::size_t i = 0;
    for (; i + width <= b.inputs; i += width)
      some_inputs<kDegree, kBase, panels, width>(b, dy, at, lanes_of + i * kPanel);
    if constexpr (width > 1)
      for (; i < b.inputs; ++i) some_inputs<kDegree, kBase, panels, 1>(b, dy, at, lanes_of + i * kPanel);
    add_lanes(lanes_of, b.first, b.dl_dx + s * kPanel);
  }
}

// Runs the version for this number of panels, if there is one. Only the usual degree has all of them: each takes its
// time to compile.
template <int kDegree, bool kBase>
HWY_INLINE bool input_gradient_special(const InputGradientBlock<float>& b, Range samples) {
  if (b.subtract || b.row_stride != b.panels * kPanel) return false;
  if (b.panels == kBlockPanels) {
    input_gradient_panels<kDegree, kBase, kBlockPanels>(b, samples);
    return true;
  }
  if constexpr (kDegree == 3) {
    unroll<kBlockPanels - 1>([&](auto less) GRADLOOM_UNROLLED {
      if (b.panels == less + 1) input_gradient_panels<kDegree, kBase, less + 1>(b, samples);
    });
    return true;
  }
  return false;
}
#endif

// One sample, any number of panels, any distance of rows. Writes the 16 lanes of each input to `lanes_of`.
template <int kDegree, bool kBase, bool kSubtract, class T>
HWY_INLINE void input_gradient_sample(const InputGradientBlock<T>& b, std::size_t sample, T* HWY_RESTRICT lanes_of) {
  constexpr WideTag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kPanel / lanes;
  using V = hn::Vec<WideTag<T>>;
  const std::size_t q = basis_stride(kDegree ? kDegree : b.degree), panels = b.panels;
  const std::size_t row_stride = b.row_stride, input_stride = b.input_stride, sample_stride = b.sample_stride;
  const std::size_t slope_stride = b.slope_stride, panel_stride = b.panel_stride;

  const T* dl_dy = b.dl_dy + sample * kPanel;
  const T* weight = b.weight;
  const T* slope = b.slope + sample * q;
  const std::uint16_t* span = b.span + sample;
  const T* base = kBase ? b.base + sample : nullptr;
  for (std::size_t left = b.inputs; left != 0; --left) {
    const T* row = weight + *span * row_stride;
    const T* base_row = weight + b.base_offset;
    if constexpr (kDegree != 0) {
      constexpr std::size_t n = kDegree + (kBase ? 1 : 0);
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t from = part * lanes;
        V sums[n];
        const auto add_panel = [&](std::size_t panel, auto start) GRADLOOM_UNROLLED {
          const V dy = hn::LoadU(d, dl_dy + panel * panel_stride + from);
          const std::size_t j = panel * kPanel + from;
          V lower = hn::LoadU(d, row + j);
          unroll<n>([&](auto k) GRADLOOM_UNROLLED {
            V w = lower;
            if constexpr (k >= kDegree) {
              w = hn::LoadU(d, base_row + j);
            } else if constexpr (kSubtract) {
              const V upper = hn::LoadU(d, row + (k + 1) * row_stride + j);
              w = hn::Sub(upper, lower);
              lower = upper;
            } else if constexpr (k > 0) {
              w = hn::LoadU(d, row + k * row_stride + j);
            }
            if constexpr (start)
              sums[k] = hn::Mul(dy, w);
            else
              sums[k] = mul_add(dy, w, sums[k]);
            pin(sums[k]);
          });
        };
        add_panel(0, std::true_type());
        for (std::size_t panel = 1; panel < panels; ++panel) add_panel(panel, std::false_type());
        V total;
        unroll<n>([&](auto k) GRADLOOM_UNROLLED {
          const V factor = hn::Set(d, k < kDegree ? slope[k] : *base);
          if constexpr (k == 0)
            total = hn::Mul(factor, sums[k]);
          else
            total = mul_add(factor, sums[k], total);
        });
        hn::StoreU(total, d, lanes_of + from);
      }
    } else {
      const auto add_row = [&](const T* at_row, auto subtract, T factor, bool start) GRADLOOM_UNROLLED {
        for (std::size_t from = 0; from < kPanel; from += lanes) {
          const auto load_weight = [&](std::size_t panel) GRADLOOM_UNROLLED {
            const T* at = at_row + panel * kPanel + from;
            if constexpr (subtract)
              return hn::Sub(hn::LoadU(d, at + row_stride), hn::LoadU(d, at));
            else
              return hn::LoadU(d, at);
          };
          V sum = hn::Mul(hn::LoadU(d, dl_dy + from), load_weight(0));
          for (std::size_t panel = 1; panel < panels; ++panel)
            sum = mul_add(hn::LoadU(d, dl_dy + panel * panel_stride + from), load_weight(panel), sum);
          const V f = hn::Set(d, factor);
          T* to = lanes_of + from;
          hn::StoreU(start ? hn::Mul(f, sum) : mul_add(f, sum, hn::LoadU(d, to)), d, to);
        }
      };
      constexpr std::bool_constant<kSubtract> subtract;
      add_row(row, subtract, slope[0], true);
      for (unsigned k = 1; k < b.slopes; ++k) add_row(row + k * row_stride, subtract, slope[k], false);
      if constexpr (kBase) add_row(base_row, std::false_type(), *base, false);
    }
    lanes_of += kPanel;
    weight += input_stride;
    slope += slope_stride;
    span += sample_stride;
    if constexpr (kBase) base += sample_stride;
  }
}

template <int kDegree, bool kBase, bool kSubtract, class T>
HWY_NOINLINE void input_gradient_any(const InputGradientBlock<T>& b, Range samples) {
  alignas(64) T lanes_of[kGroup * kPanel] = {};  // of inputs that do not exist: zero
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    input_gradient_sample<kDegree, kBase, kSubtract>(b, s, lanes_of);
    add_lanes(lanes_of, b.first, b.dl_dx + s * kPanel);
  }
}

template <int kDegree, bool kBase, class T>
HWY_INLINE void input_gradient_block(const InputGradientBlock<T>& b, Range samples) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (kDegree != 0 && std::is_same_v<T, float>)
    if (input_gradient_special<kDegree, kBase>(b, samples)) return;
#endif
  if (b.subtract) return input_gradient_any<kDegree, kBase, true>(b, samples);
  input_gradient_any<kDegree, kBase, false>(b, samples);
}

template <int kDegree, bool kBase, class T>
void input_gradient_degree(const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples, T* dl_dx) {
  const Shape& shape = layer.shape;
  const std::size_t stride = tape.pitch(), rows = shape.rows(), out = shape.out_padded();
  if (samples.begin >= samples.end) return;
  InputGradientBlock<T> b;
  alignas(64) T packed[kPackedBytes / sizeof(T)];
  const bool differences = shape.row_differences();
  const std::size_t packed_rows = differences ? rows - 1 : rows, count = samples.end - samples.begin;
  const bool many = count >= kManySamples;
  b.slope_stride = stride * basis_stride(shape.degree);
  b.sample_stride = stride;
  b.degree = shape.degree;
  b.slopes = shape.slopes();
  b.panel_stride = stride * kPanel;
  const std::size_t panels = out / kPanel;
  for (std::size_t i = 0; i < shape.in_padded(); i += kGroup) {
    b.inputs = i < shape.in ? std::min(kGroup, shape.in - i) : 0;
    b.slope = tape.slope + i * b.slope_stride;
    b.span = tape.span + i * stride;
    b.base = kBase ? tape.base_slope + i * stride : nullptr;
    b.dl_dx = dl_dx + (i / kPanel) * b.panel_stride + i % kPanel;
    if (b.inputs == 0) {
      for (std::size_t s = samples.begin; s < samples.end; ++s) std::fill_n(b.dl_dx + s * kPanel, kGroup, T(0));
      continue;
    }
    for (std::size_t panel = 0; panel < panels; panel += kBlockPanels) {
      const std::size_t j = panel * kPanel;
      b.panels = std::min(panels - panel, kBlockPanels);
      b.weight = layer.weight + i * rows * out + j;
      b.row_stride = out;
      const std::size_t columns = b.panels * kPanel;
      const bool pack = many && (differences || out > columns) && b.inputs * packed_rows * columns <= std::size(packed);
      if (pack) {
        if (differences)
          pack_differences(b.weight, out, b.inputs, shape, columns, packed);
        else
          pack_rows(b.weight, out, b.inputs * rows, columns, packed);
        b.weight = packed;
        b.row_stride = columns;
      }
      b.subtract = differences && !pack;
      b.input_stride = (pack ? packed_rows : rows) * b.row_stride;
      b.base_offset = b.input_stride - b.row_stride;
      b.dl_dy = dl_dy + panel * b.panel_stride;
      b.first = panel == 0;
      input_gradient_block<kDegree, kBase>(b, samples);
    }
  }
}

template <class T>
void input_gradient(const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples, T* dl_dx) {
  // Versions for one degree take differences, the one for any degree what the shape asks for.
  for_degree(layer.shape.row_differences() ? layer.shape.degree : 0, layer.shape.base,
             [&](auto degree, auto base)
                 GRADLOOM_UNROLLED { input_gradient_degree<degree, base>(layer, tape, dl_dy, samples, dl_dx); });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
GRADLOOM_EXPORT(input_gradient);
}  // namespace gradloom::kernels::spline
#endif
