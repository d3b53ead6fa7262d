// exp, log, log1p, sigmoid, silu: accuracy, special values, and the same bits on every instruction set.
#include "gradloom/kernels/elementary/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gradloom/base/float_mode.h"
#include "gradloom/base/random.h"
#include "gradloom/kernels/elementary/arrays.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels {
namespace {

template <class T>
class Elementary : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Elementary, Scalars);

// Distance in units in the last place of the exact result; results below the normal numbers count as right when near
// zero.
template <class T>
long double ulps(T actual, long double exact) {
  if (std::abs(exact) < std::numeric_limits<T>::min() * 2)
    return std::abs(actual) <= std::numeric_limits<T>::min() * 2 ? 0 : 1e9L;
  int exponent;
  std::frexp(exact, &exponent);
  const long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return std::abs(static_cast<long double>(actual) - exact) / unit;
}

template <class T>
std::vector<T> points(double lo, double hi) {
  const RandomStream random(3, RandomUse::check);
  std::vector<T> x;
  for (std::uint32_t n = 0; n < 200000; ++n) x.push_back(static_cast<T>(lo + (hi - lo) * random.uniform(n)));
  for (std::uint32_t n = 0; n < 20000; ++n) x.push_back(static_cast<T>(random.normal(400000 + n)));
  return x;
}

// The definitions in one arithmetic, of single numbers.
template <class T>
struct Functions {
  Variant variant;

  explicit Functions(Arithmetic arithmetic) : variant(Variant::reference, arithmetic) {}
  T exp(T x) const { return of(elementary::exp<T>, x); }
  T log(T x) const { return of(elementary::log<T>, x); }
  // x >= 0.
  T log1p(T x) const { return variant.arithmetic == Arithmetic::fused ? fused::log1p(x) : split::log1p(x); }
  T sigmoid(T x) const { return of(elementary::sigmoid<T>, x); }
  ValueAndSlope<T> silu(T x) const {
    ValueAndSlope<T> y;
    elementary::silu<T>(variant, {&x, 1}, {&y.value, 1}, {&y.slope, 1});
    return y;
  }

 private:
  T of(void (*f)(Variant, std::span<const T>, std::span<T>), T x) const {
    T y;
    f(variant, {&x, 1}, {&y, 1});
    return y;
  }
};

TYPED_TEST(Elementary, ExpIsWithinTwoUnits) {
  using L = ElementaryLimits<TypeParam>;
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const Functions<TypeParam> f(arithmetic);
    long double worst = 0;
    for (const TypeParam x : points<TypeParam>(L::kExpLow, L::kExpHigh))
      worst = std::max(worst, ulps(f.exp(x), std::exp(static_cast<long double>(x))));
    EXPECT_LE(worst, 2.0L);
  }
}

TYPED_TEST(Elementary, LogIsWithinThreeUnits) {
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const Functions<TypeParam> f(arithmetic);
    long double worst = 0;
    for (TypeParam x : points<TypeParam>(-80, 80)) {
      x = static_cast<TypeParam>(std::exp(static_cast<double>(x)));
      worst = std::max(worst, ulps(f.log(x), std::log(static_cast<long double>(x))));
    }
    for (TypeParam x : points<TypeParam>(0.9, 1.1))
      if (x > 0) worst = std::max(worst, ulps(f.log(x), std::log(static_cast<long double>(x))));
    EXPECT_LE(worst, 3.0L);
  }
}

TYPED_TEST(Elementary, Log1pIsWithinThreeUnits) {
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const Functions<TypeParam> f(arithmetic);
    long double worst = 0;
    const auto look = [&](TypeParam x) {
      worst = std::max(worst, ulps(f.log1p(x), std::log1p(static_cast<long double>(x))));
    };
    for (const TypeParam x : points<TypeParam>(-80, 80)) look(static_cast<TypeParam>(std::exp(static_cast<double>(x))));
    for (const TypeParam x : points<TypeParam>(0, 2)) look(std::abs(x));
    EXPECT_LE(worst, 3.0L);
  }
}

