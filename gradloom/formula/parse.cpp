#include "gradloom/formula/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

#include "gradloom/base/error.h"

namespace gradloom::formula {
namespace {

constexpr std::size_t kLongestText = 65536;
constexpr int kDeepestText = 400;
constexpr std::size_t kDeepestTree = 100;  // which print() writes with fewer than kDeepestText brackets and signs
constexpr std::int64_t kLargestExponent = 4096;

// The largest part of an exponent in an expression.
std::int64_t largest_exponent(const Expr& e) {
  std::int64_t largest = e->op == Op::power ? std::max(std::abs(e->exponent.p), e->exponent.q) : 1;
  for (const Expr& a : e->args) largest = std::max(largest, largest_exponent(a));
  return largest;
}

bool all_finite(const Expr& e) {
  return (e->op != Op::number || std::isfinite(e->number.value)) &&
         std::all_of(e->args.begin(), e->args.end(), all_finite);
}

std::size_t depth_of(const Expr& e) {
  std::size_t deepest = 0;
  for (const Expr& a : e->args) deepest = std::max(deepest, depth_of(a));
  return deepest + 1;
}

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::span<const std::string> names, Decimals decimals)
      : text_(text), names_(names), decimals_(decimals) {}

  Expr whole() {
    if (text_.size() > kLongestText) fail(fmt::format("the text has {} characters", text_.size()));
    Expr e = sum();
    skip();
    if (at_ < text_.size()) fail("an operator is missing");
    if (!all_finite(e)) fail("a number that is too large");
    if (depth_of(e) > kDeepestTree) fail("the expression is nested too deeply");
    return e;
  }

 private:
  // A level of brackets, signs or exponents.
  class Deeper {
   public:
    explicit Deeper(ExpressionParser& p) : p_(p) {
      if (++p_.depth_ > kDeepestText) p_.fail("the text is nested too deeply");
    }
    ~Deeper() { --p_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    ExpressionParser& p_;
  };

