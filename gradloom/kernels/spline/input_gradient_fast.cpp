// input_gradient on SIMD. 8 inputs take their dot products with the gradient of 64 outputs of a sample; one
// transposition at the end adds up the lanes of all 8. Contract 2: what a dot product is taken with is a difference of
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

inline constexpr std::size_t kGroup = 8;  // inputs whose lanes are added up together

// Rows that a sample takes of an input, or differences of rows, without the base row.
inline constexpr std::size_t kSlopes(std::size_t degree) { return kContract == 2 ? degree : degree + 1; }

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
  std::size_t octets;  // of outputs, <= kBlock / kLanes
  const T* dl_dy;      // first output of the block, sample 0
  std::size_t panel_stride;
  bool first;  // store, or add to what is there
  T* dl_dx;    // first input, sample 0
};

#if HWY_TARGET <= HWY_AVX2
// The tree over 8 lanes for each of 8 inputs, by transposing on the way: t[i] becomes lane i of the result.
HWY_INLINE hn::Vec<Tag<float>> add_lanes(const hn::Vec<Tag<float>>* t) {
  constexpr Tag<float> d;
  const hn::Repartition<double, Tag<float>> d64;
  hn::Vec<Tag<float>> e[4], g[2];
  unroll<4>([&](auto i) GRADLOOM_UNROLLED {
    e[i] = hn::Add(hn::ConcatLowerLower(d, t[i + 4], t[i]), hn::ConcatUpperUpper(d, t[i + 4], t[i]));
  });
  unroll<2>([&](auto i) GRADLOOM_UNROLLED {
    g[i] = hn::Add(hn::InterleaveLower(d, e[2 * i], e[2 * i + 1]), hn::InterleaveUpper(d, e[2 * i], e[2 * i + 1]));
  });
  const auto g0 = hn::BitCast(d64, g[0]), g1 = hn::BitCast(d64, g[1]);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, g0, g1)), hn::BitCast(d, hn::InterleaveUpper(d64, g0, g1)));
}
#endif

// The sums over the 8 lanes of each of 8 inputs, in the order of the contract, to consecutive elements.
template <class T>
HWY_INLINE void add_lanes(const T* HWY_RESTRICT lanes_of, bool first, T* HWY_RESTRICT result) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, double>) {
    constexpr hn::CappedTag<T, 4> d;
    unroll<2>([&](auto half) GRADLOOM_UNROLLED {
      hn::Vec<hn::CappedTag<T, 4>> e[4], f[2];
      unroll<4>([&](auto i) GRADLOOM_UNROLLED {
        const T* from = lanes_of + (4 * half + i) * kLanes;
        e[i] = hn::Add(hn::LoadU(d, from), hn::LoadU(d, from + 4));
      });
      unroll<2>([&](auto i) GRADLOOM_UNROLLED {
        f[i] = hn::Add(hn::ConcatLowerLower(d, e[i + 2], e[i]), hn::ConcatUpperUpper(d, e[i + 2], e[i]));
      });
      const auto sum = hn::Add(hn::InterleaveLower(d, f[0], f[1]), hn::InterleaveUpper(d, f[0], f[1]));
      T* to = result + 4 * half;
      hn::StoreU(first ? sum : hn::Add(hn::LoadU(d, to), sum), d, to);
    });
    return;
  }
#endif
  for (std::size_t i = 0; i < kGroup; ++i) {
    const T* t = lanes_of + i * kLanes;
    const T a = t[0] + t[4], b = t[1] + t[5], c = t[2] + t[6], e = t[3] + t[7];
    const T sum = (a + c) + (b + e);
    result[i] = first ? sum : result[i] + sum;
  }
}

// Numbers from one row to the next in the weights that the fastest version reads: known when it is compiled, so that
// one register reaches all rows of an input.
inline constexpr std::size_t kRowStride(std::size_t octets) { return (octets + 1) / 2 * kPanel; }

#if HWY_TARGET <= HWY_AVX2
// What moves from one input to the next.
struct InputPointers {
  const float* weight;
  const std::uint16_t* span;
  const float* slope;
  const float* base;
};

