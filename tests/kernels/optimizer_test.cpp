// The updates follow their formulas and give the same bits on every instruction set.
#include "gradloom/kernels/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "gradloom/base/float_mode.h"
#include "gradloom/base/random.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels::optimizer {
namespace {

template <class T>
struct State {
  std::vector<T> w, g, m, v;
  explicit State(std::size_t size) : w(size), g(size), m(size), v(size) {
    const RandomStream random(11, RandomUse::check);
    for (std::uint32_t n = 0; n < size; ++n) {
      w[n] = T(random.normal(4 * n)), g[n] = T(3 * random.normal(4 * n + 1)), m[n] = T(random.normal(4 * n + 2));
      v[n] = T(random.uniform(4 * n + 3));
      if (n % 5 == 0) w[n] = g[n] = m[n] = v[n] = 0;  // padding
      if (n % 5 == 1) g[n] = m[n] = -T(0);
    }
  }
};

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
class Optimizer : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Optimizer, Scalars);

TYPED_TEST(Optimizer, EveryTargetGivesTheBitsOfTheDefinition) {
  using T = TypeParam;
  const FlushSubnormals flush;
  for (const std::size_t size : {0, 1, 7, 8, 64, 1000}) {
    for (const Arithmetic arithmetic : available_arithmetics())
      for (const std::string& target : simd_targets(arithmetic)) {
        SCOPED_TRACE(target + " " + std::to_string(size));
        const ForceSimdTarget force(target);
        for (const RuleFacts& rule : kRules) {
          SCOPED_TRACE(rule.name);
          State<T> a(size), b(size);
          for (unsigned long t = 1; t <= 6; ++t) {
            StepOptions o{.learning_rate = 0.01, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};
            if (t % 2 == 0) o.decoupled_decay = 0.01;
            if (t % 3 == 0) o.gradient_scale = 0.5, o.gradient_limit = 2, o.l2 = 0.01;
            const Step<T> step = make_step<T>(rule.rule, o, t);
            const auto update_all = [&](Variant variant, State<T>& s) {
              update<T>(variant, rule.rule, step, s.w, s.g, rule.states > 0 ? std::span<T>(s.m) : std::span<T>(),
                        rule.states > 1 ? std::span<T>(s.v) : std::span<T>());
            };
            update_all({Variant::reference, arithmetic}, a);
            update_all({Variant::fast, arithmetic}, b);
            EXPECT_TRUE(same(a.w, b.w) && same(a.m, b.m) && same(a.v, b.v)) << t;
          }
          EXPECT_TRUE(size <= 2 || !same(b.w, State<T>(size).w));
          for (std::size_t n = 0; n < size; n += 5) EXPECT_EQ(b.w[n], T(0));
        }
      }
  }
}

TEST(OptimizerFormula, AdamFollowsThePaper) {
  double w = 0.5, m = 0, v = 0;
  std::vector<double> W{0.5}, M{0}, V{0};
  for (int t = 1; t <= 20; ++t) {
    const double g = std::sin(t) * 2;
    m = 0.9 * m + 0.1 * g, v = 0.999 * v + 0.001 * g * g;
    w -= 0.01 * 0.02 * w;  // AdamW: decay first
    w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    const std::vector<double> G{g};
    const StepOptions o{.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decoupled_decay = 0.02};
    update<double>(Variant::fast, Rule::adam, make_step<double>(Rule::adam, o, t), W, G, M, V);
    EXPECT_NEAR(W[0], w, 1e-14);
  }
}

TEST(OptimizerFormula, LionFollowsThePaper) {
  double w = 0.5, m = 0;
  std::vector<double> W{0.5}, M{0};
  for (int t = 1; t <= 20; ++t) {
    const double g = std::sin(t) * 2, ahead = 0.9 * m + 0.1 * g;
    w -= 0.01 * ((ahead > 0 ? 1 : -1) + 0.02 * w);
    m = 0.99 * m + 0.01 * g;
    const std::vector<double> G{g};
    const StepOptions o{.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.99, .decoupled_decay = 0.02};
    update<double>(Variant::fast, Rule::lion, make_step<double>(Rule::lion, o, t), W, G, M, {});
    EXPECT_NEAR(W[0], w, 1e-14);
    EXPECT_NEAR(M[0], m, 1e-14);
  }
}

TEST(OptimizerFormula, SgdClipsDecaysAndLooksAhead) {
  std::vector<double> w{1}, g{10}, v{0.5};
  const StepOptions o{.learning_rate = 0.1, .momentum = 0.9, .l2 = 0.1, .gradient_scale = 0.5, .gradient_limit = 2};
  update<double>(Variant::fast, Rule::nesterov, make_step<double>(Rule::nesterov, o, 1), w, g, v, {});
  const double gradient = 2 + 0.1, velocity = 0.9 * 0.5 + gradient;
  EXPECT_NEAR(v[0], velocity, 1e-15);
  EXPECT_NEAR(w[0], 1 - 0.1 * (gradient + 0.9 * velocity), 1e-15);
}

}  // namespace
}  // namespace gradloom::kernels::optimizer
