// The division and the square root of shaders, compiled as C++, against those of the processor.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gradloom/base/float_mode.h"
#include "tests/support/sanitized.h"

namespace gradloom::kernels {
namespace {

// What GLSL has and exact.glsl uses.
namespace glsl {
using uint = std::uint32_t;
struct uvec2 {
  uint x, y;
  uvec2(uint low, uint high) : x(low), y(high) {}
};
[[maybe_unused]] uint floatBitsToUint(float x) { return std::bit_cast<uint>(x); }
[[maybe_unused]] float uintBitsToFloat(uint x) { return std::bit_cast<float>(x); }
uvec2 unpackDouble2x32(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return {static_cast<uint>(bits), static_cast<uint>(bits >> 32)};
}
double packDouble2x32(uvec2 x) { return std::bit_cast<double>(x.x | static_cast<std::uint64_t>(x.y) << 32); }
void umulExtended(uint a, uint b, uint& high, uint& low) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * b;
  high = static_cast<uint>(product >> 32);
  low = static_cast<uint>(product);
}
using std::floor;

uint injected = 0;  // ulp that an approximation may be off, besides its own errors

#define precise
#define GRADLOOM_SLOPPY injected
#include "gradloom/kernels/shader/exact.glsl"
#undef GRADLOOM_EXACT_GLSL
#define GRADLOOM_DOUBLE
#include "gradloom/kernels/shader/exact.glsl"
#undef GRADLOOM_DOUBLE
#undef GRADLOOM_SLOPPY
#undef precise
}  // namespace glsl

__extension__ using Wide = __int128;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
bool agrees(T found, T expected) {
  return std::isnan(expected) ? std::isnan(found) : std::bit_cast<Bits<T>>(found) == std::bit_cast<Bits<T>>(expected);
}

// The processor's results, which the compiler must not compute where it rounds and flushes as it likes.
template <class T>
T own_quotient(T a, T b) {
  volatile T above = a, below = b;
  return above / below;
}
template <class T>
T own_root(T a) {
  volatile T of = a;
  return std::sqrt(of);
}

template <class T>
bool divides(T a, T b) {
  return agrees(glsl::exact_divide(a, b), own_quotient(a, b));
}
template <class T>
bool finds_root(T a) {
  return agrees(glsl::exact_sqrt(a), own_root(a));
}

template <class T>
class Exact : public ::testing::Test {
 protected:
  // Of all bit patterns, and of those that matter: neighbours of powers of two, results at both ends of the range.
  void expect_random_pairs(std::size_t count) {
    constexpr int kFraction = std::numeric_limits<T>::digits - 1;
    constexpr Bits<T> kMantissa = (Bits<T>(1) << kFraction) - 1, kSign = Bits<T>(1) << (8 * sizeof(T) - 1);
    constexpr Bits<T> kOne = std::bit_cast<Bits<T>>(T(1)), kExponents = ~kSign & ~kMantissa;
    for (glsl::uint ulp : {0u, 3u, 4u, 6u}) {
      glsl::injected = ulp;
      for (std::size_t n = 0; n < count; ++n) {
        auto a = static_cast<Bits<T>>(random_()), b = static_cast<Bits<T>>(random_());
        if (n % 3 == 0) a = (a & ~kExponents) | kOne;
        if (n % 3 != 1) b = (b & ~kExponents) | kOne;
        if (n % 5 == 0) b = (b & ~kMantissa) | (b & 3u);
        if (n % 7 == 0) a = (a & ~kMantissa) | (kMantissa ^ (a & 3u));
        if (n % 11 == 0) a = (a & ~kExponents) | (kMantissa + 1);  // the least exponent
        if (n % 13 == 0)
          a = (a & ~kExponents) | (kExponents - 2 * (kMantissa + 1)), b &= ~kSign;  // nearly the greatest
        if (n % 17 == 0) b = a + static_cast<Bits<T>>(random_() % 5) - 2;
        const T x = std::bit_cast<T>(a), y = std::bit_cast<T>(b);
        ASSERT_TRUE(divides(x, y)) << std::hexfloat << x << " / " << y << " with " << ulp << " ulp";
        ASSERT_TRUE(finds_root(std::abs(x))) << std::hexfloat << x << " with " << ulp << " ulp";
      }
    }
  }

