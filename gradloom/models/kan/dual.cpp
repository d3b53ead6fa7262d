#include "gradloom/models/kan/dual.h"

#include <cmath>

#include "gradloom/kernels/spline/reference.h"

namespace gradloom::kan {

namespace spline = kernels::spline;
using Number = kernels::Dual<double>;

namespace {

Number root(Number x) {
  const double r = std::sqrt(x.v);
  return {r, x.d / (2 * r)};
}

Number logarithm(Number x) { return {std::log(x.v), x.d / x.v}; }

// Of the penalty of sparsity.h, by its definition.
double penalty_derivative(const Network<double>& network, std::span<const double> parameters, std::size_t parameter) {
  const SparsityOptions& o = network.options();
  if (!(o.sparsity > 0)) return 0.0;
  Number all;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const spline::Shape& s = network.shape(l);
    const std::size_t offset = network.parameters()[network.slices(l).weight].offset, rows = s.spline_rows();
    Number total, edges, nodes;
    for (std::size_t i = 0; i < s.in; ++i) {
      Number node;
      for (std::size_t j = 0; j < s.out; ++j) {
        const auto weight = [&](std::size_t r) {
          const std::size_t at = offset + (i * s.rows() + r) * s.out_padded() + j;
          return Number(parameters[at], at == parameter ? 1.0 : 0.0);
        };
        Number mean, squares(kLeastStrength * kLeastStrength);
        for (std::size_t r = 0; r < rows; ++r) mean += weight(r) / Number(static_cast<double>(rows));
        for (std::size_t r = 0; r < rows; ++r)
          squares += (weight(r) - mean) * (weight(r) - mean) / Number(static_cast<double>(rows));
        if (s.base) squares += weight(rows) * weight(rows);
        const Number strength = root(squares);
        node += strength;
        edges += strength * logarithm(strength);
      }
      total += node;
      nodes += node * logarithm(node);
    }
    all += Number(o.sparsity_l1) * total + Number(o.sparsity_edges) * (logarithm(total) - edges / total) +
           Number(o.sparsity_nodes) * (logarithm(total) - nodes / total);
  }
  return o.sparsity * all.d;
}

}  // namespace

double dual_derivative(const Network<double>& network, const ModelArrays<double>& arrays, const RowBatch<double>& batch,
                       std::span<const double> dl_dy, std::size_t stride, std::size_t parameter) {
  const double* buffers = arrays.buffers.data();
  const auto& affine = network.affine();
  const auto buffer = [&](std::size_t slice) { return buffers + network.buffers()[slice].offset; };
  double derivative = penalty_derivative(network, arrays.parameters, parameter);
  std::vector<Number> now, next;
  for (std::size_t s = 0; s < batch.size; ++s) {
    now.assign(network.input_width(), Number());
    for (std::size_t i = 0; i < now.size(); ++i)
      now[i] = Number((batch.x(s, i) - buffer(affine.input_mean)[i]) * buffer(affine.input_scale)[i]);
    for (std::size_t l = 0; l < network.layers(); ++l) {
      const auto layer = network.layer(l, arrays);
      const spline::Shape& shape = layer.shape;
      // A parameter is a dual number whose derivative is 1 if it is the one asked for.
      const auto value_of = [&](const double* p) {
        return Number(*p, p == arrays.parameters.data() + parameter ? 1.0 : 0.0);
      };
      next.assign(shape.out, Number());
      for (std::size_t j = 0; j < shape.out; ++j) next[j] = layer.bias ? value_of(layer.bias + j) : Number();
      for (std::size_t i = 0; i < shape.in; ++i) {
        const auto b = spline::reference::split::basis_point<Number, double>(shape, layer.grid, i, now[i]);
        const Number base = spline::reference::split::base_point<Number, double>(shape, layer.grid, i, now[i]);
        const double* w = layer.weight + i * shape.rows() * shape.out_padded();
        for (std::size_t j = 0; j < shape.out; ++j) {
          for (unsigned k = 0; k <= shape.degree; ++k)
            next[j] += b.value[k] * value_of(w + (b.span + k) * shape.out_padded() + j);
          if (shape.base)
            next[j] += kernels::silu(base).value * value_of(w + (shape.rows() - 1) * shape.out_padded() + j);
        }
      }
      const LayerNodes nodes = network.nodes(l);
      for (std::size_t j = nodes.plain(); j < nodes.nodes; ++j) next[j] = next[j] * next[nodes.second_factor(j)];
      next.resize(nodes.nodes);
      now.swap(next);
    }
    for (std::size_t j = 0; j < network.output_width(); ++j)
      derivative += dl_dy[s * stride + j] * buffer(affine.output_std)[j] * now[j].d;
  }
  return derivative;
}

}  // namespace gradloom::kan
