// The updates on SIMD; tails go through the definition.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/optimizer/optimizer_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/optimizer/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::optimizer {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// A vector with the operators that rules.inc is written with.
template <class T>
struct Lanes {
  hn::Vec<Tag<T>> v;

  Lanes() = default;
  explicit HWY_INLINE Lanes(T value) : v(hn::Set(Tag<T>(), value)) {}
  explicit HWY_INLINE Lanes(hn::Vec<Tag<T>> lanes) : v(lanes) {}
  static HWY_INLINE Lanes load(const T* from) { return Lanes(hn::LoadU(Tag<T>(), from)); }
  HWY_INLINE void store(T* to) const { hn::StoreU(v, Tag<T>(), to); }

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(hn::Add(a.v, b.v)); }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(hn::Sub(a.v, b.v)); }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(hn::Mul(a.v, b.v)); }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(hn::Div(a.v, b.v)); }
  friend HWY_INLINE Lanes mul_add(Lanes a, Lanes b, Lanes c) {
    return Lanes(kernels::HWY_NAMESPACE::mul_add(a.v, b.v, c.v));
  }
  friend HWY_INLINE Lanes neg_mul_add(Lanes a, Lanes b, Lanes c) {
    return Lanes(kernels::HWY_NAMESPACE::neg_mul_add(a.v, b.v, c.v));
  }
  friend HWY_INLINE Lanes sqrt(Lanes a) { return Lanes(hn::Sqrt(a.v)); }
  friend HWY_INLINE Lanes sign(Lanes a) {
    const Lanes zero(T(0)), negative(hn::IfThenElseZero(hn::Lt(a.v, zero.v), Lanes(T(-1)).v));
    return Lanes(hn::IfThenElse(hn::Gt(a.v, zero.v), Lanes(T(1)).v, negative.v));
  }
};

// Whether prepare() changes nothing. Knowing it saves a third of Adam's operations on the units that also divide and
// take roots.
template <class T>
bool is_bare(const Step<T>& c) {
  return c.gradient_scale == T(1) && c.gradient_limit == std::numeric_limits<T>::infinity() && c.l2 == T(0) &&
         c.keep == T(1);
}

// The constants of a step, in every lane.
template <class T>
struct LaneStep {
#define GRADLOOM_STEP_SCALAR(number, name) const Lanes<T> name;
#include "gradloom/kernels/shader/step_scalars.inc"
};

template <class T>
HWY_INLINE LaneStep<T> in_lanes(const Step<T>& c) {
  return {
#define GRADLOOM_STEP_SCALAR(number, name) Lanes<T>(c.name),
#include "gradloom/kernels/shader/step_scalars.inc"
  };
}

template <class T>
HWY_INLINE void prepare(const LaneStep<T>& c, bool has_l2, Lanes<T>& g, Lanes<T>& w) {
  const auto high = c.gradient_limit.v, low = hn::Neg(high);
  g = c.gradient_scale * g;
  g.v = hn::IfThenElse(hn::Lt(g.v, low), low, g.v);
  g.v = hn::IfThenElse(hn::Gt(g.v, high), high, g.v);
  if (has_l2) g = mul_add(c.l2, w, g);
  w = c.keep * w;
}

namespace rules {
#define GRADLOOM_RULE_BODY(name)      \
  template <class Constants, class V> \
  HWY_INLINE void name(const Constants& c, V g, V& w, [[maybe_unused]] V& m, [[maybe_unused]] V& v)
#include "gradloom/kernels/optimizer/rules.inc"
#undef GRADLOOM_RULE_BODY
}  // namespace rules

template <Rule rule, bool kBare, class T>
HWY_INLINE void update_by(const Step<T> step, T* HWY_RESTRICT parameters, const T* HWY_RESTRICT gradient,
                          T* HWY_RESTRICT first, T* HWY_RESTRICT second, std::size_t size) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>()), states = facts(rule).states;
  const LaneStep<T> c = in_lanes(step);
  std::size_t n = 0;
  for (; n + lanes <= size; n += lanes) {
    Lanes<T> w = Lanes<T>::load(parameters + n), g = Lanes<T>::load(gradient + n), m(T(0)), v(T(0));
    if constexpr (states > 0) m = Lanes<T>::load(first + n);
    if constexpr (states > 1) v = Lanes<T>::load(second + n);
    if constexpr (!kBare) prepare(c, step.l2 != T(0), g, w);
#define GRADLOOM_RULE(number, name, ...) \
  if constexpr (rule == Rule::name) rules::name(c, g, w, m, v);
#include "gradloom/kernels/optimizer/rule_list.inc"
#undef GRADLOOM_RULE
    if constexpr (states > 0) m.store(first + n);
    if constexpr (states > 1) v.store(second + n);
    w.store(parameters + n);
  }
  reference::GRADLOOM_TARGET_ARITHMETIC::update(rule, step, parameters + n, gradient + n,
                                                states > 0 ? first + n : nullptr, states > 1 ? second + n : nullptr,
                                                size - n);
}

template <class T>
void update(Rule rule, const Step<T>& step, T* parameters, const T* gradient, T* first, T* second, std::size_t size) {
  const bool bare = is_bare(step);
  switch (rule) {
#define GRADLOOM_RULE(number, name, ...)                                                  \
  case Rule::name:                                                                        \
    bare ? update_by<Rule::name, true>(step, parameters, gradient, first, second, size)   \
         : update_by<Rule::name, false>(step, parameters, gradient, first, second, size); \
    break;
#include "gradloom/kernels/optimizer/rule_list.inc"
#undef GRADLOOM_RULE
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::optimizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::optimizer {
GRADLOOM_EXPORT(update);
}  // namespace gradloom::kernels::optimizer
#endif