TYPED_TEST(Elementary, SigmoidAndSiluAreWithinFewUnits) {
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const Functions<TypeParam> f(arithmetic);
    long double sigmoid_worst = 0, silu_worst = 0, slope_worst = 0;
    for (const TypeParam x : points<TypeParam>(-60, 60)) {
      const long double s = 1 / (1 + std::exp(-static_cast<long double>(x)));
      sigmoid_worst = std::max(sigmoid_worst, ulps(f.sigmoid(x), s));
      silu_worst = std::max(silu_worst, ulps(f.silu(x).value, x * s));
      // The slope has a root near -1.28 and 1 - s loses digits for large x, so its error is absolute and grows with x.
      const long double slope = s * (1 + x * (1 - s)), error = std::abs(f.silu(x).slope - slope);
      slope_worst = std::max(slope_worst, error / std::numeric_limits<TypeParam>::epsilon() / (2 + std::abs(x) / 2));
    }
    EXPECT_LE(sigmoid_worst, 3.5L);
    EXPECT_LE(silu_worst, 4.0L);
    EXPECT_LE(slope_worst, 1.5L);
  }
}

TYPED_TEST(Elementary, SpecialValues) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const Functions<T> f(arithmetic);
    EXPECT_EQ(f.exp(infinity), infinity);
    EXPECT_EQ(f.exp(-infinity), T(0));
    EXPECT_EQ(f.exp(T(0)), T(1));
    EXPECT_TRUE(std::isnan(f.exp(nan)));
    EXPECT_EQ(f.log(T(1)), T(0));
    EXPECT_EQ(f.log(T(0)), -infinity);
    EXPECT_EQ(f.log(infinity), infinity);
    EXPECT_TRUE(std::isnan(f.log(T(-1))));
    EXPECT_TRUE(std::isnan(f.log(nan)));
    EXPECT_EQ(f.log1p(T(0)), T(0));
    EXPECT_EQ(f.sigmoid(T(0)), T(0.5));
    EXPECT_EQ(f.sigmoid(infinity), T(1));
    EXPECT_EQ(f.sigmoid(-infinity), T(0));
    EXPECT_TRUE(std::isnan(f.sigmoid(nan)));
    EXPECT_EQ(f.silu(T(0)).value, T(0));
    EXPECT_EQ(f.silu(T(0)).slope, T(0.5));
  }
}

TYPED_TEST(Elementary, EveryTargetGivesTheBitsOfTheScalarCode) {
  using T = TypeParam;
  const FlushSubnormals flush;
  std::vector<T> x = points<T>(-800, 800);
  for (const T special : {T(0), T(-0.0), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::max(),
                          std::numeric_limits<T>::min(), std::numeric_limits<T>::denorm_min(), T(1)})
    x.push_back(special);
  const auto compare = [&](const char* what, const std::vector<T>& a, const std::vector<T>& b) {
    for (std::size_t n = 0; n < a.size(); ++n)
      if (std::memcmp(&a[n], &b[n], sizeof(T)) != 0 && !(std::isnan(a[n]) && std::isnan(b[n])))
        return testing::AssertionFailure() << what << "(" << x[n] << "): " << a[n] << " and " << b[n];
    return testing::AssertionSuccess();
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{7}, x.size()}) {
    const std::span<const T> in(x.data(), size);
    std::vector<T> a(size), b(size), a2(size), b2(size);
    for (const Arithmetic arithmetic : available_arithmetics()) {
      const Variant reference(Variant::reference, arithmetic), fast(Variant::fast, arithmetic);
      for (const std::string& target : simd_targets(arithmetic)) {
        SCOPED_TRACE(target);
        const ForceSimdTarget force(target);
        elementary::exp<T>(reference, in, std::span<T>(a)), elementary::exp<T>(fast, in, std::span<T>(b));
        EXPECT_TRUE(compare("exp", a, b));
        elementary::log<T>(reference, in, std::span<T>(a)), elementary::log<T>(fast, in, std::span<T>(b));
        EXPECT_TRUE(compare("log", a, b));
        elementary::sigmoid<T>(reference, in, std::span<T>(a)), elementary::sigmoid<T>(fast, in, std::span<T>(b));
        EXPECT_TRUE(compare("sigmoid", a, b));
        elementary::silu<T>(reference, in, std::span<T>(a), std::span<T>(a2)),
            elementary::silu<T>(fast, in, std::span<T>(b), std::span<T>(b2));
        EXPECT_TRUE(compare("silu", a, b));
        EXPECT_TRUE(compare("silu'", a2, b2));
      }
    }
  }
}

}  // namespace
}  // namespace gradloom::kernels
