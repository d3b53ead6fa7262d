// What a soft gate computes and what its gradient is: by truth tables, by differences, by dual numbers, by other data.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/gate/cases.h"
#include "gradloom/kernels/gate/reference.h"

namespace gradloom::kernels::gate {
namespace {

// The relaxation of every function, written out.
double relaxation(std::size_t function, double a, double b) {
  switch (function) {
    case 0:
      return 0;
    case 1:
      return a * b;
    case 2:
      return a - a * b;
    case 3:
      return a;
    case 4:
      return b - a * b;
    case 5:
      return b;
    case 6:
      return a + b - 2 * a * b;
    case 7:
      return a + b - a * b;
    case 8:
      return 1 - (a + b - a * b);
    case 9:
      return 1 - (a + b - 2 * a * b);
    case 10:
      return 1 - b;
    case 11:
      return 1 - b + a * b;
    case 12:
      return 1 - a;
    case 13:
      return 1 - a + a * b;
    case 14:
      return 1 - a * b;
    default:
      return 1;
  }
}

TEST(SoftGate, EveryFunctionAgreesWithItsTruthTableAndItsRelaxation) {
  for (std::size_t i = 0; i < kFunctions; ++i) {
    std::array<double, kFunctions> z{};
    z[i] = 1000;
    const auto c = reference::split::gate_coefficients(z.data());
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        EXPECT_EQ(reference::split::gate_value<double>(c.data(), a, b), i >> (3 - (2 * a + b)) & 1)
            << i << " " << a << b;
    EXPECT_NEAR(reference::split::gate_value<double>(c.data(), 0.3, 0.8), relaxation(i, 0.3, 0.8), 1e-15) << i;
  }
}

TEST(SoftGate, IsTheMixtureOfItsRelaxations) {
  const RandomStream random(5, RandomUse::check);
  std::uint32_t at = 0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::array<double, kFunctions> z;
    for (double& v : z) v = 3 * random.normal(at++);
    const double a = random.uniform(at++), b = random.uniform(at++);
    const auto c = reference::split::gate_coefficients(z.data());
    double sum = 0, value = 0;
    for (const double v : z) sum += std::exp(v);
    for (std::size_t i = 0; i < kFunctions; ++i) value += std::exp(z[i]) / sum * relaxation(i, a, b);
    EXPECT_NEAR(reference::split::gate_value(c.data(), a, b), value, 1e-14);
  }
}

TEST(SoftGate, AgreesWithReferenceData) {
  const char* root = std::getenv("GRADLOOM_DATA");
  if (!root) GTEST_SKIP() << "GRADLOOM_DATA is not set";
  std::ifstream file(std::string(root) + "/spline_reference/soft_gates.json");
  if (!file) GTEST_SKIP() << "no spline_reference/soft_gates.json below " << root;
  const auto mixtures = nlohmann::json::parse(file);
  ASSERT_EQ(mixtures.size(), 20u);
  for (const auto& m : mixtures) {
    const double a = m["a"], b = m["b"];
    const std::vector<double> z = m["logits"], slopes = m["dvalue_dlogits"], functions = m["ops"];
    std::vector<Gate<double>> gates(1);
    const std::vector<GateRows> rows{{0, 1}};
    const LayerPlan plan = plan_layer(rows, 2);
    place_gates<double>(rows, plan, gates.data());
    coefficients<double>(Variant::fast, z, plan.position.data(), 1, gates.data());
    std::vector<double> in(2 * kTile), out(kTile), dl_dout(kTile), dl_din(2 * kTile), sums(kPartial), dl_dz(kFunctions);
    in[5] = a, in[kTile + 5] = b, dl_dout[5] = 1.0;  // one lane of the tile
    forward<double>(Variant::fast, {gates, &plan}, in.data(), out.data());
    backward<double>(Variant::fast, {gates, &plan}, {in.data(), dl_dout.data(), dl_din.data(), sums.data()});
    logit_gradient<double>(Variant::fast, z, plan.position.data(), 1, sums.data(), GradientMode::overwrite,
                           dl_dz.data());
    EXPECT_NEAR(out[5], m["value"].get<double>(), 1e-14);
    EXPECT_NEAR(dl_din[5], m["dvalue_da"].get<double>(), 1e-14);
    EXPECT_NEAR(dl_din[kTile + 5], m["dvalue_db"].get<double>(), 1e-14);
    for (std::size_t i = 0; i < kFunctions; ++i) {
      EXPECT_NEAR(dl_dz[i], slopes[i], 1e-14) << i;
      EXPECT_NEAR(relaxation(i, a, b), functions[i], 1e-14) << i;
    }
  }
}

// l = sum dl_dout * out, for a problem whose logits and inputs may be nudged.
double objective(Problem<double>& p) {
  p.prepare(Variant::reference);
  forward<double>(Variant::reference, p.layer(), p.in.data(), p.out.data());
  double sum = 0.0;
  for (std::size_t n = 0; n < p.out.size(); ++n) sum += p.dl_dout[n] * p.out[n];
  return sum;
}

enum class Defect { none, sign, factor, missing_term, swapped };

// The share of elements that differ from central differences by more than the contract allows.
std::size_t wrong_elements(Problem<double>& p, Defect defect) {
  EXPECT_EQ(p.what.step, kTile);
  std::fill_n(p.dl_din.data(), p.dl_din.size(), std::nan(""));
  if (p.what.given != kNoRow) std::fill_n(p.dl_din.data() + p.what.given * kTile, kTile, 0.0);
  std::fill_n(p.sums.data(), p.sums.size(), 0.0);
  p.run(Variant::fast, GradientMode::overwrite);
  if (defect == Defect::sign) p.dl_dz[3] = -p.dl_dz[3];
  if (defect == Defect::factor)
    for (double& g : p.dl_din.span()) g *= 1.001;
  if (defect == Defect::missing_term) {  // the gradient as if the probabilities did not depend on each other
    for (std::size_t g = 0; g < p.what.gates; ++g) {
      const auto probability = reference::split::softmax(p.logits.data() + g * kFunctions);
      for (std::size_t i = 0; i < kFunctions; ++i) {
        double d = 0.0;
        for (std::size_t m = 0; m < kSums; ++m)
          d += weight(m, i) *
               (p.sums[p.plan.position[g] * kPartial + 2 * m] + p.sums[p.plan.position[g] * kPartial + 2 * m + 1]);
        p.dl_dz[g * kFunctions + i] = probability[i] * d;
      }
    }
  }
  if (defect == Defect::swapped) std::swap(p.dl_dz[1], p.dl_dz[2]);
  const auto count = [&](Buffer<double>& x, const Buffer<double>& gradient) {
    double largest = 0.0;
    for (const double g : gradient.span()) largest = std::max(largest, std::abs(g));
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double centre = x[n], h = 1e-5;
      x[n] = centre + h;
      const double high = objective(p);
      x[n] = centre - h;
      const double low = objective(p);
      x[n] = centre;
      const double error = std::abs((high - low) / (2 * h) - gradient[n]);
      if (!(error <= 1e-6 * std::max(std::abs(gradient[n]), 1e-3 * largest))) ++wrong;
    }
    return wrong;
  };
  return count(p.logits, p.dl_dz) + count(p.in, p.dl_din);
}