// `width` inputs of one sample, `octets` times 8 outputs: the 8 lanes of each input. Two inputs at once have enough
// independent sums to hide the latency of an addition; half of dl_dy is then read from memory (dy_at: its panels).
template <int kDegree, bool kBase, std::size_t octets, std::size_t width, class V>
HWY_INLINE void some_inputs(const InputGradientBlock<float>& b, const V* dy, std::size_t kept_octets,
                            const float* const* dy_at, InputPointers& at, V* lanes_of) {
  constexpr Tag<float> d;
  constexpr std::size_t slopes = kSlopes(kDegree), n = slopes + (kBase ? 1 : 0), row_stride = kRowStride(octets);
  const float* rows[width];
  const float* base_row[width];
  unroll<width>([&](auto w) GRADLOOM_UNROLLED {
    const float* weight = at.weight + w * b.input_stride;
    rows[w] = weight + at.span[w * b.sample_stride] * row_stride;
    base_row[w] = weight + b.base_offset;
  });
  V sums[width * n];
  unroll<octets>([&](auto v) GRADLOOM_UNROLLED {
    const V factor = v < kept_octets ? dy[v] : hn::LoadU(d, dy_at[v / 2] + v % 2 * kLanes);
    unroll<width * n>([&](auto r) GRADLOOM_UNROLLED {
      constexpr std::size_t w = r / n, k = r % n;
      const float* row = k < slopes ? rows[w] + k * row_stride : base_row[w];
      const V weight = hn::LoadU(d, row + v * kLanes);
      if constexpr (v == 0)
        sums[r] = hn::Mul(factor, weight);
      else
        sums[r] = mul_add(factor, weight, sums[r]);
      pin(sums[r]);
    });
  });
  unroll<width>([&](auto w) GRADLOOM_UNROLLED {
    const float* slope = at.slope + w * b.slope_stride;
    V t;
    unroll<n>([&](auto k) GRADLOOM_UNROLLED {
      const V rises = hn::Set(d, k < slopes ? slope[k] : at.base[w * b.sample_stride]);
      if constexpr (k == 0)
        t = hn::Mul(rises, sums[w * n + k]);
      else
        t = mul_add(rises, sums[w * n + k], t);
    });
    lanes_of[w] = t;
  });
  at.weight += width * b.input_stride;
  at.span += width * b.sample_stride;
  at.slope += width * b.slope_stride;
  if constexpr (kBase) at.base += width * b.sample_stride;
}

// Up to 8 inputs of one sample. The lanes of inputs that do not exist must be zero in `lanes_of`.
template <int kDegree, bool kBase, std::size_t octets>
HWY_INLINE void eight_inputs(const InputGradientBlock<float>& b, std::size_t sample, float* lanes_of) {
  constexpr Tag<float> d;
  constexpr std::size_t width = kSlopes(kDegree) + (kBase ? 1 : 0) <= 4 ? 2 : 1,
                        kept = width == 2 ? std::min<std::size_t>(octets, 4) : octets;
  using V = hn::Vec<Tag<float>>;
  const float* dy_at[(octets + 1) / 2];
  V dy[octets];
  unroll<(octets + 1) / 2>(
      [&](auto panel) GRADLOOM_UNROLLED { dy_at[panel] = b.dl_dy + panel * b.panel_stride + sample * kPanel; });
  unroll<kept>([&](auto v) GRADLOOM_UNROLLED { dy[v] = hn::LoadU(d, dy_at[v / 2] + v % 2 * kLanes); });
  InputPointers at = {b.weight, b.span + sample, b.slope + sample * basis_stride(kDegree),
                      kBase ? b.base + sample : nullptr};
  V t[kGroup];
  if (HWY_TARGET <= HWY_AVX3 && b.inputs == kGroup) {  // elsewhere there are too few registers for all lanes
    unroll<kGroup / width>([&](auto n) GRADLOOM_UNROLLED {
      some_inputs<kDegree, kBase, octets, width>(b, dy, kept, dy_at, at, t + n * width);
    });
  } else {
    V some[width];
    std::size_t i = 0;
    for (; i + width <= b.inputs; i += width) {
      some_inputs<kDegree, kBase, octets, width>(b, dy, kept, dy_at, at, some);
      unroll<width>([&](auto w) GRADLOOM_UNROLLED { hn::StoreU(some[w], d, lanes_of + (i + w) * kLanes); });
    }
    if (width > 1 && i < b.inputs) {
      some_inputs<kDegree, kBase, octets, 1>(b, dy, kept, dy_at, at, some);
      hn::StoreU(some[0], d, lanes_of + i * kLanes);
    }
    unroll<kGroup>([&](auto n) GRADLOOM_UNROLLED { t[n] = hn::LoadU(d, lanes_of + n * kLanes); });
  }
  float* result = b.dl_dx + sample * kPanel;
  const V sum = add_lanes(t);
  hn::StoreU(b.first ? sum : hn::Add(hn::LoadU(d, result), sum), d, result);
}
#endif

