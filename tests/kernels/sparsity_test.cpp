// Strengths of edges: every instruction set has the bits of the definition. Their gradient is checked in tests/models.
#include "gradloom/kernels/sparsity/sparsity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels {
namespace {

template <class T>
struct Subject {
  explicit Subject(const spline::Shape& s)
      : shape(s),
        weight(s.in * s.rows() * s.out_padded()),
        gradient(weight.size()),
        mean(s.in * s.out_lanes()),
        strength(mean.size()),
        logarithm(mean.size()),
        common(s.in),
        node(s.in),
        weighted(s.in) {
    const RandomStream random(5, RandomUse::check, 0);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      if (i % s.out_padded() >= s.out) continue;
      weight[i] = static_cast<T>(random.normal(static_cast<std::uint32_t>(2 * i)));
      gradient[i] = static_cast<T>(random.normal(static_cast<std::uint32_t>(2 * i + 1)));
    }
    for (std::size_t i = 0; i < s.in; ++i) common[i] = static_cast<T>(0.3 + 0.1 * static_cast<double>(i));
  }
  void run(Variant variant) {
    const sparsity::Strengths<T> all{mean.data(), strength.data(), logarithm.data(), node.data(), weighted.data()};
    const std::size_t middle = shape.in / 2;
    for (const spline::Range inputs : {spline::Range{middle, shape.in}, spline::Range{0, middle}}) {
      sparsity::strengths<T>(variant, shape, weight.data(), inputs, all);
      sparsity::add_gradient<T>(variant, shape, weight.data(), all, {common.data(), T(0.07)}, inputs, gradient.data());
    }
  }

  spline::Shape shape;
  std::vector<T> weight, gradient, mean, strength, logarithm, common;
  std::vector<double> node, weighted;
};

template <class T>
void expect_same_bits_everywhere() {
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const std::size_t out : {1, 7, 8, 9, 16, 23, 70})
      for (const unsigned grid : {1u, 5u, 20u})
        for (const bool base : {true, false}) {
          spline::Shape shape{.in = 3, .out = out, .grid = grid, .base = base};
          Subject<T> expected(shape);
          expected.run(Variant(Variant::reference, arithmetic));
          for (const std::string& target : simd_targets(arithmetic)) {
            const ForceSimdTarget force(target);
            Subject<T> fast(shape);
            fast.run(Variant(Variant::fast, arithmetic));
            EXPECT_EQ(fast.strength, expected.strength) << target << " out " << out << " grid " << grid;
            EXPECT_EQ(fast.gradient, expected.gradient) << target << " out " << out << " grid " << grid;
            EXPECT_EQ(fast.node, expected.node) << target << " out " << out;
            EXPECT_EQ(fast.weighted, expected.weighted) << target << " out " << out;
          }
          for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
            if (i % shape.out_padded() >= out) EXPECT_EQ(expected.gradient[i], T(0));
          }
        }
}

TEST(Sparsity, EveryInstructionSetHasTheBitsOfTheDefinition) {
  expect_same_bits_everywhere<float>();
  expect_same_bits_everywhere<double>();
}

TEST(Sparsity, StrengthIsTheDeviationOfTheCoefficientsBesideTheBaseWeight) {
  spline::Shape shape{.in = 1, .out = 1, .grid = 1, .degree = 1, .base = true};  // two rows and the base row
  Subject<double> s(shape);
  s.weight = std::vector<double>(s.weight.size(), 0.0);
  s.weight[0] = 3, s.weight[shape.out_padded()] = -1, s.weight[2 * shape.out_padded()] = 1.5;
  s.run(Variant(Variant::reference, Arithmetic::split));
  EXPECT_DOUBLE_EQ(s.strength[0], std::sqrt(1e-8 + 4 + 2.25));
  EXPECT_DOUBLE_EQ(s.node[0], s.strength[0]);
  EXPECT_DOUBLE_EQ(s.weighted[0], s.strength[0] * s.logarithm[0]);
}

}  // namespace
}  // namespace gradloom::kernels
