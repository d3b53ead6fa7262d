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
  return derivative_of(network, {step, arrays, batch, direction, node ? SumBy::rows : SumBy::graphs}, dl_dy);
}

double dual_derivative(const PairNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const PairBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index) {
  return derivative_of(network, {step, arrays, batch, {.index = index}, SumBy::graphs}, dl_dy);
}

double dual_derivative(const TreeNetwork<double>& network, const ModelArrays<double>& arrays,
                       const TreeBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index) {
  const Step step;
  return derivative_of(network, {step, arrays, batch, {.index = index}, SumBy::parts}, dl_dy);
}

}  // namespace gradloom::graph
