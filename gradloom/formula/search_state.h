// What the steps of a search share.
#pragma once

#include <set>

#include "gradloom/formula/search.h"
#include "gradloom/formula/surrogate.h"

namespace gradloom::formula {

using Wrap = std::function<Expr(const Expr&)>;  // the formula of a part of the problem, in that of the whole

class SearchState {
 public:
  SearchState(const Exec& ex, const SplitRows& rows, const SearchOptions& options);

  // y as a function of these variables, which are expressions in those of the table; nothing when none is found.
  std::optional<Expr> solve(const std::vector<Expr>& variables, const std::vector<double>& y, const Wrap& wrap,
                            int depth);
  // The same after y was found to be factor * f or term + f of one variable alone.
  std::optional<Expr> separate(const Problem& problem, const Surrogate& surrogate, const Wrap& wrap, int depth);

  Work& work() { return work_; }
  const std::vector<std::string>& steps() const { return steps_; }

 private:
  std::optional<Expr> confirm(const Expr& whole) const { return confirm_exact(whole, rows_, allowed_); }
  // Without the variables that change less than the surrogate's error.
  std::optional<Expr> without_idle(const Problem& problem, const Surrogate& surrogate, const Wrap& wrap, int depth);
  std::optional<Expr> by_symmetry(const Problem& problem, const Surrogate& surrogate, const Wrap& wrap, int depth);
  // By a surrogate that is a sum, if it leaves clearly less than `error`.
  std::optional<Expr> by_sum(const Problem& problem, double error, const Wrap& wrap, int depth);
  std::optional<Expr> by_single_index(const Problem& problem, const Wrap& wrap, int depth);
  // solve() as one step, which is listed when it succeeds.
  std::optional<Expr> step(const std::string& name, const std::vector<Expr>& variables, const std::vector<double>& y,
                           const Wrap& wrap, int depth);

  const SplitRows& rows_;
  const Table& seen_;
  const AllowedFormula& allowed_;
  Work work_;
  bool is_sum_ = false;  // y is one of functions of few variables each
  std::vector<std::string> steps_;
  std::set<std::string> tried_;
};

}  // namespace gradloom::formula
