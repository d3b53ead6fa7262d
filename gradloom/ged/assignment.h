// Cheapest assignments between what is left of two graphs, kept up to date as nodes are mapped one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "gradloom/ged/deadline.h"
#include "gradloom/ged/problem.h"

namespace gradloom::ged {

// A partial mapping and the assignment problem of the rest. The cost of giving row i the column j is the node's edit,
// plus the edges between i and the mapped rows (exactly), plus half of the edges between i and the other open rows (a
// bound by counting them). The cheapest assignment plus `fixed` is a lower bound on every completion, since each edge
// between two open nodes is counted half at each end.
//
// Besides rows and columns of the problem there are dummy rows ("the column is inserted") and, unless problem.full(),
// dummy columns ("the row is deleted"), so that the matrix is square. All dummy rows share one row of the matrix.
struct OpenNodes {
  Cost fixed = 0;  // edits among mapped nodes
  Cost dual = 0;   // of the assignment; a lower bound even before the assignment is complete
  Cost bound() const { return fixed + dual; }

  std::vector<std::uint16_t> rows, columns;            // open, ascending
  std::vector<Cost> matrix;                            // (rows + 1, columns), by number in the problem
  std::vector<Cost> half;                              // the part of it that counts edges between open nodes
  std::vector<Cost> row_price, column_price;           // never more than the matrix entry, together
  std::vector<std::uint16_t> row_match, column_match;  // kFree: none
  std::vector<std::uint16_t> count1, count2;           // (rows + 1, width), (columns, width): edges among open nodes
};

inline constexpr std::uint16_t kFree = 0xffff;

class Assigner {
 public:
  // The problem must outlive the assigner and is not changed meanwhile.
  void set(const Problem& problem);

  bool is_dummy_row(std::uint32_t row) const { return row >= n1_; }
  bool is_dummy_column(std::uint32_t column) const { return column >= n2_; }

  // Nothing mapped; the assignment is complete, unless the deadline passed meanwhile: false, and the bound is one even
  // so.
  bool root(OpenNodes& node, const Deadline& deadline = {});
  // `to` = `from` with `row` mapped to `column` (both open in `from`, the row no dummy). Stops early, with the
  // assignment incomplete, when the bound reaches `enough`. False in that case.
  bool child(const OpenNodes& from, std::uint32_t row, std::uint32_t column, Cost enough, OpenNodes& to);

  Cost entry(const OpenNodes& node, std::uint32_t row, std::uint32_t column) const {
    return node.matrix[std::size_t{slot(row)} * column_count_ + column];
  }
  // What the bound grows by at least when the row gets the column.
  Cost reduced(const OpenNodes& node, std::uint32_t row, std::uint32_t column) const {
    return entry(node, row, column) - node.row_price[row] - node.column_price[column];
  }
  // The edits that become certain when the row gets the column.
  Cost certain(const OpenNodes& node, std::uint32_t row, std::uint32_t column) const {
    return entry(node, row, column) - node.half[std::size_t{slot(row)} * column_count_ + column];
  }

 private:
  std::uint32_t slot(std::uint32_t row) const { return row < n1_ ? row : n1_; }
  Cost count_half(const OpenNodes& node, std::uint32_t slot, std::uint32_t column) const {
    return problem_->half_edges(&node.count1[std::size_t{slot} * width_], &node.count2[std::size_t{column} * width_]);
  }
  bool complete(OpenNodes& node, Cost enough);
  bool augment(OpenNodes& node, std::uint32_t row, Cost enough);

  const Problem* problem_ = nullptr;
  std::uint32_t n1_ = 0, n2_ = 0, row_count_ = 0, column_count_ = 0, width_ = 1;
  std::vector<Cost> distance_;
  std::vector<std::uint16_t> from_row_, relation1_, relation2_, reached_, waiting_;
};

}  // namespace gradloom::ged
