// Normalisation and readout, as the passes of a graph network use them.
#include <cmath>

#include "gradloom/models/graph/pass.h"

namespace gradloom::graph {

template <class T>
rowwise::LayerNorm<T> layer_of(const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean, T* inverse) {
  const T* flat = p.arrays.parameters.data();
  return {x,
          flat + network.parameters()[p.op.weight].offset,
          flat + network.parameters()[p.op.bias].offset,
          nullptr,
          mean,
          inverse};
}

namespace {

template <class T>
rowwise::BatchNorm<T> batch_of(const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, const T* mean,
                               const T* inverse) {
  const T* flat = p.arrays.parameters.data();
  return {x, flat + network.parameters()[p.op.weight].offset, flat + network.parameters()[p.op.bias].offset, mean,
          inverse};
}

// body(begin, end) for pieces of the graphs of a part.
template <class F>
void for_graphs(const Exec& ex, const Part& part, std::size_t stride, F&& body) {
  const std::size_t graphs = part.last_graph - part.first_graph,
                    tasks = std::min(graphs, task_count((part.last_node - part.first_node) * kPlain * stride));
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    body(part.first_graph + graphs * t / tasks, part.first_graph + graphs * (t + 1) / tasks);
  });
}

}  // namespace

template <class T>
void forward_norm(const Exec& ex, const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean, T* inverse,
                  T* blocks, T* y) {
  if (p.op.norm == Norm::layer) {
    auto n = layer_of(network, p, x, mean, inverse);
    n.y = y;
    for_rows(ex, p.first, p.last, 2 * kPlain * p.stride, [&](std::size_t begin, std::size_t end) {
      rowwise::layer_norm<T>({begin, end, p.width, p.stride}, n);
    });
    return;
  }
  const T count = static_cast<T>(std::max<std::size_t>(1, p.last));
  const std::size_t parts = dense::row_blocks(p.last);
  if (p.step.mode == Mode::train) {
    for_blocks(ex, p.last, [&](std::size_t b, std::size_t begin, std::size_t end) {
      dense::column_sums<T>(x + begin * p.stride, end - begin, p.stride, p.stride, blocks + b * p.stride);
    });
    dense::add_blocks<T>(blocks, parts, p.stride, 0, p.stride, GradientMode::overwrite, mean);
    for (std::size_t c = 0; c < p.stride; ++c) mean[c] = mean[c] / count;
    for_blocks(ex, p.last, [&](std::size_t b, std::size_t begin, std::size_t end) {
      rowwise::squared_deviation<T>({begin, end, p.width, p.stride}, x, mean, blocks + b * p.stride);
    });
    dense::add_blocks<T>(blocks, parts, p.stride, 0, p.stride, GradientMode::overwrite, inverse);
    for (std::size_t c = 0; c < p.stride; ++c)
      inverse[c] = T(1) / std::sqrt(inverse[c] / count + static_cast<T>(rowwise::kNormEpsilon));
  } else {
    const T* flat = p.arrays.buffers.data();
    for (std::size_t c = 0; c < p.stride; ++c) {
      mean[c] = flat[network.buffers()[p.op.mean].offset + c];
      inverse[c] =
          T(1) / std::sqrt(flat[network.buffers()[p.op.variance].offset + c] + static_cast<T>(rowwise::kNormEpsilon));
    }
  }
  const auto n = batch_of<T>(network, p, x, mean, inverse);
  for_rows(ex, 0, p.last, 2 * kPlain * p.stride, [&](std::size_t begin, std::size_t end) {
    rowwise::batch_norm<T>({begin, end, p.width, p.stride}, n, y);
  });
}

