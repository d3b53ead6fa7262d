// The penalty on edges: its gradient, its bits, and what it does to a network.
#include <gmock/gmock.h>

#include <cmath>

#include "gradloom/data/rows.h"
#include "gradloom/models/kan/dual.h"
#include "gradloom/train/gradient_check.h"
#include "gradloom/train/trainer.h"
#include "tests/models/kan_support.h"

namespace gradloom {
namespace {

using kan::NetworkOptions;
using test::KanFixture;
using test::same_bits;

NetworkOptions sparse(std::vector<std::size_t> widths, double l1, double edges, double nodes) {
  NetworkOptions o = test::kan_options(std::move(widths), 4, 3);
  o.sparsity = 0.7, o.sparsity_l1 = l1, o.sparsity_edges = edges, o.sparsity_nodes = nodes;
  return o;
}

TEST(KanSparsity, GradientMatchesCentralDifferencesAndDualNumbers) {
  const Exec ex({.threads = 1});
  const double shares[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 2, 0.5}};
  for (const auto& share : shares)
    for (const bool base : {true, false}) {
      NetworkOptions o = sparse({3, 5, 2}, share[0], share[1], share[2]);
      o.base = base;
      KanFixture<double> f(o, 9);
      // Nothing but the penalty, then beside an output.
      for (const double output : {0.0, 1.0}) {
        for (double& d : f.dl_dy.span()) d *= output;
        f.forward_backward(ex);
        double largest = 0.0;
        for (double g : f.gradient.span()) largest = std::max(largest, std::abs(g));
        EXPECT_GT(largest, 0.01);
        for (const Slice& slice : f.network.parameters())
          for_each_logical(slice, [&](std::size_t i) {
            const double exact = kan::dual_derivative(f.network, f.arrays(), f.rows(), f.dl_dy.span(), f.stride, i);
            EXPECT_NEAR(f.gradient[i], exact, 1e-12 * largest) << slice.name << " " << i - slice.offset;
          });
      }
      const GradientCheckReport report = check_gradient(ex, f.network, f.rows(), f.parameters.span(), f.buffers.span());
      EXPECT_TRUE(report.passed) << report.reason;
    }
}

// A model whose penalty says something else than its gradient.
struct WrongPenalty : kan::Network<double> {
  using kan::Network<double>::Network;
  double penalty(const Exec& ex, std::span<const double> p, Tape& tape) const {
    return 1.01 * kan::Network<double>::penalty(ex, p, tape);
  }
};

TEST(KanSparsity, TheCheckRejectsAnotherPenalty) {
  const NetworkOptions o = sparse({2, 3, 1}, 20, 1, 1);
  KanFixture<double> f(o, 4);
  const WrongPenalty wrong(o);
  const Exec ex({.threads = 1});
  EXPECT_FALSE(check_gradient(ex, wrong, f.rows(), f.parameters.span(), f.buffers.span()).passed);
}

TEST(KanSparsity, HasTheSameBitsOnAnyThreadsAndByTheReference) {
  for (const Arithmetic arithmetic : available_arithmetics()) {
    KanFixture<float> one(sparse({40, 70, 3}, 1, 1, 1), 300);
    one.forward_backward(Exec({.threads = 1, .variant = Variant(Variant::fast, arithmetic)}));
    for (const unsigned threads : {2u, 5u}) {
      KanFixture<float> more(sparse({40, 70, 3}, 1, 1, 1), 300);
      more.forward_backward(Exec({.threads = threads, .variant = Variant(Variant::fast, arithmetic)}));
      EXPECT_TRUE(same_bits(more.gradient, one.gradient));
    }
    KanFixture<float> reference(sparse({40, 70, 3}, 1, 1, 1), 300);
    reference.forward_backward(Exec({.threads = 1, .variant = Variant(Variant::reference, arithmetic)}));
    EXPECT_TRUE(same_bits(reference.gradient, one.gradient));
  }
}

// Padding stays zero, and a constant spline has no strength.
TEST(KanSparsity, LeavesPaddingAndConstantsAlone) {
  KanFixture<double> f(sparse({2, 3, 1}, 1, 0, 0), 5);
  for (double& d : f.dl_dy.span()) d = 0;
  for (double& p : f.parameters.span()) p = 0;
  const Slice& weight = f.network.parameters()[f.network.slices(0).weight];
  for_each_logical(weight, [&](std::size_t i) { f.parameters[i] = 2.0; });
  const kernels::spline::Shape& s = f.network.shape(0);
  for (std::size_t i = 0; i < s.in; ++i)
    for (std::size_t j = 0; j < s.out; ++j)
      f.parameters[weight.offset + (i * s.rows() + s.rows() - 1) * s.out_padded() + j] = 0.0;
  const Exec ex({.threads = 1});
  auto tape = f.network.make_tape(ex, {.batch = 5});
  EXPECT_NEAR(f.network.penalty(ex, f.parameters.span(), tape), 0.7 * (6 + 3) * kan::kLeastStrength, 1e-12);
  f.forward_backward(ex);
  for (const double g : f.gradient.span()) EXPECT_EQ(g, 0.0);
}

TEST(KanKeepZero, EdgesOfZerosHaveNoGradientAndOthersTheirOwn) {
  NetworkOptions o = sparse({5, 19, 2}, 1, 1, 1);
  KanFixture<float> usual(o, 70);
  o.keep_zero = true;
  KanFixture<float> keeps(o, 70);
  const Slice& weight = usual.network.parameters()[usual.network.slices(0).weight];
  const kernels::spline::Shape& s = usual.network.shape(0);
  const auto of_edge = [&](std::size_t at) {  // 2 -> 3 and 4 -> 18
    const std::size_t i = at / (s.rows() * s.out_padded()), j = at % s.out_padded();
    return (i == 2 && j == 3) || (i == 4 && j == 18);
  };
  for (std::size_t at = 0; at < s.in * s.rows() * s.out_padded(); ++at)
    if (of_edge(at)) usual.parameters[weight.offset + at] = keeps.parameters[weight.offset + at] = 0.0f;
  const Exec ex({.threads = 1});
  usual.forward_backward(ex), keeps.forward_backward(ex);
  bool differs = false;
  for (std::size_t n = 0; n < usual.gradient.size(); ++n) {
    const bool zero = n >= weight.offset && n < weight.end() && of_edge(n - weight.offset);
    EXPECT_EQ(keeps.gradient[n], zero ? 0.0f : usual.gradient[n]) << n;
    differs = differs || (zero && usual.gradient[n] != 0.0f);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace gradloom
