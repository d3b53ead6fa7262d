// Forward and backward of a layer of gates on one tile; lanes are cells.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/gate/layer_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/gate/lanes-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/gate/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::gate {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

template <std::size_t copies, class T>
HWY_INLINE void forward_copies(const Gate<T>* HWY_RESTRICT gates, std::size_t count, const T* HWY_RESTRICT in,
                               std::size_t in_step, T* HWY_RESTRICT out, std::size_t out_step) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kTile / lanes;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t n = 0; n < count; ++n) {
    const Gate<T>& gate = gates[n];
    const T *a = in + gate.a, *b = in + gate.b;
    T* y = out + n * kTile;
    const V c0 = hn::Set(d, gate.c[0]), c1 = hn::Set(d, gate.c[1]), c2 = hn::Set(d, gate.c[2]),
            c3 = hn::Set(d, gate.c[3]);
    unroll<copies>([&](auto copy) GRADLOOM_UNROLLED {
      unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
        const V va = hn::LoadU(d, a + copy * in_step + k * lanes), vb = hn::LoadU(d, b + copy * in_step + k * lanes);
        const V left = hn::Add(c0, hn::Mul(c1, va)), right = hn::Add(c2, hn::Mul(c3, va));
        hn::StoreU(hn::Add(left, hn::Mul(right, vb)), d, y + copy * out_step + k * lanes);
      });
    });
  }
}

template <class T>
void forward_any(const Gate<T>* gates, std::size_t count, const T* in, T* out, const Copies& copies) {
  std::size_t k = 0;
  for (; k + 2 <= copies.count; k += 2)
    forward_copies<2>(gates, count, in + k * copies.in_step, copies.in_step, out + k * copies.out_step,
                      copies.out_step);
  if (k < copies.count) forward_copies<1>(gates, count, in + k * copies.in_step, 0, out + k * copies.out_step, 0);
}

template <class T>
void backward_any(const Gate<T>* HWY_RESTRICT gates, std::size_t count, const LayerGradient<T>& arrays) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kTile / lanes;
  using V = hn::Vec<Tag<T>>;
  const T* HWY_RESTRICT in = arrays.in;
  T* HWY_RESTRICT dl_dout = arrays.dl_dout;
  T* dl_din = arrays.dl_din;
  T* HWY_RESTRICT sums = arrays.sums;
  for (std::size_t n = count; n-- > 0;) {
    const Gate<T>& gate = gates[n];
    const T *a = in + gate.a, *b = in + gate.b;
    T *dy = dl_dout + n * kTile, *da = dl_din + gate.a, *db = dl_din + gate.b;
    const V c1 = hn::Set(d, gate.c[1]), c2 = hn::Set(d, gate.c[2]), c3 = hn::Set(d, gate.c[3]);
    V g[parts], ga[parts], gb[parts], gab[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const V va = hn::LoadU(d, a + k * lanes), vb = hn::LoadU(d, b + k * lanes);
      g[k] = hn::LoadU(d, dy + k * lanes);
      hn::StoreU(hn::Zero(d), d, dy + k * lanes);
      ga[k] = hn::Mul(g[k], va);
      gb[k] = hn::Mul(g[k], vb);
      gab[k] = hn::Mul(ga[k], vb);
    });
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const V change = hn::Add(hn::Mul(c1, g[k]), hn::Mul(c3, gb[k]));
      hn::StoreU(hn::Add(hn::LoadU(d, da + k * lanes), change), d, da + k * lanes);
    });
    // After the row of a is stored: it may be the row of b.
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const V change = hn::Add(hn::Mul(c2, g[k]), hn::Mul(c3, ga[k]));
      hn::StoreU(hn::Add(hn::LoadU(d, db + k * lanes), change), d, db + k * lanes);
    });
    T* to = sums + n * kPartial;
    accumulate_partial<T>(g, to), accumulate_partial<T>(ga, to + 2);
    accumulate_partial<T>(gb, to + 4), accumulate_partial<T>(gab, to + 6);
  }
}

