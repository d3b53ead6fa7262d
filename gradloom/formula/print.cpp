#include "gradloom/formula/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace gradloom::formula {
namespace {

// How tightly an expression holds together.
enum Level { kSum = 0, kProduct = 1, kPower = 2, kAtom = 3 };

struct Printed {
  std::string text;
  Level level;
};

class Printer {
 public:
  Printer(std::span<const std::string> names, Notation notation)
      : names_(printed_names(names, notation)), notation_(notation) {}

  Printed print(const Expr& e) const {
    switch (e->op) {
      case Op::number:
        return constant(e->number);
      case Op::variable:
        return {names_.at(e->variable), kAtom};
      case Op::add:
        return sum(e);
      case Op::multiply:
        return product(e);
      case Op::power:
        return e->exponent.p < 0 ? product(e) : raised(e->args[0], e->exponent);
      case Op::call:
        return called(name_of<Function>(kFunctions, e->function), e->args[0]);
    }
    throw_invalid("an operation that does not exist");
  }

 private:
  bool latex() const { return notation_ == Notation::latex; }
  std::string times() const { return latex() ? " " : "*"; }
  std::string whole(std::int64_t n) const {
    return notation_ == Notation::c ? fmt::format("{}.0", n) : fmt::format("{}", n);
  }

  std::string within(const Printed& p, Level needed) const {
    if (p.level >= needed) return p.text;
    return latex() ? "\\left(" + p.text + "\\right)" : "(" + p.text + ")";
  }

  std::string pi() const {
    switch (notation_) {
      case Notation::latex:
        return "\\pi";
      case Notation::c:
        return "3.14159265358979323846";
      case Notation::text:
      case Notation::sympy:
      case Notation::python:
        return "pi";
    }
    return "pi";
  }

  std::string fraction(const std::string& above, const std::string& below) const {
    return latex() ? "\\frac{" + above + "}{" + below + "}" : above + "/" + below;
  }

  Printed constant(const Constant& c) const {
    if (!c.exact) {
      std::string digits = fmt::format("{}", c.value);
      const auto e = digits.find('e');
      if (latex() && e != std::string::npos)
        digits = digits.substr(0, e) + " \\cdot 10^{" + std::to_string(std::stoi(digits.substr(e + 1))) + "}";
      // A point says that the number is measured, to those who read it and to parse_expression().
      if (!latex() && digits.find_first_of(".e") == std::string::npos) digits += ".0";
      return {digits, c.value < 0 ? kSum : (latex() && e != std::string::npos ? kProduct : kAtom)};
    }
    std::vector<std::string> above, below;
    factors_of(c, above, below);
    return finish(c.ratio.p < 0, above, below);
  }

  // The factors of |c|, for an exact constant; 1 is left out.
  void factors_of(const Constant& c, std::vector<std::string>& above, std::vector<std::string>& below) const {
    const std::int64_t p = c.ratio.p < 0 ? -c.ratio.p : c.ratio.p;
    if (p != 1) above.push_back(whole(p));
    if (c.ratio.q != 1) below.push_back(whole(c.ratio.q));
    if (c.pi_power > 0) above.push_back(pi_to(c.pi_power));
    if (c.pi_power < 0) below.push_back(pi_to(-c.pi_power));
    if (c.root_two) above.push_back(latex() ? "\\sqrt{2}" : notation_ == Notation::c ? "sqrt(2.0)" : "sqrt(2)");
  }

  std::string pi_to(int n) const {
    if (n == 1) return pi();
    if (notation_ == Notation::c) return fmt::format("pow({}, {}.0)", pi(), n);
    if (latex()) return fmt::format("{}^{{{}}}", pi(), n);
    return fmt::format("{}{}{}", pi(), notation_ == Notation::text ? "^" : "**", n);
  }

