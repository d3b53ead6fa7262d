#include "gradloom/ged/assignment.h"

#include <algorithm>
#include <limits>

namespace gradloom::ged {

void Assigner::set(const Problem& problem) {
  problem_ = &problem;
  n1_ = problem.rows();
  n2_ = problem.columns();
  row_count_ = problem.full() ? n2_ : n1_ + n2_;
  column_count_ = row_count_;
  width_ = problem.width();
  distance_.resize(column_count_);
  from_row_.resize(column_count_);
  relation1_.resize(n1_ + 1);
  relation2_.resize(column_count_);
}

bool Assigner::root(OpenNodes& node, const Deadline& deadline) {
  const Problem& p = *problem_;
  node.fixed = node.dual = 0;
  node.rows.resize(row_count_);
  node.columns.resize(column_count_);
  for (std::uint32_t i = 0; i < row_count_; ++i) node.rows[i] = static_cast<std::uint16_t>(i);
  for (std::uint32_t j = 0; j < column_count_; ++j) node.columns[j] = static_cast<std::uint16_t>(j);
  node.count1.assign(std::size_t{n1_ + 1} * width_, 0);
  node.count2.assign(std::size_t{column_count_} * width_, 0);
  for (std::uint32_t i = 0; i < n1_; ++i)
    for (std::uint32_t k = 0; k < n1_; ++k)
      if (const std::uint16_t r = p.relation1(i, k)) p.add_counts1(&node.count1[std::size_t{i} * width_], r, 1);
  for (std::uint32_t j = 0; j < n2_; ++j)
    for (std::uint32_t l = 0; l < n2_; ++l)
      if (const std::uint16_t r = p.relation2(j, l)) p.add_counts2(&node.count2[std::size_t{j} * width_], r, 1);
  node.matrix.resize(std::size_t{n1_ + 1} * column_count_);
  node.half.resize(node.matrix.size());
  for (std::uint32_t i = 0; i <= n1_; ++i)
    for (std::uint32_t j = 0; j < column_count_; ++j) {
      Cost cost = count_half(node, i, j);
      node.half[std::size_t{i} * column_count_ + j] = cost;
      if (i < n1_)
        cost += j < n2_ ? p.node(i, j) : p.erase(i);
      else if (j < n2_)
        cost += p.insert(j);
      node.matrix[std::size_t{i} * column_count_ + j] = cost;
    }
  node.row_price.resize(row_count_);
  node.column_price.assign(column_count_, 0);
  node.row_match.assign(row_count_, kFree);
  node.column_match.assign(column_count_, kFree);
  for (std::uint32_t i = 0; i < row_count_; ++i) {
    const Cost* row = &node.matrix[std::size_t{slot(i)} * column_count_];
    const auto best = static_cast<std::uint32_t>(std::min_element(row, row + column_count_) - row);
    node.row_price[i] = row[best];
    node.dual += row[best];
    if (node.column_match[best] == kFree) {
      node.column_match[best] = static_cast<std::uint16_t>(i);
      node.row_match[i] = static_cast<std::uint16_t>(best);
    }
  }
  if (!deadline.exists()) return complete(node, std::numeric_limits<Cost>::max());
  for (std::uint32_t i : node.rows) {
    if (node.row_match[i] != kFree) continue;
    if (deadline.passed()) return false;
    augment(node, i, std::numeric_limits<Cost>::max());
  }
  return true;
}

bool Assigner::child(const OpenNodes& from, std::uint32_t row, std::uint32_t column, Cost enough, OpenNodes& to) {
  const Problem& p = *problem_;
  to = from;
  to.fixed += certain(from, row, column);
  to.dual -= from.row_price[row] + from.column_price[column];
  to.rows.erase(std::lower_bound(to.rows.begin(), to.rows.end(), row));
  to.columns.erase(std::lower_bound(to.columns.begin(), to.columns.end(), column));
  if (const std::uint16_t j = from.row_match[row]; j != kFree) to.column_match[j] = kFree;
  if (const std::uint16_t i = from.column_match[column]; i != kFree) to.row_match[i] = kFree;

  // Edges to the new pair are no longer half of a guess but certain.
  for (std::uint32_t i : to.rows) {
    relation1_[slot(i)] = i < n1_ ? p.relation1(i, row) : std::uint16_t{0};
    if (i < n1_ && relation1_[i]) p.add_counts1(&to.count1[std::size_t{i} * width_], relation1_[i], -1);
    if (i >= n1_) break;
  }
  for (std::uint32_t j : to.columns) {
    relation2_[j] = j < n2_ && column < n2_ ? p.relation2(j, column) : std::uint16_t{0};
    if (relation2_[j]) p.add_counts2(&to.count2[std::size_t{j} * width_], relation2_[j], -1);
  }
  for (std::uint32_t i : to.rows) {
    const std::uint32_t s = slot(i);
    Cost* line = &to.matrix[std::size_t{s} * column_count_];
    Cost* half = &to.half[std::size_t{s} * column_count_];
    const std::uint16_t r1 = relation1_[s];
    for (std::uint32_t j : to.columns) {
      if (!(r1 | relation2_[j])) continue;
      const Cost counted = count_half(to, s, j);
      line[j] += counted - half[j] + p.pair(r1, relation2_[j]);
      half[j] = counted;
    }
    if (i >= n1_) break;
  }
  for (std::uint32_t i : to.rows) {
    const std::uint16_t j = to.row_match[i];
    if (j == kFree || reduced(to, i, j) == 0) continue;
    to.row_match[i] = kFree;
    to.column_match[j] = kFree;
  }
  return complete(to, enough);
}

bool Assigner::complete(OpenNodes& node, Cost enough) {
  for (std::uint32_t i : node.rows) {
    if (node.bound() >= enough) return false;
    if (node.row_match[i] == kFree && !augment(node, i, enough)) return false;
  }
  return node.bound() < enough;
}

// The shortest augmenting path from a free row (Dijkstra over reduced costs), then prices that keep all of them >= 0.
// False, and nothing is changed, when the path would take the bound to `enough`.
bool Assigner::augment(OpenNodes& node, std::uint32_t row, Cost enough) {
  const Cost longest = enough - node.bound();
  waiting_.assign(node.columns.begin(), node.columns.end());
  reached_.clear();
  const Cost* line = &node.matrix[std::size_t{slot(row)} * column_count_];
  for (std::uint32_t j : waiting_) {
    distance_[j] = line[j] - node.row_price[row] - node.column_price[j];
    from_row_[j] = static_cast<std::uint16_t>(row);
  }
  std::uint16_t end = kFree;
  Cost shortest = 0;
  for (;;) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < waiting_.size(); ++k) {
      const Cost a = distance_[waiting_[k]], b = distance_[waiting_[best]];
      if (a < b || (a == b && node.column_match[waiting_[k]] == kFree && node.column_match[waiting_[best]] != kFree))
        best = k;
    }
    end = waiting_[best];
    shortest = distance_[end];
    if (shortest >= longest) return false;
    if (node.column_match[end] == kFree) break;
    reached_.push_back(end);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(best));
    const std::uint32_t i = node.column_match[end];
    const Cost* through = &node.matrix[std::size_t{slot(i)} * column_count_];
    const Cost base = shortest - node.row_price[i];
    for (std::uint32_t j : waiting_) {
      const Cost d = base + through[j] - node.column_price[j];
      if (d < distance_[j]) {
        distance_[j] = d;
        from_row_[j] = static_cast<std::uint16_t>(i);
      }
    }
  }
  node.row_price[row] += shortest;
  node.dual += shortest;
  for (std::uint16_t j : reached_) {
    node.row_price[node.column_match[j]] += shortest - distance_[j];
    node.column_price[j] -= shortest - distance_[j];
  }
  for (std::uint16_t j = end;;) {
    const std::uint16_t i = from_row_[j];
    const std::uint16_t next = node.row_match[i];
    node.column_match[j] = i;
    node.row_match[i] = j;
    if (i == row) break;
    j = next;
  }
  return true;
}

}  // namespace gradloom::ged
