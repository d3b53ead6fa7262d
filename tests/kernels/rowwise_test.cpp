// Activation and normalisation: the bits of their definition on every instruction set.
#include "gradloom/kernels/rowwise/rowwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/simd_targets.h"
#include "tests/kernels/graph_kernels_support.h"

namespace gradloom::kernels {
namespace {

constexpr std::size_t kNormRows = 37;

// `rows` rows of which `width` numbers are not padding.
template <class T>
Buffer<T> padded_rows(std::size_t rows, std::size_t width, std::uint32_t sample) {
  auto b = test::random_numbers<T>(rows * padded(width), sample);
  for (std::size_t i = 0; i < rows; ++i) std::fill_n(b.data() + i * padded(width) + width, padded(width) - width, T(0));
  return b;
}

// run(variant, results) fills arrays of kNormRows rows; they are the same for the definition and every target.
template <class T, class F>
void expect_bits_of_definition(std::size_t width, const char* what, F&& run) {
  const auto results = [&](Variant variant) {
    std::vector<Buffer<T>> all;
    for (int k = 0; k < 4; ++k) all.push_back(test::random_numbers<T>(kNormRows * padded(width), 100 + k));
    run(variant, all);
    return all;
  };
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const auto expected = results(Variant(Variant::reference, arithmetic));
    for (const std::string& target : simd_targets(arithmetic)) {
      const ForceSimdTarget force(target);
      const auto found = results(Variant(Variant::fast, arithmetic));
      for (std::size_t k = 0; k < found.size(); ++k)
        EXPECT_TRUE(test::same_bits(expected[k], found[k]))
            << what << " " << k << ", " << target << ", width " << width;
    }
  }
}

template <class T>
class RowKernels : public ::testing::Test {};
using RowScalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowKernels, RowScalars);

constexpr std::size_t kRowWidths[] = {1, 3, 7, 8, 9, 15, 16, 17, 50, 64, 100};

TYPED_TEST(RowKernels, NormsGiveTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  for (const std::size_t width : kRowWidths) {
    const auto x = padded_rows<T>(kNormRows, width, 1), dl_dy = padded_rows<T>(kNormRows, width, 2);
    const auto gain = padded_rows<T>(1, width, 3), shift = padded_rows<T>(1, width, 4);
    const auto mean = padded_rows<T>(1, width, 5), inverse = padded_rows<T>(1, width, 6);
    const rowwise::Rows rows{2, kNormRows, width, padded(width)};
    expect_bits_of_definition<T>(width, "layer norm", [&](Variant variant, std::vector<Buffer<T>>& to) {
      rowwise::layer_norm<T>(variant, rows,
                             {x.data(), gain.data(), shift.data(), to[0].data(), to[1].data(), to[2].data()});
    });
    expect_bits_of_definition<T>(width, "layer norm gradient", [&](Variant variant, std::vector<Buffer<T>>& to) {
      Buffer<T> y(kNormRows * padded(width)), means(kNormRows), inverses(kNormRows);
      const rowwise::LayerNorm<T> n{x.data(), gain.data(), shift.data(), y.data(), means.data(), inverses.data()};
      rowwise::layer_norm<T>(variant, rows, n);
      rowwise::layer_norm_gradient<T>(variant, rows, n, dl_dy.data(), to[0].data(), to[1].data(), to[2].data());
    });
    const rowwise::BatchNorm<T> b{x.data(), gain.data(), shift.data(), mean.data(), inverse.data()};
    expect_bits_of_definition<T>(width, "batch norm", [&](Variant variant, std::vector<Buffer<T>>& to) {
      rowwise::squared_deviation<T>(variant, rows, x.data(), mean.data(), to[0].data());
      rowwise::batch_norm<T>(variant, rows, b, to[1].data());
      rowwise::batch_norm_sums<T>(variant, rows, b, dl_dy.data(), to[2].data(), to[3].data());
    });
    for (const bool fixed : {false, true})
      expect_bits_of_definition<T>(width, "batch norm gradient", [&](Variant variant, std::vector<Buffer<T>>& to) {
        rowwise::batch_norm_gradient<T>(variant, rows, b, dl_dy.data(), fixed ? nullptr : shift.data(), mean.data(),
                                        to[0].data());
      });
  }
}

TYPED_TEST(RowKernels, ActivationsGiveTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  for (const std::size_t width : kRowWidths) {
    const auto x = padded_rows<T>(kNormRows, width, 1), dl_dy = padded_rows<T>(kNormRows, width, 2);
    const auto bias = padded_rows<T>(1, width, 3), residual = padded_rows<T>(kNormRows, width, 4);
    const rowwise::Rows rows{2, kNormRows, width, padded(width)};
    for (const auto act : {rowwise::Activation::none, rowwise::Activation::relu, rowwise::Activation::silu})
      for (const bool more : {false, true})
        expect_bits_of_definition<T>(width, "activation", [&](Variant variant, std::vector<Buffer<T>>& to) {
          const T *added = more ? bias.data() : nullptr, *kept = more ? residual.data() : nullptr;
          rowwise::activate<T>(variant, rows, act, x.data(), added, kept, to[0].data());
          rowwise::activate_gradient<T>(variant, rows, act, x.data(), added, dl_dy.data(), to[1].data());
        });
  }
}

TYPED_TEST(RowKernels, ReluKeepsWhatIsNoNumber) {
  using T = TypeParam;
  constexpr T kNone = std::numeric_limits<T>::quiet_NaN(), kInfinite = std::numeric_limits<T>::infinity();
  const std::size_t width = padded(8);
  Buffer<T> x(width), y(width);
  const T given[] = {kNone, kInfinite, -kInfinite, T(-0.0), T(2), T(-2), T(0), -kNone};
  std::copy(std::begin(given), std::end(given), x.data());
  for (const Variant variant : {Variant::fast, Variant::reference}) {
    rowwise::activate<T>(variant, {0, 1, 8, width}, rowwise::Activation::relu, x.data(), nullptr, nullptr, y.data());
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[7]));
    EXPECT_EQ(y[1], kInfinite);
    EXPECT_EQ(y[4], T(2));
    for (const std::size_t i : {2, 3, 5, 6}) EXPECT_TRUE(y[i] == T(0) && !std::signbit(y[i])) << i;
  }
}

TEST(LayerNorm, HasMeanZeroAndVarianceOneWithoutItsPadding) {
  const std::size_t width = 19;
  const auto x = padded_rows<double>(kNormRows, width, 1);
  Buffer<double> gain(padded(width)), shift(padded(width)), y(kNormRows * padded(width)), mean(kNormRows),
      inverse(kNormRows);
  std::fill_n(gain.data(), width, 1.0);
  rowwise::layer_norm<double>(Variant::fast, {0, kNormRows, width, padded(width)},
                              {x.data(), gain.data(), shift.data(), y.data(), mean.data(), inverse.data()});
  for (std::size_t i = 0; i < kNormRows; ++i) {
    const double* row = y.data() + i * padded(width);
    double sum = 0, squares = 0;
    for (std::size_t c = 0; c < width; ++c) sum += row[c], squares += row[c] * row[c];
    const double variance = 1 / (inverse[i] * inverse[i]) - rowwise::kNormEpsilon;
    EXPECT_NEAR(sum, 0.0, 1e-12);
    EXPECT_NEAR(squares / width, variance / (variance + rowwise::kNormEpsilon), 1e-12);
    for (std::size_t c = width; c < padded(width); ++c) EXPECT_EQ(row[c], 0.0);
  }
}

}  // namespace
}  // namespace gradloom::kernels
