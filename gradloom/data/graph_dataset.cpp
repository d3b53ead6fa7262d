#include "gradloom/data/graph_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/data/graph_columns.h"
#include "gradloom/data/graph_order.h"
#include "gradloom/data/rows.h"

namespace gradloom {
namespace {

// A number of the file in the precision of the run. Networks multiply numbers of nodes with each other, and losses
// square them: what they are made of stays so far from the largest number that neither becomes infinite.
template <class T>
T narrow(double v) {
  static const double kLargest = std::sqrt(static_cast<double>(std::numeric_limits<T>::max())) / 16;
  if (std::abs(v) > kLargest)
    throw_invalid(fmt::format("the graphs have the value {}, which is too large for {}; scale it{}", v,
                              sizeof(T) == 4 ? "float32" : "float64",
                              sizeof(T) == 4 ? ", or train with precision = \"float64\"" : ""));
  return static_cast<T>(v);
}

// One row of dense features.
template <class T>
void write_row(NodeFeatures kind, const Graph& g, std::uint32_t v, std::size_t width, T* to) {
  const auto set_one = [&](std::size_t c) { to[c] = T(1); };
  std::size_t given = width;
  switch (kind) {
    case NodeFeatures::labels:
      return set_one(g.node_labels()[v]);
    case NodeFeatures::degrees:
      return set_one(std::min<std::size_t>(g.in_ptr()[v + 1] - g.in_ptr()[v], width - 1));
    case NodeFeatures::identity:
      return set_one(v);
    case NodeFeatures::constant:
      return set_one(0);
    case NodeFeatures::all:
      given = g.node_feature_width();
      set_one(given + g.node_labels()[v]);
      break;
    case NodeFeatures::automatic:
    case NodeFeatures::given:
      break;
  }
  if (const SparseRows& s = g.sparse_features(); !s.empty())
    for (std::uint32_t e = s.row_ptr[v]; e < s.row_ptr[v + 1]; ++e) to[s.column[e]] = narrow<T>(s.value[e]);
  else
    for (std::size_t c = 0; c < given; ++c) to[c] = narrow<T>(g.node_features()[v * given + c]);
}

template <class T>
void normalise(std::span<T> row) {
  double sum = 0.0;
  for (const T v : row) sum += static_cast<double>(v);
  if (sum == 0.0) return;
  for (T& v : row) v = static_cast<T>(static_cast<double>(v) / sum);
}

// How the nodes of a graph lie in rows.
struct NodeRows {
  std::vector<std::uint32_t> node, row;  // of each row, of each node; empty: the same

