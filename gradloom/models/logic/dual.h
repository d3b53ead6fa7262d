// The derivative of a logic automaton by dual numbers: exact, slow, and independent of the backward pass.
#pragma once

#include "gradloom/models/logic/automaton.h"
#include "gradloom/models/logic/classifier.h"

namespace gradloom::logic {

// d/d(parameter) of l = sum_bj dl_dy[b * stride + j] y_bj, by running every cell through the scalar definition of its
// gates on dual numbers, without tiles. `parameter` is an index into the flat array; `step` decides which cells fire.
double dual_derivative(const Automaton<double>& automaton, const Step& step, const ModelArrays<double>& arrays,
                       const RowBatch<double>& batch, View<const double, 2> dl_dy, std::size_t parameter);

double dual_derivative(const GateClassifier<double>& classifier, const ModelArrays<double>& arrays,
                       const RowBatch<double>& batch, View<const double, 2> dl_dy, std::size_t parameter);

}  // namespace gradloom::logic
