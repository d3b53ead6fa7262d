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

#include <algorithm>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/gate/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::gate {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// What forward keeps between two gates: the rows of the one before.
template <std::size_t count, class T>
struct Rows {
  hn::Vec<Tag<T>> a[count], b[count];
};

// The gates of one run on `copies` inputs.
template <Visit visit, std::size_t copies, class T>
HWY_INLINE void forward_run(const Gate<T>* HWY_RESTRICT gate, const Gate<T>* end, const T* HWY_RESTRICT in,
                            std::size_t in_step, T* HWY_RESTRICT out, std::size_t out_step) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kTile / lanes;
  using V = hn::Vec<Tag<T>>;
  const auto load = [&](std::size_t offset, V* to) GRADLOOM_UNROLLED {
    unroll<copies * parts>(
        [&](auto n) GRADLOOM_UNROLLED { to[n] = hn::LoadU(d, in + offset + n / parts * in_step + n % parts * lanes); });
  };
  Rows<copies * parts, T> rows;
  if constexpr (visit == Visit::same) load(gate->a, rows.a);
  if constexpr (visit == Visit::same || visit == Visit::fan) load(gate->b, rows.b);
  if constexpr (visit == Visit::chain) load(gate->a, rows.b);
  for (; gate != end; ++gate) {
    if constexpr (visit == Visit::chain)
      unroll<copies * parts>([&](auto n) GRADLOOM_UNROLLED { rows.a[n] = rows.b[n]; });
    if constexpr (visit == Visit::plain || visit == Visit::fan) load(gate->a, rows.a);
    if constexpr (visit == Visit::plain || visit == Visit::chain) load(gate->b, rows.b);
    T* y = out + gate->out;
    const V c0 = hn::Set(d, gate->c[0]), c1 = hn::Set(d, gate->c[1]), c2 = hn::Set(d, gate->c[2]),
            c3 = hn::Set(d, gate->c[3]);
    unroll<copies * parts>([&](auto n) GRADLOOM_UNROLLED {
      const V left = mul_add(c1, rows.a[n], c0), right = mul_add(c3, rows.a[n], c2);
      hn::StoreU(mul_add(right, rows.b[n], left), d, y + n / parts * out_step + n % parts * lanes);
    });
  }
}

template <std::size_t copies, class T>
HWY_INLINE void forward_copies(const Layer<T>& layer, const T* in, std::size_t in_step, T* out, std::size_t out_step) {
  const Gate<T>* gate = layer.gates.data();
#if HWY_TARGET == HWY_AVX2  // elsewhere a tile takes too many registers to keep rows in them
  for (const Run& run : layer.plan->runs) {
    const Gate<T>* end = gate + run.count;
    if (run.visit == Visit::chain)
      forward_run<Visit::chain, copies>(gate, end, in, in_step, out, out_step);
    else if (run.visit == Visit::same)
      forward_run<Visit::same, copies>(gate, end, in, in_step, out, out_step);
    else if (run.visit == Visit::fan)
      forward_run<Visit::fan, copies>(gate, end, in, in_step, out, out_step);
    else
      forward_run<Visit::plain, copies>(gate, end, in, in_step, out, out_step);
    gate = end;
  }
#else
  forward_run<Visit::plain, copies>(gate, gate + layer.gates.size(), in, in_step, out, out_step);
#endif
}

template <class T>
void forward(const Layer<T>& layer, const T* in, T* out, const Copies& copies) {
  std::size_t k = 0;
  for (; k + 2 <= copies.count; k += 2)
    forward_copies<2>(layer, in + k * copies.in_step, copies.in_step, out + k * copies.out_step, copies.out_step);
  if (k < copies.count) forward_copies<1>(layer, in + k * copies.in_step, 0, out + k * copies.out_step, 0);
}

