// The derivative of a spline network by dual numbers: exact, slow, and independent of the backward pass.
#pragma once

#include "gradloom/models/kan/network.h"

namespace gradloom::kan {

// d/d(parameter) of l = sum_bj dl_dy[b * stride + j] y_bj, plus the penalty where the network has one, by running the
// scalar definition on dual numbers. `parameter` is an index into the flat array.
double dual_derivative(const Network<double>& network, const ModelArrays<double>& arrays, const RowBatch<double>& batch,
                       std::span<const double> dl_dy, std::size_t stride, std::size_t parameter);

}  // namespace gradloom::kan