  Printed finish(bool negative, const std::vector<std::string>& above, const std::vector<std::string>& below) const {
    std::string text = above.empty() ? whole(1) : fmt::format("{}", fmt::join(above, times()));
    if (!below.empty()) {
      std::string under = fmt::format("{}", fmt::join(below, times()));
      if (!latex() && below.size() > 1) under = "(" + under + ")";
      text = fraction(text, under);
    }
    if (negative) return {"-" + text, kSum};
    const bool alone = below.empty() && above.size() == 1;
    return {text, alone ? kAtom : (latex() && !below.empty() && above.size() == 1) ? kPower : kProduct};
  }

  Printed raised(const Expr& base, Rational exponent) const {
    const Printed inner = print(base);
    if (exponent == Rational{1, 1}) return inner;
    if (exponent == Rational{1, 2}) {
      if (latex()) return {"\\sqrt{" + inner.text + "}", kAtom};
      return {"sqrt(" + inner.text + ")", kAtom};
    }
    if (notation_ == Notation::c) {
      const std::string up = exponent.integer() ? whole(exponent.p) : fmt::format("{}.0/{}.0", exponent.p, exponent.q);
      return {"pow(" + inner.text + ", " + up + ")", kAtom};
    }
    const bool is_whole = exponent.integer();
    const std::string up = is_whole ? fmt::format("{}", exponent.p) : fmt::format("{}/{}", exponent.p, exponent.q);
    if (latex())
      return {fmt::format("{}^{{{}}}", within(inner, kAtom),
                          is_whole ? up : fraction(std::to_string(exponent.p), std::to_string(exponent.q))),
              kPower};
    const std::string base_text = within(inner, kAtom);
    return {base_text + (notation_ == Notation::text ? "^" : "**") + (is_whole ? up : "(" + up + ")"), kPower};
  }

  Printed called(std::string_view name, const Expr& argument) const {
    const std::string inner = print(argument).text;
    if (latex()) {
      if (name == "exp") return {"e^{" + inner + "}", kPower};
      if (name == "abs") return {"\\left|" + inner + "\\right|", kAtom};
      static const std::pair<std::string_view, std::string_view> kNames[] = {{"asin", "\\arcsin"},
                                                                             {"acos", "\\arccos"},
                                                                             {"atan", "\\arctan"},
                                                                             {"asinh", "\\operatorname{arsinh}"},
                                                                             {"acosh", "\\operatorname{arcosh}"},
                                                                             {"atanh", "\\operatorname{artanh}"},
                                                                             {"erf", "\\operatorname{erf}"}};
      std::string shown = "\\" + std::string(name);
      for (const auto& [plain, tex] : kNames)
        if (plain == name) shown = tex;
      return {shown + "\\left(" + inner + "\\right)", kAtom};
    }
    std::string shown(name);
    if (name == "abs" && notation_ == Notation::python) shown = "fabs";
    if (name == "abs" && notation_ == Notation::c) shown = "fabs";
    if (name == "abs" && notation_ == Notation::sympy) shown = "Abs";
    return {shown + "(" + inner + ")", kAtom};
  }

  Printed sum(const Expr& e) const {
    std::string text;
    // A term that is positive goes first, where there is one: b - a instead of -a + b.
    std::vector<std::string> terms;
    for (const Expr& t : e->args) terms.push_back(print(t).text);
    const auto first = std::find_if(terms.begin(), terms.end(), [](const std::string& t) { return t[0] != '-'; });
    if (first != terms.end()) std::rotate(terms.begin(), first, first + 1);
    for (const std::string& t : terms) {
      if (text.empty())
        text = t;
      else if (t[0] == '-')
        text += " - " + t.substr(1);
      else
        text += " + " + t;
    }
    return {text, kSum};
  }

  Printed product(const Expr& e) const {
    bool negative = false;
    std::vector<std::string> above, below;
    const std::vector<Expr> factors = e->op == Op::multiply ? e->args : std::vector<Expr>{e};
    std::string leading;
    for (const Expr& f : factors) {
      if (f->op == Op::number) {
        Constant c = f->number;
        if (c.value < 0) negative = true, c = c * Constant::of(-1);
        if (c.exact) {
          factors_of(c, above, below);
        } else {
          above.push_back(within(constant(c), kProduct));
        }
      } else if (f->op == Op::power && f->exponent.p < 0) {
        below.push_back(within(raised(f->args[0], {-f->exponent.p, f->exponent.q}), kPower));
      } else {
        above.push_back(within(print(f), kPower));
      }
    }
    // A sum that is the whole of a fraction's part needs no brackets in LaTeX; elsewhere they stay.
    return finish_product(negative, above, below);
  }

