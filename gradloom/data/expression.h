// Expressions as trees: symbols, their text, and random ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/random.h"

namespace gradloom {

// Arithmetic and logic; an expression is of one of the two.
enum class Symbol : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  power,
  negate,  // + - * / ^ and a unary minus
  zero,
  one,
  two,
  three,
  four,
  x,
  y,
  z,
  both,
  either,
  opposite,
  implies,  // & | ! >
  yes,
  no,
  p,
  q,
  r,
};
inline constexpr std::size_t kSymbols = 23;

std::size_t arity(Symbol s);  // 0, 1 or 2
std::string_view symbol_name(Symbol s);
inline bool is_constant(Symbol s) { return s >= Symbol::zero && s <= Symbol::four; }
inline unsigned constant_value(Symbol s) { return static_cast<unsigned>(s) - static_cast<unsigned>(Symbol::zero); }
inline Symbol constant_of(unsigned value) { return static_cast<Symbol>(static_cast<unsigned>(Symbol::zero) + value); }
inline bool is_variable(Symbol s) { return (s >= Symbol::x && s <= Symbol::z) || (s >= Symbol::p && s <= Symbol::r); }

inline constexpr std::uint32_t kNoNode = 0xffffffffu;

// Nodes in preorder: the root is node 0, and a subtree is a range. A unary node has its child on the left. What a
// network built may lack children.
struct Expression {
  std::vector<Symbol> symbol;                       // (n)
  std::vector<std::uint32_t> parent;                // (n); kNoNode for the root
  std::vector<std::array<std::uint32_t, 2>> child;  // (n): left and right; kNoNode where there is none

  std::size_t size() const { return symbol.size(); }
  // Appends a node under `under` (kNoNode: as the root) on side 0 or 1, which is free; returns its number. Nodes must
  // come in preorder.
  std::uint32_t append(Symbol s, std::uint32_t under, unsigned side);
  std::uint32_t end_of(std::uint32_t node) const;  // behind the last node of its subtree
  bool operator==(const Expression&) const = default;
};

// Fully bracketed, such as "(x+(-y))"; a missing child is "_", an expression without nodes "". Equal texts are equal
// expressions.
std::string to_text(const Expression& e);

// Reads that form. Throws Exception{invalid_input} on anything else.
Expression parse_expression(std::string_view text);

// A random expression of exactly `nodes` >= 1 nodes; a function of the stream alone.
Expression random_expression(const RandomStream& random, std::size_t nodes);

}  // namespace gradloom
