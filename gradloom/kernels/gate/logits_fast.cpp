// Logits to coefficients, and sums to the gradient of logits; lanes are the 16 functions of a gate.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/gate/logits_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/gate/lanes-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/gate/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::gate {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

template <class T>
struct WeightTable {
  T w[kSums][kFunctions];
};

template <class T>
constexpr WeightTable<T> weight_table() {
  WeightTable<T> table{};
  for (std::size_t m = 0; m < kSums; ++m)
    for (std::size_t i = 0; i < kFunctions; ++i) table.w[m][i] = static_cast<T>(weight(m, i));
  return table;
}

template <class T>
inline constexpr WeightTable<T> kWeights = weight_table<T>();

template <class T>
HWY_INLINE void softmax(const T* z, hn::Vec<Tag<T>>* p) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kFunctions / lanes;
  T largest = z[0];
  for (std::size_t i = 1; i < kFunctions; ++i) largest = z[i] > largest ? z[i] : largest;
  const auto shift = hn::Set(d, largest);
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
    p[k] = elementary_exp(VectorOps<Tag<T>>{}, hn::Sub(hn::LoadU(d, z + k * lanes), shift));
  });
  const auto sum = hn::Set(d, add_lanes<T>(p));
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { p[k] = hn::Div(p[k], sum); });
}

template <class T>
void coefficients(std::span<const T> logits, const std::uint32_t* position, std::size_t stride, Gate<T>* gates) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kFunctions / lanes;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t n = 0; n < logits.size() / kFunctions; ++n) {
    V p[parts], terms[kSums][parts];
    softmax(logits.data() + n * kFunctions, p);
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      unroll<kSums>([&](auto m)
                        GRADLOOM_UNROLLED { terms[m][k] = hn::Mul(hn::LoadU(d, kWeights<T>.w[m] + k * lanes), p[k]); });
    });
    unroll<kSums>([&](auto m) GRADLOOM_UNROLLED { gates[position[n * stride]].c[m] = add_lanes<T>(terms[m]); });
  }
}

template <class T>
void logit_gradient(std::span<const T> logits, const std::uint32_t* position, std::size_t stride, const T* sums,
                    GradientMode mode, T* dl_dz) {
  constexpr Tag<T> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), parts = kFunctions / lanes;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t n = 0; n < logits.size() / kFunctions; ++n) {
    V p[parts], slope[parts], terms[parts];
    softmax(logits.data() + n * kFunctions, p);
    const T* parts_of = sums + position[n * stride] * kPartial;
    const T s[kSums] = {parts_of[0] + parts_of[1], parts_of[2] + parts_of[3], parts_of[4] + parts_of[5],
                        parts_of[6] + parts_of[7]};
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const auto weights = [&](std::size_t m) GRADLOOM_UNROLLED { return hn::LoadU(d, kWeights<T>.w[m] + k * lanes); };
      slope[k] = hn::Mul(weights(0), hn::Set(d, s[0]));
      for (std::size_t m = 1; m < kSums; ++m) slope[k] = mul_add(weights(m), hn::Set(d, s[m]), slope[k]);
      terms[k] = hn::Mul(p[k], slope[k]);
    });
    const V mean = hn::Set(d, add_lanes<T>(terms));
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      T* to = dl_dz + n * kFunctions + k * lanes;
      const V g = hn::Mul(p[k], hn::Sub(slope[k], mean));
      hn::StoreU(mode == GradientMode::overwrite ? g : hn::Add(hn::LoadU(d, to), g), d, to);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::gate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::gate {
GRADLOOM_EXPORT(coefficients);
GRADLOOM_EXPORT(logit_gradient);
}  // namespace gradloom::kernels::gate
#endif
