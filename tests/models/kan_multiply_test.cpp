// Networks with multiplication nodes: gradients, bits, single samples, grids.
#include <gmock/gmock.h>

#include "gradloom/models/kan/dual.h"
#include "gradloom/models/kan/grid.h"
#include "gradloom/train/gradient_check.h"
#include "tests/models/kan_support.h"

namespace gradloom {
namespace {

kan::NetworkOptions multiplying(std::vector<std::size_t> widths, std::vector<std::size_t> multiply) {
  kan::NetworkOptions o = test::kan_options(std::move(widths));
  o.multiply = std::move(multiply);
  return o;
}

TEST(KanMultiply, NodesAreSumsAndProductsOfSums) {
  const kan::Network<double> network(multiplying({3, 5, 4, 2}, {2, 4}));
  EXPECT_EQ(network.shape(0).out, 7u);
  EXPECT_EQ(network.shape(1).in, 5u);
  EXPECT_EQ(network.shape(1).out, 8u);
  EXPECT_EQ(network.shape(2).in, 4u);
  EXPECT_EQ(network.shape(2).out, 2u);
  EXPECT_EQ(network.parameters()[network.slices(0).weight].shape, (std::vector<std::size_t>{3, 9, 7}));
  EXPECT_EQ(network.parameters()[network.slices(1).bias].shape, (std::vector<std::size_t>{8}));
}

// The sums of the first layer, from the same layer alone.
TEST(KanMultiply, TheNextLayerTakesTheProducts) {
  test::KanFixture<double> whole(multiplying({2, 3, 1}, {2}), 11);
  test::KanFixture<double> first(test::kan_options({2, 5}), 11);
  for (std::size_t s = 0; s < first.network.parameters().size(); ++s)
    std::copy_n(whole.parameters.data() + whole.network.parameters()[s].offset,
                first.network.parameters()[s].stored_size(),
                first.parameters.data() + first.network.parameters()[s].offset);
  const Exec ex({.threads = 1});
  first.forward_backward(ex);
  auto tape = whole.network.make_tape(ex, {.batch = whole.batch});
  whole.network.forward(ex, {}, whole.arrays(), whole.rows(), tape, whole.y_view());
  for (std::size_t s = 0; s < whole.batch; ++s) {
    const double* sum = first.y.data() + s * first.stride;
    EXPECT_EQ(whole.network.layer_input(tape, 1, s, 0), sum[0]);
    EXPECT_EQ(whole.network.layer_input(tape, 1, s, 1), sum[1] * sum[3]);
    EXPECT_EQ(whole.network.layer_input(tape, 1, s, 2), sum[2] * sum[4]);
  }
}

TEST(KanMultiply, GradientMatchesCentralDifferencesAndDualNumbers) {
  for (const double sparsity : {0.0, 0.01})
    for (const auto& [widths, multiply] :
         {std::pair<std::vector<std::size_t>, std::vector<std::size_t>>{{3, 5, 2}, {2}},
          {{2, 1, 1}, {1}},
          {{3, 4, 3, 2}, {0, 3}},
          {{2, 3, 4, 1}, {3, 1}},
          {{2, 18, 1}, {17}}}) {
      kan::NetworkOptions o = multiplying(widths, multiply);
      o.sparsity = sparsity;
      test::KanFixture<double> f(o, 9);
      const Exec ex({.threads = 1});
      const GradientCheckReport report = check_gradient(ex, f.network, f.rows(), f.parameters.span(), f.buffers.span());
      EXPECT_TRUE(report.passed) << report.reason;
      EXPECT_LE(report.max_relative_error, 1e-6);

      f.forward_backward(ex);
      double largest = 0.0;
      for (double g : f.gradient.span()) largest = std::max(largest, std::abs(g));
      for (const Slice& slice : f.network.parameters())
        for_each_logical(slice, [&](std::size_t i) {
          const double exact = kan::dual_derivative(f.network, f.arrays(), f.rows(), f.dl_dy.span(), f.stride, i);
          EXPECT_NEAR(f.gradient[i], exact, 1e-12 * largest) << slice.name << " " << i - slice.offset;
        });
    }
}

template <class T>
void expect_same_products_everywhere() {
  for (std::size_t batch : {1u, 7u, 300u, 700u}) {
    const kan::NetworkOptions o = multiplying({5, 21, 18, 3}, {9, 18});
    test::KanFixture<T> one(o, batch);
    one.forward_backward(Exec({.threads = 1}));
    const auto expect_equal = [&](const test::KanFixture<T>& other, const std::string& what) {
      EXPECT_TRUE(test::same_bits(one.y, other.y)) << what << ", batch " << batch;
      EXPECT_TRUE(test::same_bits(one.gradient, other.gradient)) << what << ", batch " << batch;
      EXPECT_TRUE(test::same_bits(one.dl_dx, other.dl_dx)) << what << ", batch " << batch;
    };
    for (unsigned threads : {2u, 3u, 8u}) {
      test::KanFixture<T> many(o, batch);
      many.forward_backward(Exec({.threads = threads}));
      expect_equal(many, std::to_string(threads) + " threads");
    }
    test::KanFixture<T> reference(o, batch);
    reference.forward_backward(Exec({.threads = 1, .variant = Variant::reference}));
    expect_equal(reference, "reference");
  }
}

TEST(KanMultiply, ThreadsAndReferenceGiveTheSameBitsInFloat) { expect_same_products_everywhere<float>(); }
TEST(KanMultiply, ThreadsAndReferenceGiveTheSameBitsInDouble) { expect_same_products_everywhere<double>(); }

TEST(KanMultiply, SingleSampleEqualsBatch) {
  for (const auto& o : {multiplying({2, 1, 1}, {1}), multiplying({3, 17, 2}, {5}), multiplying({4, 16, 9, 5}, {16, 3})})
    for (const Variant::Code code : {Variant::fast, Variant::reference}) {
      test::KanFixture<float> f(o, 19);
      const Exec ex({.threads = 1});
      f.forward_backward(ex);
      auto workspace = f.network.make_single_workspace();
      std::vector<float> y(f.network.output_width());
      const std::size_t in = f.network.input_width();
      for (std::size_t s = 0; s < f.batch; ++s) {
        f.network.forward_single(Variant(code, ex.variant().arithmetic), f.arrays(),
                                 std::span<const float>(f.x.span()).subspan(s * in, in), workspace, y);
        EXPECT_TRUE(test::same_bits<float>(y, std::span<const float>(f.y.span()).subspan(s * f.stride, y.size()))) << s;
      }
    }
}

TEST(KanMultiply, NoNodesAreTheNetworkWithoutTheOption) {
  test::KanFixture<float> without(test::kan_options({3, 5, 4, 2}), 30), none(multiplying({3, 5, 4, 2}, {0, 0}), 30);
  without.forward_backward(Exec({.threads = 1}));
  none.forward_backward(Exec({.threads = 1}));
  EXPECT_TRUE(test::same_bits(without.y, none.y));
  EXPECT_TRUE(test::same_bits(without.gradient, none.gradient));
}

TEST(KanMultiply, FinerGridsKeepTheFunctionAndRefittedOnesAreFinite) {
  kan::NetworkOptions o = multiplying({3, 4, 2}, {2});
  o.spline_noise = 0.2;
  test::KanFixture<double> f(o, 200, 3, 0.99);
  const Exec ex({.threads = 1});
  f.forward_backward(ex);
  const auto largest_change = [&](const kan::Trained<double>& after) {
    Buffer<double> y(f.y.size());
    auto tape = after.network.make_tape(ex, {.batch = f.batch, .backward = false});
    after.network.forward(ex, {}, {after.parameters, after.buffers}, f.rows(), tape,
                          {y.data(), {f.batch, f.network.output_width()}, {f.stride, 1}});
    double largest = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) largest = std::max(largest, std::abs(y[i] - f.y[i]));
    return largest;
  };
  const auto refined = kan::refine<double>(f.network, f.parameters.span(), f.buffers.span(), 20);
  EXPECT_EQ(refined.network.options().multiply, o.multiply);
  EXPECT_LT(largest_change(refined), 1e-10);
  EXPECT_LT(largest_change(kan::refit<double>(ex, f.network, f.parameters.span(), f.buffers.span(), f.rows().x)), 0.5);
}

TEST(KanMultiply, RejectsNumbersThatDoNotFitTheLayersByName) {
  const auto message = [](kan::NetworkOptions o) -> std::string {
    try {
      kan::Network<float> n(std::move(o));
    } catch (const Exception& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message(multiplying({2, 3, 1}, {1, 1})), ::testing::HasSubstr("model.multiply has 2 numbers"));
  EXPECT_THAT(message(multiplying({2, 1}, {1})), ::testing::HasSubstr("model.multiply has 1 numbers"));
  EXPECT_THAT(message(multiplying({2, 3, 1}, {4})), ::testing::HasSubstr("model.multiply asks for 4"));
  EXPECT_EQ(message(multiplying({2, 3, 1}, {3})), "");
}

}  // namespace
}  // namespace gradloom
