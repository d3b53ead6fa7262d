#include <gmock/gmock.h>

#include <numeric>

#include "gradloom/models/kan/dual.h"
#include "gradloom/train/gradient_check.h"
#include "tests/models/counting_sink.h"
#include "tests/models/kan_support.h"

namespace gradloom {
namespace {

using kan::Knots;
using kan::NetworkOptions;
using kan::OutOfGrid;
using test::CountingSink;
using test::KanFixture;
using test::same_bits;

NetworkOptions small(std::vector<std::size_t> widths) {
  NetworkOptions o;
  o.widths = std::move(widths);
  o.spline_noise = 0.5;
  return o;
}

class KanGradient : public ::testing::TestWithParam<std::tuple<unsigned, OutOfGrid, Knots, bool>> {};

TEST_P(KanGradient, MatchesCentralDifferencesAndDualNumbers) {
  const auto [degree, outside, knots, base] = GetParam();
  NetworkOptions o = small({3, 5, 2});
  o.degree = degree;
  o.outside = outside;
  o.knots = knots;
  o.base = base;
  KanFixture<double> f(o, 9);
  const Exec ex({.threads = 1});
  const GradientCheckReport report = check_gradient(ex, f.network, f.rows(), f.parameters.span(), f.buffers.span());
  EXPECT_TRUE(report.passed) << report.reason;
  EXPECT_GT(report.checked, 50u);
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

INSTANTIATE_TEST_SUITE_P(AllKinds, KanGradient,
                         ::testing::Combine(::testing::Values(1u, 2u, 3u, 4u, 5u, 6u, 7u),
                                            ::testing::Values(OutOfGrid::linear, OutOfGrid::clamp, OutOfGrid::extend,
                                                              OutOfGrid::zero),
                                            ::testing::Values(Knots::uniform, Knots::free), ::testing::Bool()));

// Corners lie at the ends of the grid and one interval beyond, where nothing but slopes tells the pieces apart.
TEST(KanNetwork, TheCheckKnowsTheCornersOfAnExtendedGrid) {
  for (const Knots knots : {Knots::uniform, Knots::free}) {
    NetworkOptions o = small({1, 3});
    o.degree = 1;
    o.outside = OutOfGrid::extend;
    o.knots = knots;
    KanFixture<double> f(o, 6);
    const double step = (o.hi - o.lo) / o.grid, corners[] = {o.lo - step, o.lo, o.hi, o.hi + step};
    for (std::size_t s = 0; s < 4; ++s) f.x[s] = corners[s];
    f.x[4] = o.hi + step - 1e-9;
    f.x[5] = o.lo - step + 1e-9;
    const auto report =
        check_gradient(Exec({.threads = 1}), f.network, f.rows(), f.parameters.span(), f.buffers.span());
    EXPECT_TRUE(report.passed) << report.reason;
  }
}

TEST(KanNetwork, InputGradientOfASingleLayerIsNotZero) {
  KanFixture<double> f(small({4, 3}), 6);
  const Exec ex({.threads = 1});
  f.forward_backward(ex);
  double sum = 0.0;
  for (double g : f.dl_dx.span()) sum += std::abs(g);
  EXPECT_GT(sum, 0.1);
  EXPECT_TRUE(check_gradient(ex, f.network, f.rows(), f.parameters.span(), f.buffers.span()).passed);
}

TEST(KanNetwork, GradientIsRightWithNormalisedInputsAndOutputs) {
  KanFixture<double> f(small({2, 3, 2}), 8);
  const auto& at = f.network.affine();
  for (std::size_t i = 0; i < 2; ++i) {
    f.buffers[f.network.buffers()[at.input_mean].offset + i] = 0.3 + 0.1 * static_cast<double>(i);
    f.buffers[f.network.buffers()[at.input_std].offset + i] = 0.5 + static_cast<double>(i);
    f.buffers[f.network.buffers()[at.output_mean].offset + i] = -2.0;
    f.buffers[f.network.buffers()[at.output_std].offset + i] = 3.0 + static_cast<double>(i);
  }
  ASSERT_TRUE(f.network.derive(f.buffers.span()).ok());
  const Exec ex({.threads = 1});
  const auto report = check_gradient(ex, f.network, f.rows(), f.parameters.span(), f.buffers.span());
  EXPECT_TRUE(report.passed) << report.reason;
}

template <class T>
void expect_thread_independence() {
  for (std::size_t batch : {1u, 7u, 64u, 300u, 700u}) {
    NetworkOptions o = small({21, 40, 24});
    KanFixture<T> one(o, batch);
    one.forward_backward(Exec({.threads = 1}));
    for (unsigned threads : {2u, 3u, 8u}) {
      KanFixture<T> many(o, batch);
      many.forward_backward(Exec({.threads = threads}));
      EXPECT_TRUE(same_bits(one.y, many.y)) << threads << " threads, batch " << batch;
      EXPECT_TRUE(same_bits(one.gradient, many.gradient)) << threads << " threads, batch " << batch;
      EXPECT_TRUE(same_bits(one.dl_dx, many.dl_dx)) << threads << " threads, batch " << batch;
    }
    KanFixture<T> reference(o, batch);
    reference.forward_backward(Exec({.threads = 1, .variant = Variant::reference}));
    EXPECT_TRUE(same_bits(one.y, reference.y)) << "reference, batch " << batch;
    EXPECT_TRUE(same_bits(one.gradient, reference.gradient)) << "reference, batch " << batch;
    EXPECT_TRUE(same_bits(one.dl_dx, reference.dl_dx)) << "reference, batch " << batch;
  }
}

TEST(KanNetwork, ThreadsAndReferenceGiveTheSameBitsInFloat) { expect_thread_independence<float>(); }
TEST(KanNetwork, ThreadsAndReferenceGiveTheSameBitsInDouble) { expect_thread_independence<double>(); }

TEST(KanNetwork, SingleSampleEqualsBatch) {
  for (auto widths : {std::vector<std::size_t>{1, 1}, {3, 17, 2}, {21, 64, 64, 24}}) {
    KanFixture<float> f(small(widths), 19);
    const Exec ex({.threads = 2});
    f.forward_backward(ex);
    auto workspace = f.network.make_single_workspace();
    std::vector<float> y(f.network.output_width());
    for (std::size_t s = 0; s < f.batch; ++s) {
      f.network.forward_single(Variant::fast, f.arrays(),
                               std::span<const float>(f.x.span()).subspan(s * widths.front(), widths.front()),
                               workspace, y);
      EXPECT_TRUE(same_bits<float>(y, std::span<const float>(f.y.span()).subspan(s * f.stride, y.size()))) << s;
    }
  }
}

TEST(KanNetwork, SinkHearsOfEveryElementOnceAndNeverOfFrozenOnes) {
  KanFixture<float> f(small({5, 9, 3}), 40);
  std::vector<std::uint8_t> frozen(f.network.parameters().size(), 0);
  frozen[f.network.parameters().find("layer0.weight")] = 1;
  CountingSink sink(f.gradient.size());
  Step step;
  step.frozen = frozen;
  for (float& g : f.gradient.span()) g = 123.0f;
  f.forward_backward(Exec({.threads = 3}), step, &sink);
  for (std::size_t s = 0; s < f.network.parameters().size(); ++s)
    for_each_logical(f.network.parameters()[s], [&](std::size_t i) {
      EXPECT_EQ(sink.seen(i), frozen[s] ? 0 : 1);
      const bool is_weight = s == f.network.weight_slice(0) || s == f.network.weight_slice(1);
      EXPECT_EQ(sink.announced(i), is_weight && !frozen[s] ? 1 : 0);
      if (frozen[s]) {
        EXPECT_EQ(f.gradient[i], 123.0f);
      }
    });
  EXPECT_FALSE(sink.announced_late());
}

TEST(KanNetwork, SmallTapesOfSeveralThreadsAreThereTwice) {
  const kan::Network<float> network(small({20, 30, 10}));
  const Exec one({.threads = 1}), two({.threads = 2});
  const auto bytes = [&](const Exec& ex, TapeLimits limits) { return network.make_tape(ex, limits).bytes(); };
  EXPECT_GT(bytes(two, {.batch = 100}), 2 * bytes(one, {.batch = 100}));
  EXPECT_EQ(bytes(two, {.batch = 100, .backward = false}), bytes(one, {.batch = 100, .backward = false}));
  EXPECT_LE(bytes(two, {.batch = 500}), std::size_t{8} << 20);
  const std::size_t large = bytes(one, {.batch = 4000});
  ASSERT_GT(large, std::size_t{4} << 20);
  EXPECT_EQ(bytes(two, {.batch = 4000}), large);
}

TEST(KanNetwork, FrozenLowerLayersLeaveTheOtherGradientsAsTheyWere) {
  KanFixture<double> all(small({4, 6, 3}), 20), part(small({4, 6, 3}), 20);
  const Exec ex({.threads = 1});
  all.forward_backward(ex);
  std::vector<std::uint8_t> frozen(part.network.parameters().size(), 0);
  frozen[0] = frozen[1] = 1;  // layer0.weight, layer0.bias
  Step step;
  step.frozen = frozen;
  part.forward_backward(ex, step, nullptr, false);
  const Slice& top = all.network.parameters()[all.network.weight_slice(1)];
  for_each_logical(top, [&](std::size_t i) { EXPECT_EQ(all.gradient[i], part.gradient[i]); });
  for_each_logical(all.network.parameters()[0], [&](std::size_t i) { EXPECT_EQ(part.gradient[i], 0.0); });
}

TEST(KanNetwork, AccumulationAddsAndOverwritingForgets) {
  KanFixture<double> f(small({3, 4, 2}), 10);
  const Exec ex({.threads = 1});
  f.forward_backward(ex);
  Buffer<double> once(f.gradient.size());
  std::copy_n(f.gradient.data(), once.size(), once.data());
  f.forward_backward(ex);
  EXPECT_TRUE(same_bits(once, f.gradient));
  Step step;
  step.gradient = GradientMode::accumulate, step.leaf = 1;
  f.forward_backward(ex, step);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(f.gradient[i], once[i] + once[i]);
}

TEST(KanNetwork, PaddingStaysZero) {
  KanFixture<float> f(small({3, 5, 2}), 33);
  f.forward_backward(Exec({.threads = 2}));
  std::vector<bool> logical(f.gradient.size(), false);
  for (const Slice& s : f.network.parameters()) for_each_logical(s, [&](std::size_t i) { logical[i] = true; });
  for (std::size_t i = 0; i < logical.size(); ++i)
    if (!logical[i]) {
      EXPECT_EQ(f.gradient[i], 0.0f) << i;
    }
}

TEST(KanNetwork, CountsInputsOutsideTheGrid) {
  KanFixture<double> f(small({2, 1}), 4);
  const double x[] = {0.0, 0.5, 1.5, 0.0, -2.0, 3.0, 1.0, -1.0};
  std::copy(std::begin(x), std::end(x), f.x.data());
  const Exec ex({.threads = 1});
  auto tape = f.network.make_tape(ex, {.batch = 4});
  f.network.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view());
  EXPECT_EQ(tape.outside(0), 3u);
}

TEST(KanNetwork, RejectsWhatCannotBeBuilt) {
  const auto message = [](NetworkOptions o) -> std::string {
    try {
      kan::Network<float> n(std::move(o));
    } catch (const Exception& e) {
      return e.what();
    }
    return "";
  };
  NetworkOptions o = small({3});
  EXPECT_THAT(message(o), ::testing::HasSubstr("at least two widths"));
  o = small({3, 0, 1});
  EXPECT_THAT(message(o), ::testing::HasSubstr("width 1"));
  o = small({3, 1});
  o.degree = 8;
  EXPECT_THAT(message(o), ::testing::HasSubstr("degree is 8"));
  o = small({3, 1});
  o.grid = 1025;
  EXPECT_THAT(message(o), ::testing::HasSubstr("1025"));
  o = small({3, 1});
  o.lo = o.hi = 1.0;
  EXPECT_THAT(message(o), ::testing::HasSubstr("width must be positive"));
}

TEST(KanNetwork, RejectsGridsWhoseWidthThePrecisionDoesNotHold) {
  for (const Knots knots : {Knots::uniform, Knots::free}) {
    NetworkOptions o = small({3, 1});
    o.lo = -3e38, o.hi = 3e38;
    o.knots = knots;
    try {
      const KanFixture<float> f(o, 4);
      ADD_FAILURE() << "a grid of infinite width was taken";
    } catch (const Exception& e) {
      EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("-3e+38 to 3e+38"), testing::HasSubstr("float32")));
    }
    EXPECT_NO_THROW(KanFixture<double>(o, 4));
  }
}

TEST(KanNetwork, RejectsWrongBatches) {
  KanFixture<float> f(small({3, 1}), 4);
  const Exec ex({.threads = 1});
  auto tape = f.network.make_tape(ex, {.batch = 2});
  EXPECT_THROW(f.network.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view()), Exception);
  auto fresh = f.network.make_tape(ex, {.batch = 4});
  EXPECT_THROW(f.network.backward(ex, {.arrays = f.arrays(),
                                       .batch = f.rows(),
                                       .tape = fresh,
                                       .dl_dy = View<const float, 2>(f.y_view()),
                                       .gradient = f.gradient}),
               Exception);
}

TEST(KanNetwork, WideInputsAndWideLayersWork) {
  KanFixture<float> wide(small({40'960, 1}), 3);
  wide.forward_backward(Exec({.threads = 2}));
  EXPECT_TRUE(std::isfinite(wide.y[0]));
  NetworkOptions o = small({300, 300, 1});
  KanFixture<float> layers(o, 20);
  layers.forward_backward(Exec({.threads = 2}), {}, nullptr, false);
  EXPECT_TRUE(std::isfinite(layers.y[0]));
}

}  // namespace
}  // namespace gradloom
