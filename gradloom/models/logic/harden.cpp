#include "gradloom/models/logic/harden.h"

namespace gradloom::logic {

namespace gate = kernels::gate;

template <class T>
circuit::Op hard_gate(const T* logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < gate::kFunctions; ++i)
    if (logits[i] > logits[best]) best = i;
  return static_cast<circuit::Op>(best);
}

template <class T>
circuit::CellRule harden(const Automaton<T>& automaton, const ModelArrays<T>& arrays) {
  const AutomatonOptions& o = automaton.options();
  const std::size_t channels = o.channels, kernels = o.kernels;
  circuit::CellRule rule;
  rule.channels = static_cast<std::uint32_t>(channels);
  rule.boundary = o.boundary;
  rule.circuit.inputs = static_cast<std::uint32_t>(channels * gate::kPatch);
  std::vector<circuit::Gate>& gates = rule.circuit.gates;
  const auto logits = [&](const auto& layer, std::size_t k, std::size_t j) {
    return arrays.parameters.data() + automaton.parameters()[layer.parameter].offset +
           (k * layer.gates + j) * gate::kFunctions;
  };
  const auto add = [&](circuit::Op op, std::uint32_t a, std::uint32_t b) {
    gates.push_back({op, a, b});
    return static_cast<std::uint32_t>(rule.circuit.signals() - 1);
  };

  std::vector<std::uint32_t> inputs;  // of the update: signals
  for (std::size_t c = 0; c < channels; ++c) inputs.push_back(static_cast<std::uint32_t>(c * gate::kPatch + 4));
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<std::uint32_t> now;  // (gates, K)
    for (std::size_t p = 0; p < gate::kPatch; ++p)
      for (std::size_t k = 0; k < kernels; ++k) now.push_back(static_cast<std::uint32_t>(c * gate::kPatch + p));
    for (const auto& layer : automaton.perception()) {
      const std::vector<Wire> wires = automaton.wires(layer, arrays.buffers);
      std::vector<std::uint32_t> next;
      for (std::size_t j = 0; j < layer.gates; ++j)
        for (std::size_t k = 0; k < kernels; ++k)
          next.push_back(
              add(hard_gate(logits(layer, k, j)), now[wires[j].a * kernels + k], now[wires[j].b * kernels + k]));
      now = std::move(next);
    }
    inputs.insert(inputs.end(), now.begin(), now.end());
  }
  for (const auto& layer : automaton.update()) {
    const std::vector<Wire> wires = automaton.wires(layer, arrays.buffers);
    std::vector<std::uint32_t> next;
    for (std::size_t j = 0; j < layer.gates; ++j)
      next.push_back(add(hard_gate(logits(layer, 0, j)), inputs[wires[j].a], inputs[wires[j].b]));
    inputs = std::move(next);
  }
  rule.circuit.outputs = std::move(inputs);
  return rule;
}

template <class T>
circuit::Circuit harden(const GateClassifier<T>& classifier, const ModelArrays<T>& arrays) {
  circuit::Circuit result;
  result.inputs = static_cast<std::uint32_t>(classifier.input_width());
  std::uint32_t below = 0;  // the first signal of the layer below
  for (std::size_t l = 0; l < classifier.options().layers.size(); ++l) {
    const std::vector<Wire> wires = classifier.wires(l, arrays.buffers);
    const T* logits = arrays.parameters.data() + classifier.parameters()[l].offset;
    const auto here = static_cast<std::uint32_t>(result.signals());
    for (std::size_t j = 0; j < wires.size(); ++j)
      result.gates.push_back({hard_gate(logits + j * gate::kFunctions), below + wires[j].a, below + wires[j].b});
    below = here;
  }
  for (std::size_t signal = below; signal < result.signals(); ++signal)
    result.outputs.push_back(static_cast<std::uint32_t>(signal));
  return result;
}

template <class T>
std::size_t active_gates(const Slices& slices, std::span<const T> parameters) {
  std::size_t active = 0;
  for (const Slice& slice : slices)
    for (std::size_t at = slice.offset; at < slice.end(); at += gate::kFunctions) {
      const circuit::Op op = hard_gate(parameters.data() + at);
      if (op != circuit::Op::a && op != circuit::Op::b) ++active;
    }
  return active;
}

#define GRADLOOM_INSTANTIATE(T)                                                         \
  template circuit::Op hard_gate<T>(const T*);                                          \
  template circuit::CellRule harden<T>(const Automaton<T>&, const ModelArrays<T>&);     \
  template circuit::Circuit harden<T>(const GateClassifier<T>&, const ModelArrays<T>&); \
  template std::size_t active_gates<T>(const Slices&, std::span<const T>);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::logic
