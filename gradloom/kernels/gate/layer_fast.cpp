// Forward and backward of a layer of gates on one tile; lanes are cells.
// clang-format off
#define GRADLOOM_AVX512
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
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/gate/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::gate {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// What forward keeps between two gates: the rows of the one before.
template <std::size_t count, class D>
struct Rows {
  hn::Vec<D> a[count], b[count];
};

// The gates of one run on `copies` inputs, in vectors of D.
template <class D, Visit visit, std::size_t copies, class T>
HWY_INLINE void forward_run(const Gate<T>* HWY_RESTRICT gate, const Gate<T>* end, const T* HWY_RESTRICT in,
                            std::size_t in_step, T* HWY_RESTRICT out, std::size_t out_step) {
  constexpr D d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kTile / lanes;
  using V = hn::Vec<D>;
  const auto load = [&](std::size_t offset, V* to) GRADLOOM_UNROLLED {
    unroll<copies * parts>(
        [&](auto n) GRADLOOM_UNROLLED { to[n] = hn::LoadU(d, in + offset + n / parts * in_step + n % parts * lanes); });
  };
  Rows<copies * parts, D> rows;
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

template <class D, std::size_t copies, class T>
HWY_INLINE void forward_copies(const Layer<T>& layer, const T* in, std::size_t in_step, T* out, std::size_t out_step) {
  const Gate<T>* gate = layer.gates.data();
#if HWY_TARGET <= HWY_AVX2  // elsewhere a tile takes too many registers to keep rows in them
  for (const Run& run : layer.plan->runs) {
    const Gate<T>* end = gate + run.count;
    if (run.visit == Visit::chain)
      forward_run<D, Visit::chain, copies>(gate, end, in, in_step, out, out_step);
    else if (run.visit == Visit::same)
      forward_run<D, Visit::same, copies>(gate, end, in, in_step, out, out_step);
    else if (run.visit == Visit::fan)
      forward_run<D, Visit::fan, copies>(gate, end, in, in_step, out, out_step);
    else
      forward_run<D, Visit::plain, copies>(gate, end, in, in_step, out, out_step);
    gate = end;
  }
#else
  forward_run<D, Visit::plain, copies>(gate, gate + layer.gates.size(), in, in_step, out, out_step);
#endif
}

template <class D, class T>
void forward_by(const Layer<T>& layer, const T* in, T* out, const Copies& copies) {
  constexpr std::size_t most = hn::MaxLanes(D()) == kTile ? 4 : 2;  // whose rows registers hold
  std::size_t k = 0;
  const auto some = [&](auto count) GRADLOOM_UNROLLED {
    for (; k + count <= copies.count; k += count)
      forward_copies<D, count>(layer, in + k * copies.in_step, copies.in_step, out + k * copies.out_step,
                               copies.out_step);
  };
  some(Index<most>());
  if constexpr (most > 2) some(Index<2>());
  some(Index<1>());
}

template <class T>
void forward(const Layer<T>& layer, const T* in, T* out, const Copies& copies) {
  if constexpr (hn::MaxLanes(WideTag<T>()) > hn::MaxLanes(Tag<T>()))
    if (full_vectors()) return forward_by<WideTag<T>>(layer, in, out, copies);
  forward_by<Tag<T>>(layer, in, out, copies);
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

#if HWY_TARGET <= HWY_AVX2
// Hides what is known about an offset, so that a row that is used twice is read twice: with two vectors for a row there
// are too few registers, and a number from memory costs no instruction.
HWY_INLINE void forget([[maybe_unused]] std::size_t& offset) {
#if HWY_COMPILER_GCC_ACTUAL
  asm volatile("" : "+r"(offset));
#endif
}

// A row of a tile in vectors of D.
template <class D>
struct Row {
  static constexpr std::size_t kLanes = hn::MaxLanes(D()), kParts = kTile / kLanes;
  hn::Vec<D> part[kParts];

  HWY_INLINE static Row load(const float* from) {
    Row r;
    unroll<kParts>([&](auto k) GRADLOOM_UNROLLED { r.part[k] = hn::LoadU(D(), from + k * kLanes); });
    return r;
  }
  HWY_INLINE static Row all(float value) {
    Row r;
    unroll<kParts>([&](auto k) GRADLOOM_UNROLLED { r.part[k] = hn::Set(D(), value); });
    return r;
  }
  HWY_INLINE void store(float* to) const {
    unroll<kParts>([&](auto k) GRADLOOM_UNROLLED { hn::StoreU(part[k], D(), to + k * kLanes); });
  }
  HWY_INLINE Row operator+(const Row& other) const {
    Row r;
    unroll<kParts>([&](auto k) GRADLOOM_UNROLLED { r.part[k] = hn::Add(part[k], other.part[k]); });
    return r;
  }
  HWY_INLINE Row operator*(const Row& other) const {
    Row r;
    unroll<kParts>([&](auto k) GRADLOOM_UNROLLED { r.part[k] = hn::Mul(part[k], other.part[k]); });
    return r;
  }
  // mul_add(c3, first, c second), what a gate adds to the gradient of a row.
  HWY_INLINE static Row change(float c3, const Row& first, float c, const Row& second) {
    const auto factor = hn::Set(D(), c3), other = hn::Set(D(), c);
    Row r;
    unroll<kParts>(
        [&](auto k) GRADLOOM_UNROLLED { r.part[k] = mul_add(factor, first.part[k], hn::Mul(other, second.part[k])); });
    return r;
  }
};

// The gates of one run, from the last to the first. A tile is two vectors, or one. `apart`: rows of dl_din do not
// follow each other.
template <class D, Visit visit, bool apart>
HWY_NOINLINE void backward_run(const Gate<float>* HWY_RESTRICT first, std::size_t count,
                               const LayerGradient<float>& arrays, float* HWY_RESTRICT sums) {
  using R = Row<D>;
  const float* HWY_RESTRICT in = arrays.in;
  const float* HWY_RESTRICT dl_dout = arrays.dl_dout;
  [[maybe_unused]] const std::size_t step = arrays.dl_din_step;
  const auto dl_drow = [&](std::size_t offset)
                           GRADLOOM_UNROLLED { return arrays.dl_din + (apart ? offset / kTile * step : offset); };
  const Gate<float>* gate = first + count;
  sums += count * kPartial;
  // chain: what the gate after this one adds to row b; same, fan: the gradients of shared rows so far.
  R dl_da = R::all(-0.0f), dl_db = dl_da;
  [[maybe_unused]] float *const first_a = dl_drow(first->a), *const first_b = dl_drow(first->b);
  if constexpr (visit == Visit::same) dl_da = R::load(first_a);
  if constexpr (visit == Visit::same || visit == Visit::fan) dl_db = R::load(first_b);
  do {
    --gate;
    sums -= kPartial;
    std::size_t at_a = gate->a, at_b = gate->b;
    const R g = R::load(dl_dout + gate->out);
    const R gb = g * R::load(in + at_b), ga = g * R::load(in + at_a);
    if constexpr (R::kParts > 1) forget(at_b);
    const R gab = ga * R::load(in + at_b);
    const auto of_g = halves_of(g.part), of_ga = halves_of(ga.part), of_gb = halves_of(gb.part),
               of_gab = halves_of(gab.part);
    const R to_a = R::change(gate->c[3], gb, gate->c[1], g), to_b = R::change(gate->c[3], ga, gate->c[2], g);
    float *da = dl_drow(at_a), *db = dl_drow(at_b);
    if constexpr (visit == Visit::same) {
      dl_da = dl_da + to_a, dl_db = dl_db + to_b;
    } else if constexpr (visit == Visit::fan) {
      to_a.store(da);
      dl_db = dl_db + to_b;
    } else if constexpr (visit == Visit::chain) {
      (dl_da + to_b).store(db);
      dl_da = to_a;
    } else if constexpr (visit == Visit::pairs) {
      to_a.store(da);
      to_b.store(db);
    } else {
      (R::load(da) + to_a).store(da);
      (R::load(db) + to_b).store(db);  // after the row of a is stored: it may be the row of b
    }
    accumulate_four(of_g, of_ga, of_gb, of_gab, sums);
  } while (gate != first);
  if constexpr (visit == Visit::chain || visit == Visit::same) dl_da.store(first_a);
  if constexpr (visit == Visit::same || visit == Visit::fan) dl_db.store(first_b);
}

template <class D, bool apart>
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
        backward_run<D, Visit::plain, apart>(first, run->count, arrays, sums);
        break;
      case Visit::same:
        backward_run<D, Visit::same, apart>(first, run->count, arrays, sums);
        break;
      case Visit::fan:
        backward_run<D, Visit::fan, apart>(first, run->count, arrays, sums);
        break;
      case Visit::pairs:
        backward_run<D, Visit::pairs, apart>(first, run->count, arrays, sums);
        break;
      case Visit::chain:
        backward_run<D, Visit::chain, apart>(first, run->count, arrays, sums);
        break;
    }
  }
}

template <class D>
void backward_by(const Layer<float>& layer, const LayerGradient<float>& arrays) {
  if (arrays.dl_din_step == kTile)
    backward_runs<D, false>(layer, arrays);
  else
    backward_runs<D, true>(layer, arrays);
}

template <>
void backward(const Layer<float>& layer, const LayerGradient<float>& arrays) {
  if constexpr (hn::MaxLanes(WideTag<float>()) > hn::MaxLanes(Tag<float>()))
    if (full_vectors()) return backward_by<WideTag<float>>(layer, arrays);
  backward_by<Tag<float>>(layer, arrays);
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
