#include "gradloom/formula/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "gradloom/formula/print.h"
#include "gradloom/formula/simplify.h"

namespace gradloom::formula {
namespace {

const std::vector<std::string> kNames = {"a", "b2", "theta"};

class Expressions : public testing::Test {
 protected:
  const Expr a = variable(0), b = variable(1), t = variable(2);
};

std::string text(const Expr& e, Notation n = Notation::text) { return print(e, kNames, n); }

TEST(Constants, AreSnappedToTheSimplestExactForm) {
  const Constant half = snap(0.5 + 1e-13);
  EXPECT_TRUE(half.exact);
  EXPECT_EQ(half.ratio, Rational::of(1, 2));
  const Constant pi = snap(1 / (4 * std::numbers::pi));
  EXPECT_EQ(pi.ratio, Rational::of(1, 4));
  EXPECT_EQ(pi.pi_power, -1);
  EXPECT_EQ(snap(3 * std::numbers::sqrt2).root_two, 1);
  EXPECT_EQ(snap(9.81).ratio, Rational::of(981, 100));
  EXPECT_FALSE(snap(0.7310585786300049).exact);
  EXPECT_TRUE(snap(0).is(0));
}

TEST(Constants, NearestFractionsHaveSmallDenominators) {
  EXPECT_EQ(nearest_fraction(0.3333333333333333, 48), Rational::of(1, 3));
  EXPECT_EQ(nearest_fraction(-2.25, 48), Rational::of(-9, 4));
  EXPECT_EQ(nearest_fraction(std::numbers::pi, 10), Rational::of(22, 7));
  EXPECT_EQ(nearest_fraction(5, 48), Rational::of(5));
}

TEST(Constants, StayExactInProductsSumsAndPowers) {
  const Constant r = Constant::of(Rational::of(1, 2), 1, 1);
  EXPECT_EQ((r * r).ratio, Rational::of(1, 2));
  EXPECT_EQ((r * r).pi_power, 2);
  EXPECT_EQ(power(Constant::of(2), Rational::of(1, 2)).root_two, 1);
  EXPECT_EQ(power(r, Rational::of(-1)).pi_power, -1);
  EXPECT_NEAR(power(r, Rational::of(-1)).value, 1 / r.value, 1e-15);
  EXPECT_FALSE((r + Constant::of(1)).exact);
}

TEST_F(Expressions, CollectLikeTermsAndEqualBases) {
  EXPECT_EQ(text(a + a + b - a), "a + b2");
  EXPECT_EQ(text(a * a / a), "a");
  EXPECT_EQ(text(a - a), "0");
  EXPECT_EQ(text(power(a * b, Rational::of(2))), "a^2*b2^2");
  EXPECT_EQ(text(sqrt(power(a, Rational::of(-1)))), "1/sqrt(a)");
  EXPECT_EQ(text(number(2) * (a + number(1))), "2 + 2*a");
  EXPECT_EQ(text(call(Function::log, call(Function::exp, a))), "a");
}

TEST_F(Expressions, ARootOfASquareIsNotItsBase) {
  const Expr e = sqrt(a * a);
  EXPECT_EQ(text(e), "sqrt(a^2)");
  EXPECT_EQ(evaluate(e, {{-3.0}, {0.0}, {0.0}}, 1)[0], 3.0);
  EXPECT_EQ(text(simplify(e, {true, false, false})), "a");
  EXPECT_EQ(text(simplify(e, {false, false, false})), "sqrt(a^2)");
}

TEST_F(Expressions, PowersLeaveExponentials) {
  const Expr e =
      call(Function::exp, number(3) * call(Function::log, a) - b + approximate(std::log(2 * std::numbers::pi)));
  EXPECT_EQ(text(simplify(e, {true, true, true})), "2*pi*a^3*exp(-b2)");
}

TEST_F(Expressions, PrintEachNotationWithItsBrackets) {
  const Expr e = a * t / number(Constant::of(Rational::of(2), 1));
  EXPECT_EQ(text(e), "a*theta/(2*pi)");
  EXPECT_EQ(text(e, Notation::latex), "\\frac{a \\theta}{2 \\pi}");
  EXPECT_EQ(text(e, Notation::c), "a*theta/(2.0*3.14159265358979323846)");
  EXPECT_EQ(text(power(a + b, Rational::of(2)), Notation::python), "(a + b2)**2");
  EXPECT_EQ(text(power(a + b, Rational::of(-2)), Notation::python), "1/(a + b2)**2");
  EXPECT_EQ(text(power(a, Rational::of(3, 2)), Notation::sympy), "a**(3/2)");
  EXPECT_EQ(text(a - (b - t)), "a + theta - b2");
  EXPECT_EQ(text(-(a / b)), "-a/b2");
  EXPECT_EQ(text(number(Constant::of(Rational::of(-1, 2))) * power(a, Rational::of(2))), "-a^2/2");
  EXPECT_EQ(text(call(Function::abs, a), Notation::c), "fabs(a)");
  EXPECT_EQ(text(number(Constant::approximate(-1.5)) * a * b), "-1.5*a*b2");
}

TEST_F(Expressions, NamesThatAreNoIdentifiersAreReplaced) {
  const std::vector<std::string> names = {"wind speed (m/s)", "1st", "lambda", "sin"};
  EXPECT_THAT(printed_names(names, Notation::python),
              testing::ElementsAre("wind_speed__m_s_", "x_1st", "lambda_", "sin_"));
  EXPECT_EQ(print(variable(0), names, Notation::c), "wind_speed__m_s_");
}

TEST_F(Expressions, ConstantsAreListedAndReplacedInTheSameOrder) {
  const Expr e = number(Constant::approximate(0.3)) * call(Function::sin, number(Constant::approximate(0.7)) * a) +
                 number(Constant::approximate(0.11));
  const std::vector<double> values = constants_of(e);
  ASSERT_EQ(values.size(), 3u);
  std::vector<Constant> same;
  for (const double v : values) same.push_back(Constant::approximate(v));
  EXPECT_EQ(with_constants(e, same)->key, e->key);
  EXPECT_EQ(inexact_constants(e), 3u);
  EXPECT_EQ(variables_used(e, 3), (std::vector<bool>{true, false, false}));
}

TEST_F(Expressions, ReplaceVariablesByExpressions) {
  const std::vector<Expr> with = {b + t, b, t};
  EXPECT_EQ(text(substitute(a * a, with)), "(b2 + theta)^2");
}

}  // namespace
}  // namespace gradloom::formula