  FlushSubnormals flush_;
  std::mt19937_64 random_{7};
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Exact, Scalars);

TYPED_TEST(Exact, HasTheBitsOfTheProcessorForRandomNumbers) {
  this->expect_random_pairs(test::kSanitized ? 20'000 : 300'000);
}

TYPED_TEST(Exact, HasThemForManyRandomNumbers) { this->expect_random_pairs(test::kSanitized ? 60'000 : 5'000'000); }

TYPED_TEST(Exact, HasThemAtTheEdges) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges = {T(0),
                          Limits::denorm_min(),
                          Limits::min(),
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN(),
                          T(1),
                          T(2),
                          T(3),
                          T(0.5),
                          Limits::epsilon(),
                          1 / Limits::min()};
  for (std::size_t n = edges.size(); n-- > 0;) {
    const auto bits = std::bit_cast<Bits<T>>(edges[n]);
    edges.push_back(std::bit_cast<T>(bits + 1));
    if (bits > 0) edges.push_back(std::bit_cast<T>(bits - 1));
  }
  for (std::size_t n = edges.size(); n-- > 0;) edges.push_back(-edges[n]);
  for (glsl::uint ulp : {0u, 6u}) {
    glsl::injected = ulp;
    for (const T a : edges) {
      EXPECT_TRUE(finds_root(a)) << std::hexfloat << a;
      EXPECT_EQ(glsl::is_nan(a), std::isnan(a));
      EXPECT_EQ(glsl::is_finite(a), std::isfinite(a));
      for (const T b : edges) EXPECT_TRUE(divides(a, b)) << std::hexfloat << a << " / " << b;
    }
  }
}

// With p digits: a 2^(p+1) = q b + s, where q is an odd number of p + 1 digits and s is small. Then a / b is as near to
// halfway between two neighbours as it can be.
TYPED_TEST(Exact, HasThemWhereAQuotientIsNearlyHalfway) {
  using T = TypeParam;
  constexpr int p = std::numeric_limits<T>::digits;
  constexpr std::uint64_t kOver = std::uint64_t(1) << (p + 1);
  glsl::injected = 6;
  std::size_t cases = 0;
  for (std::size_t n = 0; n < 100'000; ++n) {
    const std::uint64_t b = (this->random_() % (kOver / 4)) | kOver / 4 | 1;
    const std::uint64_t s = (n % 9) * 2 - 9;  // from -9 to 7, modulo 2^64
    std::uint64_t inverse = b;                // of b: digits double with each step
    for (int step = 0; step < 6; ++step) inverse *= 2 - b * inverse;
    const std::uint64_t q = (0 - s) * inverse % kOver;
    if (q < kOver / 2) continue;
    const auto a =
        static_cast<std::uint64_t>((static_cast<Wide>(q) * b + static_cast<Wide>(std::int64_t(s))) >> (p + 1));
    if (a < kOver / 4) continue;
    ASSERT_TRUE(divides(static_cast<T>(a), static_cast<T>(b))) << a << " / " << b;
    ++cases;
  }
  EXPECT_GT(cases, 10'000u);
}

// The same for roots: r^2 = m 2^(p+1) + s or twice that, r odd, which has solutions for s = 1 modulo 8.
TYPED_TEST(Exact, HasThemWhereARootIsNearlyHalfway) {
  using T = TypeParam;
  constexpr int p = std::numeric_limits<T>::digits;
  glsl::injected = 6;
  std::size_t cases = 0;
  for (int k = -5000; k < 5000; ++k)
    for (int odd : {0, 1}) {
      const std::uint64_t over = std::uint64_t(1) << (p + 1 + odd),
                          s = 1 + 8 * static_cast<std::uint64_t>(std::int64_t(k));
      std::uint64_t root = 1;  // of s, a digit more with each step
      for (int digit = 3; digit < 63; ++digit)
        if ((root * root - s) >> digit & 1) root += std::uint64_t(1) << (digit - 1);
      for (const std::uint64_t r :
           {root % over, (0 - root) % over, (root + over / 2) % over, (over / 2 - root) % over}) {
        if (r >> p != 1) continue;
        const auto m = static_cast<std::uint64_t>((static_cast<Wide>(r) * r - static_cast<Wide>(std::int64_t(s))) >>
                                                  (p + 1 + odd));
        if (m >> (p - 1) != 1) continue;
        ASSERT_TRUE(finds_root(std::ldexp(static_cast<T>(m), (p - 1) % 2 + odd))) << m;
        ++cases;
      }
    }
  EXPECT_GT(cases, 1000u);
}

TEST(ExactFloat, HasTheBitsOfTheProcessorForAllRootsAndReciprocals) {
  const FlushSubnormals flush;
  glsl::injected = 6;
  const glsl::uint one = std::bit_cast<glsl::uint>(1.0f), step = test::kSanitized ? 17 : 1;
  for (glsl::uint n = 0; n < 1u << 24; n += step) {  // [1, 4): others are these times 4^n
    const float x = std::bit_cast<float>(one + n);
    ASSERT_TRUE(finds_root(x)) << std::hexfloat << x;
    ASSERT_TRUE(n >= 1u << 23 || divides(1.0f, x)) << std::hexfloat << x;
  }
}

// Whoever injects more than can be corrected must be seen.
TEST(ExactFloat, IsWrongWhereApproximationsAreFarOff) {
  glsl::injected = 60'000;
  int wrong = 0;
  for (int n = 0; n < 1000; ++n) wrong += divides(1.0f, static_cast<float>(n + 3)) ? 0 : 1;
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace gradloom::kernels