  NodeRows(const Graph& g, GraphTask task) {
    if (task == GraphTask::graph) return;
    node = locality_order(g);
    row.resize(node.size());
    for (std::uint32_t r = 0; r < node.size(); ++r) row[node[r]] = r;
  }
  std::uint32_t node_at(std::uint32_t r) const { return node.empty() ? r : node[r]; }
  std::uint32_t row_of(std::uint32_t v) const { return row.empty() ? v : row[v]; }
};

// From the values of the file, which may need more digits than T has; labels follow them in the row.
template <class T>
void standardise(const Graph& g, std::uint32_t v, const GraphFeatureOptions& o, std::span<T> row) {
  const std::size_t given = g.node_feature_width();
  if (o.mean.size() != given || row.size() < given)
    throw_invalid(fmt::format("there are {} node features, but scales for {}", given, o.mean.size()));
  for (std::size_t c = 0; c < given; ++c) row[c] = narrow<T>((g.node_features()[v * given + c] - o.mean[c]) / o.std[c]);
  if (row.size() > given) row[given + g.node_labels()[v]] = T(1);
}

template <class T>
void append_sparse(GraphArrays<T>& a, const SparseRows& s, const NodeRows& rows, const GraphFeatureOptions& o) {
  for (std::uint32_t at = 0; at + 1 < s.row_ptr.size(); ++at) {
    const std::uint32_t r = rows.node_at(at);
    const std::size_t first = a.feature_value.size();
    for (std::uint32_t e = s.row_ptr[r]; e < s.row_ptr[r + 1]; ++e) {
      a.feature_column.push_back(s.column[e]);
      a.feature_value.push_back(narrow<T>(s.value[e]));
    }
    if (o.normalise_rows) normalise(std::span<T>(a.feature_value).subspan(first));
    a.feature_ptr.push_back(static_cast<std::uint32_t>(a.feature_value.size()));
  }
}

// A counting sort by column keeps rows ascending.
template <class T>
void transpose_features(GraphArrays<T>& a) {
  a.feature_out_ptr.assign(a.features + 1, 0);
  for (const std::uint32_t c : a.feature_column) ++a.feature_out_ptr[c + 1];
  std::partial_sum(a.feature_out_ptr.begin(), a.feature_out_ptr.end(), a.feature_out_ptr.begin());
  std::vector<std::uint32_t> next(a.feature_out_ptr.begin(), a.feature_out_ptr.end() - 1);
  a.feature_row.resize(a.feature_column.size());
  a.feature_slot.resize(a.feature_column.size());
  for (std::uint32_t v = 0; v < a.nodes; ++v)
    for (std::uint32_t e = a.feature_ptr[v]; e < a.feature_ptr[v + 1]; ++e) {
      const std::uint32_t at = next[a.feature_column[e]]++;
      a.feature_row[at] = v;
      a.feature_slot[at] = e;
    }
}

// Appends the arcs of a graph, sources and targets ascending. Returns the slots of the graph in their order.
template <class T>
std::vector<std::uint32_t> append_arcs(GraphArrays<T>& a, const Graph& g, const NodeRows& rows) {
  const auto node = static_cast<std::uint32_t>(a.nodes), arc = static_cast<std::uint32_t>(a.source.size());
  std::vector<std::uint32_t> slots(g.arcs()), place(g.arcs());
  std::iota(slots.begin(), slots.end(), 0u);
  std::uint32_t end = 0;
  for (std::uint32_t r = 0; r < g.nodes(); ++r) {
    const std::uint32_t v = rows.node_at(r), first = end;
    for (std::uint32_t e = g.in_ptr()[v]; e < g.in_ptr()[v + 1]; ++e) slots[end++] = e;
    std::sort(slots.begin() + first, slots.begin() + end, [&](std::uint32_t x, std::uint32_t y) {
      const std::uint32_t a_row = rows.row_of(g.in_source()[x]), b_row = rows.row_of(g.in_source()[y]);
      return a_row != b_row ? a_row < b_row : x < y;
    });
    a.ptr.push_back(arc + end);
    const auto degree = static_cast<double>(end - first);
    a.root.push_back(static_cast<T>(1.0 / std::sqrt(degree + 1.0)));
    a.with_self.push_back(static_cast<T>(1.0 / (degree + 1.0)));
    a.without.push_back(degree > 0 ? static_cast<T>(1.0 / degree) : T(0));
  }
  for (std::uint32_t e = 0; e < g.arcs(); ++e) {
    place[slots[e]] = e;
    a.source.push_back(node + rows.row_of(g.in_source()[slots[e]]));
  }
  std::vector<std::uint32_t> outward;  // positions among the arcs out of one node
  for (std::uint32_t r = 0; r < g.nodes(); ++r) {
    const std::uint32_t v = rows.node_at(r);
    outward.resize(g.out_ptr()[v + 1] - g.out_ptr()[v]);
    std::iota(outward.begin(), outward.end(), g.out_ptr()[v]);
    std::sort(outward.begin(), outward.end(), [&](std::uint32_t x, std::uint32_t y) {
      const std::uint32_t a_row = rows.row_of(g.out_target()[x]), b_row = rows.row_of(g.out_target()[y]);
      return a_row != b_row ? a_row < b_row : x < y;
    });
    for (const std::uint32_t e : outward) {
      a.out_target.push_back(node + rows.row_of(g.out_target()[e]));
      a.slot.push_back(arc + place[g.tpos()[e]]);
    }
    a.out_ptr.push_back(static_cast<std::uint32_t>(a.slot.size()));
  }
  return slots;
}

template <class T>
void append_edges(GraphArrays<T>& a, const Graph& g, std::span<const std::uint32_t> slots,
                  const GraphFeatureOptions& o) {
  const std::size_t given = g.edge_feature_width();
  for (const std::uint32_t slot : slots) {
    const std::uint32_t edge = g.arc_edge()[slot];
    if (!g.edge_weights().empty()) a.edge_weight.push_back(narrow<T>(g.edge_weights()[edge]));
    if (a.edge_features == 0) continue;
    a.edge_x.resize(a.edge_x.size() + a.edge_stride);
    T* to = a.edge_x.data() + a.edge_x.size() - a.edge_stride;
    for (std::size_t k = 0; k < given; ++k) to[k] = narrow<T>(g.edge_features()[edge * given + k]);
    if (o.edge_labels && !g.edge_labels().empty()) to[given + g.edge_labels()[edge]] = T(1);
  }
}

template <class T>
void append_targets(GraphArrays<T>& a, const GraphSet& set, std::uint32_t which, const NodeRows& rows, double centre) {
  const Graph& g = set.graphs[which];
  if (a.task == GraphTask::node) {
    if (g.node_classes().empty()) throw_invalid("the nodes have no classes to learn");
    // Nodes without a known class never count; any class will do for them.
    for (std::uint32_t r = 0; r < g.nodes(); ++r) {
      const std::uint32_t c = g.node_classes()[rows.node_at(r)];
      a.label.push_back(c == kUnlabelled ? 0 : c);
    }
  } else if (g.graph_class()) {
    a.label.push_back(*g.graph_class());
  } else if (g.graph_target()) {
    const double target = *g.graph_target() - centre;
    a.target.push_back(narrow<T>(target));
    if (sizeof(T) < sizeof(double) && centre != 0.0) a.exact_target.push_back(target);
  } else {
    throw_invalid(fmt::format("graph {} has neither a class nor a target", which));
  }
}

}  // namespace

NodeFeatures resolve_features(NodeFeatures asked, const GraphSet& set) {
  if (asked != NodeFeatures::automatic) return asked;
  const Graph& first = first_with_nodes(set);
  if (!first.sparse_features().empty()) return NodeFeatures::given;
  if (first.node_feature_width() == 0)
    return first.node_labels().empty() ? NodeFeatures::degrees : NodeFeatures::labels;
  std::size_t nodes = 0;
  for (const Graph& g : set.graphs) nodes += g.nodes();
  const bool repeat = !first.node_labels().empty() && 5 * set.node_labels.size() <= nodes;
  return repeat ? NodeFeatures::all : NodeFeatures::given;
}

template <class T>
GraphArrays<T> make_graph_arrays(const GraphSet& set, std::span<const std::uint32_t> which, GraphTask task,
                                 const GraphFeatureOptions& o) {
  if (which.empty()) throw_invalid("there are no graphs");
  const GraphColumns columns = graph_columns(set, which, o);
  const NodeFeatures kind = columns.nodes;
  GraphArrays<T> a;
  a.task = task;
  a.features = columns.node_features;
  a.stride = padded(a.features);
  a.edge_features = columns.edge_features;
  a.edge_stride = padded(a.edge_features);
  a.target_centre = o.target_centre;
  const bool sparse = columns.sparse && task == GraphTask::node;
  a.ptr = a.out_ptr = a.graph_ptr = {0};
  if (sparse) a.feature_ptr = {0};
  for (const std::uint32_t w : which) {
    const Graph& g = set.graphs[w];
    if (a.nodes + g.nodes() > 0xfffffff0u || a.source.size() + g.arcs() > 0xfffffff0u)
      throw_invalid("more than 2^32 nodes or arcs in one data set");
    const NodeRows rows(g, task);
    const std::vector<std::uint32_t> slots = append_arcs(a, g, rows);
    for (const std::uint32_t r : rows.row) a.row_of.push_back(static_cast<std::uint32_t>(a.nodes) + r);
    if (sparse) {
      append_sparse(a, g.sparse_features(), rows, o);
    } else {
      a.x.resize((a.nodes + g.nodes()) * a.stride);
      for (std::uint32_t r = 0; r < g.nodes(); ++r) {
        const std::uint32_t v = rows.node_at(r);
        T* row = a.x.data() + (a.nodes + r) * a.stride;
        if (has_given(kind) && !o.mean.empty())
          standardise(g, v, o, std::span<T>(row, a.features));
        else
          write_row(kind, g, v, a.features, row);
        if (o.normalise_rows && has_given(kind))
          normalise(std::span<T>(row, kind == NodeFeatures::all ? g.node_feature_width() : a.features));
      }
    }
    append_edges(a, g, slots, o);
    if (o.targets_known) append_targets(a, set, w, rows, o.target_centre);
    a.nodes += g.nodes();
    a.graph_ptr.push_back(static_cast<std::uint32_t>(a.nodes));
    ++a.graphs;
  }
  if (sparse) transpose_features(a);
  if (!a.label.empty() && !a.target.empty()) throw_invalid("some graphs have classes and others have targets");
  a.class_names = task == GraphTask::node ? set.node_classes.names() : set.graph_classes.names();
  a.outputs = a.target.empty() ? a.class_names.size() : 1;
  return a;
}

std::vector<std::string> float32_warnings(const GraphSet& set, const GraphFeatureOptions& o) {
  std::vector<std::string> warnings;
  const auto see = [&](std::vector<double> column, const char* what, std::string_view name) {
    if (std::string warning = float32_warning(std::move(column), what, name); !warning.empty())
      warnings.push_back(std::move(warning));
  };
  // Column c of what all nodes, or all edges, have.
  const auto column = [&](std::span<const double> (Graph::*values)() const, std::size_t c, std::size_t width) {
    std::vector<double> all;
    for (const Graph& g : set.graphs)
      for (std::size_t i = c; i < (g.*values)().size(); i += width) all.push_back((g.*values)()[i]);
    return all;
  };
  const auto name = [](const std::vector<std::string>& names, std::size_t c) {
    return c < names.size() ? names[c] : fmt::format("x{}", c + 1);
  };
  std::size_t nodes = 0, edges = 0;
  for (const Graph& g : set.graphs)
    nodes = std::max<std::size_t>(nodes, g.node_feature_width()),
    edges = std::max<std::size_t>(edges, g.edge_feature_width());
  const bool given = set.size() > 0 && has_given(resolve_features(o.nodes, set));
  for (std::size_t c = 0; c < nodes && given; ++c) {
    std::vector<double> values = column(&Graph::node_features, c, nodes);
    for (double& v : values)
      if (c < o.mean.size()) v = (v - o.mean[c]) / o.std[c];
    see(std::move(values), "node feature", name(set.node_feature_names, c));
  }
  for (std::size_t c = 0; c < edges; ++c)
    see(column(&Graph::edge_features, c, edges), "edge feature", name(set.edge_feature_names, c));
  see(column(&Graph::edge_weights, 0, 1), "edge", "weight");
  std::vector<double> targets;
  for (const Graph& g : set.graphs)
    if (g.graph_target()) targets.push_back(*g.graph_target() - o.target_centre);
  see(std::move(targets), "graph", "target");
  return warnings;
}

void measure_features(const GraphSet& set, GraphFeatureOptions& options) {
  if (!options.standardise || set.size() == 0 || !has_given(resolve_features(options.nodes, set))) return;
  const std::size_t width = first_with_nodes(set).node_feature_width();
  if (width == 0) return;
  std::vector<double> sum(width, 0.0), squares(width, 0.0);
  double count = 0;
  const auto each = [&](auto&& take) {
    for (const Graph& g : set.graphs)
      for (std::size_t i = 0; i < g.node_features().size() && g.node_feature_width() == width; ++i)
        take(i % width, g.node_features()[i]);
  };
  for (const Graph& g : set.graphs) count += g.nodes();
  each([&](std::size_t c, double value) { sum[c] += value; });
  for (double& s : sum) s /= count;
  each([&](std::size_t c, double value) { squares[c] += (value - sum[c]) * (value - sum[c]); });
  for (double& s : squares) s = s > 0 && std::isfinite(s) ? std::sqrt(s / count) : 1.0;
  options.mean = std::move(sum);
  options.std = std::move(squares);
}

template <class T>
void measure_targets(const GraphSet& set, std::span<const std::uint32_t> which, GraphFeatureOptions& options) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const std::uint32_t w : which)
    if (const auto target = set.graphs[w].graph_target(); target && !set.graphs[w].graph_class())
      low = std::min(low, *target), high = std::max(high, *target);
  options.target_centre = 0.0;
  if (low > high) return;
  check_target_spread<T>(low, high, "graph 'target'");
  options.target_centre = choose_centre<T>(low, high);
}

