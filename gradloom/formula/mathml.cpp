#include "gradloom/formula/mathml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "gradloom/base/error.h"

namespace gradloom::formula {
namespace {

// How tightly a typeset expression holds together.
enum class Binding { sum, product, power, atom };

struct Typeset {
  std::string text;  // one element, or several where it is no atom
  Binding binding = Binding::atom;
  bool negative = false;  // a minus sign belongs before the text
};

std::string row(const std::string& text) { return "<mrow>" + text + "</mrow>"; }
std::string mn(const std::string& digits) { return "<mn>" + digits + "</mn>"; }

constexpr const char* kMinus = "<mo>&#8722;</mo>";
constexpr const char* kTimes = "<mo>&#8290;</mo>";      // invisible
constexpr const char* kSeenTimes = "<mo>&#8901;</mo>";  // between numbers

std::string with_sign(const Typeset& t) { return t.negative ? kMinus + t.text : t.text; }

std::string bracketed(const std::string& text) { return row("<mo>(</mo>" + text + "<mo>)</mo>"); }

// As one element that binds at least so tightly.
std::string held(const Typeset& t, Binding needed) {
  if (t.negative || t.binding < needed) return bracketed(with_sign(t));
  return t.binding == Binding::atom ? t.text : row(t.text);
}

std::string alone(const Typeset& t) { return t.binding == Binding::atom && !t.negative ? t.text : row(with_sign(t)); }

Typeset exact_number(const Constant& c) {
  std::string above;
  const std::int64_t p = std::abs(c.ratio.p);
  const auto put = [&](const std::string& factor) { above += (above.empty() ? "" : kTimes) + factor; };
  const std::string pi = "<mi>&#960;</mi>";
  const auto pi_to = [&](int n) { return n == 1 ? pi : "<msup>" + pi + mn(std::to_string(n)) + "</msup>"; };
  if (p != 1) put(mn(std::to_string(p)));
  if (c.pi_power > 0) put(pi_to(c.pi_power));
  if (c.root_two) put("<msqrt>" + mn("2") + "</msqrt>");
  std::string below;
  if (c.ratio.q != 1) below = mn(std::to_string(c.ratio.q));
  if (c.pi_power < 0) below += (below.empty() ? "" : kTimes) + pi_to(-c.pi_power);
  const bool single = (p != 1) + (c.pi_power > 0) + (c.root_two > 0) <= 1;
  if (above.empty()) above = mn("1");
  if (below.empty()) return {above, single ? Binding::atom : Binding::product, c.ratio.p < 0};
  return {"<mfrac>" + row(above) + row(below) + "</mfrac>", Binding::atom, c.ratio.p < 0};
}

Typeset number_of(const Constant& c) {
  if (c.exact) return exact_number(c);
  std::string digits = fmt::format("{}", std::abs(c.value));
  const bool negative = c.value < 0;
  const auto e = digits.find('e');
  if (e == std::string::npos) return {mn(digits), Binding::atom, negative};
  const int exponent = std::atoi(digits.c_str() + e + 1);
  const std::string up = exponent < 0 ? row(kMinus + mn(std::to_string(-exponent))) : mn(std::to_string(exponent));
  return {mn(digits.substr(0, e)) + kSeenTimes + "<msup>" + mn("10") + up + "</msup>", Binding::product, negative};
}

class Typesetter {
 public:
  explicit Typesetter(std::span<const std::string> names) : names_(names) {}

  Typeset set(const Expr& e) const {
    switch (e->op) {
      case Op::number:
        return number_of(e->number);
      case Op::variable:
        return {mathml_name(names_[e->variable]), Binding::atom};
      case Op::add:
        return sum(e);
      case Op::multiply:
        return product(e);
      case Op::power:
        return e->exponent.p < 0 ? product(e) : raised(e->args[0], e->exponent);
      case Op::call:
        return called(e);
    }
    throw_invalid("an operation that does not exist");
  }

  // The terms of a sum, with the signs before all but a positive first one.
  std::vector<std::string> terms_of(const Expr& e) const {
    std::vector<Typeset> terms;
    for (const Expr& t : e->args) terms.push_back(set(t));
    // A term that is positive goes first, where there is one.
    const auto first = std::find_if(terms.begin(), terms.end(), [](const Typeset& t) { return !t.negative; });
    if (first != terms.end()) std::rotate(terms.begin(), first, first + 1);
    std::vector<std::string> texts{with_sign(terms.front())};
    for (std::size_t i = 1; i < terms.size(); ++i)
      texts.push_back((terms[i].negative ? kMinus : "<mo>+</mo>") + terms[i].text);
    return texts;
  }

