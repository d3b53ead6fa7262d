// The backward kernels against central differences and dual numbers, and wrong gradients against the same check.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/spline/cases.h"
#include "gradloom/kernels/spline/reference.h"
#include "tests/support/sanitized.h"

namespace gradloom::kernels::spline {
namespace {

std::size_t panel_at(std::size_t batch, std::size_t i, std::size_t s) {
  return reference::split::panel_index<double>(batch, i, s);
}

// sum dl_dy * y: the loss whose gradient the kernels compute.
double loss(Problem<double>& p) {
  const std::size_t batch = p.what.batch;
  evaluate_basis(Variant::fast, p.layer, p.tape, {0, batch});
  forward(Variant::fast, p.layer, p.tape, {0, batch}, p.y.data());
  double sum = 0;
  for (std::size_t n = 0; n < p.y.size(); ++n) sum += p.dl_dy[n] * p.y[n];
  return sum;
}

// Five points; x is put back.
double central_difference(Problem<double>& p, double& x, double step) {
  const double at = x;
  const auto value = [&](double offset) {
    x = at + offset;
    return loss(p);
  };
  const double d = (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step);
  x = at;
  return d;
}

struct Element {
  double* place;    // of the parameter or input
  double gradient;  // as the kernel says
};

// Every logical element of one kind, with the kernel's gradient.
std::vector<Element> inputs(Problem<double>& p) {
  std::vector<Element> all;
  for (std::size_t i = 0; i < p.what.shape.in; ++i)
    for (std::size_t s = 0; s < p.what.batch; ++s) {
      const std::size_t at = panel_at(p.what.batch, i, s);
      all.push_back({&p.x[at], p.dl_dx[at]});
    }
  return all;
}
std::vector<Element> weights(Problem<double>& p) {
  std::vector<Element> all;
  const std::size_t out = p.what.shape.out_padded();
  for (std::size_t r = 0; r < p.what.shape.in * p.what.shape.rows(); ++r)
    for (std::size_t j = 0; j < p.what.shape.out; ++j) all.push_back({&p.weight[r * out + j], p.dl_dw[r * out + j]});
  return all;
}
std::vector<Element> biases(Problem<double>& p) {
  std::vector<Element> all;
  for (std::size_t j = 0; p.what.shape.bias && j < p.what.shape.out; ++j) all.push_back({&p.bias[j], p.dl_db[j]});
  return all;
}

void backward(Problem<double>& p) {
  const std::size_t batch = p.what.batch;
  evaluate_basis(Variant::fast, p.layer, p.tape, {0, batch});
  input_gradient(Variant::fast, p.layer, p.tape, p.dl_dy.data(), {0, batch}, p.dl_dx.data());
  weight_gradient(Variant::fast, p.what.shape, p.tape, p.dl_dy.data(), {0, p.what.shape.in}, {p.dl_dw.data()});
  bias_gradient(Variant::fast, p.what.shape, batch, p.dl_dy.data(), {p.dl_db.data()});
}

// How many of the elements are wrong: error above 1e-6 max(|g|, 1e-3 largest |g|). An all-zero gradient counts as
// wrong.
std::size_t wrong(Problem<double>& p, const std::vector<Element>& elements) {
  double largest = 0;
  for (const Element& e : elements) largest = std::max(largest, std::abs(e.gradient));
  if (largest == 0) return elements.size();
  std::size_t count = 0;
  for (const Element& e : elements) {
    const double numeric = central_difference(p, *e.place, 1e-3);
    count += !(std::abs(numeric - e.gradient) <= 1e-6 * std::max(std::abs(e.gradient), 1e-3 * largest));
  }
  return count;
}

// Inputs a stencil's width away from every knot and edge, some of them outside the grid: within one polynomial, the
// five points are exact up to degree 4 and close to it above.
void move_off_knots(Problem<double>& p) {
  const Shape& s = p.what.shape;
  const RandomStream random(99, RandomUse::check);
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < s.in; ++i)
    for (std::size_t b = 0; b < p.what.batch; ++b) {
      const double width = p.hi[i] - p.lo[i];
      long interval = static_cast<long>(random.below(at++, s.grid));
      if (random.uniform(at++) < 0.25) interval = random.below(at++, 2) ? -1 : static_cast<long>(s.grid);
      double left = p.lo[i] + static_cast<double>(interval) * width / s.grid, step = width / s.grid;
      if (s.knots == Knots::free) {
        const double* knots = p.extended.data() + i * s.extended_knots() + 2 * s.degree;
        left = knots[interval], step = knots[interval + 1] - left;
      }
      p.x[panel_at(p.what.batch, i, b)] = left + step * (0.2 + 0.6 * random.uniform(at++));
    }
}

TEST(SplineGradient, BackwardMatchesCentralDifferences) {
  const FlushSubnormals flush;
  std::size_t checked = 0;
  for (const Case& c : test::thinned(gradient_cases())) {
    SCOPED_TRACE(c.name());
    Problem<double> p(c, 7, Points::inside);
    move_off_knots(p);
    backward(p);
    for (const auto& elements : {inputs(p), weights(p), biases(p)}) {
      if (elements.empty()) continue;
      double largest = 0;
      for (const Element& e : elements) largest = std::max(largest, std::abs(e.gradient));
      if (largest == 0 && c.batch == 1) continue;  // the one sample lies outside, where the policy makes it zero
      EXPECT_EQ(wrong(p, elements), 0u);
      checked += elements.size();
    }
  }
  EXPECT_GT(checked, test::kSanitized ? 1500u : 5000u);
}

// dl_dx and dl_dw in one go: the derivative of the loss along a random direction, by dual numbers through the
// definition.
TEST(SplineGradient, BackwardMatchesDualNumbers) {
  const FlushSubnormals flush;
  using D = Dual<double>;
  for (const Case& c : gradient_cases()) {
    SCOPED_TRACE(c.name());
    Problem<double> p(c, 8, Points::everywhere);
    for (std::size_t n = 0; n < p.x.size(); ++n) p.x[n] = std::clamp(p.x[n], -20.0, 20.0);
    backward(p);
    const Shape& s = c.shape;
    const std::size_t out = s.out_padded();
    const RandomStream random(5, RandomUse::check);
    std::uint32_t at = 0;
    double expected = 0, scale = 0;
    D total(0.0);
    for (std::size_t b = 0; b < c.batch; ++b) {
      std::vector<D> y(out);
      for (std::size_t j = 0; j < s.out; ++j) y[j] = D(s.bias ? p.bias[j] : 0.0);
      for (std::size_t i = 0; i < s.in; ++i) {
        const std::size_t place = panel_at(c.batch, i, b);
        const D x(p.x[place], random.normal(at++));
        expected += p.dl_dx[place] * x.d, scale += std::abs(p.dl_dx[place] * x.d);
        const auto basis = reference::split::basis_point(s, p.layer.grid, i, x);
        const auto base = silu(reference::split::base_point(s, p.layer.grid, i, x));
        for (std::size_t j = 0; j < s.out; ++j) {
          const double* w = p.weight.data() + i * s.rows() * out + j;
          for (unsigned k = 0; k <= s.degree; ++k) y[j] += basis.value[k] * D(w[(basis.span + k) * out]);
          if (s.base) y[j] += base.value * D(w[(s.rows() - 1) * out]);
        }
      }
      for (std::size_t j = 0; j < s.out; ++j) total += y[j] * D(p.dl_dy[panel_at(c.batch, j, b)]);
    }
    EXPECT_NEAR(total.d, expected, 1e-11 * std::max(scale, 1e-3));
  }
}

TEST(SplineGradient, WrongGradientsAreCaught) {
  const FlushSubnormals flush;
  const Case c{{3, 9, 4, 3, true, true}, 6};
  Problem<double> p(c, 9, Points::inside);
  move_off_knots(p);
  backward(p);
  using Mistake = std::function<void(std::vector<Element>&)>;
  const std::pair<const char*, Mistake> mistakes[] = {
      {"sign", [](auto& e) { e[1].gradient = -e[1].gradient; }},
      {"factor",
       [](auto& e) {
         for (auto& x : e) x.gradient *= 1.00001;
       }},
      {"missing",
       [](auto& e) {
         for (auto& x : e)
           if (x.gradient != 0) {
             x.gradient = 0;
             break;
           }
       }},
      {"swapped", [](auto& e) { std::swap(e[0].gradient, e[e.size() - 1].gradient); }},
      {"zero",
       [](auto& e) {
         for (auto& x : e) x.gradient = 0;
       }},
  };
  for (const auto& elements : {inputs(p), weights(p), biases(p)}) {
    ASSERT_EQ(wrong(p, elements), 0u);
    for (const auto& [name, mistake] : mistakes) {
      auto changed = elements;
      if (std::string(name) == "sign" && changed[1].gradient == 0)
        std::swap(changed[1], *std::max_element(changed.begin(), changed.end(),
                                                [](auto& a, auto& b) { return a.gradient < b.gradient; }));
      mistake(changed);
      EXPECT_GT(wrong(p, changed), 0u) << name;
    }
  }
}

// Mistakes inside the kernels' own sums: a term of the base branch, a neighbouring row, the slope of another input.
TEST(SplineGradient, WrongTermsInsideTheSumsAreCaught) {
  const FlushSubnormals flush;
  const Case c{{3, 9, 4, 3, true, true}, 6};
  for (int mistake = 0; mistake < 5; ++mistake) {
    Problem<double> p(c, 9, Points::inside);
    move_off_knots(p);
    evaluate_basis(Variant::fast, p.layer, p.tape, {0, c.batch});
    const std::size_t rows = c.shape.in * c.batch;
    if (mistake == 0) std::fill_n(p.base_slope.data(), rows, 0.0);
    if (mistake == 1) std::rotate(p.slope.data(), p.slope.data() + 4 * c.batch, p.slope.data() + 4 * rows);
    if (mistake == 2) std::fill_n(p.base_value.data(), rows, 0.0);
    if (mistake == 3)
      for (std::size_t n = 0; n < rows; ++n) p.span[n] = p.span[n] ? p.span[n] - 1 : 1;
    if (mistake == 4)
      for (std::size_t n = 0; n < rows; ++n) std::swap(p.value[4 * n], p.value[4 * n + 1]);
    input_gradient(Variant::fast, p.layer, p.tape, p.dl_dy.data(), {0, c.batch}, p.dl_dx.data());
    weight_gradient(Variant::fast, c.shape, p.tape, p.dl_dy.data(), {0, c.shape.in}, {p.dl_dw.data()});
    const bool about_inputs = mistake <= 1 || mistake == 3, about_weights = mistake >= 2;
    if (about_inputs) {
      EXPECT_GT(wrong(p, inputs(p)), 0u) << mistake;
    }
    if (about_weights) {
      EXPECT_GT(wrong(p, weights(p)), 0u) << mistake;
    }
  }
}

}  // namespace
}  // namespace gradloom::kernels::spline
