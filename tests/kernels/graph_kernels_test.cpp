// The dense product and the gathers over neighbours: the bits of their definition on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/dense/dense.h"
#include "gradloom/kernels/rowwise/rowwise.h"
#include "gradloom/kernels/simd_targets.h"
#include "tests/kernels/graph_kernels_support.h"

namespace gradloom::kernels {
namespace {

using test::Pattern, test::random_numbers, test::same_bits;

template <class T>
class GraphKernels : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GraphKernels, Scalars);

TYPED_TEST(GraphKernels, DenseProductGivesTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  struct Size {
    std::size_t rows, inner, width;
  };
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const Size& s : {Size{0, 3, 16}, Size{1, 0, 16}, Size{1, 1, 16}, Size{5, 7, 16}, Size{6, 16, 32},
                          Size{13, 33, 48}, Size{64, 64, 64}})
      for (const dense::Start start : {dense::Start::zero, dense::Start::bias, dense::Start::y, dense::Start::apart})
        for (const bool transposed : {false, true}) {
          const auto x = random_numbers<T>(s.rows * s.inner, 1), w = random_numbers<T>(s.inner * s.width, 2),
                     bias = random_numbers<T>(s.width, 3);
          const auto run = [&](Variant variant) {
            auto y = random_numbers<T>(s.rows * s.width, 4);
            dense::Product<T> p{.rows = s.rows, .inner = s.inner, .width = s.width, .x = x.data()};
            p.x_row = transposed ? 1 : s.inner, p.x_inner = transposed ? s.rows : 1;
            p.w = w.data(), p.w_stride = s.width, p.bias = bias.data(), p.y = y.data(), p.y_stride = s.width;
            p.start = start;
            dense::multiply<T>(variant, p);
            return y;
          };
          const auto expected = run(Variant(Variant::reference, arithmetic));
          for (const std::string& target : simd_targets(arithmetic)) {
            const ForceSimdTarget force(target);
            EXPECT_TRUE(same_bits(expected, run(Variant(Variant::fast, arithmetic))))
                << target << " " << s.rows << "x" << s.inner;
          }
        }
}

TYPED_TEST(GraphKernels, GathersGiveTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  const Pattern pattern(11);
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const std::size_t width : {16u, 32u, 48u, 64u, 112u})
      for (unsigned kind = 0; kind < 16; ++kind) {
        const auto x = random_numbers<T>(11 * width, 1), value = random_numbers<T>(pattern.source.size(), 2),
                   scale = random_numbers<T>(11, 3);
        const auto run = [&](Variant variant) {
          Buffer<T> y(pattern.rows() * width), segments(4 * width);
          message::Gather<T> g{.ptr = pattern.ptr.data(), .source = pattern.source.data()};
          if (kind & 1) g.value = value.data();
          if (kind & 2) g.slot = pattern.slot.data();
          if (kind & 4) g.source_scale = scale.data(), g.row_scale = scale.data() + 1;
          if (kind & 8) g.self = T(1.5);
          g.x = x.data(), g.x_stride = width, g.y = y.data(), g.y_stride = width, g.width = width;
          message::gather_rows<T>(variant, g, 0, pattern.rows());
          for (std::size_t i = 0; i < pattern.rows(); ++i) {
            const std::size_t count = message::hub_segments(pattern.ptr.data(), i);
            for (std::size_t s = 0; s < count; ++s)
              message::gather_segment<T>(variant, g, i, s, segments.data() + s * width);
            if (count > 0) message::finish_hub<T>(g, i, segments.data());
          }
          return y;
        };
        const auto expected = run(Variant(Variant::reference, arithmetic));
        for (const std::string& target : simd_targets(arithmetic)) {
          const ForceSimdTarget force(target);
          EXPECT_TRUE(same_bits(expected, run(Variant(Variant::fast, arithmetic))))
              << target << " width " << width << " kind " << kind;
        }
      }
}

TYPED_TEST(GraphKernels, MaximaGiveTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  const test::SquarePattern pattern;
  const std::size_t n = pattern.rows();
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const std::size_t width : {16u, 32u, 48u, 64u, 112u}) {
      auto x = random_numbers<T>(n * width, 1);
      for (std::size_t k = 0; k < x.size(); ++k)
        x[k] = std::round(2 * x[k]) / 2;  // many are equal, some zeros negative
      const auto dl_dy = random_numbers<T>(n * width, 2);
      const auto run = [&](Variant variant) {
        auto y = random_numbers<T>(n * width, 3), dl_dx = random_numbers<T>(n * width, 4);
        std::vector<std::uint32_t> winner(n * width, 5);
        const message::Maximum<T> m{pattern.ptr.data(), pattern.source.data(), x.data(), width, width, width,
                                    y.data(),           winner.data()};
        message::max_rows<T>(variant, m, 0, n);
        const message::MaximumGradient<T> g{pattern.out_ptr.data(),
                                            pattern.out_target.data(),
                                            pattern.slot.data(),
                                            winner.data(),
                                            dl_dy.data(),
                                            width,
                                            width,
                                            dl_dx.data(),
                                            width};
        message::max_gradient_rows<T>(variant, g, 0, n);
        return std::tuple(std::move(y), std::move(winner), std::move(dl_dx));
      };
      const auto expected = run(Variant(Variant::reference, arithmetic));
      for (const std::string& target : simd_targets(arithmetic)) {
        const ForceSimdTarget force(target);
        const auto found = run(Variant(Variant::fast, arithmetic));
        EXPECT_TRUE(same_bits(std::get<0>(expected), std::get<0>(found))) << "y, " << target << ", width " << width;
        EXPECT_EQ(std::get<1>(expected), std::get<1>(found)) << target << ", width " << width;
        EXPECT_TRUE(same_bits(std::get<2>(expected), std::get<2>(found))) << "dl_dx, " << target << ", width " << width;
      }
    }
}