TEST(GateLayer, BackwardMatchesCentralDifferences) {
  for (const Case c : {Case{2, 1, 1}, Case{9, 8, 1}, Case{3, 5, 1}, Case{1, 2, 1}, Case{9, 9, 1, Wiring::circle},
                       Case{6, 7, 1, Wiring::circle}, Case{6, 3, 1, Wiring::halves}, Case{9, 12, 6, Wiring::same, 4},
                       Case{9, 8, 1, Wiring::fan, 4}, Case{15, 12, 1, Wiring::mixed}}) {
    Problem<double> p(c, Logits::mixed, 11);
    EXPECT_EQ(wrong_elements(p, Defect::none), 0u) << c.name();
  }
}

TEST(GateLayer, WrongGradientsAreRejected) {
  for (const Defect d : {Defect::sign, Defect::factor, Defect::missing_term, Defect::swapped}) {
    Problem<double> p({9, 8, 1}, Logits::mixed, 11);
    EXPECT_GT(wrong_elements(p, d), 0u) << static_cast<int>(d);
  }
}

TEST(GateLayer, LogitGradientMatchesDualNumbers) {
  Problem<double> p({5, 16, 1}, Logits::mixed, 3);
  std::fill_n(p.sums.data(), p.sums.size(), 0.0);
  p.run(Variant::fast, GradientMode::overwrite);
  for (std::size_t g = 0; g < p.what.gates; ++g)
    for (std::size_t i = 0; i < kFunctions; ++i) {
      std::array<Dual<double>, kFunctions> z;
      for (std::size_t j = 0; j < kFunctions; ++j)
        z[j] = Dual<double>(p.logits[g * kFunctions + j], i == j ? 1.0 : 0.0);
      const auto c = reference::split::gate_coefficients(z.data());
      double exact = 0.0;
      for (std::size_t m = 0; m < kSums; ++m)
        exact += c[m].d *
                 (p.sums[p.plan.position[g] * kPartial + 2 * m] + p.sums[p.plan.position[g] * kPartial + 2 * m + 1]);
      EXPECT_NEAR(p.dl_dz[g * kFunctions + i], exact, 1e-13);
    }
}

TEST(GateLayer, LanesWithoutGradientAddNothing) {
  Problem<double> all({9, 8, 1}, Logits::mixed, 4), some({9, 8, 1}, Logits::mixed, 4);
  for (Problem<double>* p : {&all, &some})
    for (std::size_t n = 0; n < p->dl_dout.size(); ++n)
      if (n % kTile >= 5) p->dl_dout[n] = 0.0;
  for (std::size_t n = 0; n < some.in.size(); ++n)
    if (n % kTile >= 5) some.in[n] = 0.0;
  all.run(Variant::fast, GradientMode::overwrite);
  some.run(Variant::fast, GradientMode::overwrite);
  for (std::size_t n = 0; n < all.sums.size(); ++n) EXPECT_EQ(all.sums[n], some.sums[n]);
}

}  // namespace
}  // namespace gradloom::kernels::gate