template <class T>
GraphDataset<T>::GraphDataset(std::shared_ptr<const GraphArrays<T>> arrays, std::vector<T> weight)
    : arrays_(std::move(arrays)), weight_(weight.size()) {
  if (!weight.empty() && weight.size() != arrays_->rows())
    throw_invalid(fmt::format("{} weights were given for {} rows", weight.size(), arrays_->rows()));
  for (std::size_t n = 0; n < weight.size(); ++n) weight_[row_of(n)] = weight[n];
  const GraphArrays<T>& a = *arrays_;
  std::vector<std::size_t> nodes, arcs;
  for (std::size_t g = 0; g < a.graphs; ++g) {
    nodes.push_back(a.graph_ptr[g + 1] - a.graph_ptr[g]);
    arcs.push_back(a.ptr[a.graph_ptr[g + 1]] - a.ptr[a.graph_ptr[g]]);
  }
  for (auto [sizes, sums] : {std::pair(&nodes, &most_nodes_), std::pair(&arcs, &most_arcs_)}) {
    std::sort(sizes->rbegin(), sizes->rend());
    sums->assign(1, 0);
    for (const std::size_t s : *sizes) sums->push_back(sums->back() + s);
  }
}

namespace {

// Views on arrays of which the first `graphs` graphs are filled.
template <class T>
GraphBatch<T> batch_of(const GraphArrays<T>& a, std::size_t graphs, std::span<const T> weight) {
  GraphBatch<T> b;
  const std::size_t nodes = a.graph_ptr[graphs], arcs = a.ptr[nodes];
  const auto first = [](const auto& v, std::size_t n) { return std::span(v.data(), std::min(n, v.size())); };
  b.size = a.task == GraphTask::node ? nodes : graphs;
  b.nodes = nodes, b.graphs = graphs;
  b.arcs = {first(a.ptr, nodes + 1), first(a.source, arcs), first(a.out_ptr, nodes + 1), first(a.out_target, arcs),
            first(a.slot, arcs)};
  b.graph_ptr = first(a.graph_ptr, graphs + 1);
  b.root = first(a.root, nodes), b.with_self = first(a.with_self, nodes), b.without = first(a.without, nodes);
  b.edge_weight = first(a.edge_weight, arcs);
  if (a.edge_features > 0) b.edge_x = View<const T, 2>(a.edge_x.data(), {arcs, a.edge_features}, {a.edge_stride, 1});
  if (a.sparse()) {
    b.features = {a.feature_ptr, a.feature_column, a.feature_out_ptr, a.feature_row, a.feature_slot};
    b.feature_value = a.feature_value;
    b.feature_columns = a.features;
  } else {
    b.x = View<const T, 2>(a.x.data(), {nodes, a.features}, {a.stride, 1});
  }
  if (!a.target.empty())
    b.target = View<const T, 2>(a.target.data(), {b.size, 1});
  else
    b.label = first(a.label, b.size);
  b.weight = weight;
  return b;
}

}  // namespace

