// The derivative of a graph network by dual numbers: exact, slow, and independent of the backward pass.
#pragma once

#include "gradloom/models/graph/network.h"
#include "gradloom/models/graph/ops/dual_pass.h"

namespace gradloom::graph {

// d/d(direction) of l = sum_bj dl_dy(b, j) y_bj, by running every operation number by number on dual numbers.
double dual_derivative(const GraphNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const GraphBatch<double>& batch, View<const double, 2> dl_dy, const DualDirection& direction);

}  // namespace gradloom::graph
