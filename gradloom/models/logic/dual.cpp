#include "gradloom/models/logic/dual.h"

#include <array>

#include "gradloom/kernels/gate/reference.h"

namespace gradloom::logic {

namespace gate = kernels::gate;
using Number = kernels::Dual<double>;

namespace {

// One layer of one kernel, with dual coefficients.
struct DualLayer {
  std::vector<Wire> wires;
  std::vector<std::array<Number, gate::kSums>> coefficients;

  std::vector<Number> run(const std::vector<Number>& in) const {
    std::vector<Number> out;
    for (std::size_t g = 0; g < wires.size(); ++g)
      out.push_back(gate::reference::split::gate_value(coefficients[g].data(), in[wires[g].a], in[wires[g].b]));
    return out;
  }
};

// Logits from flat[first] on; that at `parameter` has derivative 1.
std::vector<std::array<Number, gate::kSums>> dual_coefficients(std::span<const double> flat, std::size_t first,
                                                               std::size_t gates, std::size_t parameter) {
  std::vector<std::array<Number, gate::kSums>> result;
  for (std::size_t g = 0; g < gates; ++g) {
    std::array<Number, gate::kFunctions> z;
    for (std::size_t i = 0; i < gate::kFunctions; ++i) {
      const std::size_t at = first + g * gate::kFunctions + i;
      z[i] = Number(flat[at], at == parameter ? 1.0 : 0.0);
    }
    result.push_back(gate::reference::split::gate_coefficients(z.data()));
  }
  return result;
}

}  // namespace

double dual_derivative(const Automaton<double>& automaton, const Step& step, const ModelArrays<double>& arrays,
                       const RowBatch<double>& batch, View<const double, 2> dl_dy, std::size_t parameter) {
  const AutomatonOptions& o = automaton.options();
  const auto layer_of = [&](const Automaton<double>::Layer& layer, std::size_t k) {
    const std::size_t first = automaton.parameters()[layer.parameter].offset + k * layer.gates * gate::kFunctions;
    return DualLayer{automaton.wires(layer, arrays.buffers),
                     dual_coefficients(arrays.parameters, first, layer.gates, parameter)};
  };
  std::vector<std::vector<DualLayer>> kernels(o.kernels);
  for (std::size_t k = 0; k < o.kernels; ++k)
    for (const auto& layer : automaton.perception()) kernels[k].push_back(layer_of(layer, k));
  std::vector<DualLayer> update;
  for (const auto& layer : automaton.update()) update.push_back(layer_of(layer, 0));

  const std::size_t cells = automaton.cells();
  const auto height = static_cast<std::ptrdiff_t>(o.height), width = static_cast<std::ptrdiff_t>(o.width);
  double derivative = 0.0;
  for (std::size_t s = 0; s < batch.size; ++s) {
    std::vector<Number> now;
    for (std::size_t n = 0; n < o.channels * cells; ++n) now.emplace_back(batch.x(s, n));
    const auto neighbour = [&](std::size_t c, std::ptrdiff_t y, std::ptrdiff_t x) {
      if (o.boundary == Boundary::periodic)
        y = (y + height) % height, x = (x + width) % width;
      else if (y < 0 || y >= height || x < 0 || x >= width)
        return Number();
      return now[c * cells + static_cast<std::size_t>(y * width + x)];
    };
    for (std::size_t t = 0; t < o.steps; ++t) {
      std::vector<Number> next = now;
      for (std::size_t cell = 0; cell < cells; ++cell) {
        if (!automaton.fires(step, s, t, cell)) continue;
        const auto y = static_cast<std::ptrdiff_t>(cell / o.width), x = static_cast<std::ptrdiff_t>(cell % o.width);
        const std::size_t outputs = o.perception.back();
        std::vector<Number> in(o.channels + o.channels * outputs * o.kernels);
        for (std::size_t c = 0; c < o.channels; ++c) {
          in[c] = now[c * cells + cell];
          std::vector<Number> patch;
          for (std::ptrdiff_t p = 0; p < 9; ++p) patch.push_back(neighbour(c, y + p / 3 - 1, x + p % 3 - 1));
          for (std::size_t k = 0; k < o.kernels; ++k) {
            std::vector<Number> signals = patch;
            for (const DualLayer& layer : kernels[k]) signals = layer.run(signals);
            for (std::size_t j = 0; j < outputs; ++j) in[o.channels + (c * outputs + j) * o.kernels + k] = signals[j];
          }
        }
        for (const DualLayer& layer : update) in = layer.run(in);
        for (std::size_t c = 0; c < o.channels; ++c) next[c * cells + cell] = in[c];
      }
      now = std::move(next);
    }
    for (std::size_t n = 0; n < automaton.output_width(); ++n) derivative += dl_dy(s, n) * now[n].d;
  }
  return derivative;
}

double dual_derivative(const GateClassifier<double>& classifier, const ModelArrays<double>& arrays,
                       const RowBatch<double>& batch, View<const double, 2> dl_dy, std::size_t parameter) {
  const ClassifierOptions& o = classifier.options();
  std::vector<DualLayer> layers;
  for (std::size_t l = 0; l < o.layers.size(); ++l)
    layers.push_back({classifier.wires(l, arrays.buffers),
                      dual_coefficients(arrays.parameters, classifier.parameters()[l].offset, o.layers[l], parameter)});
  double derivative = 0.0;
  const std::size_t group = o.layers.back() / o.classes;
  for (std::size_t s = 0; s < batch.size; ++s) {
    std::vector<Number> signals;
    for (std::size_t i = 0; i < o.inputs; ++i) signals.emplace_back(batch.x(s, i));
    for (const DualLayer& layer : layers) signals = layer.run(signals);
    for (std::size_t g = 0; g < signals.size(); ++g) derivative += dl_dy(s, g / group) * signals[g].d / o.tau;
  }
  return derivative;
}

}  // namespace gradloom::logic
