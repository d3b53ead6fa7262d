#include "gradloom/session/families/kan/prune.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "gradloom/io/slice_tensors.h"

namespace gradloom {
namespace {

std::vector<std::size_t> numbers_of(const std::vector<bool>& kept) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) numbers.push_back(i);
  return numbers;
}

template <class T>
std::vector<T> logical_values(const Slice& slice, std::span<const T> flat) {
  std::vector<T> values;
  for_each_logical(slice, [&](std::size_t at) { values.push_back(flat[at]); });
  return values;
}

// Copies a slice of shape (first, middle, last): of the first and last dimension, the numbered parts alone.
template <class T>
void copy_parts(const Slice& from, std::span<const T> flat, const Slice& to, std::span<T> out, std::size_t last,
                const std::vector<std::size_t>& firsts, const std::vector<std::size_t>& lasts) {
  const std::vector<T> values = logical_values(from, flat);
  const std::size_t first = from.shape.front(), middle = values.size() / first / last;
  std::vector<T> kept;
  for (const std::size_t i : firsts)
    for (std::size_t m = 0; m < middle; ++m)
      for (const std::size_t j : lasts) kept.push_back(values[(i * middle + m) * last + j]);
  fill_slice<T>(to, kept, out);
}

// Nodes without a way to an output are dropped, then edges of dropped nodes; each layer keeps its best node. A product
// is one node, whatever enters its factors.
void connect(const formula::NetworkSamples& s, const formula::Scores& scores, KeptParts& kept) {
  const std::size_t layers = s.edge.size();
  kept.nodes.resize(layers);
  for (std::size_t l = layers; l-- > 0;) {
    const LayerNodes shape = s.nodes(l);
    const std::size_t in = s.widths[l], out = shape.sums();
    const auto above = [&](std::size_t e) { return l + 1 == layers || kept.nodes[l + 1][shape.node_of(e % out)]; };
    kept.nodes[l].assign(in, false);
    for (std::size_t e = 0; e < in * out; ++e) {
      kept.edges[l][e] = kept.edges[l][e] && above(e);
      if (kept.edges[l][e]) kept.nodes[l][e / out] = true;
    }
    if (std::count(kept.nodes[l].begin(), kept.nodes[l].end(), true) > 0) continue;
    std::optional<std::size_t> best;
    for (std::size_t e = 0; e < in * out; ++e)
      if (above(e) && (!best || scores.edges[l][e].value > scores.edges[l][*best].value)) best = e;
    kept.nodes[l][*best / out] = kept.edges[l][*best] = true;  // the layer above keeps a node
  }
  // A hidden node that nothing enters is a constant, which the next bias takes up.
  for (std::size_t l = 0; l + 1 < layers; ++l) {
    const LayerNodes shape = s.nodes(l);
    const std::size_t out = shape.sums(), next = s.sums(l + 1);
    std::vector<bool> entered(shape.nodes, false);
    for (std::size_t e = 0; e < s.widths[l] * out; ++e)
      if (kept.edges[l][e] && kept.nodes[l][e / out]) entered[shape.node_of(e % out)] = true;
    for (std::size_t j = 0; j < shape.nodes; ++j) {
      if (entered[j] || !kept.nodes[l + 1][j] || kept.count(l + 1) == 1) continue;
      kept.nodes[l + 1][j] = false;
      for (std::size_t k = 0; k < next; ++k) kept.edges[l + 1][j * next + k] = false;
    }
  }
}

}  // namespace

std::size_t KeptParts::count(std::size_t layer) const {
  return static_cast<std::size_t>(std::count(nodes[layer].begin(), nodes[layer].end(), true));
}

KeptParts keep_above(const formula::NetworkSamples& s, const formula::Scores& scores, double threshold) {
  KeptParts kept;
  for (const auto& layer : scores.edges) {
    kept.edges.emplace_back();
    for (const formula::Score& e : layer) kept.edges.back().push_back(e.value >= threshold && e.value > 0);
  }
  // An input is judged by all of its edges together: many small ones may add up.
  const std::size_t out = s.sums(0);
  for (std::size_t i = 0; i < s.widths[0]; ++i)
    if (scores.nodes[0][i].value < threshold)
      for (std::size_t j = 0; j < out; ++j) kept.edges[0][i * out + j] = false;
  connect(s, scores, kept);
  return kept;
}

