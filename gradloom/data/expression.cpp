#include "gradloom/data/expression.h"

#include <fmt/format.h>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

constexpr std::array<std::string_view, kSymbols> kNames = {"+", "-", "*", "/", "^", "-", "0", "1", "2", "3", "4", "x",
                                                           "y", "z", "&", "|", "!", ">", "T", "F", "p", "q", "r"};

void write(const Expression& e, std::uint32_t v, std::string& to) {
  if (v == kNoNode) {
    to += '_';
    return;
  }
  const Symbol s = e.symbol[v];
  const auto [left, right] = e.child[v];
  if (arity(s) == 0 && left == kNoNode && right == kNoNode) {
    to += symbol_name(s);
    return;
  }
  to += '(';
  if (arity(s) == 1) {
    to += symbol_name(s);
    write(e, left, to);
  } else {
    write(e, left, to);
    to += symbol_name(s);
    write(e, right, to);
  }
  to += ')';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  Expression run() {
    Expression e;
    if (text_.empty()) return e;
    term(e, kNoNode, 0);
    if (at_ != text_.size()) fail("the end was expected");
    return e;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw_invalid(fmt::format("expression, character {}: {}", at_ + 1, what));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  Symbol named(char c, std::size_t children) const {
    for (std::size_t k = 0; k < kSymbols; ++k)
      if (kNames[k][0] == c && arity(static_cast<Symbol>(k)) == children) return static_cast<Symbol>(k);
    fail("no symbol has this name");
  }
  void expect(char c) {
    if (peek() != c) fail("a bracket is missing");
    ++at_;
  }
  // An operator comes behind its first operand, but before it in preorder: the text is scanned for it first.
  Symbol operator_ahead() const {
    std::size_t depth = 0, at = at_;
    if (text_[at] == '-' || text_[at] == '!') return named(text_[at], 1);
    do {
      if (at >= text_.size()) fail("a bracket is missing");
      if (text_[at] == '(') ++depth;
      if (text_[at] == ')' && depth-- == 0) fail("an operator was expected");
      ++at;
    } while (depth > 0);
    if (at >= text_.size()) fail("an operator was expected");
    return named(text_[at], 2);
  }
  void term(Expression& e, std::uint32_t under, unsigned side) {
    if (++nested_ > 1000) fail("brackets are nested too deeply");
    if (peek() == '_') {
      ++at_;
    } else if (peek() != '(') {
      e.append(named(peek(), 0), under, side);
      ++at_;
    } else {
      ++at_;
      if (at_ >= text_.size()) fail("a bracket is missing");
      const Symbol s = operator_ahead();
      const std::uint32_t v = e.append(s, under, side);
      if (arity(s) == 1) ++at_;
      term(e, v, 0);
      if (arity(s) == 2) {
        ++at_;
        term(e, v, 1);
      }
      expect(')');
    }
    --nested_;
  }

  std::string_view text_;
  std::size_t at_ = 0, nested_ = 0;
};

// Draws an expression in preorder; every draw has a position of its own.
class Drawing {
 public:
  explicit Drawing(const RandomStream& random) : random_(random) {}
  Expression run(std::size_t nodes) {
    logic_ = uniform() < 0.4;
    draw(nodes, kNoNode, 0);
    return std::move(e_);
  }

 private:
  double uniform() { return random_.uniform(at_++); }
  std::uint32_t below(std::size_t n) { return random_.below(at_++, static_cast<std::uint32_t>(n)); }
  Symbol leaf() {
    const double u = uniform();
    if (logic_)
      return u < 0.12 ? Symbol::yes : u < 0.24 ? Symbol::no : static_cast<Symbol>(std::size_t(Symbol::p) + below(3));
    if (u < 0.14) return Symbol::zero;
    if (u < 0.28) return Symbol::one;
    if (u < 0.42) return constant_of(2 + below(3));
    return static_cast<Symbol>(std::size_t(Symbol::x) + below(3));
  }
  Symbol binary() {
    if (!logic_) return static_cast<Symbol>(std::size_t(Symbol::add) + below(5));
    const std::uint32_t k = below(5);
    return k < 2 ? Symbol::both : k < 4 ? Symbol::either : Symbol::implies;
  }
  void draw(std::size_t nodes, std::uint32_t under, unsigned side) {
    if (nodes == 1) {
      e_.append(leaf(), under, side);
    } else if (nodes == 2 || uniform() < 0.2) {
      const std::uint32_t v = e_.append(logic_ ? Symbol::opposite : Symbol::negate, under, side);
      draw(nodes - 1, v, 0);
    } else {
      const std::uint32_t v = e_.append(binary(), under, side);
      const std::size_t left = 1 + below(nodes - 2);
      draw(left, v, 0);
      draw(nodes - 1 - left, v, 1);
    }
  }

  const RandomStream& random_;
  std::uint32_t at_ = 0;
  bool logic_ = false;
  Expression e_;
};

}  // namespace

std::size_t arity(Symbol s) {
  switch (s) {
    case Symbol::add:
    case Symbol::subtract:
    case Symbol::multiply:
    case Symbol::divide:
    case Symbol::power:
    case Symbol::both:
    case Symbol::either:
    case Symbol::implies:
      return 2;
    case Symbol::negate:
    case Symbol::opposite:
      return 1;
    default:
      return 0;
  }
}

std::string_view symbol_name(Symbol s) { return kNames[static_cast<std::size_t>(s)]; }

std::uint32_t Expression::append(Symbol s, std::uint32_t under, unsigned side) {
  const auto v = static_cast<std::uint32_t>(symbol.size());
  symbol.push_back(s);
  parent.push_back(under);
  child.push_back({kNoNode, kNoNode});
  if (under != kNoNode) child[under][side] = v;
  return v;
}

std::uint32_t Expression::end_of(std::uint32_t node) const {
  std::uint32_t end = node + 1;
  // Preorder: whatever hangs below the node follows it.
  while (end < size() && parent[end] != kNoNode && parent[end] >= node) ++end;
  return end;
}

std::string to_text(const Expression& e) {
  std::string text;
  if (e.size() > 0) write(e, 0, text);
  return text;
}

Expression parse_expression(std::string_view text) { return Parser(text).run(); }

Expression random_expression(const RandomStream& random, std::size_t nodes) { return Drawing(random).run(nodes); }

}  // namespace gradloom