template <class T>
GraphBatch<T> GraphDataset<T>::all() const {
  return batch_of<T>(*arrays_, arrays_->graphs, weight_);
}

template <class T>
GraphBatchStorage<T>::GraphBatchStorage(const GraphDataset<T>& dataset, std::size_t max_size) : max_size_(max_size) {
  const GraphArrays<T>& from = dataset.arrays();
  if (from.task == GraphTask::node) return;
  const std::size_t nodes = dataset.largest_nodes(max_size), arcs = dataset.largest_arcs(max_size);
  GraphArrays<T>& a = arrays_;
  a.task = from.task, a.features = from.features, a.stride = from.stride;
  a.edge_features = from.edge_features, a.edge_stride = from.edge_stride;
  a.ptr.resize(nodes + 1), a.out_ptr.resize(nodes + 1);
  a.source.resize(arcs), a.out_target.resize(arcs), a.slot.resize(arcs);
  a.graph_ptr.resize(max_size + 1);
  sample_.resize(max_size);
  a.x.resize(nodes * from.stride);
  a.root.resize(nodes), a.with_self.resize(nodes), a.without.resize(nodes);
  if (!from.edge_weight.empty()) a.edge_weight.resize(arcs);
  a.edge_x.resize(arcs * from.edge_stride);
  if (!from.label.empty()) a.label.resize(max_size);
  if (!from.target.empty()) a.target.resize(max_size);
}

