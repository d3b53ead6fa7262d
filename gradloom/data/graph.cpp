#include "gradloom/data/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gradloom/data/labels.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

constexpr std::uint32_t kMost = 0x7fffffffu;  // nodes, edges: two arcs an edge still fit into u32

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::invalid_input, fmt::format(format, std::forward<Args>(args)...)};
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// Whether item number `count` may have a value, when `have` of those before it do.
bool consistent(std::size_t have, std::size_t count, bool given) { return have == (given ? count : 0); }

void renumber(std::vector<std::uint32_t>& labels, std::span<const std::uint32_t> to) {
  for (std::uint32_t& label : labels)
    if (label != kUnlabelled) label = to[label];
}

// Sorts the names of a table; returns the new number of each old one.
std::vector<std::uint32_t> sort_names(LabelTable& table) {
  const std::vector<std::string_view> names(table.names().begin(), table.names().end());
  std::vector<std::uint32_t> order(names.size()), to(names.size());
  std::iota(order.begin(), order.end(), 0u);
  // As classes of tables are sorted; names that are one number in two spellings ("1", "1.0") stay two.
  const Labels labels = encode_labels(std::span<const std::string_view>(names));
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(labels.index[a], names[a]) < std::pair(labels.index[b], names[b]);
  });
  std::vector<std::string> sorted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    to[order[i]] = i;
    sorted.emplace_back(names[order[i]]);
  }
  table = LabelTable(std::move(sorted));
  return to;
}

std::vector<std::uint32_t> merge_names(LabelTable& table, const LabelTable& other) {
  std::vector<std::uint32_t> to;
  for (const std::string& name : other.names()) to.push_back(table.intern(name));
  return to;
}

}  // namespace

GraphBuilder::GraphBuilder(Direction direction, LoopPolicy loops) : loops_(loops) { graph_.direction_ = direction; }

std::uint64_t GraphBuilder::key(std::uint32_t from, std::uint32_t to) const {
  if (graph_.direction_ == Direction::undirected && from > to) std::swap(from, to);
  return std::uint64_t{from} << 32 | to;
}

Result<void> GraphBuilder::add_node(const NodeValues& values) {
  Graph& g = graph_;
  if (g.nodes_ >= kMost) return invalid("there are more than {} nodes", kMost);
  if (!consistent(g.node_labels_.size(), g.nodes_, values.label.has_value()))
    return invalid("node {} {} a label, but the nodes before it {}; give all nodes one, or none", g.nodes_,
                   values.label ? "has" : "lacks", values.label ? "have none" : "have one");
  if (!consistent(g.node_classes_.size(), g.nodes_, values.node_class.has_value()))
    return invalid("node {} {} a class, but the nodes before it {}; give all nodes one, or none", g.nodes_,
                   values.node_class ? "has" : "lacks", values.node_class ? "have none" : "have one");
  if (g.nodes_ > 0 && values.features.size() != g.node_width_)
    return invalid("node {} has {} features, but the nodes before it have {}", g.nodes_, values.features.size(),
                   g.node_width_);
  if (!all_finite(values.features)) return invalid("node {} has a feature that is not a finite number", g.nodes_);
  if (g.nodes_ == 0) g.node_width_ = static_cast<std::uint32_t>(values.features.size());
  if (values.label) g.node_labels_.push_back(*values.label);
  if (values.node_class) g.node_classes_.push_back(*values.node_class);
  g.node_features_.insert(g.node_features_.end(), values.features.begin(), values.features.end());
  ++g.nodes_;
  return {};
}

