// DualPass: operations on dual numbers, number by number, with the formulas of docs/math/graph.md, not those of the
// kernels; a judge of the backward pass.
#pragma once

#include "gradloom/kernels/dual.h"
#include "gradloom/models/graph/ops/op.h"

namespace gradloom::graph {

using DualNumber = kernels::Dual<double>;
using DualMatrix = std::vector<std::vector<DualNumber>>;

// What is moved: a parameter (an index into the flat array), a feature of a node, the weight or a feature of an arc.
struct DualDirection {
  enum class What { parameter, node_feature, edge_weight, edge_feature } what = What::parameter;
  std::size_t index = 0;  // flat; row * columns + column for features
};

struct DualPass {
  const Step& step;
  const ModelArrays<double>& arrays;
  const GraphBatch<double>& batch;
  DualDirection direction;
  SumBy sum_by;
  std::vector<DualMatrix> tensors = {};

  using What = DualDirection::What;
  DualNumber seed(double v, What what, std::size_t index) const {
    return {v, direction.what == what && direction.index == index ? 1.0 : 0.0};
  }
  DualNumber parameter(const SliceRef& s, std::size_t row, std::size_t column) const {
    const std::size_t at = s.offset + row * s.row + column;
    return seed(arrays.parameters[at], What::parameter, at);
  }
  DualNumber edge_weight(std::size_t e) const {
    return batch.edge_weight.empty() ? DualNumber(1.0) : seed(batch.edge_weight[e], What::edge_weight, e);
  }
  DualNumber edge_feature(std::size_t e, std::size_t k) const {
    return seed(batch.edge_x(e, k), What::edge_feature, e * batch.edge_x.extent(1) + k);
  }
  const DualMatrix& in(const Tensor& t) const { return tensors[t.id]; }
  std::size_t rows(const Tensor& t) const { return sizes_of(batch).rows(t.rows); }
  // f(y, i, c) for every number y of a tensor, which is zero at first unless it is added to.
  template <class F>
  void each(const Tensor& t, F&& f, dense::Start start = dense::Start::zero) {
    DualMatrix& y = tensors[t.id];
    if (start != dense::Start::y) y.assign(rows(t), std::vector<DualNumber>(t.width));
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t c = 0; c < t.width; ++c) f(y[i][c], i, c);
  }
};

}  // namespace gradloom::graph
