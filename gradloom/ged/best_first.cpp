#include "gradloom/ged/best_first.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "gradloom/ged/upper.h"

namespace gradloom::ged {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 22;

struct Partial {
  std::uint32_t parent, image, depth;
  Cost cost;  // among the rows 0 .. depth-1
};

struct Open {
  Cost bound;
  std::uint32_t depth, node;
  bool operator<(const Open& other) const {  // the queue takes the largest
    if (bound != other.bound) return bound > other.bound;
    return depth != other.depth ? depth < other.depth : node > other.node;
  }
};

class BestFirst {
 public:
  BestFirst(const Problem& p, const SearchLimits& limits) : p_(p), limits_(limits) {
    for (std::uint32_t i = 0; i < p.rows(); ++i)
      for (std::uint32_t k = 0; k < i; ++k)
        if (const std::uint16_t r = p.relation1(i, k)) {
          ++related1_;
          cheapest_erase_ = std::min(cheapest_erase_, p.pair(r, 0));
        }
    for (std::uint32_t j = 0; j < p.columns(); ++j) {
      cheapest_node_ = std::min(cheapest_node_, p.insert(j));
      for (std::uint32_t l = 0; l < j; ++l)
        if (const std::uint16_t r = p.relation2(j, l)) {
          ++related2_;
          cheapest_insert_ = std::min(cheapest_insert_, p.pair(0, r));
        }
    }
  }

  PairAnswer run() {
    PairAnswer answer;
    answer.image = greedy_mapping(p_, limits_.deadline);
    answer.upper = p_.cost(answer.image);
    answer.lower = 0;
    nodes_.push_back({0, 0, 0, 0});
    queue_.push({p_.rows() == 0 ? answer.upper : 0, 0, 0});  // without rows there is one mapping, and no child
    while (!queue_.empty()) {
      const Open open = queue_.top();
      answer.lower = std::min(open.bound, answer.upper);
      if (open.bound >= answer.upper) return answer;  // what was found by guessing is optimal
      restore(open.node);
      if (open.depth == p_.rows()) {
        answer.image = image_;
        answer.upper = answer.lower = open.bound;
        return answer;
      }
      if (answer.expanded >= limits_.expansions || nodes_.size() > kMostNodes) return answer;
      if ((answer.expanded & 63) == 0 && limits_.deadline.passed()) return answer;
      queue_.pop();
      ++answer.expanded;
      expand(open, answer.upper);
    }
    answer.lower = answer.upper;
    return answer;
  }

 private:
  void restore(std::uint32_t node) {
    image_.assign(p_.rows(), kErased);
    used_.assign(p_.columns(), false);
    for (std::uint32_t at = node; nodes_[at].depth > 0; at = nodes_[at].parent) {
      image_[nodes_[at].depth - 1] = nodes_[at].image;
      if (nodes_[at].image != kErased) used_[nodes_[at].image] = true;
    }
  }

  void expand(const Open& open, Cost upper) {
    const std::uint32_t row = open.depth;
    const auto consider = [&](std::uint32_t j) {
      Cost cost = nodes_[open.node].cost + (j == kErased ? p_.erase(row) : p_.node(row, j));
      for (std::uint32_t k = 0; k < row; ++k)
        cost += p_.pair(p_.relation1(row, k), j == kErased || image_[k] == kErased ? 0u : p_.relation2(j, image_[k]));
      image_[row] = j;
      if (j != kErased) used_[j] = true;
      const Cost bound = row + 1 == p_.rows() ? p_.cost(image_) : cost + rest(row + 1);
      if (j != kErased) used_[j] = false;
      if (bound >= upper) return;
      queue_.push({bound, row + 1, static_cast<std::uint32_t>(nodes_.size())});
      nodes_.push_back({open.node, j, row + 1, cost});
    };
    for (std::uint32_t j = 0; j < p_.columns(); ++j)
      if (!used_[j]) consider(j);
    consider(kErased);
  }

  // At least this much for the rows from `depth` on and the columns that are not used: each row its cheapest edit, what
  // must be inserted for numbers to fit, and the difference in the number of pairs with edges.
  Cost rest(std::uint32_t depth) const {
    Cost cost = 0;
    std::uint32_t free = 0, done1 = 0, done2 = 0;
    for (std::uint32_t j = 0; j < p_.columns(); ++j) free += !used_[j];
    for (std::uint32_t i = depth; i < p_.rows(); ++i) {
      Cost least = p_.erase(i);
      for (std::uint32_t j = 0; j < p_.columns(); ++j)
        if (!used_[j]) least = std::min(least, p_.node(i, j));
      cost += least;
    }
    if (free > p_.rows() - depth) cost += static_cast<Cost>(free - (p_.rows() - depth)) * cheapest_node_;
    for (std::uint32_t i = 0; i < depth; ++i)
      for (std::uint32_t k = 0; k < i; ++k) {
        done1 += p_.relation1(i, k) != 0;
        done2 += image_[i] != kErased && image_[k] != kErased && p_.relation2(image_[i], image_[k]) != 0;
      }
    const std::uint32_t left1 = related1_ - done1, left2 = related2_ - done2;
    if (left1 > left2) cost += static_cast<Cost>(left1 - left2) * cheapest_erase_;
    if (left2 > left1) cost += static_cast<Cost>(left2 - left1) * cheapest_insert_;
    return cost;
  }

  const Problem& p_;
  const SearchLimits& limits_;
  std::vector<Partial> nodes_;
  std::priority_queue<Open> queue_;
  std::vector<std::uint32_t> image_;
  std::vector<bool> used_;
  std::uint32_t related1_ = 0, related2_ = 0;
  Cost cheapest_erase_ = kForbidden, cheapest_insert_ = kForbidden, cheapest_node_ = kForbidden;
};

}  // namespace

PairAnswer solve_best_first(const Problem& problem, const SearchLimits& limits) {
  return BestFirst(problem, limits).run();
}

}  // namespace gradloom::ged
