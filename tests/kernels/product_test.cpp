// Multiplication nodes: every instruction set has the bits of the definition, and the gradient is that of a product.
#include "gradloom/kernels/product/product.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/product/reference.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels {
namespace {

using product::panel_at;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
std::vector<Bits<T>> bits_of(const std::vector<T>& v) {
  std::vector<Bits<T>> bits;
  for (const T x : v) bits.push_back(std::bit_cast<Bits<T>>(x));
  return bits;
}

template <class T>
struct Products {
  Products(LayerNodes nodes, std::size_t samples)
      : shape(nodes),
        batch(samples),
        stride(spline::best_stride(samples)),
        sums(padded(nodes.sums()) * stride),
        dl_dnodes(padded(nodes.nodes) * stride),
        nodes_(dl_dnodes.size(), T(7)),
        dl_dsums(sums.size(), T(7)) {
    const RandomStream random(9, RandomUse::check, 0);
    for (std::size_t s = 0; s < batch; ++s) {
      for (std::size_t j = 0; j < shape.sums(); ++j)
        sums[panel_at(j, s, stride)] = static_cast<T>(random.normal(static_cast<std::uint32_t>(s * 1000 + j)));
      for (std::size_t j = 0; j < shape.nodes; ++j)
        dl_dnodes[panel_at(j, s, stride)] =
            static_cast<T>(random.normal(static_cast<std::uint32_t>(s * 1000 + 500 + j)));
    }
  }
  void run(Variant variant) {
    const std::size_t middle = batch / 2;
    for (const spline::Range samples : {spline::Range{middle, batch}, spline::Range{0, middle}}) {
      product::forward<T>(variant, shape, stride, samples, sums.data(), nodes_.data());
      product::backward<T>(variant, shape, stride, samples, sums.data(), dl_dnodes.data(), dl_dsums.data());
    }
  }

  LayerNodes shape;
  std::size_t batch, stride;
  std::vector<T> sums, dl_dnodes, nodes_, dl_dsums;
};

const LayerNodes kShapes[] = {{1, 0},  {1, 1},   {2, 1},   {2, 2},   {5, 2},   {7, 7},   {8, 8},   {9, 4},   {15, 1},
                              {16, 0}, {16, 16}, {17, 1},  {17, 3},  {17, 17}, {20, 12}, {24, 8},  {30, 2},  {31, 9},
                              {33, 5}, {33, 33}, {40, 16}, {48, 13}, {64, 1},  {64, 32}, {70, 37}, {100, 99}};

template <class T>
void expect_same_bits_everywhere() {
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const LayerNodes& shape : kShapes)
      for (const std::size_t batch : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{12}}) {
        Products<T> expected(shape, batch);
        expected.run(Variant(Variant::reference, arithmetic));
        for (const std::string& target : simd_targets(arithmetic)) {
          const ForceSimdTarget force(target);
          Products<T> fast(shape, batch);
          fast.run(Variant(Variant::fast, arithmetic));
          SCOPED_TRACE(testing::Message() << target << ", " << shape.nodes << " nodes, " << shape.products);
          EXPECT_EQ(bits_of(fast.nodes_), bits_of(expected.nodes_));
          EXPECT_EQ(bits_of(fast.dl_dsums), bits_of(expected.dl_dsums));
        }
      }
}

TEST(Product, EveryInstructionSetHasTheBitsOfTheDefinition) {
  expect_same_bits_everywhere<float>();
  expect_same_bits_everywhere<double>();
}

TEST(Product, BothArithmeticsHaveTheSameBits) {
  for (const LayerNodes& shape : kShapes) {
    Products<float> split(shape, 6), fused(shape, 6);
    split.run(Variant(Variant::reference, Arithmetic::split));
    if (available_arithmetics().size() < 2) GTEST_SKIP() << "this processor has no fused multiply-add";
    fused.run(Variant(Variant::reference, Arithmetic::fused));
    EXPECT_EQ(bits_of(split.nodes_), bits_of(fused.nodes_));
    EXPECT_EQ(bits_of(split.dl_dsums), bits_of(fused.dl_dsums));
  }
}

TEST(Product, TheLastNodesMultiplyAndPaddingIsZero) {
  Products<double> p({5, 2}, 3);
  p.run(Variant(Variant::reference, Arithmetic::split));
  for (std::size_t s = 0; s < p.batch; ++s) {
    const auto sum = [&](std::size_t j) { return p.sums[panel_at(j, s, p.stride)]; };
    const auto node = [&](std::size_t j) { return p.nodes_[panel_at(j, s, p.stride)]; };
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(node(j), sum(j));
    EXPECT_EQ(node(3), sum(3) * sum(5));
    EXPECT_EQ(node(4), sum(4) * sum(6));
    for (std::size_t j = 5; j < padded(5); ++j) EXPECT_EQ(node(j), 0.0);
    for (std::size_t j = 7; j < padded(7); ++j) EXPECT_EQ(p.dl_dsums[panel_at(j, s, p.stride)], 0.0);
  }
}

// d/dv of sum_j g_j z_j(v), by central differences; `wrong` spoils one element of the gradient.
double largest_difference(const LayerNodes& shape, double wrong) {
  Products<double> p(shape, 2);
  const Variant variant(Variant::fast, available_arithmetics().front());
  p.run(variant);
  const std::vector<double> gradient = [&] {
    std::vector<double> g = p.dl_dsums;
    g[panel_at(shape.sums() - 1, 1, p.stride)] += wrong;
    return g;
  }();
  const auto value = [&] {
    p.run(variant);
    double sum = 0;
    for (std::size_t s = 0; s < p.batch; ++s)
      for (std::size_t j = 0; j < shape.nodes; ++j)
        sum += p.dl_dnodes[panel_at(j, s, p.stride)] * p.nodes_[panel_at(j, s, p.stride)];
    return sum;
  };
  constexpr double h = 1e-3;  // the function is linear in each sum: no term of higher order
  double largest = 0;
  for (std::size_t s = 0; s < p.batch; ++s)
    for (std::size_t j = 0; j < shape.sums(); ++j) {
      double& v = p.sums[panel_at(j, s, p.stride)];
      const double at = v;
      v = at + h;
      const double above = value();
      v = at - h;
      const double below = value();
      v = at;
      largest = std::max(largest, std::abs((above - below) / (2 * h) - gradient[panel_at(j, s, p.stride)]));
    }
  return largest;
}

TEST(Product, BackwardMatchesCentralDifferencesAndAWrongGradientDoesNot) {
  for (const LayerNodes& shape : {LayerNodes{3, 0}, {2, 2}, {6, 2}, {18, 5}}) {
    EXPECT_LT(largest_difference(shape, 0.0), 1e-10);
    EXPECT_GT(largest_difference(shape, 1e-6), 1e-7);
  }
}

}  // namespace
}  // namespace gradloom::kernels
