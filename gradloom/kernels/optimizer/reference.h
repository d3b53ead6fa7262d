// The definition of the updates, one element at a time. See optimizer.h for contracts.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_OPTIMIZER_REFERENCE_H_
#define GRADLOOM_KERNELS_OPTIMIZER_REFERENCE_H_

#include <cmath>

#include "gradloom/kernels/mul_add.h"
#include "gradloom/kernels/optimizer/optimizer.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/optimizer/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::optimizer::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::mul_add;
using kernels::GRADLOOM_ARITHMETIC::neg_mul_add;

template <class T>
void prepare(const Step<T>& c, T& g, T& w) {
  g = c.gradient_scale * g;
  g = g < -c.gradient_limit ? -c.gradient_limit : g;
  g = g > c.gradient_limit ? c.gradient_limit : g;
  if (c.l2 != T(0)) g = mul_add(c.l2, w, g);
  w = c.keep * w;
}

namespace rules {
using std::sqrt;
template <class T>
T sign(T a) {
  return a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0);
}
#define GRADLOOM_RULE_BODY(name) \
  template <class T>             \
  void name(const Step<T>& c, T g, T& w, [[maybe_unused]] T& m, [[maybe_unused]] T& v)
#include "gradloom/kernels/optimizer/rules.inc"
#undef GRADLOOM_RULE_BODY
}  // namespace rules

// States that the rule does not have may be null.
template <class T>
void update(Rule rule, const Step<T>& step, T* parameters, const T* gradient, T* first, T* second, std::size_t size) {
  T none = 0;
  for (std::size_t n = 0; n < size; ++n) {
    T g = gradient[n], &w = parameters[n], &m = first ? first[n] : none, &v = second ? second[n] : none;
    prepare(step, g, w);
    switch (rule) {
#define GRADLOOM_RULE(number, name, ...) \
  case Rule::name:                       \
    rules::name(step, g, w, m, v);       \
    break;
#include "gradloom/kernels/optimizer/rule_list.inc"
#undef GRADLOOM_RULE
    }
  }
}

}  // namespace gradloom::kernels::optimizer::reference::GRADLOOM_ARITHMETIC

#endif
