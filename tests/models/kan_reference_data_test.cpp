// Networks and fits that were computed elsewhere (SciPy, in double), from the folder spline_reference of GRADLOOM_DATA.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "gradloom/models/kan/spline_fit.h"
#include "gradloom/train/loss.h"
#include "tests/models/kan_support.h"

namespace gradloom {
namespace {

using nlohmann::json;

class KanReferenceData : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("GRADLOOM_DATA");
    if (!root) GTEST_SKIP() << "GRADLOOM_DATA is not set";
    folder_ = std::filesystem::path(root) / "spline_reference";
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "GRADLOOM_DATA has no folder spline_reference";
  }
  json load(const char* name) const {
    std::ifstream file(folder_ / name);
    return json::parse(file);
  }
  std::filesystem::path folder_;
};

double largest(const std::vector<double>& values) {
  double m = 0.0;
  for (double v : values) m = std::max(m, std::abs(v));
  return m;
}

std::vector<double> flat(const json& j) {
  std::vector<double> values;
  for (const json& e : j)
    if (e.is_array())
      for (double v : flat(e)) values.push_back(v);
    else
      values.push_back(e.get<double>());
  return values;
}

// Sums of a few dozen terms of either sign, in another order than the reference's: relative to the largest of a tensor.
constexpr double kTolerance = 1e-12;

void expect_close(const std::vector<double>& actual, const json& expected, const std::string& what) {
  const std::vector<double> values = flat(expected);
  ASSERT_EQ(actual.size(), values.size()) << what;
  ASSERT_GT(largest(values), 0.0) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(actual[i], values[i], kTolerance * largest(values)) << what << ", element " << i;
}

// The reference has a base weight bw, spline weights sw_k and a scale sc on every edge: bw silu(x) + sc sum_k sw_k
// B_k(x). Ours has u = bw and c_k = sc sw_k; so dl/dsw_k = sc dl/dc_k and dl/dsc = sum_k sw_k dl/dc_k.
TEST_F(KanReferenceData, NetworksGiveTheOutputsLossAndGradientsOfTheReference) {
  const json cases = load("kan_forward_backward.json");
  ASSERT_GE(cases.size(), 2u);
  for (const json& reference : cases) {
    kan::NetworkOptions o;
    o.widths = reference["dims"].get<std::vector<std::size_t>>();
    o.grid = reference["grid_size"];
    o.degree = reference["order"];
    o.lo = reference["lo"];
    o.hi = reference["hi"];
    o.bias = false;
    o.outside = kan::OutOfGrid::extend;
    const std::size_t samples = reference["x"].size();
    test::KanFixture<double> f(o, samples);
    const std::vector<double> x = flat(reference["x"]), target = flat(reference["target"]);
    std::copy(x.begin(), x.end(), f.x.data());
    const auto at = [&](std::size_t l, std::size_t i, std::size_t row, std::size_t j) {
      const auto& s = f.network.shape(l);
      return f.network.parameters()[f.network.weight_slice(l)].offset + (i * s.rows() + row) * s.out_padded() + j;
    };
    for (std::size_t l = 0; l < f.network.layers(); ++l) {
      const auto& s = f.network.shape(l);
      const json& layer = reference["layers"][l];
      for (std::size_t i = 0; i < s.in; ++i)
        for (std::size_t j = 0; j < s.out; ++j) {
          f.parameters[at(l, i, s.spline_rows(), j)] = layer["bw"][j][i];
          for (std::size_t k = 0; k < s.spline_rows(); ++k)
            f.parameters[at(l, i, k, j)] = layer["sc"][j][i].get<double>() * layer["sw"][j][i][k].get<double>();
        }
    }

    const Exec ex({.threads = 1});
    const std::size_t out = f.network.output_width();
    auto tape = f.network.make_tape(ex, {.batch = samples, .input_gradient = true});
    RowBatch<double> batch = f.rows();
    batch.target = {target.data(), {samples, out}};
    f.network.forward(ex, {}, f.arrays(), batch, tape, f.y_view());
    std::vector<double> y;
    for (std::size_t s = 0; s < samples; ++s)
      for (std::size_t j = 0; j < out; ++j) y.push_back(f.y_view()(s, j));
    expect_close(y, reference["output"], "output");

    std::vector<double> partials(loss_partials(samples));
    const View<double, 2> dl_dy(f.dl_dy.data(), {samples, out}, {f.stride, 1});
    const double loss = evaluate_loss<double>(ex, {}, batch, f.y_view(), dl_dy, partials);
    EXPECT_NEAR(loss, reference["loss"].get<double>(), kTolerance * loss);
    f.network.backward(ex, {.arrays = f.arrays(),
                            .batch = batch,
                            .tape = tape,
                            .dl_dy = dl_dy,
                            .gradient = f.gradient,
                            .dl_dx = {f.dl_dx.data(), {samples, f.network.input_width()}}});
    expect_close({f.dl_dx.span().begin(), f.dl_dx.span().end()}, reference["grad_x"], "grad_x");
    for (std::size_t l = 0; l < f.network.layers(); ++l) {
      const auto& s = f.network.shape(l);
      const json& layer = reference["layers"][l];
      std::vector<double> bw, sw, sc;
      for (std::size_t j = 0; j < s.out; ++j)
        for (std::size_t i = 0; i < s.in; ++i) {
          bw.push_back(f.gradient[at(l, i, s.spline_rows(), j)]);
          double sum = 0.0;
          for (std::size_t k = 0; k < s.spline_rows(); ++k) {
            const double dl_dc = f.gradient[at(l, i, k, j)];
            sw.push_back(layer["sc"][j][i].get<double>() * dl_dc);
            sum += layer["sw"][j][i][k].get<double>() * dl_dc;
          }
          sc.push_back(sum);
        }
      const std::string name = "layer " + std::to_string(l) + " ";
      expect_close(bw, layer["grad_bw"], name + "grad_bw");
      expect_close(sw, layer["grad_sw"], name + "grad_sw");
      expect_close(sc, layer["grad_sc"], name + "grad_sc");
    }
  }
}

