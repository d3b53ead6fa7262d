// Which functions of the library, and of the user's own, the edges of a network may become.
#pragma once

#include <array>
#include <map>
#include <set>

#include "gradloom/formula/library.h"

namespace gradloom::formula {

// An edge is written "LAYER.FROM.TO", as reports count them, from 0.
struct FunctionOptions {
  std::vector<std::string> functions = {};  // by name; empty: all
  std::vector<std::string> define = {};     // "name = expression in x": more of them
  std::vector<std::string> forbid = {};     // "sin", or for one edge "0.1.2 sin"
  std::vector<std::string> fix = {};        // "0.1.2 sin": what an edge becomes
};

// A function that is forbidden takes those with it that are made of it (contains.h): without exp there is no gaussian.
class Functions {
 public:
  // Throws invalid_input on a name that is not known, a definition that cannot be read or that is made of what is
  // forbidden, an edge that is fixed twice or to what it is forbidden, where nothing is left, and on "0", "x" and
  // functions of the user's own that are forbidden everywhere: single edges can do without them, formulas cannot.
  explicit Functions(const FunctionOptions& options);
  Functions() : Functions(FunctionOptions{}) {}

  std::vector<LibraryFunction> of_edge(std::size_t layer, std::size_t from, std::size_t to) const;
  bool fixes(std::size_t layer, std::size_t from, std::size_t to) const { return fixed_.contains({layer, from, to}); }
  // Whether edges have choices of their own: only a formula that is made edge by edge can follow them.
  bool by_edge() const { return !fixed_.empty() || !forbidden_on_.empty(); }
  // Whether an expression is made of none of the functions that are forbidden everywhere.
  bool allows(const Expr& e) const;
  // The same formula, whose numbers are written without them: sqrt(2) becomes 1.414... where sqrt is forbidden.
  Expr spelled(const Expr& e) const;
  // Throws invalid_input when an edge is named that a network of these widths and multiplication nodes does not have.
  void require_edges(std::span<const std::size_t> widths, std::span<const std::size_t> multiply = {}) const;

 private:
  using Edge = std::array<std::size_t, 3>;

  std::size_t number_of(const std::string& name) const;
  std::pair<Edge, std::size_t> read_edge(const std::string& entry, const char* key) const;
  void forbid_everywhere(const std::string& name);
  // Whether function `i` is `forbidden` or made of it.
  bool made_of(std::size_t i, std::size_t forbidden) const;
  bool forbids(const Edge& edge, std::size_t i) const;

  std::vector<LibraryFunction> all_;  // the library's, then the user's own
  std::size_t own_ = 0;               // the first of the user's own
  std::vector<bool> allowed_;         // of all_
  std::set<std::size_t> forbidden_;   // everywhere
  std::set<std::pair<Edge, std::size_t>> forbidden_on_;
  std::map<Edge, std::size_t> fixed_;
};

}  // namespace gradloom::formula