Result<void> GraphBuilder::add_edge(std::uint32_t from, std::uint32_t to, const EdgeValues& values) {
  Graph& g = graph_;
  const std::size_t m = g.edge_from_.size();
  if (m >= kMost) return invalid("there are more than {} edges", kMost);
  for (const std::uint32_t end : {from, to})
    if (end >= g.nodes_)
      return invalid("the edge {} - {} has an end that does not exist: there {} {} node{}, numbered from 0", from, to,
                     g.nodes_ == 1 ? "is" : "are", g.nodes_, g.nodes_ == 1 ? "" : "s");
  if (from == to && loops_ == LoopPolicy::refuse)
    return invalid("the edge {0} - {0} is a loop from a node to itself; remove it, or allow loops", from);
  if (!consistent(g.edge_labels_.size(), m, values.label.has_value()))
    return invalid("the edge {} - {} {} a label, but the edges before it {}; give all edges one, or none", from, to,
                   values.label ? "has" : "lacks", values.label ? "have none" : "have one");
  if (!consistent(g.edge_weights_.size(), m, values.weight.has_value()))
    return invalid("the edge {} - {} {} a weight, but the edges before it {}; give all edges one, or none", from, to,
                   values.weight ? "has" : "lacks", values.weight ? "have none" : "have one");
  if (m > 0 && values.features.size() != g.edge_width_)
    return invalid("the edge {} - {} has {} features, but the edges before it have {}", from, to,
                   values.features.size(), g.edge_width_);
  if (!all_finite(values.features) || !std::isfinite(values.weight.value_or(0.0)))
    return invalid("the edge {} - {} has a weight or feature that is not a finite number", from, to);
  if (!seen_.insert(key(from, to)).second)
    return invalid("the edge {} - {} occurs twice{}; keep one of them", from, to,
                   g.direction_ == Direction::undirected ? " (the order of its ends does not matter)" : "");
  if (m == 0) g.edge_width_ = static_cast<std::uint32_t>(values.features.size());
  g.edge_from_.push_back(from);
  g.edge_to_.push_back(to);
  if (values.label) g.edge_labels_.push_back(*values.label);
  if (values.weight) g.edge_weights_.push_back(*values.weight);
  g.edge_features_.insert(g.edge_features_.end(), values.features.begin(), values.features.end());
  return {};
}

Result<void> GraphBuilder::set_sparse_features(SparseRows rows) {
  bool good = rows.row_ptr.size() == std::size_t{graph_.nodes_} + 1 && rows.row_ptr.front() == 0 &&
              rows.row_ptr.back() == rows.column.size() && rows.column.size() == rows.value.size() &&
              std::is_sorted(rows.row_ptr.begin(), rows.row_ptr.end());
  for (std::size_t r = 0; good && r + 1 < rows.row_ptr.size(); ++r)
    for (std::uint32_t k = rows.row_ptr[r]; k < rows.row_ptr[r + 1]; ++k)
      good = good && rows.column[k] < rows.columns && (k == rows.row_ptr[r] || rows.column[k - 1] < rows.column[k]);
  if (!good || !all_finite(rows.value))
    return invalid(
        "the sparse features are not a matrix of {} rows and {} columns with finite values and ascending columns",
        graph_.nodes_, rows.columns);
  graph_.node_width_ = 0;
  graph_.node_features_.clear();
  graph_.sparse_features_ = std::move(rows);
  return {};
}

Graph GraphBuilder::build() {
  Graph& g = graph_;
  struct Arc {
    std::uint32_t from, to, edge;
  };
  std::vector<Arc> arcs;
  arcs.reserve(g.edge_from_.size() * 2);
  for (std::uint32_t e = 0; e < g.edge_from_.size(); ++e) {
    arcs.push_back({g.edge_from_[e], g.edge_to_[e], e});
    if (g.direction_ == Direction::undirected && g.edge_from_[e] != g.edge_to_[e])
      arcs.push_back({g.edge_to_[e], g.edge_from_[e], e});
  }
  std::sort(arcs.begin(), arcs.end(),
            [](const Arc& a, const Arc& b) { return std::pair(a.to, a.from) < std::pair(b.to, b.from); });
  g.in_ptr_.assign(std::size_t{g.nodes_} + 1, 0);
  g.out_ptr_.assign(std::size_t{g.nodes_} + 1, 0);
  for (const Arc& arc : arcs) {
    ++g.in_ptr_[arc.to + 1];
    ++g.out_ptr_[arc.from + 1];
    g.in_source_.push_back(arc.from);
    g.arc_edge_.push_back(arc.edge);
  }
  std::partial_sum(g.in_ptr_.begin(), g.in_ptr_.end(), g.in_ptr_.begin());
  std::partial_sum(g.out_ptr_.begin(), g.out_ptr_.end(), g.out_ptr_.begin());
  g.out_target_.resize(arcs.size());
  g.tpos_.resize(arcs.size());
  std::vector<std::uint32_t> next(g.out_ptr_.begin(), g.out_ptr_.end());
  for (std::uint32_t slot = 0; slot < arcs.size(); ++slot) {
    const std::uint32_t at = next[arcs[slot].from]++;
    g.out_target_[at] = arcs[slot].to;
    g.tpos_[at] = slot;
  }
  Graph done = std::move(graph_);
  graph_ = Graph();
  graph_.direction_ = done.direction_;
  seen_.clear();
  return done;
}

LabelTable::LabelTable(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::uint32_t i = 0; i < names_.size(); ++i) index_.emplace(names_[i], i);
}

std::uint32_t LabelTable::intern(std::string_view name) {
  const auto [it, added] = index_.emplace(std::string(name), size());
  if (added) names_.emplace_back(name);
  return it->second;
}

