#include "gradloom/session/families/kan/samples.h"

#include <algorithm>

#include "gradloom/session/families/kan/functions.h"

namespace gradloom {
namespace {

constexpr std::size_t kMostValues = 8'000'000, kFewestRows = 64;

}  // namespace

template <class T>
formula::NetworkSamples network_samples(const Exec& ex, const kan::Network<T>& network, const ModelArrays<T>& arrays,
                                        const RowDataset<T>& rows) {
  std::size_t functions = 0;
  for (std::size_t l = 0; l < network.layers(); ++l) functions += network.shape(l).in * network.shape(l).out;
  const RowBatch<T> batch = first_rows(rows.all(), std::clamp(kMostValues / functions, kFewestRows, kSampledRows));
  const auto tape = evaluate_rows(ex, network, arrays, batch).tape;
  formula::NetworkSamples s;
  s.widths = network.options().widths, s.multiply = network.options().multiply;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const LayerFunctions<T> f(network, l, arrays);
    const std::size_t in = f.shape().in, out = f.shape().out;
    std::vector<std::vector<double>> node(in, std::vector<double>(batch.size));
    std::vector<std::vector<double>> edge(in * out, std::vector<double>(batch.size));
    std::vector<double> value(out), bias;
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t m = 0; m < batch.size; ++m) {
        const T x = network.layer_input(tape, l, m, i);
        node[i][m] = static_cast<double>(x);
        f.at(i, x, 0, out, value.data());
        for (std::size_t j = 0; j < out; ++j) edge[i * out + j][m] = value[j];
      }
    for (std::size_t j = 0; j < out; ++j) bias.push_back(f.bias(j));
    s.node.push_back(std::move(node)), s.edge.push_back(std::move(edge)), s.bias.push_back(std::move(bias));
  }
  const auto buffer = [&](std::size_t slice, std::size_t i) {
    return static_cast<double>(arrays.buffers[network.buffers()[slice].offset + i]);
  };
  const RowCentres& centre = rows.parts().centre;
  for (std::size_t i = 0; i < network.input_width(); ++i) {
    s.input_mean.push_back(buffer(network.affine().input_mean, i) + (centre.x.empty() ? 0 : centre.x[i]));
    s.input_scale.push_back(1 / buffer(network.affine().input_std, i));
  }
  for (std::size_t j = 0; j < network.output_width(); ++j) {
    s.output_mean.push_back(buffer(network.affine().output_mean, j) + (centre.target.empty() ? 0 : centre.target[j]));
    s.output_scale.push_back(buffer(network.affine().output_std, j));
  }
  return s;
}

template formula::NetworkSamples network_samples(const Exec&, const kan::Network<float>&, const ModelArrays<float>&,
                                                 const RowDataset<float>&);
template formula::NetworkSamples network_samples(const Exec&, const kan::Network<double>&, const ModelArrays<double>&,
                                                 const RowDataset<double>&);

}  // namespace gradloom