template <class T>
void backward_batch_norm(const Exec& ex, const GraphNetwork<T>& network, const NormPass<T>& p, const T* x, T* mean,
                         T* inverse, T* blocks, T* sums, const T* dl_dy, T* dl_dx) {
  const std::size_t parts = dense::row_blocks(p.last), both = 2 * p.stride;
  const auto n = batch_of<T>(network, p, x, mean, inverse);
  for_blocks(ex, p.last, [&](std::size_t b, std::size_t begin, std::size_t end) {
    rowwise::batch_norm_sums<T>({begin, end, p.width, p.stride}, n, dl_dy, blocks + b * both,
                                blocks + b * both + p.stride);
  });
  dense::add_blocks<T>(blocks, parts, both, 0, both, GradientMode::overwrite, sums);
  const bool fixed = p.step.mode == Mode::evaluate;
  // Block 0 is used up: it holds the means from here on.
  T *mean_product = blocks, *mean_dy = blocks + p.stride;
  const T count = static_cast<T>(std::max<std::size_t>(1, p.last));
  for (std::size_t c = 0; c < p.stride; ++c) mean_product[c] = sums[c] / count, mean_dy[c] = sums[p.stride + c] / count;
  for_rows(ex, 0, p.last, 2 * kPlain * p.stride, [&](std::size_t begin, std::size_t end) {
    rowwise::batch_norm_gradient<T>({begin, end, p.width, p.stride}, n, dl_dy, fixed ? nullptr : mean_dy, mean_product,
                                    dl_dx);
  });
}

template <class T>
void forward_readout(const Exec& ex, Readout kind, const GraphBatch<T>& batch, const Part& part, const T* x,
                     std::size_t stride, std::uint32_t* winner, T* y) {
  for_graphs(ex, part, stride, [&](std::size_t begin, std::size_t end) {
    for (std::size_t g = begin; g < end; ++g) {
      T* __restrict to = y + g * stride;
      const std::size_t first = batch.graph_ptr[g], last = batch.graph_ptr[g + 1];
      std::fill_n(to, stride, T(0));
      if (kind == Readout::max) std::fill_n(winner + g * stride, stride, message::kNobody);
      for (std::size_t i = first; i < last; ++i) {
        const T* __restrict from = x + i * stride;
        if (kind != Readout::max) {
          for (std::size_t c = 0; c < stride; ++c) to[c] = to[c] + from[c];
          continue;
        }
        for (std::size_t c = 0; c < stride; ++c)
          if (i == first || from[c] > to[c]) to[c] = from[c], winner[g * stride + c] = static_cast<std::uint32_t>(i);
      }
      if (kind == Readout::mean && last > first) {
        const T inverse = T(1) / static_cast<T>(last - first);
        for (std::size_t c = 0; c < stride; ++c) to[c] = to[c] * inverse;
      }
    }
  });
}

template <class T>
void backward_readout(const Exec& ex, Readout kind, const GraphBatch<T>& batch, const Part& part, const T* dl_dy,
                      std::size_t stride, const std::uint32_t* winner, T* dl_dx) {
  for_graphs(ex, part, stride, [&](std::size_t begin, std::size_t end) {
    for (std::size_t g = begin; g < end; ++g) {
      const T* from = dl_dy + g * stride;
      const std::size_t first = batch.graph_ptr[g], last = batch.graph_ptr[g + 1];
      const T scale = kind == Readout::mean && last > first ? T(1) / static_cast<T>(last - first) : T(1);
      for (std::size_t i = first; i < last; ++i)
        for (std::size_t c = 0; c < stride; ++c)
          dl_dx[i * stride + c] =
              kind == Readout::max ? (winner[g * stride + c] == i ? from[c] : T(0)) : from[c] * scale;
    }
  });
}

#define GRADLOOM_INSTANTIATE(T)                                                                                       \
  template rowwise::LayerNorm<T> layer_of<T>(const GraphNetwork<T>&, const NormPass<T>&, const T*, T*, T*);           \
  template void forward_norm<T>(const Exec&, const GraphNetwork<T>&, const NormPass<T>&, const T*, T*, T*, T*, T*);   \
  template void backward_batch_norm<T>(const Exec&, const GraphNetwork<T>&, const NormPass<T>&, const T*, T*, T*, T*, \
                                       T*, const T*, T*);                                                             \
  template void forward_readout<T>(const Exec&, Readout, const GraphBatch<T>&, const Part&, const T*, std::size_t,    \
                                   std::uint32_t*, T*);                                                               \
  template void backward_readout<T>(const Exec&, Readout, const GraphBatch<T>&, const Part&, const T*, std::size_t,   \
                                    const std::uint32_t*, T*);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::graph