KeptParts keep_inputs(const formula::NetworkSamples& s, const formula::Scores& scores, std::size_t inputs) {
  std::vector<std::size_t> order(s.widths[0]);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores.nodes[0][a].value > scores.nodes[0][b].value; });
  KeptParts kept;
  for (const auto& layer : scores.edges) kept.edges.emplace_back(layer.size(), true);
  for (std::size_t n = inputs; n < order.size(); ++n)
    for (std::size_t j = 0; j < s.sums(0); ++j) kept.edges[0][order[n] * s.sums(0) + j] = false;
  connect(s, scores, kept);
  return kept;
}

std::pair<double, KeptParts> keep_while(const formula::NetworkSamples& s, const formula::Scores& scores,
                                        const std::function<bool(const KeptParts&)>& good_enough) {
  double threshold = 0.5;
  while (true) {
    KeptParts kept = keep_above(s, scores, threshold);
    if (threshold < 1e-12 || good_enough(kept)) return {threshold, std::move(kept)};
    threshold /= 2;
  }
}

template <class T>
void clear_edges(const kan::Network<T>& network, const formula::NetworkSamples& s, const KeptParts& kept,
                 std::span<T> parameters) {
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const Slice& weight = network.parameters()[network.slices(l).weight];
    const Slice& bias = network.parameters()[network.slices(l).bias];
    const kernels::spline::Shape& shape = network.shape(l);
    for (std::size_t e = 0; e < shape.in * shape.out; ++e) {
      const std::size_t i = e / shape.out, j = e % shape.out;
      if (kept.edges[l][e] && kept.nodes[l][i]) continue;
      double mean = 0;
      for (const double v : s.edge[l][e]) mean += v / static_cast<double>(s.rows());
      parameters[bias.offset + j] = static_cast<T>(static_cast<double>(parameters[bias.offset + j]) + mean);
      for (std::size_t r = 0; r < shape.rows(); ++r)
        parameters[weight.offset + (i * shape.rows() + r) * shape.out_padded() + j] = T(0);
    }
  }
}

template <class T>
std::vector<std::vector<bool>> live_edges(const kan::Network<T>& network, std::span<const T> parameters) {
  std::vector<std::vector<bool>> live;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const kernels::spline::Shape& s = network.shape(l);
    const T* w = parameters.data() + network.parameters()[network.slices(l).weight].offset;
    live.emplace_back(s.in * s.out, false);
    for (std::size_t i = 0; i < s.in; ++i)
      for (std::size_t r = 0; r < s.rows(); ++r)
        for (std::size_t j = 0; j < s.out; ++j)
          if (w[(i * s.rows() + r) * s.out_padded() + j] != T(0)) live[l][i * s.out + j] = true;
  }
  return live;
}