TEST(RowBounds, CoverEveryRowOnceForAnyNumberOfTasks) {
  const Pattern pattern(11);
  for (const std::size_t tasks : {1u, 2u, 3u, 7u, 100u}) {
    std::size_t last = 0;
    for (std::size_t t = 0; t < tasks; ++t) {
      EXPECT_EQ(message::row_bound(pattern.ptr.data(), pattern.rows(), tasks, t), last);
      last = message::row_bound(pattern.ptr.data(), pattern.rows(), tasks, t + 1);
    }
    EXPECT_EQ(last, pattern.rows());
  }
}

TEST(Maximum, TakesTheFirstOfEqualNeighboursAndZeroWithoutAny) {
  const std::vector<std::uint32_t> ptr{0, 0, 3}, source{0, 1, 1};
  Buffer<double> x(32), y(32);
  for (std::size_t f = 0; f < 16; ++f) x[f] = -1.0, x[16 + f] = f == 3 ? -1.0 : -0.5;
  std::vector<std::uint32_t> winner(32);
  message::Maximum<double> m{ptr.data(), source.data(), x.data(), 16, 16, 16, y.data(), winner.data()};
  message::max_rows<double>(Variant::fast, m, 0, 2);
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(winner[0], message::kNobody);
  EXPECT_EQ(y[16], -0.5);
  EXPECT_EQ(winner[16], 1u);
  EXPECT_EQ(winner[16 + 3], 0u);
}

TEST(Dropout, KeepsTheAskedShareAndDependsOnThePositionAlone) {
  const rowwise::Dropout dropout(0.3, 7, 2, 1);
  std::vector<std::uint8_t> whole(80000), part(80000);
  dropout.keep(0, whole.size(), whole.data());
  dropout.keep(40000, 79999, part.data());
  double kept = 0;
  for (const std::uint8_t k : whole) kept += k;
  EXPECT_NEAR(kept / 80000.0, 0.7, 5 * std::sqrt(0.21 / 80000.0));
  for (std::size_t n = 40000; n < 79999; ++n) ASSERT_EQ(whole[n], part[n]);
  EXPECT_NEAR(dropout.scale(), 1 / 0.7, 1e-4);
}

TEST(Dropout, KeepsWhatTheDefinitionKeepsOnEveryTarget) {
  for (const double probability : {0.0, 0.3, 0.5, 0.999999999}) {
    const auto threshold = static_cast<std::uint32_t>(std::lround(probability * 65536.0));
    const rowwise::Dropout drop(probability, 0x123456789abcdefull, 7, 11);
    std::vector<std::uint8_t> expected(1000);
    for (std::size_t n = 0; n < expected.size(); ++n) {
      const auto words =
          philox4x32({static_cast<std::uint32_t>(n / 8), 11, 7, static_cast<std::uint32_t>(RandomUse::dropout)},
                     {0x89abcdefu, 0x01234567u});
      expected[n] = (words[n % 8 / 2] >> (n % 2 * 16) & 0xffffu) >= threshold;
    }
    for (const std::string& target : simd_targets()) {
      const ForceSimdTarget force(target);
      for (const std::size_t begin : {std::size_t{0}, std::size_t{8}, std::size_t{512}})
        for (const std::size_t end : {begin, begin + 1, begin + 255, begin + 257, expected.size()}) {
          std::vector<std::uint8_t> found(1000, 9);
          drop.keep(begin, end, found.data());
          for (std::size_t n = 0; n < found.size(); ++n)
            ASSERT_EQ(found[n], n >= begin && n < end ? expected[n] : 9) << target << " " << n;
        }
    }
  }
}

TEST(Dropout, AppliesScaleOrZero) {
  const std::vector<float> x = {1.5f, -2.0f, 3.0f, -4.0f};
  const std::vector<std::uint8_t> keep = {1, 0, 0, 1};
  std::vector<float> y(4, 9.0f);
  rowwise::apply_dropout<float>(x.data(), keep.data(), 2.0f, 0, 4, y.data());
  EXPECT_EQ(y, (std::vector<float>{3.0f, 0.0f, 0.0f, -8.0f}));
  EXPECT_FALSE(std::signbit(y[1]));
}

}  // namespace
}  // namespace gradloom::kernels