template <class T>
GraphBatch<T> GraphDataset<T>::gather(std::span<const std::uint32_t> graphs, GraphBatchStorage<T>& storage) const {
  const GraphArrays<T>& from = *arrays_;
  if (from.task == GraphTask::node) throw_invalid("a node task has one batch, the whole graph; set train.batch = 0");
  if (graphs.size() > storage.max_size_)
    throw_invalid(fmt::format("{} graphs do not fit into a batch storage for {}", graphs.size(), storage.max_size_));
  GraphArrays<T>& to = storage.arrays_;
  std::uint32_t node = 0, arc = 0;
  for (std::size_t k = 0; k < graphs.size(); ++k) {
    const std::uint32_t g = graphs[k];
    if (g >= from.graphs) throw_invalid(fmt::format("graph {} of {} does not exist", g, from.graphs));
    const std::uint32_t first = from.graph_ptr[g], last = from.graph_ptr[g + 1], count = last - first;
    const std::uint32_t first_arc = from.ptr[first], arcs = from.ptr[last] - first_arc;
    // Differences wrap around where the graph moves to the front; the sums are right.
    const std::uint32_t move = node - first, move_arc = arc - first_arc;
    to.graph_ptr[k + 1] = node + count;
    for (std::uint32_t v = 0; v < count; ++v) {
      to.ptr[node + v + 1] = from.ptr[first + v + 1] + move_arc;
      to.out_ptr[node + v + 1] = from.out_ptr[first + v + 1] + move_arc;
    }
    for (std::uint32_t e = 0; e < arcs; ++e) {
      to.source[arc + e] = from.source[first_arc + e] + move;
      to.out_target[arc + e] = from.out_target[first_arc + e] + move;
      to.slot[arc + e] = from.slot[first_arc + e] + move_arc;
    }
    const auto copy = [](const auto& a, std::size_t at, std::size_t n, auto& b, std::size_t where) {
      if (!b.empty()) std::copy_n(a.data() + at, n, b.data() + where);
    };
    copy(from.x, first * from.stride, count * from.stride, to.x, node * from.stride);
    copy(from.root, first, count, to.root, node);
    copy(from.with_self, first, count, to.with_self, node);
    copy(from.without, first, count, to.without, node);
    copy(from.edge_weight, first_arc, arcs, to.edge_weight, arc);
    copy(from.edge_x, first_arc * from.edge_stride, arcs * from.edge_stride, to.edge_x, arc * from.edge_stride);
    copy(from.label, g, 1, to.label, k);
    copy(from.target, g, 1, to.target, k);
    storage.sample_[k] = g;
    node += count, arc += arcs;
  }
  GraphBatch<T> batch = batch_of<T>(to, graphs.size(), {});
  batch.sample = std::span<const std::uint32_t>(storage.sample_).first(graphs.size());
  return batch;
}

#define GRADLOOM_INSTANTIATE(T)                                                                            \
  template GraphArrays<T> make_graph_arrays<T>(const GraphSet&, std::span<const std::uint32_t>, GraphTask, \
                                               const GraphFeatureOptions&);                                \
  template void measure_targets<T>(const GraphSet&, std::span<const std::uint32_t>, GraphFeatureOptions&); \
  template class GraphBatchStorage<T>;                                                                     \
  template class GraphDataset<T>;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom
