#include "gradloom/models/kan/dual.h"

#include "gradloom/kernels/spline/reference.h"

namespace gradloom::kan {

namespace spline = kernels::spline;
using Number = kernels::Dual<double>;

double dual_derivative(const Network<double>& network, const ModelArrays<double>& arrays, const RowBatch<double>& batch,
                       std::span<const double> dl_dy, std::size_t stride, std::size_t parameter) {
  const double* buffers = arrays.buffers.data();
  const auto& affine = network.affine();
  const auto buffer = [&](std::size_t slice) { return buffers + network.buffers()[slice].offset; };
  double derivative = 0.0;
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
      now.swap(next);
    }
    for (std::size_t j = 0; j < network.output_width(); ++j)
      derivative += dl_dy[s * stride + j] * buffer(affine.output_std)[j] * now[j].d;
  }
  return derivative;
}

}  // namespace gradloom::kan
