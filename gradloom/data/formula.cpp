#include "gradloom/data/formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <math.h>
#include <muParser.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>
#include <numbers>
#include <set>

#include "gradloom/base/random.h"
#include "gradloom/data/labels.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

constexpr std::size_t kLongestFormula = 4096;
constexpr std::size_t kMostVariables = 1000;

// J_n(-x) = (-1)^n J_n(x) and J_-n = (-1)^n J_n for whole n; other orders have no real value left of 0.
double bessel_j(double n, double x) {
  if (!std::isfinite(n) || !std::isfinite(x)) return std::nan("");
  if (n != std::floor(n)) return n < 0 || x < 0 ? std::nan("") : std::cyl_bessel_j(n, x);
  const bool odd = std::fmod(n, 2) != 0;
  const double value = std::cyl_bessel_j(std::abs(n), std::abs(x));
  return odd && ((n < 0) != (x < 0)) ? -value : value;
}

// std::lgamma writes a global.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

void define_functions(mu::Parser& parser) {
  parser.DefineConst("pi", std::numbers::pi);
  parser.DefineConst("e", std::numbers::e);
  parser.DefineFun(
      "bessel_j0", +[](double x) { return ::j0(x); });
  parser.DefineFun(
      "bessel_j1", +[](double x) { return ::j1(x); });
  parser.DefineFun("bessel_j", bessel_j);
  parser.DefineFun(
      "erf", +[](double x) { return std::erf(x); });
  parser.DefineFun(
      "erfc", +[](double x) { return std::erfc(x); });
  parser.DefineFun(
      "gamma", +[](double x) { return std::tgamma(x); });
  parser.DefineFun("lgamma", log_gamma);
  parser.DefineFun(
      "cbrt", +[](double x) { return std::cbrt(x); });
  parser.DefineFun(
      "floor", +[](double x) { return std::floor(x); });
  parser.DefineFun(
      "ceil", +[](double x) { return std::ceil(x); });
  parser.DefineFun(
      "pow", +[](double x, double y) { return std::pow(x, y); });
  parser.DefineFun(
      "hypot", +[](double x, double y) { return std::hypot(x, y); });
  parser.DefineFun(
      "mod", +[](double x, double y) { return std::fmod(x, y); });
  parser.DefineFun(
      "step", +[](double x) { return x > 0 ? 1.0 : 0.0; });
  parser.DefineFun(
      "sigmoid", +[](double x) { return 1.0 / (1.0 + std::exp(-x)); });
  parser.DefineFun(
      "relu", +[](double x) { return x > 0 ? x : 0.0; });
  parser.DefineFun(
      "arcsin", +[](double x) { return std::asin(x); });
  parser.DefineFun(
      "arccos", +[](double x) { return std::acos(x); });
  parser.DefineFun(
      "arctan", +[](double x) { return std::atan(x); });
}

