// Versions of the spline kernels for one degree each, compiled once per instruction set.
#if defined(GRADLOOM_KERNELS_SPLINE_DEGREE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADLOOM_KERNELS_SPLINE_DEGREE_INL_H_
#undef GRADLOOM_KERNELS_SPLINE_DEGREE_INL_H_
#else
#define GRADLOOM_KERNELS_SPLINE_DEGREE_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "gradloom/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::spline {
namespace HWY_NAMESPACE {

// A constant; 0 stands for the version that loops over any degree. Sanitized builds keep one special version beside it,
// which has all the special code.
template <int degree>
#ifdef GRADLOOM_FEW_SIMD_TARGETS
using Degree = std::integral_constant<int, degree == 3 ? 3 : 0>;
#else
using Degree = std::integral_constant<int, degree>;
#endif

// f(Degree, std::bool_constant) for this degree and flag. Instruction sets before AVX2 make do with loops.
template <class F>
HWY_INLINE auto for_degree([[maybe_unused]] unsigned degree, bool flag, F&& f) {
  const auto run = [&](auto known)
                       GRADLOOM_UNROLLED { return flag ? f(known, std::true_type()) : f(known, std::false_type()); };
#if HWY_TARGET <= HWY_AVX2
  switch (degree) {
    case 2:
      return run(Degree<2>());
    case 3:
      return run(Degree<3>());
    case 4:
      return run(Degree<4>());
    case 5:
      return run(Degree<5>());
    default:
      break;
  }
#endif
  return run(Degree<0>());
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::spline
HWY_AFTER_NAMESPACE();

#endif  // per target