 private:
  Typeset raised(const Expr& base, Rational exponent) const {
    if (exponent == Rational{1, 1}) return set(base);
    const Typeset inner = set(base);
    if (exponent == Rational{1, 2}) return {"<msqrt>" + with_sign(inner) + "</msqrt>", Binding::atom};
    const std::string up =
        exponent.integer() ? mn(std::to_string(exponent.p))
                           : "<mfrac>" + mn(std::to_string(exponent.p)) + mn(std::to_string(exponent.q)) + "</mfrac>";
    return {"<msup>" + held(inner, Binding::atom) + up + "</msup>", Binding::power};
  }

  Typeset sum(const Expr& e) const {
    std::string text;
    for (const std::string& term : terms_of(e)) text += term;
    return {text, Binding::sum};
  }

  Typeset product(const Expr& e) const {
    const std::vector<Expr> factors = e->op == Op::multiply ? e->args : std::vector<Expr>{e};
    bool negative = false;
    std::vector<Typeset> above, below;
    for (const Expr& f : factors) {
      if (f->op == Op::number) {
        Constant c = f->number;
        negative = c.value < 0;
        if (negative) c = c * Constant::of(-1);
        // The parts of a fraction go where they belong.
        if (c.exact && c.ratio.q != 1) {
          below.push_back({mn(std::to_string(c.ratio.q)), Binding::atom});
          c = c * Constant::of({c.ratio.q, 1});
        }
        if (!c.is(1)) above.push_back(number_of(c));
      } else if (f->op == Op::power && f->exponent.p < 0) {
        below.push_back(raised(f->args[0], {-f->exponent.p, f->exponent.q}));
      } else {
        above.push_back(set(f));
      }
    }
    const auto joined = [](const std::vector<Typeset>& parts) -> Typeset {
      if (parts.empty()) return {mn("1"), Binding::atom};
      if (parts.size() == 1) return parts.front();
      std::string text;
      for (const Typeset& t : parts) text += (text.empty() ? "" : kTimes) + held(t, Binding::power);
      return {text, Binding::product};
    };
    Typeset top = joined(above);
    if (!below.empty()) return {"<mfrac>" + alone(top) + alone(joined(below)) + "</mfrac>", Binding::atom, negative};
    if (top.binding == Binding::sum && negative) top = {held(top, Binding::product), Binding::atom};
    return {top.text, std::min(top.binding, Binding::product), negative != top.negative};
  }

  Typeset called(const Expr& e) const {
    const Typeset inner = set(e->args[0]);
    if (e->function == Function::exp) return {"<msup><mi>e</mi>" + alone(inner) + "</msup>", Binding::power};
    if (e->function == Function::abs) return {row("<mo>|</mo>" + with_sign(inner) + "<mo>|</mo>"), Binding::atom};
    return {row(fmt::format("<mi>{}</mi><mo>&#8289;</mo>{}", name_of<Function>(kFunctions, e->function),
                            bracketed(with_sign(inner)))),
            Binding::atom};
  }

  std::span<const std::string> names_;
};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (static_cast<unsigned char>(c) >= 32)
      safe += c;
  }
  return safe;
}

}  // namespace

std::string mathml_name(const std::string& name) {
  // A 0/1 input of a category, in the brackets of a condition: a factor before "c=r" would be taken for one of c.
  if (name.find('=') != std::string::npos)
    return row("<mo>[</mo><mi mathvariant=\"normal\">" + escaped(name) + "</mi><mo>]</mo>");
  std::size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  std::string stem = name.substr(0, digits);
  const std::string index = name.substr(digits);
  if (!index.empty() && stem.size() > 1 && stem.back() == '_') stem.pop_back();
  if (stem.empty() || stem == "_") return "<mi mathvariant=\"normal\">" + escaped(name) + "</mi>";
  const std::string shown =
      fmt::format("<mi{}>{}</mi>", stem.size() > 1 ? " mathvariant=\"normal\"" : "", escaped(stem));
  return index.empty() ? shown : "<msub>" + shown + mn(index) + "</msub>";
}

std::vector<std::string> mathml_terms(const Expr& e, std::span<const std::string> names) {
  const Typesetter typesetter(names);
  if (e->op != Op::add) return {alone(typesetter.set(e))};
  std::vector<std::string> terms;
  for (const std::string& term : typesetter.terms_of(e)) terms.push_back(row(term));
  return terms;
}

std::string mathml(const Expr& e, std::span<const std::string> names) { return alone(Typesetter(names).set(e)); }

}  // namespace gradloom::formula
