// The SIMD version of every spline kernel gives the bits of the scalar definition, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/simd_targets.h"
#include "gradloom/kernels/spline/cases.h"
#include "tests/support/sanitized.h"

namespace gradloom::kernels::spline {
namespace {

// Equal bits; any NaN equals any other, because its payload depends on the order of operands.
template <class T>
::testing::AssertionResult same_bits(const char* what, const Buffer<T>& a, const Buffer<T>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << what << ": sizes differ";
  if (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0) return ::testing::AssertionSuccess();
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (std::memcmp(&a[n], &b[n], sizeof(T)) == 0) continue;
    if (std::isnan(static_cast<double>(a[n])) && std::isnan(static_cast<double>(b[n]))) continue;
    return ::testing::AssertionFailure() << what << "[" << n << "]: " << a[n] << " and " << b[n];
  }
  return ::testing::AssertionSuccess();
}

// The stacks of both gradients, behind so many leaves.
template <class T>
struct Stacks {
  Buffer<T> weight, bias;
  std::size_t leaf;

  Stacks(const Problem<T>& p, std::size_t before)
      : weight(levels(p, before) * p.dl_dw.size()), bias(levels(p, before) * p.dl_db.size()), leaf(before) {}
  static std::size_t levels(const Problem<T>& p, std::size_t before) {
    return reduce::tree_levels(before + leaves(p.what.batch)) - 1;
  }
  reduce::TreeSum<T> dl_dw(Problem<T>& p) { return {p.dl_dw.data(), weight.data(), p.dl_dw.size(), leaf}; }
  reduce::TreeSum<T> dl_db(Problem<T>& p) { return {p.dl_db.data(), bias.data(), p.dl_db.size(), leaf}; }
};

// Runs everything, in ranges of `step` samples and inputs (0: all at once). Returns the count of points outside.
template <class T>
std::size_t run(Problem<T>& p, Variant variant, std::size_t step, std::size_t leaf) {
  const Shape& s = p.what.shape;
  const std::size_t batch = p.what.batch;
  Stacks<T> stacks(p, leaf);
  for (Buffer<T>* b : {&stacks.weight, &stacks.bias})
    for (std::size_t n = 0; n < b->size(); ++n) (*b)[n] = T(0.5) * static_cast<int>(n % 5);
  std::size_t outside = 0;
  const std::size_t sample_step = step ? step : std::max<std::size_t>(batch, 1), input_step = step ? step : s.in;
  for (std::size_t b = 0; b < batch; b += sample_step) {
    const Range samples{b, std::min(b + sample_step, batch)};
    outside += evaluate_basis(variant, p.layer, p.tape, samples);
    forward(variant, p.layer, p.tape, samples, p.y.data());
    input_gradient(variant, p.layer, p.tape, p.dl_dy.data(), samples, p.dl_dx.data());
  }
  for (std::size_t i = 0; i < s.in; i += input_step)
    weight_gradient(variant, s, p.tape, p.dl_dy.data(), {i, std::min(i + input_step, s.in)}, stacks.dl_dw(p));
  bias_gradient(variant, s, {batch, p.tape.pitch()}, p.dl_dy.data(), stacks.dl_db(p));
  return outside;
}

template <class T>
void dirty(Problem<T>& p) {
  for (Buffer<T>* b : {&p.y, &p.dl_dx, &p.value, &p.slope, &p.base_value, &p.base_slope, &p.dl_dw, &p.dl_db})
    for (std::size_t n = 0; n < b->size(); ++n) (*b)[n] = T(0.25) * static_cast<int>(n % 7);
}

template <class T>
void expect_same(const Problem<T>& a, const Problem<T>& b) {
  EXPECT_TRUE(same_bits("span", a.span, b.span));
  EXPECT_TRUE(same_bits("value", a.value, b.value));
  EXPECT_TRUE(same_bits("slope", a.slope, b.slope));
  EXPECT_TRUE(same_bits("base_value", a.base_value, b.base_value));
  EXPECT_TRUE(same_bits("base_slope", a.base_slope, b.base_slope));
  EXPECT_TRUE(same_bits("y", a.y, b.y));
  EXPECT_TRUE(same_bits("dl_dx", a.dl_dx, b.dl_dx));
  EXPECT_TRUE(same_bits("dl_dw", a.dl_dw, b.dl_dw));
  EXPECT_TRUE(same_bits("dl_db", a.dl_db, b.dl_db));
}

TEST(SplineKernels, TheHookOfAWeightGradientHearsOfEveryInputOnce) {
  const FlushSubnormals flush;
  for (const Variant variant : {Variant::reference, Variant::fast})
    for (const std::size_t batch : {0u, 1u, 256u, 257u})
      for (const auto& [degree, base] : {std::pair(3u, true), std::pair(3u, false), std::pair(7u, true)}) {
        Problem<float> p({.shape = {.in = 21, .out = 11, .degree = degree, .base = base}, .batch = batch}, 1,
                         Points::everywhere);
        evaluate_basis(variant, p.layer, p.tape, {0, batch});
        std::vector<int> heard(21, 0);
        weight_gradient(variant, p.what.shape, p.tape, p.dl_dy.data(), {2, 19}, {p.dl_dw.data()},
                        [&](std::size_t input) { ++heard.at(input); });
        for (std::size_t i = 0; i < heard.size(); ++i)
          EXPECT_EQ(heard[i], batch > 0 && i >= 2 && i < 19 ? 1 : 0) << "input " << i << ", " << batch << " samples";
      }
}

template <class T>
class SplineParity : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SplineParity, Scalars);

