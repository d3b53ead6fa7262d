// Random graphs, a network on them and one forward + backward, for tests.
#pragma once

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::test {

struct GraphShape {
  std::vector<std::uint32_t> nodes = {5, 1, 7, 4};  // of each graph
  double arcs_per_node = 1.5;
  std::uint32_t star = 0;  // the first graph is a star of this many leaves instead
  std::size_t features = 3, edge_features = 0;
  bool weights = false, sparse = false;
  Direction direction = Direction::undirected;
};

inline GraphSet random_graphs(const GraphShape& shape, GraphTask task, std::uint64_t seed = 1) {
  GraphSetBuilder set;
  set.node_classes.intern("0"), set.node_classes.intern("1"), set.node_classes.intern("2");
  set.graph_classes.intern("0"), set.graph_classes.intern("1"), set.graph_classes.intern("2");
  const RandomStream random(seed, RandomUse::test);
  std::uint32_t at = 0;
  for (std::size_t g = 0; g < shape.nodes.size(); ++g) {
    const bool star = g == 0 && shape.star > 0;
    const std::uint32_t count = star ? shape.star + 1 : shape.nodes[g];
    GraphBuilder b(shape.direction);
    SparseRows rows;
    rows.columns = static_cast<std::uint32_t>(shape.features);
    rows.row_ptr = {0};
    for (std::uint32_t v = 0; v < count; ++v) {
      std::vector<double> x;
      for (std::size_t c = 0; c < shape.features; ++c) {
        x.push_back(random.normal(at++));
        if (!shape.sparse || random.uniform(at++) < 0.5) continue;
        rows.column.push_back(static_cast<std::uint32_t>(c));
        rows.value.push_back(x.back());
      }
      rows.row_ptr.push_back(static_cast<std::uint32_t>(rows.column.size()));
      NodeValues values;
      if (!shape.sparse) values.features = x;
      if (task == GraphTask::node) values.node_class = random.below(at++, 3);
      b.add_node(values).or_throw();
    }
    const auto edge = [&](std::uint32_t from, std::uint32_t to) {
      if (from == to || b.has_edge(from, to)) return;
      EdgeValues values;
      std::vector<double> x;
      for (std::size_t c = 0; c < shape.edge_features; ++c) x.push_back(random.normal(at++));
      values.features = x;
      if (shape.weights) values.weight = 0.5 + random.uniform(at++);
      b.add_edge(from, to, values).or_throw();
    };
    if (star)
      for (std::uint32_t v = 1; v < count; ++v) edge(0, v);
    else
      for (std::size_t e = 0; e < static_cast<std::size_t>(shape.arcs_per_node * count); ++e) {
        const std::uint32_t from = random.below(at++, count), to = random.below(at++, count);
        edge(from, to);
      }
    if (shape.sparse) b.set_sparse_features(rows).or_throw();
    if (task == GraphTask::graph) b.set_class(random.below(at++, 3));
    set.add(b, std::to_string(g));
  }
  return set.finish();
}

template <class T>
GraphDataset<T> dataset_of(const GraphSet& set, GraphTask task) {
  std::vector<std::uint32_t> which(set.size());
  for (std::size_t g = 0; g < which.size(); ++g) which[g] = static_cast<std::uint32_t>(g);
  return GraphDataset<T>(std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(set, which, task, {})), {});
}

template <class T>
struct GraphFixture {
  GraphDataset<T> data;
  graph::GraphNetwork<T> network;
  Buffer<T> parameters, buffers, gradient, y, dl_dy, dl_dx;
  std::size_t rows, stride;

  static graph::NetworkOptions fitted(graph::NetworkOptions o, const GraphDataset<T>& data) {
    o.inputs = data.arrays().features, o.outputs = data.arrays().outputs;
    o.edge_features = data.arrays().edge_features, o.sparse = data.arrays().sparse();
    o.limits.include(data);
    return o;
  }

  GraphFixture(const graph::NetworkOptions& o, const GraphShape& shape)
      : data(dataset_of<T>(random_graphs(shape, o.task), o.task)),
        network(fitted(o, data)),
        parameters(network.parameters().flat_size()),
        buffers(network.buffers().flat_size()),
        gradient(network.parameters().flat_size()),
        rows(data.size()),
        stride(padded(network.output_width())) {
    network.initialise(3, parameters.span(), buffers.span());
    y = Buffer<T>(rows * stride), dl_dy = Buffer<T>(rows * stride);
    dl_dx = Buffer<T>(data.arrays().nodes * data.arrays().features);
    const RandomStream random(9, RandomUse::test);
    std::uint32_t at = 0;
    for (const Slice& slice : network.parameters())
      for_each_logical(slice, [&](std::size_t i) { parameters[i] += static_cast<T>(0.5 * random.normal(at++)); });
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < network.output_width(); ++j)
        dl_dy[i * stride + j] = static_cast<T>(random.normal(at++));
  }

  ModelArrays<T> arrays() const { return {parameters, buffers}; }
  View<T, 2> y_view() { return {y.data(), {rows, network.output_width()}, {stride, 1}}; }
  View<const T, 2> dl_dy_view() const { return {dl_dy.data(), {rows, network.output_width()}, {stride, 1}}; }

  graph::GraphTape<T> run(const Exec& ex, Step step = {}, GradientSink* sink = nullptr) {
    const bool inputs = !data.arrays().sparse();
    auto tape = network.make_tape(ex, {.batch = std::max<std::size_t>(1, rows), .input_gradient = inputs});
    network.forward(ex, step, arrays(), data.all(), tape, y_view());
    Buffer<T> levels = gradient_levels(network, data.all());
    network.backward(
        ex, {.step = step,
             .arrays = arrays(),
             .batch = data.all(),
             .tape = tape,
             .dl_dy = dl_dy_view(),
             .gradient = gradient,
             .dl_dx = inputs ? View<T, 2>(dl_dx.data(), {data.arrays().nodes, data.arrays().features}) : View<T, 2>(),
             .sink = sink,
             .levels = levels});
    return tape;
  }
};

}  // namespace gradloom::test