std::optional<std::uint32_t> LabelTable::find(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? std::nullopt : std::optional(it->second);
}

Result<std::size_t> GraphSet::find(std::string_view id) const {
  const auto first = std::find(ids.begin(), ids.end(), id);
  if (first == ids.end()) {
    const std::string near = near_name(id, ids);
    return Error{ErrorCode::not_found,
                 fmt::format("there is no graph '{}'{}", id,
                             ids.empty()    ? ""
                             : near.empty() ? fmt::format("; there are {}, the first is '{}'", ids.size(), ids.front())
                                            : "; the nearest is '" + near + "'")};
  }
  if (std::find(first + 1, ids.end(), id) != ids.end())
    return invalid("several graphs are called '{}'; name one by its position, #0 is the first", id);
  return static_cast<std::size_t>(first - ids.begin());
}

std::string GraphSet::node_id(std::size_t graph, std::uint32_t node) const {
  const bool named = graph < node_ids.size() && !node_ids[graph].empty();
  return named ? node_ids[graph][node] : fmt::format("{}", node);
}

void GraphSet::append(GraphSet other) {
  for (const auto names : {&GraphSet::node_feature_names, &GraphSet::edge_feature_names}) {
    if (graphs.empty()) this->*names = std::move(other.*names);
    if (!graphs.empty() && this->*names != other.*names) (this->*names).clear();
  }
  const auto nodes = merge_names(node_labels, other.node_labels), edges = merge_names(edge_labels, other.edge_labels);
  const auto classes = merge_names(graph_classes, other.graph_classes);
  const auto node_kinds = merge_names(node_classes, other.node_classes);
  const auto first = static_cast<std::uint32_t>(graphs.size());
  if (splits.empty() != other.splits.empty()) {
    splits.resize(ids.size());
    other.splits.resize(other.ids.size());
  }
  for (std::size_t i = 0; i < other.graphs.size(); ++i) {
    Graph& g = other.graphs[i];
    renumber(g.node_labels_, nodes);
    renumber(g.edge_labels_, edges);
    renumber(g.node_classes_, node_kinds);
    if (g.graph_class_) g.graph_class_ = classes[*g.graph_class_];
    graphs.push_back(std::move(g));
    ids.push_back(std::move(other.ids[i]));
    if (i < other.splits.size()) splits.push_back(std::move(other.splits[i]));
  }
  node_ids.resize(node_ids.empty() && other.node_ids.empty() ? 0 : first);
  for (auto& of_graph : other.node_ids) node_ids.push_back(std::move(of_graph));
  for (NodeSplit& split : other.node_splits) {
    split.graph += first;
    node_splits.push_back(std::move(split));
  }
}

void GraphSetBuilder::add(GraphBuilder& graph, std::string id, std::string split) {
  if (!split.empty() && set_.splits.empty()) set_.splits.resize(set_.graphs.size());
  set_.graphs.push_back(graph.build());
  set_.ids.push_back(std::move(id));
  if (!split.empty() || !set_.splits.empty()) set_.splits.push_back(std::move(split));
}

void GraphSetBuilder::name_nodes(std::vector<std::string> ids) {
  set_.node_ids.resize(set_.graphs.size());
  set_.node_ids.back() = std::move(ids);
}

Result<void> GraphSetBuilder::name_features(const std::vector<std::string>& nodes,
                                            const std::vector<std::string>& edges) {
  const auto name = [&](std::vector<std::string>& known, const std::vector<std::string>& names,
                        const char* of) -> Result<void> {
    if (known.empty()) known = names;
    if (names == known || names.size() != known.size()) return {};
    return invalid("graph '{}' has the features {} of {}, but the graphs before it have {}", set_.ids.back(),
                   fmt::join(names, ", "), of, fmt::join(known, ", "));
  };
  if (auto r = name(set_.node_feature_names, nodes, "nodes"); !r) return r;
  return name(set_.edge_feature_names, edges, "edges");
}

GraphSet GraphSetBuilder::finish() {
  const auto nodes = sort_names(node_labels), edges = sort_names(edge_labels);
  const auto classes = sort_names(graph_classes), node_kinds = sort_names(node_classes);
  for (Graph& g : set_.graphs) {
    renumber(g.node_labels_, nodes);
    renumber(g.edge_labels_, edges);
    renumber(g.node_classes_, node_kinds);
    if (g.graph_class_) g.graph_class_ = classes[*g.graph_class_];
  }
  set_.node_labels = std::move(node_labels);
  set_.edge_labels = std::move(edge_labels);
  set_.graph_classes = std::move(graph_classes);
  set_.node_classes = std::move(node_classes);
  return std::move(set_);
}

}  // namespace gradloom
