// A spline network in the tensors that the PyTorch module efficient-kan has.
#include <fmt/format.h>

#include <algorithm>

#include "gradloom/models/kan/export.h"

namespace gradloom::kan {
namespace {

template <class T>
std::vector<double> all_values(const Slice& slice, std::span<const T> flat) {
  std::vector<double> v;
  for_each_logical(slice, [&](std::size_t at) { v.push_back(static_cast<double>(flat[at])); });
  return v;
}

template <class T>
ExportedTensor<T> exported(std::string name, std::vector<std::size_t> shape, const std::vector<double>& values) {
  ExportedTensor<T> t{std::move(name), std::move(shape), {}};
  for (const double v : values) t.values.push_back(static_cast<T>(v));
  return t;
}

bool any_but(const std::vector<double>& values, double usual) {
  return std::any_of(values.begin(), values.end(), [=](double v) { return v != usual; });
}

}  // namespace

template <class T>
EfficientKan<T> to_efficient_kan(const Network<T>& network, const ModelArrays<T>& arrays, const ExportHead& head) {
  const auto& multiply = network.options().multiply;
  if (std::any_of(multiply.begin(), multiply.end(), [](std::size_t n) { return n > 0; }))
    throw Exception(ErrorCode::unsupported,
                    "efficient-kan has no multiplication nodes (model.multiply); export the network as c or onnx");
  EfficientKan<T> e;
  const auto buffer = [&](std::size_t slice) { return all_values<T>(network.buffers()[slice], arrays.buffers); };
  const auto& affine = network.affine();
  std::vector<double> mean = buffer(affine.input_mean), std = buffer(affine.input_std);
  if (!head.input_centre.empty())
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += head.input_centre[i];
  if (any_but(mean, 0) || any_but(std, 1)) {
    e.tensors.push_back(exported<T>("input.mean", {mean.size()}, mean));
    e.tensors.push_back(exported<T>("input.std", {std.size()}, std));
    e.differences.push_back("inputs must be normalised: the network reads (x - input.mean) / input.std");
  }
  std::vector<double> out_mean = buffer(affine.output_mean);
  const std::vector<double> out_std = buffer(affine.output_std);
  if (!head.output_centre.empty())
    for (std::size_t j = 0; j < out_mean.size(); ++j) out_mean[j] += head.output_centre[j];
  bool constants = false;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const kernels::spline::Shape& s = network.shape(l);
    const auto& slices = network.slices(l);
    const std::size_t p = s.degree, rows = s.spline_rows(), knots = s.grid + 2 * p + 1;
    std::vector<double> grid;
    const std::vector<double> lo = buffer(slices.lo), hi = buffer(slices.hi);
    const std::vector<double> extended = s.knots == Knots::free ? buffer(slices.extended) : std::vector<double>();
    for (std::size_t i = 0; i < s.in; ++i)
      for (std::size_t m = 0; m < knots; ++m)
        grid.push_back(s.knots == Knots::free
                           ? extended[i * s.extended_knots() + p + m]
                           : lo[i] + (hi[i] - lo[i]) * (static_cast<double>(m) - static_cast<double>(p)) /
                                         static_cast<double>(s.grid));
    const bool last = l + 1 == network.layers();
    const std::vector<double> w = all_values<T>(network.parameters()[slices.weight], arrays.parameters);
    std::vector<double> bias(s.out, 0.0), spline, base;
    if (s.bias) bias = all_values<T>(network.parameters()[slices.bias], arrays.parameters);
    for (std::size_t j = 0; j < s.out; ++j) {
      const double scale = last ? out_std[j] : 1.0;
      const double constant = last ? out_mean[j] + scale * bias[j] : bias[j];
      constants = constants || constant != 0;
      for (std::size_t i = 0; i < s.in; ++i) {
        // Inside of a grid its functions sum up to 1: a constant is a spline.
        const double share = constant / static_cast<double>(s.in);
        for (std::size_t r = 0; r < rows; ++r) spline.push_back(scale * w[(i * s.rows() + r) * s.out + j] + share);
        base.push_back(s.base ? scale * w[(i * s.rows() + rows) * s.out + j] : 0.0);
      }
    }
    const std::string name = fmt::format("layers.{}.", l);
    e.tensors.push_back(exported<T>(name + "grid", {s.in, knots}, grid));
    e.tensors.push_back(exported<T>(name + "base_weight", {s.out, s.in}, base));
    e.tensors.push_back(exported<T>(name + "spline_weight", {s.out, s.in, rows}, spline));
    e.tensors.push_back(exported<T>(name + "spline_scaler", {s.out, s.in}, std::vector<double>(s.out * s.in, 1.0)));
  }
  const NetworkOptions& o = network.options();
  if (o.outside != OutOfGrid::extend)
    e.differences.push_back("outside of a grid, efficient-kan extends the splines, as model.outside = \"extend\" does");
  if (constants)
    e.differences.push_back(
        "biases and the mean of the output are part of the splines, which become 0 outside of a grid");
  if (head.classes) e.differences.push_back("outputs are logits");
  e.metadata = {{"format", "efficient-kan"},
                {"layers_hidden", fmt::format("[{}]", fmt::join(o.widths, ", "))},
                {"grid_size", std::to_string(o.grid)},
                {"spline_order", std::to_string(o.degree)},
                {"features", fmt::format("{}", fmt::join(head.features, "\n"))},
                {"outputs", fmt::format("{}", fmt::join(head.outputs, "\n"))},
                {"differences", fmt::format("{}", fmt::join(e.differences, "\n"))}};
  return e;
}

template EfficientKan<float> to_efficient_kan(const Network<float>&, const ModelArrays<float>&, const ExportHead&);
template EfficientKan<double> to_efficient_kan(const Network<double>&, const ModelArrays<double>&, const ExportHead&);

}  // namespace gradloom::kan
