#include "gradloom/formula/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "gradloom/formula/mathml.h"
#include "gradloom/formula/parse.h"
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

TEST_F(Expressions, AnglesLeaveTheirQuartersAndSigns) {
  const auto simple = [&](const Expr& e) { return text(simplify(e, {false, false, false})); };
  const Expr pi = number(Constant::of({1, 1}, 1)), half = number(Constant::of({1, 2}, 1));
  EXPECT_EQ(simple(call(Function::sin, number(8) * a - pi)), "-sin(8*a)");
  EXPECT_EQ(simple(call(Function::sin, number(8) * a + half)), "cos(8*a)");
  EXPECT_EQ(simple(call(Function::cos, half - number(8) * a)), "sin(8*a)");
  EXPECT_EQ(simple(call(Function::cos, number(-8) * a + pi + pi)), "cos(8*a)");
  EXPECT_EQ(simple(call(Function::cos, a - number(Constant::of({3, 2}, 1)))), "-sin(a)");
  EXPECT_EQ(simple(number(2) * call(Function::sin, number(4) * a) * call(Function::cos, number(4) * a)), "sin(8*a)");
  for (const int k : {-3, -2, -1, 1, 2, 3, 5})
    for (const Function f : {Function::sin, Function::cos})
      for (const int sign : {-1, 1}) {
        const Expr e = call(f, number(sign * 3) * a + number(Constant::of(Rational::of(k, 2), 1)));
        const Columns x{{0.3}};
        EXPECT_NEAR(evaluate(simplify(e, {false}), x, 1)[0], evaluate(e, x, 1)[0], 1e-14) << k;
        EXPECT_LE(complexity(simplify(e, {false})), complexity(e));
      }
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

TEST_F(Expressions, NamesOfIdentifiersStayWhatTheyAre) {
  const std::vector<std::string> names{"a b", "a_b", "lambda", "sin"};
  EXPECT_EQ(printed_names(names, Notation::python), (std::vector<std::string>{"a_b_", "a_b", "lambda_", "sin_"}));
  EXPECT_EQ(printed_names(names, Notation::text), (std::vector<std::string>{"a_b_", "a_b", "lambda", "sin_"}));
}

TEST_F(Expressions, AreReadBackFromTheirText) {
  const std::vector<std::string> names{"x", "y"};
  for (const char* text :
       {"x + 2*y", "x^2/(1 + y)", "exp(-x^2) - sqrt(y)/3", "-x^(-3/2)", "sin(pi*x/2)*atan(y)", "2.5e-7*x - 0.125",
        "-(x - y)^2", "x**2", "e^2*x", "1/(1 + exp(-x))", "abs(x)^(1/3)", "7", "((x))", "(x*-e-e*y)*-e-e", "-1.5/(x-y)",
        "sqrt(x*y)*sqrt(x*y)*x", "3/(2*(x + y))", "pi^20*pi^20*x"}) {
    const auto e = parse_expression(text, names);
    ASSERT_TRUE(e.ok()) << text << ": " << e.error().message;
    const auto again = parse_expression(print(*e, names, Notation::text), names);
    ASSERT_TRUE(again.ok()) << text;
    EXPECT_EQ((*again)->key, (*e)->key) << text;
  }
  const Columns at{{1.5}, {0.5}};
  EXPECT_DOUBLE_EQ(evaluate(*parse_expression("-x^2 + 2*y/4 - -1", names), at, 1)[0], -2.25 + 0.25 + 1);
  EXPECT_DOUBLE_EQ(evaluate(*parse_expression("2^-1^2", names), at, 1)[0], 0.5);
}

TEST_F(Expressions, TextThatIsNoExpressionIsRefusedWithItsPlace) {
  const std::vector<std::string> names{"x"};
  const auto message = [&](const std::string& text) {
    const auto e = parse_expression(text, names);
    return e.ok() ? std::string() : e.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(message(""), HasSubstr("at the end"));
  EXPECT_THAT(message("x +"), HasSubstr("missing at the end"));
  EXPECT_THAT(message("x x"), HasSubstr("operator is missing at character 3"));
  EXPECT_THAT(message("(x"), HasSubstr("closing bracket"));
  EXPECT_THAT(message("sin x"), HasSubstr("needs an opening bracket"));
  EXPECT_THAT(message("x^x"), HasSubstr("exponent must be a number"));
  EXPECT_THAT(message("x^5000"), HasSubstr("too large"));
  EXPECT_THAT(message("((((x^64)^64)^64)^64)^64"), HasSubstr("too large"));
  EXPECT_THAT(message("x^(1/61)*x^(1/59)*x^(1/53)*x^(1/47)*x^(1/43)*x^(1/41)*x^(1/37)*x^(1/31)*x^(1/29)*x^(1/23)"),
              HasSubstr("too many denominators"));
  EXPECT_EQ(message("x^(1/61)*x^(1/59)"), "");
  EXPECT_THAT(message("x^4000*x^4000"), HasSubstr("too large"));
  EXPECT_THAT(message("x/0"), HasSubstr("division by 0"));
  EXPECT_THAT(message("log(-1.5e0)"), HasSubstr("not finite"));
  EXPECT_THAT(message("1e200*x*1e200"), HasSubstr("too large"));
  EXPECT_THAT(message("foo(x)"), HasSubstr("'foo' is not known"));
  EXPECT_THAT(message("1e999*x"), HasSubstr("cannot be read"));
  EXPECT_THAT(message(std::string(5000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(message(std::string(5000, '-') + "x"), HasSubstr("nested too deeply"));
  EXPECT_THAT(message(std::string(70000, 'x')), HasSubstr("70000 characters"));
}

TEST_F(Expressions, DecimalsAreFractionsOrMeasured) {
  const std::vector<std::string> names{"x"};
  EXPECT_EQ(inexact_constants(*parse_expression("0.25*x + 3", names)), 0u);
  EXPECT_EQ(inexact_constants(*parse_expression("0.25*x + 3", names, Decimals::approximate)), 1u);
  EXPECT_EQ(inexact_constants(*parse_expression("x + .07777777", names)), 0u);
  // More digits than a fraction has, whose text is read as the same expression.
  const Expr many = *parse_expression("x + .077777777", names);
  EXPECT_EQ(inexact_constants(many), 1u);
  const std::string text = print(many, names, Notation::text);
  EXPECT_EQ(print(*parse_expression(text, names, Decimals::approximate), names, Notation::text), text);
}

TEST_F(Expressions, AreTypesetInMathML) {
  const std::vector<std::string> names{"x1", "wind<speed"};
  const std::vector<std::string> plain{"a", "b"};
  EXPECT_EQ(mathml(*parse_expression("a/(2*b)", plain), names),
            "<mfrac><msub><mi>x</mi><mn>1</mn></msub><mrow><mn>2</mn><mo>&#8290;</mo><mi "
            "mathvariant=\"normal\">wind&lt;speed</mi></mrow></mfrac>");
  EXPECT_EQ(mathml(*parse_expression("-sqrt(a)", plain), names),
            "<mrow><mo>&#8722;</mo><msqrt><msub><mi>x</mi><mn>1</mn></msub></msqrt></mrow>");
  EXPECT_EQ(mathml(*parse_expression("exp(-a)", plain), names),
            "<mrow><msup><mi>e</mi><mrow><mo>&#8722;</mo><msub><mi>x</mi><mn>1</mn></msub></mrow></msup></mrow>");
  EXPECT_EQ(mathml_terms(*parse_expression("2 - a", plain), names),
            (std::vector<std::string>{"<mrow><mn>2</mn></mrow>",
                                      "<mrow><mo>&#8722;</mo><msub><mi>x</mi><mn>1</mn></msub></mrow>"}));
}

TEST_F(Expressions, CategoriesAreTypesetAsConditions) {
  const std::vector<std::string> names{"c=r", "c=7"}, plain{"a", "b"};
  EXPECT_EQ(
      mathml(*parse_expression("2*a", plain), names),
      "<mrow><mn>2</mn><mo>&#8290;</mo><mrow><mo>[</mo><mi mathvariant=\"normal\">c=r</mi><mo>]</mo></mrow></mrow>");
  EXPECT_EQ(print(*parse_expression("2*b", plain), names, Notation::latex), "2 \\left[\\mathrm{c=7}\\right]");
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