template <class T>
PrunedNetwork<T> prune_network(const kan::Network<T>& network, const ModelArrays<T>& arrays,
                               const formula::NetworkSamples& s, const KeptParts& kept) {
  kan::NetworkOptions options = network.options();
  options.bias = true;
  for (std::size_t l = 0; l < network.layers(); ++l) options.widths[l] = kept.count(l);
  for (std::size_t l = 0; l < options.multiply.size(); ++l) {
    const auto first = kept.nodes[l + 1].begin() + static_cast<std::ptrdiff_t>(s.nodes(l).plain());
    options.multiply[l] = static_cast<std::size_t>(std::count(first, kept.nodes[l + 1].end(), true));
  }
  kan::Network<T> small(options);
  Buffer<T> parameters(small.parameters().flat_size()), buffers(small.buffers().flat_size());
  const auto copy_buffer = [&](std::size_t from, std::size_t to, std::size_t last, const auto& firsts,
                               const auto& lasts) {
    copy_parts<T>(network.buffers()[from], arrays.buffers, small.buffers()[to], buffers.span(), last, firsts, lasts);
  };
  const std::vector<std::size_t> one{0};
  std::vector<std::size_t> outputs(network.output_width());
  std::iota(outputs.begin(), outputs.end(), 0);
  const auto &a = network.affine(), &b = small.affine();
  const std::vector<std::size_t> inputs = numbers_of(kept.nodes[0]);
  copy_buffer(a.input_mean, b.input_mean, 1, inputs, one), copy_buffer(a.input_std, b.input_std, 1, inputs, one);
  copy_buffer(a.output_mean, b.output_mean, 1, outputs, one), copy_buffer(a.output_std, b.output_std, 1, outputs, one);
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const auto &from = network.slices(l), &to = small.slices(l);
    const LayerNodes shape = s.nodes(l);
    const std::size_t out = shape.sums();
    const std::vector<std::size_t> ins = numbers_of(kept.nodes[l]);
    std::vector<std::size_t> outs = l + 1 < network.layers() ? numbers_of(kept.nodes[l + 1]) : outputs;
    for (std::size_t k = 0, nodes = outs.size(); k < nodes; ++k)
      if (shape.multiplies(outs[k])) outs.push_back(shape.second_factor(outs[k]));
    copy_parts<T>(network.parameters()[from.weight], arrays.parameters, small.parameters()[to.weight],
                  parameters.span(), out, ins, outs);
    copy_buffer(from.lo, to.lo, 1, ins, one), copy_buffer(from.hi, to.hi, 1, ins, one);
    if (options.knots == kan::Knots::free) {
      std::vector<std::size_t> all(network.buffers()[from.knots].shape.back());
      std::iota(all.begin(), all.end(), 0);
      copy_buffer(from.knots, to.knots, all.size(), ins, all);
    }
    // Edges that are gone leave zeros in the weights where both of their nodes stay, and their mean in the bias.
    const Slice& weight = small.parameters()[to.weight];
    const std::size_t rows = small.shape(l).rows(), pitch = small.shape(l).out_padded();
    std::vector<T> bias;
    for (std::size_t k = 0; k < outs.size(); ++k) {
      double sum = s.bias[l][outs[k]];
      for (std::size_t i = 0; i < s.widths[l]; ++i) {
        const std::size_t e = i * out + outs[k];
        if (kept.edges[l][e] && kept.nodes[l][i]) continue;
        double mean = 0;
        for (const double v : s.edge[l][e]) mean += v / static_cast<double>(s.rows());
        sum += mean;
        const auto at = std::find(ins.begin(), ins.end(), i);
        if (at == ins.end()) continue;
        const auto n = static_cast<std::size_t>(at - ins.begin());
        for (std::size_t r = 0; r < rows; ++r) parameters.span()[weight.offset + (n * rows + r) * pitch + k] = T(0);
      }
      bias.push_back(static_cast<T>(sum));
    }
    fill_slice<T>(small.parameters()[to.bias], bias, parameters.span());
  }
  small.derive(buffers.span()).or_throw();
  return {std::move(small), std::move(parameters), std::move(buffers)};
}

template PrunedNetwork<float> prune_network(const kan::Network<float>&, const ModelArrays<float>&,
                                            const formula::NetworkSamples&, const KeptParts&);
template PrunedNetwork<double> prune_network(const kan::Network<double>&, const ModelArrays<double>&,
                                             const formula::NetworkSamples&, const KeptParts&);

#define GRADLOOM_PRUNE(T)                                                                                            \
  template void clear_edges(const kan::Network<T>&, const formula::NetworkSamples&, const KeptParts&, std::span<T>); \
  template std::vector<std::vector<bool>> live_edges(const kan::Network<T>&, std::span<const T>);
GRADLOOM_PRUNE(float)
GRADLOOM_PRUNE(double)
#undef GRADLOOM_PRUNE

}  // namespace gradloom
