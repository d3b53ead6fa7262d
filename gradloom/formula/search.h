// The search for the formula behind a table of numbers, structure first (docs/math/formula.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/exec/exec.h"
#include "gradloom/formula/deal.h"
#include "gradloom/formula/expression.h"

namespace gradloom::formula {

// Rows: columns x of the same length, and y.
struct Table {
  std::vector<std::string> names;  // of the columns
  Columns x;
  std::vector<double> y;

  std::size_t rows() const { return y.size(); }
};

using AllowedFormula = std::function<bool(const Expr&)>;

struct SearchOptions {
  double effort = 60000;                                    // units of work: millions of multiply-adds
  std::uint64_t seed = 0;                                   // which rows are kept to verify what is found
  std::function<void(double used, double limit)> progress;  // may be empty
  AllowedFormula allowed = {};                              // what is not is not found; empty: everything is
  Deal deal = {};                                           // all ranks search the same table
  // Not owned, may be null. Once it is set, the search ends as if its effort were used up. Looked at only without other
  // ranks, which would have to end at the same candidate.
  const std::atomic<bool>* stop = nullptr;
};

struct SearchResult {
  std::optional<Expr> formula;  // in the variables of the table; agrees on all rows to 1e-9 of y's range, also on those
                                // that were not seen
  double error = 0;             // the largest, relative to the range of y
  double work = 0;
  bool exhausted = false;          // the effort was used up
  std::vector<std::string> steps;  // how it was found: "scale", "separate product", "relation"
};

inline constexpr std::size_t kLeastRows = 20;

// Throws invalid_input on columns of different lengths, fewer than kLeastRows rows, or numbers that are not finite. The
// result does not depend on the threads of `ex`.
SearchResult search_formula(const Exec& ex, const Table& table, const SearchOptions& options = {});

// Rows that a search sees, and rows that verify what it finds.
struct SplitRows {
  Table seen, unseen;
};
SplitRows split_rows(const Table& table, std::uint64_t seed);

// The formula with its constants fitted to the rows seen and snapped, if it then agrees with all rows, seen and unseen,
// as an exact one does and is allowed; nothing otherwise. `allowed` may be empty.
std::optional<Expr> confirm_exact(const Expr& whole, const SplitRows& rows, const AllowedFormula& allowed);

}  // namespace gradloom::formula