// One sample. Writes the 8 lanes of each input to `lanes_of`.
template <int kDegree, bool kBase, bool kSubtract, class T>
HWY_INLINE void input_gradient_sample(const InputGradientBlock<T>& b, std::size_t sample, T* HWY_RESTRICT lanes_of) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kLanes / lanes;
  using V = hn::Vec<Tag<T>>;
  const std::size_t q = basis_stride(kDegree ? kDegree : b.degree), octets = b.octets;
  const std::size_t row_stride = b.row_stride, input_stride = b.input_stride, sample_stride = b.sample_stride;
  const std::size_t slope_stride = b.slope_stride, panel_stride = b.panel_stride;

  const T* dl_dy = b.dl_dy + sample * kPanel;
  const auto load_dy = [&](std::size_t octet, std::size_t part) GRADLOOM_UNROLLED {
    return hn::LoadU(d, dl_dy + octet / 2 * panel_stride + octet % 2 * kLanes + part * lanes);
  };

  const T* weight = b.weight;
  const T* slope = b.slope + sample * q;
  const std::uint16_t* span = b.span + sample;
  const T* base = kBase ? b.base + sample : nullptr;
  for (std::size_t left = b.inputs; left != 0; --left) {
    const T* row = weight + *span * row_stride;
    V total[parts];
    if constexpr (kDegree != 0) {
      // kSubtract: one row more than there are slopes.
      constexpr std::size_t slopes = kSlopes(kDegree), n = slopes + (kBase ? 1 : 0), loaded = slopes + kSubtract;
      const T* rows[loaded + 1];
      rows[0] = row;
      unroll<loaded - 1>([&](auto k) GRADLOOM_UNROLLED { rows[k + 1] = rows[k] + row_stride; });
      if constexpr (kBase) rows[loaded] = weight + b.base_offset;
      V sums[n * parts];
      const auto add_octet = [&](std::size_t octet, auto start) GRADLOOM_UNROLLED {
        unroll<parts>([&](auto part) GRADLOOM_UNROLLED {
          const V dy = load_dy(octet, part);
          const std::size_t j = octet * kLanes + part * lanes;
          V lower = hn::LoadU(d, rows[0] + j);
          unroll<n>([&](auto k) GRADLOOM_UNROLLED {
            V w = lower;
            if constexpr (k >= slopes) {
              w = hn::LoadU(d, rows[loaded] + j);
            } else if constexpr (kSubtract) {
              const V upper = hn::LoadU(d, rows[k + 1] + j);
              w = hn::Sub(upper, lower);
              lower = upper;
            } else if constexpr (k > 0) {
              w = hn::LoadU(d, rows[k] + j);
            }
            V& sum = sums[k * parts + part];
            if constexpr (start)
              sum = hn::Mul(dy, w);
            else
              sum = mul_add(dy, w, sum);
            pin(sum);
          });
        });
      };
      add_octet(0, std::true_type());
      for (std::size_t octet = 1; octet < octets; ++octet) add_octet(octet, std::false_type());
      unroll<n>([&](auto k) GRADLOOM_UNROLLED {
        const V factor = hn::Set(d, k < slopes ? slope[k] : *base);
        unroll<parts>([&](auto part) GRADLOOM_UNROLLED {
          if constexpr (k == 0)
            total[part] = hn::Mul(factor, sums[k * parts + part]);
          else
            total[part] = mul_add(factor, sums[k * parts + part], total[part]);
        });
      });
    } else {
      const auto add_row = [&](const T* from, auto subtract, T factor, bool start) GRADLOOM_UNROLLED {
        unroll<parts>([&](auto part) GRADLOOM_UNROLLED {
          const auto load_weight = [&](std::size_t octet) GRADLOOM_UNROLLED {
            const T* at = from + octet * kLanes + part * lanes;
            if constexpr (subtract)
              return hn::Sub(hn::LoadU(d, at + row_stride), hn::LoadU(d, at));
            else
              return hn::LoadU(d, at);
          };
          V sum = hn::Mul(load_dy(0, part), load_weight(0));
          for (std::size_t m = 1; m < octets; ++m) sum = mul_add(load_dy(m, part), load_weight(m), sum);
          const V f = hn::Set(d, factor);
          total[part] = start ? hn::Mul(f, sum) : mul_add(f, sum, total[part]);
        });
      };
      constexpr std::bool_constant<kSubtract> subtract;
      add_row(row, subtract, slope[0], true);
      for (unsigned k = 1; k < b.slopes; ++k) add_row(row + k * row_stride, subtract, slope[k], false);
      if constexpr (kBase) add_row(weight + b.base_offset, std::false_type(), *base, false);
    }
    unroll<parts>([&](auto part) GRADLOOM_UNROLLED { hn::StoreU(total[part], d, lanes_of + part * lanes); });
    lanes_of += kLanes;
    weight += input_stride;
    slope += slope_stride;
    span += sample_stride;
    if constexpr (kBase) base += sample_stride;
  }
}

