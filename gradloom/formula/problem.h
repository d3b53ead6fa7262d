// The problem that a search solves, and the steps that try to.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/formula/alphabet.h"
#include "gradloom/formula/work.h"

namespace gradloom::formula {

// What is searched for: y as a function of the variables, on rows that the search may see.
struct Problem {
  std::vector<Variable> variables;
  Vector y;

  Eigen::Index rows() const { return y.size(); }
  bool negative() const { return y.mean() < 0; }
};

// Whether y is this function of the variables on rows that the search does not see: the formula of the whole problem,
// with its constants refined, or nothing. Called from several threads.
using Accept = std::function<std::optional<Expr>(const Expr&)>;

// A relation as g(y) = P/Q, with constants snapped. None when more than `max_inexact` constants stay inexact.
std::optional<Expr> relation_text(const Relation& relation, const std::vector<Column>& columns,
                                  const std::function<Expr(std::size_t column)>& text, const SnapOptions& snap,
                                  std::size_t max_inexact);

// Relations between simple functions of the variables and an outer function of y.
std::optional<Expr> find_direct(const Problem& problem, const Accept& accept, Work& work);
// One variable: two powers; then functions with an inner scale.
std::optional<Expr> find_powers(const Problem& problem, const Accept& accept, Work& work);
std::optional<Expr> find_scaled(const Problem& problem, const Accept& accept, Work& work);
// A function of a combination of variables beside functions of each.
std::optional<Expr> find_pseudo(const Problem& problem, const Accept& accept, Work& work);

}  // namespace gradloom::formula