TYPED_TEST(SplineParity, EveryTargetGivesTheBitsOfTheDefinition) {
  const FlushSubnormals flush;
  std::uint64_t seed = 1;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const Case& c : test::thinned(parity_cases())) {
      SCOPED_TRACE(c.name());
      Problem<TypeParam> expected(c, ++seed, Points::everywhere), actual(c, seed, Points::everywhere);
      const std::size_t leaf = seed % 3 == 0 ? seed % 7 + 1 : 0;
      dirty(expected);
      const std::size_t outside = run(expected, Variant(Variant::reference, arithmetic), 0, leaf);
      for (const std::string& target : simd_targets(arithmetic)) {
        SCOPED_TRACE(target);
        const ForceSimdTarget force(target);
        for (const bool full : {false, true})
          for (const std::size_t step : {std::size_t{0}, std::size_t{1} + seed % 13}) {
            const ForceFullVectors force_vectors(full);
            dirty(actual);
            EXPECT_EQ(run(actual, Variant(Variant::fast, arithmetic), step, leaf), outside);
            expect_same(expected, actual);
          }
      }
      if (this->HasFailure()) return;
    }
}

TEST(SplineTargets, Avx512IsComparedWithTheDefinition) {
  const std::vector<std::string> targets = simd_targets();
  if (std::find(targets.begin(), targets.end(), "AVX3_DL") == targets.end())
    GTEST_SKIP() << "this processor has no AVX-512 as of Ice Lake and Zen 4, whose kernels were not compared";
  EXPECT_EQ(targets.front(), "AVX3_DL");
}

TYPED_TEST(SplineParity, OneSampleGivesTheBitsOfABatch) {
  const FlushSubnormals flush;
  std::uint64_t seed = 1;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (Case c : parity_cases()) {
      c.batch = std::min<std::size_t>(c.batch, 5);
      SCOPED_TRACE(c.name());
      ++seed;
      Problem<TypeParam> p(c, seed, seed % 3 == 0 ? Points::hostile : Points::everywhere);
      evaluate_basis(Variant(Variant::reference, arithmetic), p.layer, p.tape, {0, c.batch});
      forward(Variant(Variant::reference, arithmetic), p.layer, p.tape, {0, c.batch}, p.y.data());
      const std::size_t in = c.shape.in_padded(), out = c.shape.out_padded();
      Buffer<TypeParam> x(in), y(out), expected(out);
      for (std::size_t b = 0; b < c.batch; ++b) {
        for (std::size_t i = 0; i < in; ++i) x[i] = p.x[((i / kPanel) * c.batch + b) * kPanel + i % kPanel];
        for (std::size_t j = 0; j < out; ++j) expected[j] = p.y[((j / kPanel) * c.batch + b) * kPanel + j % kPanel];
        forward_single(Variant(Variant::reference, arithmetic), p.layer, x.data(), y.data());
        EXPECT_TRUE(same_bits("reference", expected, y));
        for (const std::string& target : simd_targets(arithmetic)) {
          SCOPED_TRACE(target);
          const ForceSimdTarget force(target);
          std::fill_n(y.data(), out, TypeParam(3));
          forward_single(Variant(Variant::fast, arithmetic), p.layer, x.data(), y.data());
          EXPECT_TRUE(same_bits("fast", expected, y));
        }
      }
      if (this->HasFailure()) return;
    }
}