  [[noreturn]] void fail(const std::string& what) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()), 12);
    throw_invalid(rest.empty() ? fmt::format("{} at the end", what)
                               : fmt::format("{} at character {}, before '{}'", what, at_ + 1, rest));
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Expr sum() { return multiplied(sum_factors()); }

  // The factors of a sum of one term, which a product around it takes as its own: 3/(2*(x + y)) is 3, 1/2 and the
  // inverse of a sum. A sum of several terms is one factor.
  std::vector<Expr> sum_factors() {
    std::vector<Expr> first = product_factors(false), terms;
    while (true) {
      skip();
      const bool minus = text_.substr(at_).starts_with("-");
      if (!minus && !text_.substr(at_).starts_with("+")) break;
      ++at_;
      if (terms.empty()) terms.push_back(multiplied(std::move(first)));
      terms.push_back(multiplied(product_factors(minus)));
    }
    return terms.empty() ? first : std::vector<Expr>{add(std::move(terms))};
  }

  // Signs are those of the product: -(x + y)*z is no sum times z.
  std::vector<Expr> product_factors(bool negative) {
    std::vector<Expr> factors;
    put_factors(factors, false, negative);
    while (true) {
      skip();
      if (text_.substr(at_).starts_with("**")) fail("an exponent has no base");
      if (take("*"))
        put_factors(factors, false, negative);
      else if (take("/"))
        put_factors(factors, true, negative);
      else
        break;
    }
    if (negative) factors.push_back(number(-1));
    return factors;
  }

  Expr multiplied(std::vector<Expr> factors) const {
    if (factors.size() == 1) return factors.front();
    std::int64_t common = 1;
    for (const Expr& f : factors) add_denominators(f, common);
    if (common > kLargestExponent) fail("the exponents of a product have too many denominators");
    Expr all = multiply(std::move(factors));
    if (largest_exponent(all) > kLargestExponent) fail("an exponent that is too large");
    return all;
  }

  // The least common multiple of the denominators of a product's exponents, which collected bases would have; above
  // kLargestExponent it stays where it is.
  static void add_denominators(const Expr& e, std::int64_t& common) {
    if (e->op == Op::multiply)
      for (const Expr& f : e->args) add_denominators(f, common);
    if (e->op == Op::power && common <= kLargestExponent) common = std::lcm(common, e->exponent.q);
  }

  // A factor without its signs, each of which changes `negative`; of a product in brackets, all of its factors.
  void put_factors(std::vector<Expr>& factors, bool inverse, bool& negative) {
    const Deeper level(*this);
    if (take("-")) {
      negative = !negative;
      return put_factors(factors, inverse, negative);
    }
    if (take("+")) return put_factors(factors, inverse, negative);
    std::vector<Expr> own = take("(") ? closed() : std::vector<Expr>{atom()};
    if (take("**") || take("^")) own = {raised(multiplied(std::move(own)), exponent())};
    for (const Expr& f : own) factors.push_back(inverse ? raised(f, {-1, 1}) : f);
  }

  Rational exponent() {
    const std::size_t place = at_;
    bool negative = false;
    std::vector<Expr> factors;
    put_factors(factors, false, negative);
    const Expr e = multiplied(std::move(factors));
    const bool rational = e->op == Op::number && e->number.exact && e->number.pi_power == 0 && e->number.root_two == 0;
    if (!rational) {
      at_ = place;
      fail("the exponent must be a number");
    }
    const Rational up = e->number.ratio;
    return negative ? Rational{-up.p, up.q} : up;
  }

  Expr raised(const Expr& base, Rational exponent) const {
    const std::int64_t size = std::max(std::abs(exponent.p), exponent.q);
    if (size > kLargestExponent || size * largest_exponent(base) > kLargestExponent)
      fail(fmt::format("the exponent {}/{} is too large", exponent.p, exponent.q));
    if (exponent.p < 0 && base->op == Op::number && base->number.value == 0) fail("a division by 0");
    return finite(power(base, exponent));
  }

  Expr finite(Expr e) const {
    if (e->op == Op::number && !std::isfinite(e->number.value)) fail("a number that is not finite");
    return e;
  }

  Expr atom() {
    skip();
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
      return literal();
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) ++end;
    if (end == at_) fail("a number, a name or a bracket is missing");
    const std::string name(text_.substr(at_, end - at_));
    const auto known = std::find(names_.begin(), names_.end(), name);
    if (known != names_.end()) {
      at_ = end;
      return variable(static_cast<std::size_t>(known - names_.begin()));
    }
    const auto function = find_choice<Function>(kFunctions, name);
    if (name != "pi" && name != "e" && name != "sqrt" && !function) fail(fmt::format("'{}' is not known", name));
    at_ = end;
    if (name == "pi") return number(Constant::of({1, 1}, 1));
    if (name == "e") return call(Function::exp, number(1));
    if (!take("(")) fail(fmt::format("'{}' needs an opening bracket", name));
    const Expr argument = multiplied(closed());
    return function ? finite(call(*function, argument)) : raised(argument, {1, 2});
  }

  std::vector<Expr> closed() {
    const Deeper level(*this);
    std::vector<Expr> inner = sum_factors();
    if (!take(")")) fail("a closing bracket is missing");
    return inner;
  }

  Expr literal() {
    double value = 0;
    const auto [end, wrong] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (wrong != std::errc() || !std::isfinite(value)) fail("a number cannot be read");
    const std::string_view digits = text_.substr(at_, static_cast<std::size_t>(end - text_.data()) - at_);
    at_ += digits.size();
    // Up to nine digits without an exponent are the fraction that they say; arithmetic on larger fractions rounds.
    const std::size_t point = digits.find('.');
    const std::size_t decimals = point == std::string_view::npos ? 0 : digits.size() - point - 1;
    const bool measured = decimals > 0 && decimals_ == Decimals::approximate;
    if (measured || digits.find_first_of("eE") != std::string_view::npos || digits.size() > 9)
      return approximate(value);
    std::int64_t scale = 1;
    for (std::size_t i = 0; i < decimals; ++i) scale *= 10;
    return number(Constant::of(Rational::of(std::llround(value * static_cast<double>(scale)), scale)));
  }

  std::string_view text_;
  std::span<const std::string> names_;
  Decimals decimals_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Expr> parse_expression(std::string_view text, std::span<const std::string> names, Decimals decimals) try {
  return ExpressionParser(text, names, decimals).whole();
} catch (const Exception& e) {
  return Error{e.code(), e.what()};
}

}  // namespace gradloom::formula
