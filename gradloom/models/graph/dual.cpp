#include "gradloom/models/graph/dual.h"

#include <cmath>

namespace gradloom::graph {

namespace {

using Number = kernels::Dual<double>;
using Matrix = std::vector<std::vector<Number>>;

Number root(Number x) {
  const double r = std::sqrt(x.v);
  return {r, x.d / (2 * r)};
}

Number leaky(Number x) { return x > Number(0.0) ? x : Number(kernels::message::kLeak) * x; }

Number act(Activation a, Number x) {
  if (a == Activation::none) return x;
  if (a == Activation::relu) return x > Number(0.0) ? x : Number(0.0);
  return kernels::silu(x).value;
}

// One evaluation. The formulas are those of docs/math/graph.md, not those of the kernels.
struct Evaluation {
  const GraphNetwork<double>& network;
  const Step& step;
  const ModelArrays<double>& arrays;
  const GraphBatch<double>& batch;
  const DualDirection& direction;
  std::vector<Matrix> tensors = {};

  using What = DualDirection::What;
  Number seed(double v, What what, std::size_t index) const {
    return {v, direction.what == what && direction.index == index ? 1.0 : 0.0};
  }
  Number parameter(std::size_t slice, std::size_t row, std::size_t column) const {
    const Slice& s = network.parameters()[slice];
    const std::size_t at = s.offset + row * s.stored_last + column;
    return seed(arrays.parameters[at], What::parameter, at);
  }
  Number feature(std::size_t i, std::size_t c) const {
    return seed(batch.x(i, c), What::node_feature, i * batch.x.extent(1) + c);
  }
  Number edge_weight(std::size_t e) const {
    return batch.edge_weight.empty() ? Number(1.0) : seed(batch.edge_weight[e], What::edge_weight, e);
  }
  Number edge_feature(std::size_t e, std::size_t k) const {
    return seed(batch.edge_x(e, k), What::edge_feature, e * batch.edge_x.extent(1) + k);
  }
  double scale(NodeScale s, std::size_t i) const {
    const double d = batch.arcs.ptr[i + 1] - batch.arcs.ptr[i];
    return s == NodeScale::root        ? 1 / std::sqrt(d + 1)
           : s == NodeScale::with_self ? 1 / (d + 1)
           : s == NodeScale::without   ? (d > 0 ? 1 / d : 0)
                                       : 1;
  }
  std::vector<std::uint8_t> kept(double probability, std::size_t op, std::size_t size) const {
    std::vector<std::uint8_t> keep(size);
    const Tensor& out = network.tensors()[network.ops()[op].out];
    if (network.options().task == GraphTask::node) {
      GraphNetwork<double>::dropout(step, probability, op, step.index).keep(0, size, keep.data());
      return keep;
    }
    for (std::size_t g = 0; g < batch.graphs; ++g) {
      const std::size_t begin = out.graphs ? g : batch.graph_ptr[g], end = out.graphs ? g + 1 : batch.graph_ptr[g + 1];
      GraphNetwork<double>::dropout(step, probability, op, batch.sample_of(g))
          .keep(0, (end - begin) * out.stride, keep.data() + begin * out.stride);
    }
    return keep;
  }
  double dropout_scale(double probability) const {
    return GraphNetwork<double>::dropout(step, probability, 0, 0).scale();
  }

