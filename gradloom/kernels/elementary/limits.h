// The constants of float and double that the elementary functions are built from.
#pragma once

#include <cstdint>
#include <limits>

namespace gradloom::kernels {

template <class T>
struct ElementaryLimits;

struct ElementaryConstants {
  static constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kInverseFactorials[14] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
};

template <>
struct ElementaryLimits<float> : ElementaryConstants {
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kOneBits = 0x3f800000u;
  static constexpr Bits kSqrtHalfBits = 0x3f3504f3u;
  static constexpr double kRoundMagic = 0x1.8p23;
  static constexpr double kLn2High = 0x1.62e4p-1;  // few bits, so that n * kLn2High is exact
  static constexpr double kLn2Low = 0x1.7f7d1cf79abcap-20;
  static constexpr double kExpLow = -86.0;
  static constexpr double kExpHigh = 0x1.62e42ep6;
  static constexpr int kExpDegree = 7;
  static constexpr int kLogTerms = 5;
};

template <>
struct ElementaryLimits<double> : ElementaryConstants {
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kOneBits = 0x3ff0000000000000u;
  static constexpr Bits kSqrtHalfBits = 0x3fe6a09e667f3bcdu;
  static constexpr double kRoundMagic = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kExpLow = -707.0;
  static constexpr double kExpHigh = 0x1.62e42fefa39efp9;
  static constexpr int kExpDegree = 13;
  static constexpr int kLogTerms = 12;
};

}  // namespace gradloom::kernels