double function_value(const std::string& name, double x) {
  if (name == "sin(pi x)") return std::sin(M_PI * x);
  if (name == "exp(x)") return std::exp(x);
  if (name == "abs(x)") return std::abs(x);
  if (name == "tanh(5x)") return std::tanh(5 * x);
  ADD_FAILURE() << "the function " << name << " is new";
  return 0.0;
}

// A least-squares solution moves by epsilon times condition number (cubic B-splines, several points per interval: below
// 100), and by its square times the residual where the function is not a spline. The residuals here reach 0.1, so 1e4
// epsilon bounds both for coefficients; function values lose no condition number.
TEST_F(KanReferenceData, LeastSquaresFitsAreThoseOfTheReference) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const json fits = load("lsq_fits.json");
  ASSERT_GE(fits.size(), 12u);
  for (const json& fit : fits) {
    ASSERT_EQ(fit["x"], "linspace(-0.999,0.999,201)");
    const std::string name = fit["function"];
    const auto line = kan::KnotLine::uniform(fit["order"], fit["grid_size"], fit["lo"], fit["hi"]);
    std::vector<double> x, y, c(line.functions());
    for (int m = 0; m <= 200; ++m) {
      x.push_back(m == 200 ? 0.999 : m * ((0.999 - -0.999) / 200) + -0.999);
      y.push_back(function_value(name, x.back()));
    }
    kan::fit_least_squares(line, x, y, 1, kan::FitGoal::reproduce, c);
    const std::vector<double> expected = flat(fit["coefficients"]);
    ASSERT_EQ(expected.size(), c.size());
    ASSERT_EQ(fit["rank"], c.size());
    const std::string what = name + ", grid " + fit["grid_size"].dump();
    for (std::size_t k = 0; k < c.size(); ++k)
      EXPECT_NEAR(c[k], expected[k], 1e4 * kEpsilon * largest(expected)) << what << ", coefficient " << k;
    double worst = 0.0, squares = 0.0;
    for (std::size_t m = 0; m < x.size(); ++m) {
      double b[8], value = 0.0;
      const std::size_t span = line.span_of(x[m]);
      line.basis(span, x[m], b);
      for (std::size_t k = 0; k <= line.degree(); ++k) value += b[k] * c[span + k];
      worst = std::max(worst, std::abs(value - y[m]));
      squares += (value - y[m]) * (value - y[m]);
    }
    const double rounding = 64 * kEpsilon * largest(expected);
    EXPECT_NEAR(worst, fit["max_abs_error"].get<double>(), rounding) << what;
    EXPECT_NEAR(std::sqrt(squares / 201), fit["rmse"].get<double>(), rounding) << what;
  }
}

}  // namespace
}  // namespace gradloom