// Any number of octets, any distance of rows.
template <int kDegree, bool kBase, bool kSubtract, class T>
HWY_NOINLINE void input_gradient_any(const InputGradientBlock<T>& b, Range samples) {
  alignas(64) T lanes_of[kGroup * kLanes] = {};  // of inputs that do not exist: zero
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    input_gradient_sample<kDegree, kBase, kSubtract>(b, s, lanes_of);
    add_lanes(lanes_of, b.first, b.dl_dx + s * kPanel);
  }
}

#if HWY_TARGET <= HWY_AVX2
// One number of octets, rows kRowStride(octets) apart.
template <int kDegree, bool kBase, std::size_t octets>
HWY_NOINLINE void input_gradient_octets(const InputGradientBlock<float>& b, Range samples) {
  alignas(64) float lanes_of[kGroup * kLanes] = {};
  for (std::size_t s = samples.begin; s < samples.end; ++s) eight_inputs<kDegree, kBase, octets>(b, s, lanes_of);
}

// Runs the version for this number of octets, if there is one. Only the usual degree has all of them: each takes its
// time to compile.
template <int kDegree, bool kBase>
HWY_INLINE bool input_gradient_special(const InputGradientBlock<float>& b, Range samples) {
  if (b.subtract || b.row_stride != kRowStride(b.octets)) return false;
  if (b.octets == kBlock / kLanes) {
    input_gradient_octets<kDegree, kBase, kBlock / kLanes>(b, samples);
    return true;
  }
  if constexpr (kDegree == 3) {
    unroll<kBlock / kLanes - 1>([&](auto less) GRADLOOM_UNROLLED {
      if (b.octets == less + 1) input_gradient_octets<kDegree, kBase, less + 1>(b, samples);
    });
    return true;
  }
  return false;
}
#endif

template <int kDegree, bool kBase, class T>
HWY_INLINE void input_gradient_block(const InputGradientBlock<T>& b, Range samples) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (kDegree != 0 && std::is_same_v<T, float>)
    if (input_gradient_special<kDegree, kBase>(b, samples)) return;
#endif
  if constexpr (kContract == 2)
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
  const std::size_t octets = divide_up(shape.out, kLanes);
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
    for (std::size_t o = 0; o < octets; o += kBlock / kLanes) {
      const std::size_t j = o * kLanes;
      b.octets = std::min(octets - o, kBlock / kLanes);
      b.weight = layer.weight + i * rows * out + j;
      b.row_stride = out;
      const std::size_t columns = kRowStride(b.octets);
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
      b.dl_dy = dl_dy + (j / kPanel) * b.panel_stride;
      b.first = o == 0;
      input_gradient_block<kDegree, kBase>(b, samples);
    }
  }
}

template <class T>
void input_gradient(const Layer<T>& layer, const LayerTape<T>& tape, const T* dl_dy, Range samples, T* dl_dx) {
  // Contract 2: special versions take differences, the one for any degree what the shape asks for.
  const bool special = kContract == 1 || layer.shape.row_differences();
  for_degree(special ? layer.shape.degree : 0, layer.shape.base, [&](auto degree, auto base) GRADLOOM_UNROLLED {
    input_gradient_degree<degree, base>(layer, tape, dl_dy, samples, dl_dx);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::spline {
GRADLOOM_EXPORT(input_gradient);
}  // namespace gradloom::kernels::spline
#endif
