#include "gradloom/models/graph/rewrite_path.h"

#include <cmath>

namespace gradloom::graph {
namespace {

LabelTable numbers(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < count; ++k) names.push_back(std::to_string(k));
  return LabelTable(std::move(names));
}

}  // namespace

Graph expression_graph(const Expression& e) {
  GraphBuilder b(Direction::directed);
  for (const Symbol s : e.symbol) b.add_node({.label = static_cast<std::uint32_t>(s)}).or_throw();
  for (std::uint32_t v = 0; v < e.size(); ++v)
    for (std::uint32_t side = 0; side < 2; ++side)
      if (e.child[v][side] != kNoNode) b.add_edge(v, e.child[v][side], {.label = side}).or_throw();
  return b.build();
}

ged::Costs path_costs() {
  ged::Costs c;
  c.edge_sub = c.edge_delete = c.edge_insert = kPathEdgeCost;
  return c;
}

ExpressionCosts::ExpressionCosts(const ged::Costs& costs) : table_(costs, numbers(kSymbols), numbers(2)) {}

PathProof prove_edits(const Exec& ex, const Expression& source, std::span<const NodeEdit> edits,
                      const ExpressionCosts& costs, std::uint64_t expansions) {
  const Graph a = expression_graph(source), b = expression_graph(apply_edits(source, edits));
  ged::Mapping mapping = trace_edits(source, edits);
  for (std::uint32_t& image : mapping)
    if (image == kNoNode) image = ged::kErased;
  const double cost = ged::mapping_cost(a, b, costs.table(), mapping);
  // Costs are multiples of a half, and bounds may round: what is nearer than a quarter is equal.
  const auto reaches = [&](double lower) { return lower > cost - 0.25; };
  if (reaches(ged::label_bound(a, b, costs.table())) || reaches(ged::assignment_bound(a, b, costs.table())))
    return PathProof::exact;
  ged::Options o;
  o.ties = ged::Ties::any;
  o.limits.expansions = expansions;
  const ged::Distance d = ged::edit_distance(ex, a, b, costs.table(), o);
  if (d.upper < cost - 0.25) return PathProof::beaten;
  return reaches(d.lower) ? PathProof::exact : PathProof::open;
}

PathProof prove_pass(const Exec& ex, const RewriteSample& sample, const ExpressionCosts& costs,
                     std::uint64_t expansions) {
  PathProof worst = PathProof::exact;
  for (const std::uint32_t node : pass_places(sample.source)) {
    const PathProof proof = prove_edits(ex, sample.source, plan_rule(sample.source, node), costs, expansions);
    if (proof == PathProof::beaten) return proof;
    if (proof == PathProof::open) worst = proof;
  }
  return worst;
}

std::vector<PathProof> prove_passes(const Exec& ex, std::span<const RewriteSample> samples, std::uint64_t expansions) {
  const ExpressionCosts costs(path_costs());
  std::vector<PathProof> proofs(samples.size());
  constexpr std::size_t kSamples = 16;
  ex.parallel_for((samples.size() + kSamples - 1) / kSamples, [&](std::size_t task, unsigned) {
    const Exec alone({.threads = 1});
    for (std::size_t s = task * kSamples; s < std::min(samples.size(), (task + 1) * kSamples); ++s)
      proofs[s] = prove_pass(alone, samples[s], costs, expansions);
  });
  return proofs;
}

ged::Distance expression_distance(const Exec& ex, const Expression& a, const Expression& b,
                                  const ExpressionCosts& costs, std::uint64_t expansions) {
  if (a == b) {
    ged::Distance same;
    same.exact = true;
    for (std::uint32_t v = 0; v < a.size(); ++v) same.mapping.push_back(v);
    return same;
  }
  ged::Options o;
  o.ties = ged::Ties::any;
  o.limits.expansions = expansions;
  return ged::edit_distance(ex, expression_graph(a), expression_graph(b), costs.table(), o);
}

}  // namespace gradloom::graph
