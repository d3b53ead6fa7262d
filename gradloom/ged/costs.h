// What each edit costs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/data/graph.h"

namespace gradloom::ged {

enum class Labels { compare, ignore };

// Turning label `a` into `b`, and `b` into `a` unless that pair is listed too.
struct PairCost {
  std::string a, b;
  double cost = 0.0;
};

struct LabelCost {
  std::string label;
  double cost = 0.0;
};

// Substituting a label by itself is free unless a pair says otherwise. All costs are finite and >= 0. An edge between
// two substituted nodes costs the cheaper of substituting it and of deleting and inserting it.
struct Costs {
  double node_sub = 1.0, node_delete = 1.0, node_insert = 1.0;
  double edge_sub = 1.0, edge_delete = 1.0, edge_insert = 1.0;
  Labels labels = Labels::compare;
  std::vector<PairCost> node_pairs, edge_pairs;                                   // override the substitutions
  std::vector<LabelCost> node_deletes, node_inserts, edge_deletes, edge_inserts;  // override the others
};

Costs uniform_costs();   // every edit costs 1, labels are compared
Costs topology_costs();  // every edit costs 1, labels are ignored

// "node_sub,node_indel,edge_sub,edge_indel", such as "1,1,1,1". Fails with invalid_input.
Result<Costs> parse_costs(std::string_view numbers);
// The JSON form of docs/ged.md. Fails with invalid_input.
Result<Costs> parse_costs_json(std::string_view text, std::string_view source);
// The same of a parsed object; `source` is named in messages.
Result<Costs> costs_of_json(const nlohmann::json& object, std::string_view source);

// Costs are counted in whole units, so that sums are exact and bounds can be compared. All tables hold even numbers:
// two steps are one unit, so that half of an edge's cost, which belongs to each of its ends, is whole too.
using Cost = std::int64_t;

// The costs between the labels of one set of graphs, in steps. Costs with at most six decimals are exact; others are
// rounded to a resolution of 2^-30 of the largest cost.
class CostTable {
 public:
  // Throws Exception{invalid_input} for costs that are negative, not finite, or spread over more than 12 digits, and
  // for labels that no graph has. A label number kUnlabelled is a label of its own.
  CostTable(const Costs& costs, const LabelTable& node_labels, const LabelTable& edge_labels);

  Cost node_sub(std::uint32_t a, std::uint32_t b) const { return sub(node_, a, b); }
  Cost node_delete(std::uint32_t a) const { return single(node_.deletes, a, node_.erase); }
  Cost node_insert(std::uint32_t b) const { return single(node_.inserts, b, node_.insert); }
  Cost edge_sub(std::uint32_t a, std::uint32_t b) const {
    return std::min(sub(edge_, a, b), edge_delete(a) + edge_insert(b));
  }
  Cost edge_delete(std::uint32_t a) const { return single(edge_.deletes, a, edge_.erase); }
  Cost edge_insert(std::uint32_t b) const { return single(edge_.inserts, b, edge_.insert); }
  // Deleting a and inserting b is cheaper than substituting.
  bool edge_splits(std::uint32_t a, std::uint32_t b) const {
    return edge_delete(a) + edge_insert(b) < sub(edge_, a, b);
  }

  bool labels_matter() const { return labels_ == Labels::compare; }
  // From steps to what users gave.
  double value(Cost steps) const { return static_cast<double>(steps) * numerator_ / denominator_; }
  // The most steps that are worth no more than `value` >= 0.
  Cost steps_within(double value) const;
  Cost largest() const { return largest_; }

 private:
  struct Side {
    Cost replace = 0, erase = 0, insert = 0;
    std::unordered_map<std::uint64_t, Cost> pairs;
    std::unordered_map<std::uint32_t, Cost> deletes, inserts;
  };
  Cost sub(const Side& side, std::uint32_t a, std::uint32_t b) const {
    if (!side.pairs.empty())
      if (const auto it = side.pairs.find(std::uint64_t{a} << 32 | b); it != side.pairs.end()) return it->second;
    return a == b || labels_ == Labels::ignore ? 0 : side.replace;
  }
  static Cost single(const std::unordered_map<std::uint32_t, Cost>& table, std::uint32_t label, Cost otherwise) {
    if (table.empty()) return otherwise;
    const auto it = table.find(label);
    return it == table.end() ? otherwise : it->second;
  }

  Labels labels_;
  Side node_, edge_;
  double numerator_ = 1.0, denominator_ = 1.0;
  Cost largest_ = 0;
};

}  // namespace gradloom::ged
