#include "gradloom/models/graph/dual.h"

#include "gradloom/models/graph/pair_network.h"
#include "gradloom/models/graph/tree_network.h"

namespace gradloom::graph {

namespace {

// d/d(direction) of sum_bj dl_dy(b, j) y_bj.
template <class Network>
double derivative_of(const Network& network, DualPass p, View<const double, 2> dl_dy) {
  p.tensors.resize(network.tensors());
  for (std::size_t i = 0; !p.batch.sparse() && i < p.batch.nodes; ++i) {
    p.tensors[0].emplace_back();
    for (std::size_t c = 0; c < p.batch.x.extent(1); ++c)
      p.tensors[0].back().push_back(
          p.seed(p.batch.x(i, c), DualDirection::What::node_feature, i * p.batch.x.extent(1) + c));
  }
  for (const auto& op : network.ops()) op->dual(p);
  const DualMatrix& y = p.in(network.last());
  double derivative = 0.0;
  for (std::size_t b = 0; b < p.batch.size; ++b)
    for (std::size_t j = 0; j < network.output_width(); ++j) derivative += dl_dy(b, j) * y[b][j].d;
  return derivative;
}

}  // namespace

double dual_derivative(const GraphNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const GraphBatch<double>& batch, View<const double, 2> dl_dy, const DualDirection& direction) {
  const bool node = network.options().task == GraphTask::node;
  return derivative_of(network, {step, arrays, batch, nullptr, direction, node}, dl_dy);
}

double dual_derivative(const PairNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const PairBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index) {
  return derivative_of(network, {step, arrays, batch, &batch, {DualDirection::What::parameter, index}, false}, dl_dy);
}

double dual_derivative(const TreeNetwork<double>& network, const ModelArrays<double>& arrays,
                       const TreeBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index) {
  const TreeOptions& o = network.options();
  const auto parameter = [&](std::size_t slice, std::size_t row, std::size_t column) {
    const Slice& s = network.parameters()[slice];
    const std::size_t at = s.offset + row * s.stored_last + column;
    return DualNumber(arrays.parameters[at], at == index ? 1.0 : 0.0);
  };
  DualMatrix h(batch.nodes(), std::vector<DualNumber>(o.width));
  for (std::size_t v = 0; v < h.size(); ++v)
    for (std::size_t c = 0; c < o.width; ++c)
      h[v][c] = parameter(0, batch.symbol[v], c) + parameter(0, o.symbols + side_of(batch, v), c);
  for (std::size_t l = 0; l < o.layers; ++l) {
    DualMatrix next = h;
    for (std::size_t v = 0; v < h.size(); ++v) {
      const std::uint32_t from[] = {static_cast<std::uint32_t>(v), batch.parent[v], batch.left[v], batch.right[v]};
      for (std::size_t c = 0; c < o.width; ++c) {
        DualNumber z = parameter(network.weight_slice(l) + 1, 0, c);
        for (std::size_t k = 0; k < 4; ++k)
          for (std::size_t i = 0; from[k] != kNoNode && i < o.width; ++i)
            z += h[from[k]][i] * parameter(network.weight_slice(l), k * o.width + i, c);
        next[v][c] += kernels::silu(z).value;
      }
    }
    h = std::move(next);
  }
  double derivative = 0.0;
  for (std::size_t t = 0; t < batch.size; ++t)
    for (std::size_t v = batch.tree_ptr[t]; v < batch.tree_ptr[t + 1]; ++v)
      for (std::size_t j = 0; j < o.outputs; ++j) {
        DualNumber y = parameter(network.weight_slice(o.layers) + 1, 0, j);
        for (std::size_t c = 0; c < o.width; ++c) y += h[v][c] * parameter(network.weight_slice(o.layers), c, j);
        derivative += dl_dy(t, (v - batch.tree_ptr[t]) * o.outputs + j) * y.d;
      }
  return derivative;
}

}  // namespace gradloom::graph