// The first samples of a larger problem: its batch becomes the stride.
TYPED_TEST(SplineParity, AStrideLargerThanTheBatchChangesNoBits) {
  const FlushSubnormals flush;
  std::uint64_t seed = 1;
  for (Case c : test::thinned(parity_cases())) {
    SCOPED_TRACE(c.name());
    const std::size_t batch = c.batch, stride = c.batch + 1 + seed % 9;
    c.batch = stride;
    Problem<TypeParam> whole(c, ++seed, Points::everywhere), expected(c, seed, Points::everywhere),
        actual(c, seed, Points::everywhere);
    for (auto* p : {&whole, &expected, &actual}) dirty(*p);
    run(whole, Variant::reference, 0, 0);
    for (auto* p : {&expected, &actual}) {
      p->what.batch = p->tape.batch = batch;
      p->tape.stride = stride;
    }
    const std::size_t outside = run(expected, Variant::reference, 0, 0);
    EXPECT_EQ(run(actual, Variant::fast, 0, 0), outside);
    expect_same(expected, actual);
    for (std::size_t panel = 0; panel < c.shape.out_padded() / kPanel; ++panel)
      EXPECT_EQ(std::memcmp(&whole.y[panel * stride * kPanel], &expected.y[panel * stride * kPanel],
                            batch * kPanel * sizeof(TypeParam)),
                0);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(SplineParity, WithoutSlopesNothingElseChanges) {
  const FlushSubnormals flush;
  for (const Case& c : parity_cases()) {
    SCOPED_TRACE(c.name());
    Problem<TypeParam> with(c, 5, Points::everywhere), without(c, 5, Points::everywhere);
    without.tape.slope = without.tape.base_slope = nullptr;
    const std::size_t a = evaluate_basis(Variant::fast, with.layer, with.tape, {0, c.batch});
    const std::size_t b = evaluate_basis(Variant::fast, without.layer, without.tape, {0, c.batch});
    EXPECT_EQ(a, b);
    EXPECT_TRUE(same_bits("span", with.span, without.span));
    EXPECT_TRUE(same_bits("value", with.value, without.value));
    EXPECT_TRUE(same_bits("base_value", with.base_value, without.base_value));
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(SplineParity, NonFiniteInputsStayInRange) {
  const FlushSubnormals flush;
  std::uint64_t seed = 1;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const Case& c : test::thinned(parity_cases())) {
      SCOPED_TRACE(c.name());
      Problem<TypeParam> expected(c, ++seed, Points::hostile), actual(c, seed, Points::hostile);
      const std::size_t outside = run(expected, Variant(Variant::reference, arithmetic), 0, 0);
      for (const std::string& target : simd_targets(arithmetic)) {
        SCOPED_TRACE(target);
        const ForceSimdTarget force(target);
        EXPECT_EQ(run(actual, Variant(Variant::fast, arithmetic), 0, 0), outside);
        for (std::size_t n = 0; n < actual.span.size(); ++n) ASSERT_LT(actual.span[n], c.shape.grid);
        expect_same(expected, actual);
      }
      if (this->HasFailure()) return;
    }
}

TYPED_TEST(SplineParity, ClampedLayersKeepTheValueOfTheEdgeWithTheirBase) {
  const FlushSubnormals flush;
  for (const Case& c : parity_cases()) {
    if (c.shape.outside != OutOfGrid::clamp || !c.shape.base) continue;
    SCOPED_TRACE(c.name());
    Problem<TypeParam> p(c, 3, Points::everywhere);
    const std::size_t in = c.shape.in_padded(), out = c.shape.out_padded();
    Buffer<TypeParam> edge(in), beyond(in), at_edge(out), past_it(out);
    for (std::size_t i = 0; i < c.shape.in; ++i) {
      edge[i] = i % 2 == 0 ? p.layer.grid.hi[i] : p.layer.grid.lo[i];
      beyond[i] = edge[i] + (i % 2 == 0 ? TypeParam(999040) : TypeParam(-999040));
    }
    for (const Variant variant : {Variant::reference, Variant::fast}) {
      forward_single(variant, p.layer, edge.data(), at_edge.data());
      forward_single(variant, p.layer, beyond.data(), past_it.data());
      EXPECT_TRUE(same_bits("y", at_edge, past_it));
    }
    if (this->HasFailure()) return;
  }
}

TEST(SimdTargets, UnknownNamesAreRefused) {
  EXPECT_FALSE(simd_targets().empty());
  EXPECT_ANY_THROW(ForceSimdTarget("ABACUS"));
}

}  // namespace
}  // namespace gradloom::kernels::spline
