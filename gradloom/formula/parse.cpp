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
constexpr int kDeepestText = 200;
constexpr std::int64_t kLargestExponent = 64, kLargestNested = 4096;

// The largest part of an exponent in an expression.
std::int64_t largest_exponent(const Expr& e) {
  std::int64_t largest = e->op == Op::power ? std::max(std::abs(e->exponent.p), e->exponent.q) : 1;
  for (const Expr& a : e->args) largest = std::max(largest, largest_exponent(a));
  return largest;
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

  Expr sum() {
    std::vector<Expr> terms{product()};
    while (true) {
      if (take("+"))
        terms.push_back(product());
      else if (take("-"))
        terms.push_back(-product());
      else
        return add(std::move(terms));
    }
  }

  Expr product() {
    std::vector<Expr> factors{signed_power()};
    while (true) {
      skip();
      if (text_.substr(at_).starts_with("**")) fail("an exponent has no base");
      if (take("*"))
        factors.push_back(signed_power());
      else if (take("/"))
        factors.push_back(raised(signed_power(), {-1, 1}));
      else
        break;
    }
    std::int64_t common = 1;
    for (const Expr& f : factors) add_denominators(f, common);
    if (common > kLargestNested) fail("the exponents of a product have too many denominators");
    return multiply(std::move(factors));
  }

  // The least common multiple of the denominators of a product's exponents, which collected bases would have; above
  // kLargestNested it stays where it is.
  static void add_denominators(const Expr& e, std::int64_t& common) {
    if (e->op == Op::multiply)
      for (const Expr& f : e->args) add_denominators(f, common);
    if (e->op == Op::power && common <= kLargestNested) common = std::lcm(common, e->exponent.q);
  }

  Expr signed_power() {
    const Deeper level(*this);
    if (take("-")) return -signed_power();
    if (take("+")) return signed_power();
    const Expr base = atom();
    if (!take("**") && !take("^")) return base;
    const std::size_t place = at_;
    const Expr exponent = signed_power();
    const bool rational = exponent->op == Op::number && exponent->number.exact && exponent->number.pi_power == 0 &&
                          exponent->number.root_two == 0;
    if (!rational) {
      at_ = place;
      fail("the exponent must be a number");
    }
    return raised(base, exponent->number.ratio);
  }

  Expr raised(const Expr& base, Rational exponent) const {
    const std::int64_t size = std::max(std::abs(exponent.p), exponent.q);
    if (size > kLargestExponent || size * largest_exponent(base) > kLargestNested)
      fail(fmt::format("the exponent {}/{} is too large", exponent.p, exponent.q));
    return power(base, exponent);
  }

  Expr atom() {
    skip();
    if (take("(")) return closed();
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
    const Expr argument = closed();
    return function ? call(*function, argument) : raised(argument, {1, 2});
  }

  Expr closed() {
    const Deeper level(*this);
    Expr inner = sum();
    if (!take(")")) fail("a closing bracket is missing");
    return inner;
  }

  Expr literal() {
    double value = 0;
    const auto [end, wrong] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (wrong != std::errc() || !std::isfinite(value)) fail("a number cannot be read");
    const std::string_view digits = text_.substr(at_, static_cast<std::size_t>(end - text_.data()) - at_);
    at_ += digits.size();
    // Digits without an exponent are the fraction that they say.
    const std::size_t point = digits.find('.');
    const std::size_t decimals = point == std::string_view::npos ? 0 : digits.size() - point - 1;
    const bool measured = decimals > 0 && decimals_ == Decimals::approximate;
    if (measured || digits.find_first_of("eE") != std::string_view::npos || digits.size() > 10)
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