// The number of x1, x2, ...; 0 when `name` is not of this form.
std::size_t variable_number(std::string_view name) {
  std::size_t number = 0;
  if (name.size() < 2 || name[0] != 'x' || name[1] == '0') return 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Where `name` first stands by itself, not as a part of another name; npos: nowhere.
std::size_t find_name(std::string_view formula, std::string_view name) {
  for (std::size_t at = formula.find(name); !name.empty() && at != formula.npos; at = formula.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_name_character(formula[at - 1]);
    if (begins && (end == formula.size() || !is_name_character(formula[end]))) return at;
  }
  return formula.npos;
}

// Failures travel as exceptions inside.
class FormulaSampler {
 public:
  explicit FormulaSampler(const FormulaOptions& options) : options_(options) {}

  RowDataset<double> run(bool classes) {
    if (options_.formulas.empty()) fail("no formula is given");
    if (classes && options_.formulas.size() != 1)
      fail("classification needs one formula, not {}", options_.formulas.size());
    if (options_.samples > std::size_t{1} << 31) fail("{} samples are too many", options_.samples);
    if (!(options_.noise >= 0) || !std::isfinite(options_.noise))
      fail("the noise is {}, but must be a standard deviation >= 0", options_.noise);
    compile();
    check_ranges();
    return sample(classes);
  }

 private:
  template <class... Args>
  [[noreturn]] static void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw_invalid(fmt::format(format, std::forward<Args>(args)...));
  }

  void compile() {
    for (std::size_t f = 0; f < options_.formulas.size(); ++f) {
      const std::string& formula = options_.formulas[f];
      if (formula.size() > kLongestFormula) fail("formula {} is longer than {} characters", f + 1, kLongestFormula);
      check_assignment(formula);
      auto& parser = parsers_.emplace_back(std::make_unique<mu::Parser>());
      define_functions(*parser);
      guarded(formula, [&] {
        // A blank keeps the positions in messages right.
        std::string text = formula;
        for (std::size_t at = 0; (at = text.find("**", at)) != std::string::npos;) text.replace(at, 2, "^ ");
        parser->SetExpr(text);
        for (const auto& entry : parser->GetUsedVar()) used_.insert(entry.first);
      });
    }
    name_variables();
    values_.resize(names_.size());
    for (std::size_t f = 0; f < parsers_.size(); ++f)
      guarded(options_.formulas[f], [&] {
        for (std::size_t v = 0; v < names_.size(); ++v) parsers_[f]->DefineVar(names_[v], &values_[v]);
        parsers_[f]->Eval();
        if (parsers_[f]->GetNumResults() != 1)
          fail("formula '{}' has {} results; write several targets as a list of formulas", options_.formulas[f],
               parsers_[f]->GetNumResults());
      });
  }

  // muParser would let `x1 = 3` change a variable.
  static void check_assignment(const std::string& formula) {
    for (std::size_t i = 0; i < formula.size(); ++i) {
      if (formula[i] != '=') continue;
      const char before = i > 0 ? formula[i - 1] : ' ', after = i + 1 < formula.size() ? formula[i + 1] : ' ';
      if (after == '=' && before != '<' && before != '>' && before != '!') {
        ++i;
        continue;
      }
      if (before != '<' && before != '>' && before != '!')
        fail("formula '{}', position {}: '=' assigns; compare with '=='", formula, i + 1);
    }
  }

  template <class F>
  void guarded(const std::string& formula, F&& f) const {
    try {
      f();
    } catch (const mu::Parser::exception_type& e) {
      std::string token = e.GetToken();
      mu::EErrorCodes code = e.GetCode();
      // A name that is no function is taken for a variable, and the parenthesis behind it for the mistake.
      const auto pos = static_cast<std::size_t>(std::max(e.GetPos(), 0));
      if (const std::string name = name_before(formula, pos); code == mu::ecUNEXPECTED_PARENS && !name.empty())
        token = name, code = mu::ecUNASSIGNABLE_TOKEN;
      std::string at, why = reason(code, token);
      // Positions that the parser gives point behind names, and behind the end.
      const std::size_t place = find_name(formula, token);
      if (code == mu::ecUNASSIGNABLE_TOKEN && place != std::string::npos)
        at = fmt::format(", position {}", place + 1);
      else if (e.GetPos() >= 0)
        at = fmt::format(", position {}", std::min(pos, formula.size()) + 1);
      fail("formula '{}'{}: {}", formula, at, why);
    }
  }

  // The name that ends where a parenthesis opens at `pos`.
  static std::string name_before(const std::string& formula, std::size_t pos) {
    if (pos >= formula.size() || formula[pos] != '(') return "";
    std::size_t begin = pos;
    while (begin > 0 && is_name_character(formula[begin - 1])) --begin;
    const bool name = begin < pos && !std::isdigit(static_cast<unsigned char>(formula[begin]));
    return name ? formula.substr(begin, pos - begin) : "";
  }

  // In our own words, without a second position.
  std::string reason(mu::EErrorCodes code, const std::string& token) const {
    const std::string at = token.empty() ? "" : fmt::format(" at '{}'", token);
    switch (code) {
      case mu::ecUNASSIGNABLE_TOKEN:
        return unknown_name(token);
      case mu::ecUNEXPECTED_EOF:
      case mu::ecEMPTY_EXPRESSION:
        return "the formula ends too early: a value is missing";
      case mu::ecMISSING_PARENS:
        return "a parenthesis is not closed";
      case mu::ecUNEXPECTED_PARENS:
        return fmt::format("there is one closing parenthesis too many{}", at);
      case mu::ecTOO_MANY_PARAMS:
        return fmt::format("the function '{}' has too many arguments", token);
      case mu::ecTOO_FEW_PARAMS:
        return fmt::format("the function '{}' has too few arguments", token);
      case mu::ecUNEXPECTED_OPERATOR:
        return fmt::format("there is an operator where a value is expected{}", at);
      case mu::ecUNEXPECTED_VAL:
      case mu::ecUNEXPECTED_VAR:
      case mu::ecUNEXPECTED_FUN:
        return fmt::format("an operator is missing{}", at);
      case mu::ecDIV_BY_ZERO:
        return "it divides by zero";
      default:
        return fmt::format("it cannot be read{}", at);
    }
  }

  std::string unknown_name(const std::string& token) const {
    const std::string variables =
        options_.variables.empty() ? "x1, x2, ..." : fmt::format("{}", fmt::join(names_, ", "));
    mu::Parser parser;
    define_functions(parser);
    std::vector<std::string> known = names_;
    for (const auto& [name, _] : parser.GetFunDef()) known.push_back(name);
    const std::string near = near_name(token, known);
    return fmt::format(
        "there is no '{}'{}; the variables are {} ({}), the constants pi and e, the functions those of docs/data.md",
        token.substr(0, 40), near.empty() ? "" : fmt::format("; the nearest is '{}'", near), variables.substr(0, 400),
        options_.variables.empty() ? "data.variables changes these names" : "data.variables");
  }

  // Names that a formula can use, and that mean nothing else.
  void check_names() const {
    if (names_.size() > kMostVariables)
      fail("there are {} variables, above the limit of {}", names_.size(), kMostVariables);
    mu::Parser parser;
    define_functions(parser);
    std::set<std::string> seen;
    for (const std::string& name : names_) {
      const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
      const auto may_follow = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
      if (name.empty() || !is_letter(name[0]) || !std::all_of(name.begin(), name.end(), may_follow))
        fail("data.variables has the name '{}'; names consist of letters, digits and '_' and do not begin with a digit",
             name);
      if (parser.GetFunDef().contains(name) || parser.GetConst().contains(name))
        fail("data.variables has the name '{}', which is a function or constant of formulas", name);
      if (!seen.insert(name).second) fail("data.variables names '{}' twice", name);
    }
  }

  void name_variables() {
    names_ = options_.variables;
    if (!names_.empty()) return check_names();
    std::size_t count = options_.ranges.size() > 2 ? options_.ranges.size() / 2 : 0;
    for (const std::string& name : used_) {
      if (variable_number(name) > kMostVariables)
        fail("the variable '{}' is above the limit of x{}", name, kMostVariables);
      if (options_.ranges.size() <= 2) count = std::max(count, variable_number(name));
    }
    if (count > kMostVariables) fail("{} variables are above the limit of {}", count, kMostVariables);
    for (std::size_t v = 0; v < std::max<std::size_t>(count, 1); ++v) names_.push_back(fmt::format("x{}", v + 1));
  }

  void check_ranges() const {
    const auto& r = options_.ranges;
    if (r.size() != 2 && r.size() != 2 * names_.size())
      fail("{} numbers were given as ranges of {} variables; give low and high once, or for each of them", r.size(),
           names_.size());
    for (std::size_t i = 0; i + 1 < r.size(); i += 2)
      if (!(std::isfinite(r[i]) && std::isfinite(r[i + 1]) && r[i] <= r[i + 1]))
        fail("the range from {} to {} is empty or not finite", r[i], r[i + 1]);
  }

  RowDataset<double> sample(bool classes) {
    const std::size_t outputs = parsers_.size();
    RowParts<double> p;
    p.size = options_.samples;
    p.features = names_.size();
    p.feature_names = names_;
    p.x.reserve(p.size * p.features);
    std::vector<double> y;
    y.reserve(p.size * outputs);
    for (std::size_t s = 0; s < p.size; ++s) {
      const RandomStream random(options_.seed, RandomUse::data, 0, static_cast<std::uint32_t>(s));
      const RandomStream noise(options_.seed, RandomUse::noise, 0, static_cast<std::uint32_t>(s));
      for (std::size_t v = 0; v < names_.size(); ++v) {
        const std::size_t at = options_.ranges.size() == 2 ? 0 : 2 * v;
        const double low = options_.ranges[at], high = options_.ranges[at + 1];
        values_[v] = low + (high - low) * random.uniform(static_cast<std::uint32_t>(v));
        p.x.push_back(values_[v]);
      }
      for (std::size_t f = 0; f < outputs; ++f) {
        double value = 0;
        guarded(options_.formulas[f], [&] { value = parsers_[f]->Eval(); });
        if (!std::isfinite(value)) fail_not_finite(f, s, value);
        if (options_.noise > 0 && !classes) value += options_.noise * noise.normal(static_cast<std::uint32_t>(f));
        y.push_back(value);
      }
    }
    if (classes) {
      Labels labels = encode_labels(std::span<const double>(y));
      p.label = std::move(labels.index);
      p.class_names = std::move(labels.names);
      if (p.class_names.empty()) fail("there are no samples, so there are no classes");
    } else {
      p.targets = outputs;
      p.target = std::move(y);
      p.target_names = options_.formulas;
    }
    return RowDataset<double>(std::move(p));
  }

  [[noreturn]] void fail_not_finite(std::size_t f, std::size_t s, double value) const {
    std::string at;
    for (std::size_t v = 0; v < std::min<std::size_t>(names_.size(), 8); ++v)
      at += fmt::format("{}{} = {}", v > 0 ? ", " : "", names_[v], values_[v]);
    throw Exception(ErrorCode::numeric,
                    fmt::format("formula '{}' is {} for sample {} ({}); choose ranges in which it is finite",
                                options_.formulas[f], value, s, at));
  }

  const FormulaOptions& options_;
  std::vector<std::unique_ptr<mu::Parser>> parsers_;
  std::set<std::string> used_;
  std::vector<std::string> names_;
  std::vector<double> values_;  // of the variables; the parsers point into it
};

}  // namespace

Result<RowDataset<double>> rows_from_formulas(const FormulaOptions& options, bool classes) {
  try {
    return FormulaSampler(options).run(classes);
  } catch (const Exception& e) {
    return e.error();
  }
}

}  // namespace gradloom