  void run(std::size_t n);
  void attention(const Op& op, Matrix& y) const;
  void norm(const Op& op, const Matrix& x, Matrix& y) const;
};

void Evaluation::attention(const Op& op, Matrix& y) const {
  const Matrix &left = tensors[op.in], &right = tensors[op.other];
  const std::size_t width = network.tensors()[op.out].width, channels = width / op.heads;
  for (std::size_t i = 0; i < batch.nodes; ++i)
    for (std::size_t h = 0; h < op.heads; ++h) {
      std::vector<std::size_t> from{i};
      std::vector<Number> score;
      for (std::size_t e = batch.arcs.ptr[i]; e < batch.arcs.ptr[i + 1]; ++e) from.push_back(batch.arcs.index[e]);
      for (std::size_t k = 0; k < from.size(); ++k) {
        Number s;
        for (std::size_t c = h * channels; c < (h + 1) * channels; ++c) {
          Number z = left[i][c] + right[from[k]][c];
          if (k > 0 && op.edge_weight != kNone)
            for (std::size_t f = 0; f < network.options().edge_features; ++f)
              z += edge_feature(batch.arcs.ptr[i] + k - 1, f) * parameter(op.edge_weight, f, c);
          s += parameter(op.weight, 0, c) * leaky(z);
        }
        score.push_back(s);
      }
      Number sum;
      for (Number& s : score) sum += s = kernels::exp(s);
      for (std::size_t k = 0; k < from.size(); ++k)
        for (std::size_t c = h * channels; c < (h + 1) * channels; ++c) y[i][c] += score[k] / sum * right[from[k]][c];
    }
}

void Evaluation::norm(const Op& op, const Matrix& x, Matrix& y) const {
  const std::size_t rows = x.size(), width = network.tensors()[op.out].width;
  const bool over_rows = op.norm == Norm::batch;
  const std::size_t groups = over_rows ? width : rows, members = over_rows ? rows : width;
  const auto at = [&](auto& m, std::size_t g, std::size_t k) -> auto& { return over_rows ? m[k][g] : m[g][k]; };
  for (std::size_t g = 0; g < groups; ++g) {
    Number mean, variance;
    const Number count(static_cast<double>(members));
    for (std::size_t k = 0; k < members; ++k) mean += at(x, g, k) / count;
    for (std::size_t k = 0; k < members; ++k) variance += (at(x, g, k) - mean) * (at(x, g, k) - mean) / count;
    if (over_rows && step.mode == Mode::evaluate) {
      mean = Number(arrays.buffers[network.buffers()[op.mean].offset + g]);
      variance = Number(arrays.buffers[network.buffers()[op.variance].offset + g]);
    }
    for (std::size_t k = 0; k < members; ++k) {
      const std::size_t column = over_rows ? g : k;
      at(y, g, k) = (at(x, g, k) - mean) / root(variance + Number(kernels::rowwise::kNormEpsilon)) *
                        parameter(op.weight, 0, column) +
                    parameter(op.bias, 0, column);
    }
  }
}

void Evaluation::run(std::size_t n) {
  const Op& op = network.ops()[n];
  const Tensor& out = network.tensors()[op.out];
  const std::size_t rows = out.graphs ? batch.graphs : batch.nodes, width = out.width;
  Matrix& y = tensors[op.out];
  if (op.start != kernels::dense::Start::y) y.assign(rows, std::vector<Number>(width));
  const auto each = [&](auto f) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t c = 0; c < width; ++c) f(i, c);
  };
  const bool dropping = step.mode == Mode::train && op.probability > 0;
  switch (op.kind) {
    case OpKind::dropout: {
      const Matrix& x = tensors[op.in];
      const auto keep = kept(op.probability, n, rows * out.stride);
      const Number scale(dropout_scale(op.probability));
      return each([&](std::size_t i, std::size_t c) {
        y[i][c] = !dropping ? x[i][c] : keep[i * out.stride + c] ? scale * x[i][c] : Number(0.0);
      });
    }
    case OpKind::dense: {
      const Matrix& x = tensors[op.in];
      return each([&](std::size_t i, std::size_t c) {
        if (op.bias != kNone) y[i][c] += parameter(op.bias, 0, c);
        for (std::size_t k = 0; k < x[i].size(); ++k) y[i][c] += x[i][k] * parameter(op.weight, k, c);
      });
    }
    case OpKind::sparse: {
      const auto keep = kept(op.probability, n, batch.feature_value.size());
      const double scale = dropout_scale(op.probability);
      return each([&](std::size_t i, std::size_t c) {
        for (std::size_t e = batch.features.ptr[i]; e < batch.features.ptr[i + 1]; ++e)
          if (!dropping || keep[e])
            y[i][c] += Number(batch.feature_value[e] * (dropping ? scale : 1.0)) *
                       parameter(op.weight, batch.features.index[e], c);
      });
    }
    case OpKind::gather: {
      const Matrix& x = tensors[op.in];
      Number self(op.self);
      if (op.epsilon != kNone) self += parameter(op.epsilon, 0, 0);
      return each([&](std::size_t i, std::size_t c) {
        Number sum = self * Number(scale(op.source, i)) * x[i][c];
        for (std::size_t e = batch.arcs.ptr[i]; e < batch.arcs.ptr[i + 1]; ++e) {
          const std::size_t j = batch.arcs.index[e];
          sum += edge_weight(e) * Number(scale(op.source, j)) * x[j][c];
        }
        y[i][c] = Number(scale(op.row, i)) * sum;
      });
    }
    case OpKind::edge_gather:
      return each([&](std::size_t i, std::size_t c) {
        for (std::size_t e = batch.arcs.ptr[i]; e < batch.arcs.ptr[i + 1]; ++e)
          y[i][c] += Number(scale(op.row, i)) * edge_weight(e) * edge_feature(e, c);
      });
    case OpKind::maximum: {
      const Matrix& x = tensors[op.in];
      return each([&](std::size_t i, std::size_t c) {
        for (std::size_t e = batch.arcs.ptr[i]; e < batch.arcs.ptr[i + 1]; ++e) {
          const Number v = x[batch.arcs.index[e]][c];
          if (e == batch.arcs.ptr[i] || v > y[i][c]) y[i][c] = v;
        }
      });
    }
    case OpKind::attention:
      return attention(op, y);
    case OpKind::norm:
      return norm(op, tensors[op.in], y);
    case OpKind::activate:
      return each([&](std::size_t i, std::size_t c) {
        Number z = tensors[op.in][i][c];
        if (op.bias != kNone) z += parameter(op.bias, 0, c);
        y[i][c] = act(op.activation, z);
        if (op.other != kNone) y[i][c] += tensors[op.other][i][c];
      });
    case OpKind::jump_max:
      return each([&](std::size_t i, std::size_t c) {
        y[i][c] = tensors[op.ins.front()][i][c];
        for (const std::size_t t : op.ins) y[i][c] = tensors[t][i][c] > y[i][c] ? tensors[t][i][c] : y[i][c];
      });
    case OpKind::readout:
      return each([&](std::size_t g, std::size_t c) {
        const std::size_t first = batch.graph_ptr[g], last = batch.graph_ptr[g + 1];
        for (std::size_t i = first; i < last; ++i) {
          const Number v = tensors[op.in][i][c];
          if (op.readout == Readout::sum) y[g][c] += v;
          if (op.readout == Readout::mean) y[g][c] += v / Number(static_cast<double>(last - first));
          if (op.readout == Readout::max && (i == first || v > y[g][c])) y[g][c] = v;
        }
      });
  }
}

}  // namespace

Matrix dual_outputs(const GraphNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                    const GraphBatch<double>& batch, const DualDirection& direction) {
  Evaluation e{network, step, arrays, batch, direction};
  e.tensors.resize(network.tensors().size());
  if (!batch.sparse()) {
    e.tensors[0].assign(batch.nodes, {});
    for (std::size_t i = 0; i < batch.nodes; ++i)
      for (std::size_t c = 0; c < network.options().inputs; ++c) e.tensors[0][i].push_back(e.feature(i, c));
  }
  for (std::size_t n = 0; n < network.ops().size(); ++n) e.run(n);
  return std::move(e.tensors[network.last()]);
}

double dual_derivative(const GraphNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const GraphBatch<double>& batch, View<const double, 2> dl_dy, const DualDirection& direction) {
  const Matrix y = dual_outputs(network, step, arrays, batch, direction);
  double derivative = 0.0;
  for (std::size_t b = 0; b < batch.size; ++b)
    for (std::size_t j = 0; j < network.output_width(); ++j) derivative += dl_dy(b, j) * y[b][j].d;
  return derivative;
}

}  // namespace gradloom::graph
