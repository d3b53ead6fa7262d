// The derivative of a graph network by dual numbers: exact, slow, and independent of the backward pass.
#pragma once

#include "gradloom/kernels/dual.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

// What is moved: a parameter (an index into the flat array), a feature of a node, the weight or a feature of an arc.
struct DualDirection {
  enum class What { parameter, node_feature, edge_weight, edge_feature } what = What::parameter;
  std::size_t index = 0;  // flat; row * columns + column for features
};

// d/d(direction) of l = sum_bj dl_dy(b, j) y_bj, by running every operation number by number on dual numbers.
double dual_derivative(const GraphNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const GraphBatch<double>& batch, View<const double, 2> dl_dy, const DualDirection& direction);

// The outputs themselves (rows, outputs) with their derivatives in that direction.
std::vector<std::vector<kernels::Dual<double>>> dual_outputs(const GraphNetwork<double>& network, const Step& step,
                                                             const ModelArrays<double>& arrays,
                                                             const GraphBatch<double>& batch,
                                                             const DualDirection& direction);

}  // namespace gradloom::graph
