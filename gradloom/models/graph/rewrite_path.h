// Edits of expressions as edit paths between graphs: are the edits of a pass the cheapest ones, and how far is one
// expression from another?
#pragma once

#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/ged/ged.h"

namespace gradloom::graph {

// Directed from parent to child; labels of nodes are symbols, labels of edges sides (0 left, 1 right).
Graph expression_graph(const Expression& e);

// What edits cost where paths are looked for: 1 for a node, a half for an edge. With edges as dear as nodes it is
// cheaper to write x over the * of x*1 than to take x as it is; at a half both cost the same, so that what the rules do
// is one of the cheapest ways.
inline constexpr double kPathEdgeCost = 0.5;
ged::Costs path_costs();

// Tables for costs between expressions.
class ExpressionCosts {
 public:
  ExpressionCosts(const ged::Costs& costs);
  const ged::CostTable& table() const { return table_; }

 private:
  ged::CostTable table_;
};

enum class PathProof {
  exact,   // no path is cheaper
  beaten,  // another one is
  open,    // the search was given up
};

// Compares the cost of edits with the exact distance between an expression and what they make of it; at most
// `expansions` nodes of the search tree are opened.
PathProof prove_edits(const Exec& ex, const Expression& source, std::span<const NodeEdit> edits,
                      const ExpressionCosts& costs, std::uint64_t expansions);
// A sample's pass, rule by rule: exact when the edits of each rule are an exact path of the step that this rule makes
// alone. (Of a whole pass they often are not: a node that one rule erases could serve another far away as one that it
// inserts.)
PathProof prove_pass(const Exec& ex, const RewriteSample& sample, const ExpressionCosts& costs,
                     std::uint64_t expansions);
// All samples, in parallel. The result does not depend on the number of threads.
std::vector<PathProof> prove_passes(const Exec& ex, std::span<const RewriteSample> samples, std::uint64_t expansions);

// The distance between two expressions with unit costs. Equal ones need no search.
ged::Distance expression_distance(const Exec& ex, const Expression& a, const Expression& b,
                                  const ExpressionCosts& costs, std::uint64_t expansions);

}  // namespace gradloom::graph