#if HWY_TARGET == HWY_AVX2
// The same for floats. The sums of a gate are long chains of dependent instructions; they are finished while the next
// gate is under way, or its instructions would wait behind them.
void backward_any(const Gate<float>* HWY_RESTRICT gates, std::size_t count, const LayerGradient<float>& arrays) {
  constexpr Tag<float> d;
  using V = hn::Vec<Tag<float>>;
  const float* HWY_RESTRICT in = arrays.in;
  float* HWY_RESTRICT dl_dout = arrays.dl_dout + count * kTile;
  float* dl_din = arrays.dl_din;
  float* HWY_RESTRICT sums = arrays.sums + count * kPartial;
  HWY_ALIGN float nothing[kPartial] = {};
  float* before = nothing;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (const Gate<float>* gate = gates + count; gate-- != gates;) {
    dl_dout -= kTile;
    sums -= kPartial;
    const std::size_t at_a = gate->a, at_b = gate->b;
    accumulate_four(s0, s1, s2, s3, before);
    before = sums;
    const V c1 = hn::Set(d, gate->c[1]), c2 = hn::Set(d, gate->c[2]), c3 = hn::Set(d, gate->c[3]);
    const V g0 = hn::LoadU(d, dl_dout), g1 = hn::LoadU(d, dl_dout + 8);
    hn::StoreU(hn::Zero(d), d, dl_dout);
    hn::StoreU(hn::Zero(d), d, dl_dout + 8);
    const V b0 = hn::LoadU(d, in + at_b), b1 = hn::LoadU(d, in + at_b + 8);
    const V ga0 = hn::Mul(g0, hn::LoadU(d, in + at_a)), ga1 = hn::Mul(g1, hn::LoadU(d, in + at_a + 8));
    const V gb0 = hn::Mul(g0, b0), gb1 = hn::Mul(g1, b1);
    const V gab0 = hn::Mul(ga0, b0), gab1 = hn::Mul(ga1, b1);
    const V da0 = hn::Add(hn::Mul(c1, g0), hn::Mul(c3, gb0)), da1 = hn::Add(hn::Mul(c1, g1), hn::Mul(c3, gb1));
    const V db0 = hn::Add(hn::Mul(c2, g0), hn::Mul(c3, ga0)), db1 = hn::Add(hn::Mul(c2, g1), hn::Mul(c3, ga1));
    float* da = dl_din + at_a;
    hn::StoreU(hn::Add(hn::LoadU(d, da), da0), d, da);
    hn::StoreU(hn::Add(hn::LoadU(d, da + 8), da1), d, da + 8);
    // After the row of a is stored: it may be the row of b.
    float* db = dl_din + at_b;
    hn::StoreU(hn::Add(hn::LoadU(d, db), db0), d, db);
    hn::StoreU(hn::Add(hn::LoadU(d, db + 8), db1), d, db + 8);
    s0 = hn::Add(g0, g1), s1 = hn::Add(ga0, ga1), s2 = hn::Add(gb0, gb1), s3 = hn::Add(gab0, gab1);
  }
  accumulate_four(s0, s1, s2, s3, before);
}
#endif

#define GRADLOOM_DEFINE(T)                                                                               \
  void forward_##T(const Gate<T>* gates, std::size_t count, const T* in, T* out, const Copies& copies) { \
    forward_any(gates, count, in, out, copies);                                                          \
  }                                                                                                      \
  void backward_##T(const Gate<T>* gates, std::size_t count, const LayerGradient<T>& arrays) {           \
    backward_any(gates, count, arrays);                                                                  \
  }
GRADLOOM_DEFINE(float)
GRADLOOM_DEFINE(double)
#undef GRADLOOM_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::gate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::gate {
HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(backward_float);
HWY_EXPORT(backward_double);
namespace fast {
#define GRADLOOM_DEFINE(T)                                                                  \
  void forward(std::span<const Gate<T>> gates, const T* in, T* out, const Copies& copies) { \
    HWY_DYNAMIC_DISPATCH(forward_##T)(gates.data(), gates.size(), in, out, copies);         \
  }                                                                                         \
  void backward(std::span<const Gate<T>> gates, const LayerGradient<T>& arrays) {           \
    HWY_DYNAMIC_DISPATCH(backward_##T)(gates.data(), gates.size(), arrays);                 \
  }
GRADLOOM_DEFINE(float)
GRADLOOM_DEFINE(double)
#undef GRADLOOM_DEFINE
}  // namespace fast
}  // namespace gradloom::kernels::gate
#endif
