// Reductions do not depend on threads, instruction set or variant.
#include "gradloom/kernels/reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels::reduce {
namespace {

template <class T>
class Reduce : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Reduce, Scalars);

TYPED_TEST(Reduce, IsTheSameForAllThreadsAndTargets) {
  using T = TypeParam;
  const RandomStream random(2, RandomUse::check);
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const std::size_t size : {0, 1, 15, 16, 17, 4095, 4096, 4097, 70001, 300000}) {
      std::vector<T> a(size), b(size), scratch(reduce_scratch(size));
      for (std::uint32_t n = 0; n < size; ++n) a[n] = T(random.normal(2 * n)), b[n] = T(random.normal(2 * n + 1));
      const Exec reference({1, Variant(Variant::reference, arithmetic)});
      const T expected_dot = dot<T>(reference, a, b, scratch), expected_max = max_abs<T>(reference, a, scratch);
      long double exact = 0, magnitude = 0;
      for (std::size_t n = 0; n < size; ++n)
        exact += static_cast<long double>(a[n]) * b[n], magnitude += std::abs(a[n] * b[n]);
      EXPECT_NEAR(static_cast<double>(expected_dot), static_cast<double>(exact),
                  static_cast<double>(300 * std::numeric_limits<T>::epsilon() * magnitude));
      auto expected_axpy = b, expected_scale = a;
      axpy<T>(reference, T(0.3), a, expected_axpy);
      scale<T>(reference, T(0.3), expected_scale);
      for (const unsigned threads : {1u, 2u, 3u, 8u}) {
        const Exec exec({threads, Variant(Variant::fast, arithmetic)});
        for (const std::string& target : simd_targets(arithmetic)) {
          const ForceSimdTarget force(target);
          SCOPED_TRACE(target + " " + std::to_string(threads) + " " + std::to_string(size));
          EXPECT_EQ((dot<T>(exec, a, b, scratch)), expected_dot);
          EXPECT_EQ((sum_of_squares<T>(exec, a, scratch)), (dot<T>(reference, a, a, scratch)));
          EXPECT_EQ((max_abs<T>(exec, a, scratch)), expected_max);
          auto y = b, x = a;
          axpy<T>(exec, T(0.3), a, y);
          scale<T>(exec, T(0.3), x);
          EXPECT_EQ(y, expected_axpy);
          EXPECT_EQ(x, expected_scale);
        }
      }
    }
}

TYPED_TEST(Reduce, MaxAbsFindsNaN) {
  using T = TypeParam;
  std::vector<T> a(5000, T(1)), scratch(reduce_scratch(a.size()));
  const Exec exec({1, Variant::fast});
  a[77] = T(-9);
  EXPECT_EQ((max_abs<T>(exec, a, scratch)), T(9));
  for (const std::size_t at : {0, 100, 4200, 4999}) {
    auto b = a;
    b[at] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_TRUE(std::isnan(max_abs<T>(exec, b, scratch)));
  }
}

}  // namespace
}  // namespace gradloom::kernels::reduce
