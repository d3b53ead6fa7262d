#include <cmath>
#include <limits>

#include "gradloom/models/kan/grid.h"
#include "gradloom/models/kan/spline_fit.h"
#include "tests/models/kan_support.h"

namespace gradloom {
namespace {

using kan::KnotLine;
using kan::Knots;
using kan::NetworkOptions;
using test::KanFixture;

double spline_value(const KnotLine& line, std::span<const double> c, double x) {
  double b[8];
  const std::size_t span = line.span_of(x);
  line.basis(span, x, b);
  double v = 0.0;
  for (std::size_t k = 0; k <= line.degree(); ++k) v += b[k] * c[span + k];
  return v;
}

TEST(SplineFit, RefinementOfNestedGridsIsExactForEveryDegree) {
  for (unsigned p = 1; p <= 7; ++p)
    for (auto [coarse, fine] : {std::pair{1u, 2u}, {3u, 9u}, {5u, 10u}, {4u, 64u}, {7u, 7u}}) {
      const KnotLine from = KnotLine::uniform(p, coarse, -0.7, 1.9), to = KnotLine::uniform(p, fine, -0.7, 1.9);
      ASSERT_TRUE(kan::nested(from, to));
      const RandomStream random(p, RandomUse::user, coarse, fine);
      std::vector<double> c(from.functions()), refined(to.functions());
      for (std::size_t k = 0; k < c.size(); ++k) c[k] = random.normal(static_cast<std::uint32_t>(k));
      kan::refine_nested(from, c, to, 1, refined);
      for (int m = 0; m <= 200; ++m) {
        const double x = -0.7 + 2.6 * m / 200;
        EXPECT_NEAR(spline_value(from, c, x), spline_value(to, refined, x), 2e-11) << "degree " << p << " x " << x;
      }
    }
}

TEST(SplineFit, LeastSquaresReproducesASplineOfTheSpace) {
  for (unsigned p = 1; p <= 7; ++p) {
    const KnotLine line(p, {-1.0, -0.9, -0.2, 0.1, 0.15, 1.3});
    const RandomStream random(p, RandomUse::user);
    std::vector<double> c(line.functions()), fitted(line.functions()), x, y;
    for (std::size_t k = 0; k < c.size(); ++k) c[k] = random.normal(static_cast<std::uint32_t>(k));
    for (int m = 0; m <= 400; ++m) {
      x.push_back(-1.0 + 2.3 * m / 400);
      y.push_back(spline_value(line, c, x.back()));
    }
    kan::fit_least_squares(line, x, y, 1, kan::FitGoal::reproduce, fitted);
    // A stable solver's values are exact up to a small multiple of epsilon times the largest coefficient, whatever the
    // conditioning; its coefficients lose a factor of the condition number, here 4 (degree 1) to 1.6e6 (degree 7):
    // about 14 times more with each degree.
    double largest = 0.0;
    for (double v : c) largest = std::max(largest, std::abs(v));
    const double unit = 32 * std::numeric_limits<double>::epsilon() * largest;
    for (double at : x) EXPECT_NEAR(spline_value(line, c, at), spline_value(line, fitted, at), unit) << "degree " << p;
    for (std::size_t k = 0; k < c.size(); ++k)
      EXPECT_NEAR(c[k], fitted[k], unit * std::pow(14.0, p - 1)) << "degree " << p << ", coefficient " << k;
  }
}

TEST(SplineFit, StaysFiniteWithoutEnoughPoints) {
  const KnotLine line = KnotLine::uniform(3, 20, 0.0, 1.0);
  std::vector<double> fitted(line.functions(), NAN);
  kan::fit_least_squares(line, std::vector<double>{0.5, 0.5, 0.5}, std::vector<double>{1.0, 2.0, 3.0}, 1,
                         kan::FitGoal::reproduce, fitted);
  for (double c : fitted) EXPECT_TRUE(std::isfinite(c));
  EXPECT_NEAR(spline_value(line, fitted, 0.5), 2.0, 1e-6);
  kan::fit_least_squares(line, {}, {}, 1, kan::FitGoal::reproduce, fitted);
  for (double c : fitted) EXPECT_EQ(c, 0.0);
}

// The largest change of the network's output over its data.
double change(KanFixture<double>& f, const kan::Trained<double>& after) {
  const Exec ex({.threads = 1});
  f.forward_backward(ex);
  Buffer<double> y(f.y.size());
  auto tape = after.network.make_tape(ex, {.batch = f.batch, .backward = false});
  after.network.forward(ex, {}, {after.parameters, after.buffers}, f.rows(), tape,
                        {y.data(), {f.batch, f.network.output_width()}, {f.stride, 1}});
  double largest = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_TRUE(std::isfinite(y[i]));
    largest = std::max(largest, std::abs(y[i] - f.y[i]));
  }
  return largest;
}

NetworkOptions options(Knots knots, unsigned grid, unsigned degree = 3) {
  NetworkOptions o;
  o.widths = {3, 4, 2};
  o.knots = knots;
  o.grid = grid;
  o.degree = degree;
  o.spline_noise = 0.3;
  return o;
}

TEST(KanRefine, NestedGridsKeepTheFunction) {
  for (unsigned degree = 1; degree <= 7; ++degree)
    for (Knots knots : {Knots::uniform, Knots::free}) {
      KanFixture<double> f(options(knots, 5, degree), 200, 3, 0.99);
      const auto after = kan::refine<double>(f.network, f.parameters.span(), f.buffers.span(), 20);
      EXPECT_EQ(after.network.options().grid, 20u);
      EXPECT_LT(change(f, after), 1e-10) << "degree " << degree;
    }
}

TEST(KanRefine, OtherGridsStayCloseAndFinerOnesCloser) {
  KanFixture<double> f(options(Knots::uniform, 3), 300, 3, 0.99);
  const double ten = change(f, kan::refine<double>(f.network, f.parameters.span(), f.buffers.span(), 10));
  const double hundred = change(f, kan::refine<double>(f.network, f.parameters.span(), f.buffers.span(), 100));
  EXPECT_LT(ten, 2e-2);
  EXPECT_LT(hundred, 1e-4);
  EXPECT_LT(hundred, ten);
}

TEST(KanRefine, FreeKnotsNestForAnyNumber) {
  KanFixture<double> f(options(Knots::free, 3), 200, 3, 0.99);
  EXPECT_LT(change(f, kan::refine<double>(f.network, f.parameters.span(), f.buffers.span(), 7)), 1e-11);
}

TEST(KanRefit, KeepsTheFunctionOnTheData) {
  for (Knots knots : {Knots::uniform, Knots::free}) {
    NetworkOptions o = options(knots, 40);
    KanFixture<double> f(o, 500, 5, 0.9);
    // Smooth splines: refitting moves knots, so kinks of the third derivative are approximated, not reproduced.
    for (std::size_t l = 0; l < f.network.layers(); ++l) {
      const auto& s = f.network.shape(l);
      double* weight = f.parameters.data() + f.network.parameters()[f.network.weight_slice(l)].offset;
      for (std::size_t i = 0; i < s.in; ++i)
        for (std::size_t r = 0; r < s.spline_rows(); ++r)
          for (std::size_t j = 0; j < s.out; ++j)
            weight[(i * s.rows() + r) * s.out_padded() + j] =
                0.3 * std::sin(0.1 * static_cast<double>(r + 7 * i + 3 * j));
    }
    const Exec ex({.threads = 1});
    const auto after = kan::refit<double>(ex, f.network, f.parameters.span(), f.buffers.span(), f.rows().x);
    EXPECT_LT(change(f, after), 1e-3);
    auto tape = f.network.make_tape(ex, {.batch = f.batch});
    f.network.forward(ex, {}, {after.parameters, after.buffers}, f.rows(), tape, f.y_view());
    EXPECT_EQ(tape.outside(0), 0u);
    EXPECT_EQ(tape.outside(1), 0u);
  }
}

TEST(KanRefit, SurvivesConstantCategoricalAndDuplicatedColumns) {
  for (Knots knots : {Knots::uniform, Knots::free})
    for (unsigned grid : {1u, 5u, 64u, 1024u}) {
      KanFixture<double> f(options(knots, grid), 60, 5);
      for (std::size_t s = 0; s < f.batch; ++s) {
        f.x[s * 3 + 0] = 4.25;                             // constant
        f.x[s * 3 + 1] = static_cast<double>(s % 3 == 0);  // two categories
        f.x[s * 3 + 2] = f.x[s * 3 + 1];                   // a duplicate
      }
      const Exec ex({.threads = 1});
      const auto after = kan::refit<double>(ex, f.network, f.parameters.span(), f.buffers.span(), f.rows().x);
      for (double p : after.parameters.span()) ASSERT_TRUE(std::isfinite(p)) << "grid " << grid;
      for (double b : after.buffers.span()) ASSERT_TRUE(std::isfinite(b)) << "grid " << grid;
      EXPECT_TRUE(std::isfinite(change(f, after)));
    }
}

TEST(KanRefit, WorksOnOneSample) {
  KanFixture<double> f(options(Knots::free, 5), 1, 5);
  const auto after =
      kan::refit<double>(Exec({.threads = 1}), f.network, f.parameters.span(), f.buffers.span(), f.rows().x);
  for (double p : after.parameters.span()) EXPECT_TRUE(std::isfinite(p));
}

}  // namespace
}  // namespace gradloom