// Every gate by itself. Where a row has two terms, pairs and chains may come in any order.
template <class T>
void backward(const Layer<T>& layer, const LayerGradient<T>& arrays) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kTile / lanes;
  using V = hn::Vec<Tag<T>>;
  const T* HWY_RESTRICT in = arrays.in;
  const T* HWY_RESTRICT dl_dout = arrays.dl_dout;
  T* dl_din = arrays.dl_din;
  T* HWY_RESTRICT sums = arrays.sums;
  const std::size_t step = arrays.dl_din_step;
  for (std::size_t row = 0; row < layer.plan->rows; ++row)
    if (row != layer.plan->given) std::fill_n(dl_din + row * step, kTile, -T(0));
  for (std::size_t n = layer.gates.size(); n-- > 0;) {
    const Gate<T>& gate = layer.gates[n];
    const T *a = in + gate.a, *b = in + gate.b, *dy = dl_dout + gate.out;
    T *da = dl_din + gate.a / kTile * step, *db = dl_din + gate.b / kTile * step;
    const V c1 = hn::Set(d, gate.c[1]), c2 = hn::Set(d, gate.c[2]), c3 = hn::Set(d, gate.c[3]);
    V g[parts], ga[parts], gb[parts], gab[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const V va = hn::LoadU(d, a + k * lanes), vb = hn::LoadU(d, b + k * lanes);
      g[k] = hn::LoadU(d, dy + k * lanes);
      ga[k] = hn::Mul(g[k], va);
      gb[k] = hn::Mul(g[k], vb);
      gab[k] = hn::Mul(ga[k], vb);
    });
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const V change = mul_add(c3, gb[k], hn::Mul(c1, g[k]));
      hn::StoreU(hn::Add(hn::LoadU(d, da + k * lanes), change), d, da + k * lanes);
    });
    // After the row of a is stored: it may be the row of b.
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const V change = mul_add(c3, ga[k], hn::Mul(c2, g[k]));
      hn::StoreU(hn::Add(hn::LoadU(d, db + k * lanes), change), d, db + k * lanes);
    });
    T* to = sums + n * kPartial;
    accumulate_partial<T>(g, to), accumulate_partial<T>(ga, to + 2);
    accumulate_partial<T>(gb, to + 4), accumulate_partial<T>(gab, to + 6);
  }
}

#if HWY_TARGET == HWY_AVX2
// Hides what is known about an offset, so that a row that is used twice is read twice: there are too few registers, and
// a number from memory costs no instruction.
HWY_INLINE void forget([[maybe_unused]] std::size_t& offset) {
#if HWY_COMPILER_GCC_ACTUAL
  asm volatile("" : "+r"(offset));
#endif
}