  Printed finish_product(bool negative, std::vector<std::string> above, std::vector<std::string> below) const {
    const auto bare = [](const std::string& t) {
      return t.starts_with("\\left(") && t.ends_with("\\right)") && t.find("\\left(", 6) == std::string::npos
                 ? t.substr(6, t.size() - 13)
                 : t;
    };
    if (latex() && !below.empty()) {
      if (above.size() == 1) above[0] = bare(above[0]);
      if (below.size() == 1) below[0] = bare(below[0]);
    }
    Printed p = finish(negative, above, below);
    if (p.level == kAtom) p.level = kProduct;
    return p;
  }

  std::vector<std::string> names_;
  Notation notation_;
};

std::string latex_name(const std::string& name) {
  static const std::set<std::string> kGreek = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta",  "eta",
                                               "theta", "iota", "kappa", "mu",    "nu",      "xi",    "rho",
                                               "sigma", "tau",  "phi",   "chi",   "psi",     "omega", "lambda"};
  std::size_t digits = name.size();
  // A 0/1 input of a category, in the brackets of a condition, is no name with an index.
  const bool condition = name.find('=') != std::string::npos;
  while (!condition && digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  std::string stem = name.substr(0, digits), index = name.substr(digits);
  if (!condition && !stem.empty() && stem.back() == '_') stem.pop_back();
  if (stem.empty()) return "\\mathrm{" + name + "}";
  std::string shown;
  if (kGreek.contains(stem))
    shown = "\\" + stem;
  else if (stem.size() == 1 && std::isalpha(static_cast<unsigned char>(stem[0])))
    shown = stem;
  else {
    std::string safe;
    for (const char c : stem) {
      if (std::string_view("_#$%&{}").find(c) != std::string_view::npos) safe += '\\';
      safe += std::string_view("\\^~").find(c) != std::string_view::npos ? ' ' : c;
    }
    shown = "\\mathrm{" + safe + "}";
  }
  if (condition) shown = "\\left[" + shown + "\\right]";
  return index.empty() ? shown : shown + "_{" + index + "}";
}

}  // namespace

std::vector<std::string> printed_names(std::span<const std::string> names, Notation notation) {
  // Words of Python and C. Names that sympy has for other things (gamma, S) stay: sympify() takes symbols as locals.
  static const std::set<std::string> kKeywords = {
      "lambda", "if",   "else", "for",   "while",  "def",  "class", "in",    "is",   "not",    "and",
      "or",     "as",   "int",  "float", "double", "char", "long",  "short", "void", "return", "import",
      "global", "None", "True", "False", "del",    "from", "with",  "yield", "pass", "try",    "pi"};
  if (notation == Notation::latex) {
    std::vector<std::string> shown;
    for (const std::string& name : names) shown.push_back(latex_name(name));
    return shown;
  }
  const auto usable = [&](const std::string& name) {
    const bool function = find_choice<Function>(kFunctions, name).has_value() || name == "sqrt" || name == "pow";
    return !function && !(notation == Notation::text ? name == "pi" || name == "e" : kKeywords.contains(name));
  };
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    std::string safe;
    for (const char c : name) safe += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
    if (safe.empty() || std::isdigit(static_cast<unsigned char>(safe[0]))) safe.insert(0, "x_");
    shown.push_back(usable(safe) ? safe : safe + '_');
  }
  // Names that stay what they are come before those that were changed to be like them.
  std::set<std::string> taken;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (shown[i] == names[i]) taken.insert(shown[i]);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (shown[i] != names[i])
      while (!taken.insert(shown[i]).second) shown[i] += '_';
  return shown;
}

std::string print(const Expr& e, std::span<const std::string> names, Notation notation) {
  return Printer(names, notation).print(e).text;
}

}  // namespace gradloom::formula