// The gates of one run, from the last to the first. A tile is two vectors. `apart`: rows of dl_din do not follow each
// other.
template <Visit visit, bool apart>
HWY_NOINLINE void backward_run(const Gate<float>* HWY_RESTRICT first, std::size_t count,
                               const LayerGradient<float>& arrays, float* HWY_RESTRICT sums) {
  constexpr Tag<float> d;
  using V = hn::Vec<Tag<float>>;
  const float* HWY_RESTRICT in = arrays.in;
  const float* HWY_RESTRICT dl_dout = arrays.dl_dout;
  [[maybe_unused]] const std::size_t step = arrays.dl_din_step;
  const auto dl_drow = [&](std::size_t offset)
                           GRADLOOM_UNROLLED { return arrays.dl_din + (apart ? offset / kTile * step : offset); };
  const Gate<float>* gate = first + count;
  sums += count * kPartial;
  // chain: what the gate after this one adds to row b; same, fan: the gradients of shared rows so far.
  V da0 = hn::Set(d, -0.0f), da1 = da0, db0 = da0, db1 = da0;
  [[maybe_unused]] float *const first_a = dl_drow(first->a), *const first_b = dl_drow(first->b);
  if constexpr (visit == Visit::same) da0 = hn::LoadU(d, first_a), da1 = hn::LoadU(d, first_a + 8);
  if constexpr (visit == Visit::same || visit == Visit::fan)
    db0 = hn::LoadU(d, first_b), db1 = hn::LoadU(d, first_b + 8);
  do {
    --gate;
    sums -= kPartial;
    std::size_t at_a = gate->a, at_b = gate->b;
    const V g0 = hn::LoadU(d, dl_dout + gate->out), g1 = hn::LoadU(d, dl_dout + gate->out + 8);
    const V gb0 = hn::Mul(g0, hn::LoadU(d, in + at_b)), gb1 = hn::Mul(g1, hn::LoadU(d, in + at_b + 8));
    const V ga0 = hn::Mul(g0, hn::LoadU(d, in + at_a)), ga1 = hn::Mul(g1, hn::LoadU(d, in + at_a + 8));
    forget(at_b);
    const V gab0 = hn::Mul(ga0, hn::LoadU(d, in + at_b)), gab1 = hn::Mul(ga1, hn::LoadU(d, in + at_b + 8));
    const V s0 = hn::Add(g0, g1), s1 = hn::Add(ga0, ga1), s2 = hn::Add(gb0, gb1), s3 = hn::Add(gab0, gab1);
    const V c1 = hn::Set(d, gate->c[1]), c2 = hn::Set(d, gate->c[2]), c3 = hn::Set(d, gate->c[3]);
    const V to_a0 = mul_add(c3, gb0, hn::Mul(c1, g0)), to_a1 = mul_add(c3, gb1, hn::Mul(c1, g1));
    const V to_b0 = mul_add(c3, ga0, hn::Mul(c2, g0)), to_b1 = mul_add(c3, ga1, hn::Mul(c2, g1));
    float *da = dl_drow(at_a), *db = dl_drow(at_b);
    if constexpr (visit == Visit::same) {
      da0 = hn::Add(da0, to_a0), da1 = hn::Add(da1, to_a1), db0 = hn::Add(db0, to_b0), db1 = hn::Add(db1, to_b1);
    } else if constexpr (visit == Visit::fan) {
      hn::StoreU(to_a0, d, da);
      hn::StoreU(to_a1, d, da + 8);
      db0 = hn::Add(db0, to_b0), db1 = hn::Add(db1, to_b1);
    } else if constexpr (visit == Visit::chain) {
      hn::StoreU(hn::Add(da0, to_b0), d, db);
      hn::StoreU(hn::Add(da1, to_b1), d, db + 8);
      da0 = to_a0, da1 = to_a1;
    } else if constexpr (visit == Visit::pairs) {
      hn::StoreU(to_a0, d, da);
      hn::StoreU(to_a1, d, da + 8);
      hn::StoreU(to_b0, d, db);
      hn::StoreU(to_b1, d, db + 8);
    } else {
      hn::StoreU(hn::Add(hn::LoadU(d, da), to_a0), d, da);
      hn::StoreU(hn::Add(hn::LoadU(d, da + 8), to_a1), d, da + 8);
      // After the row of a is stored: it may be the row of b.
      hn::StoreU(hn::Add(hn::LoadU(d, db), to_b0), d, db);
      hn::StoreU(hn::Add(hn::LoadU(d, db + 8), to_b1), d, db + 8);
    }
    accumulate_four(s0, s1, s2, s3, sums);
  } while (gate != first);
  if constexpr (visit == Visit::chain || visit == Visit::same)
    hn::StoreU(da0, d, first_a), hn::StoreU(da1, d, first_a + 8);
  if constexpr (visit == Visit::same || visit == Visit::fan)
    hn::StoreU(db0, d, first_b), hn::StoreU(db1, d, first_b + 8);
}

template <bool apart>
void backward_runs(const Layer<float>& layer, const LayerGradient<float>& arrays) {
  for (const std::uint32_t row : layer.plan->unwritten)
    std::fill_n(arrays.dl_din + row * arrays.dl_din_step, kTile, -0.0f);
  std::size_t end = layer.gates.size();
  const auto& runs = layer.plan->runs;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    end -= run->count;
    const Gate<float>* first = layer.gates.data() + end;
    float* sums = arrays.sums + end * kPartial;
    switch (run->visit) {
      case Visit::plain:
        backward_run<Visit::plain, apart>(first, run->count, arrays, sums);
        break;
      case Visit::same:
        backward_run<Visit::same, apart>(first, run->count, arrays, sums);
        break;
      case Visit::fan:
        backward_run<Visit::fan, apart>(first, run->count, arrays, sums);
        break;
      case Visit::pairs:
        backward_run<Visit::pairs, apart>(first, run->count, arrays, sums);
        break;
      case Visit::chain:
        backward_run<Visit::chain, apart>(first, run->count, arrays, sums);
        break;
    }
  }
}

template <>
void backward(const Layer<float>& layer, const LayerGradient<float>& arrays) {
  if (arrays.dl_din_step == kTile)
    backward_runs<false>(layer, arrays);
  else
    backward_runs<true>(layer, arrays);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::gate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::gate {
GRADLOOM_EXPORT(forward);
GRADLOOM_EXPORT(backward);
}  // namespace gradloom::kernels::gate
#endif
