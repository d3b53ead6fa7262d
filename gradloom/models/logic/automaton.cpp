#include "gradloom/models/logic/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/random.h"

namespace gradloom::logic {

namespace gate = kernels::gate;

namespace {

constexpr std::size_t kLargest = std::size_t{1} << 24;  // so that wires are exact as floats

}  // namespace

void validate(const AutomatonOptions& o) {
  if (o.channels == 0 || o.channels > 4096)
    throw_invalid(fmt::format("channels is {}; it must be 1 to 4096", o.channels));
  if (o.kernels == 0 || o.kernels > 4096) throw_invalid(fmt::format("kernels is {}; it must be 1 to 4096", o.kernels));
  if (o.height == 0 || o.width == 0 || o.height > kLargest || o.width > kLargest)
    throw_invalid(
        fmt::format("the grid has {} rows and {} columns; both must be 1 to {}", o.height, o.width, kLargest));
  if (o.steps == 0) throw_invalid("steps is 0; an automaton takes at least one step");
  if (o.target_channels == 0 || o.target_channels > o.channels)
    throw_invalid(fmt::format("target_channels is {}; it must be 1 to channels, {}", o.target_channels, o.channels));
  if (!(o.fire_probability > 0.0 && o.fire_probability <= 1.0))
    throw_invalid(fmt::format("fire_probability is {}; it must be above 0 and at most 1", o.fire_probability));
  if (o.fire_probability < 1.0 && o.height * o.width > (std::size_t{1} << 32) / o.steps)
    throw_invalid(
        fmt::format("{} steps on {} x {} cells are more than 2^32 random numbers", o.steps, o.height, o.width));
  if (o.perception.empty() || o.perception.front() != 8)
    throw_invalid(fmt::format("the first layer of perception has {} gates; it must have 8, one for each neighbour",
                              o.perception.empty() ? 0 : o.perception.front()));
  if (o.update.empty() || o.update.back() != o.channels)
    throw_invalid(fmt::format("the last layer of update has {} gates; it must have one for each of the {} channels",
                              o.update.empty() ? 0 : o.update.back(), o.channels));
  const auto check = [&](const char* name, std::size_t layer, std::size_t in, std::size_t out) {
    const std::string where = fmt::format("{}.{}", name, layer);
    if (out == 0 || out > kLargest || in >= kLargest)
      throw_invalid(fmt::format("{} has {} gates on {} inputs; both must be 1 to {}", where, out, in, kLargest - 1));
    if (o.wires == WireKind::unique) check_unique(in, out, where);
  };
  for (std::size_t l = 1; l < o.perception.size(); ++l) check("perception", l, o.perception[l - 1], o.perception[l]);
  std::size_t in = o.channels + o.channels * o.perception.back() * o.kernels;
  for (std::size_t l = 0; l < o.update.size(); in = o.update[l++]) check("update", l, in, o.update[l]);
}

template <class T>
Automaton<T>::Automaton(AutomatonOptions options) : options_(std::move(options)) {
  validate(options_);
  shape_.channels = options_.channels;
  const auto add = [&](std::vector<Layer>& to, const char* name, std::size_t in, std::size_t count, std::size_t kernels,
                       std::vector<std::size_t> shape) {
    const std::string layer = fmt::format("{}.{}", name, to.size());
    to.push_back({parameters_.add(layer, std::move(shape)), buffers_.add(layer + ".wires", {count, 2}), in, count,
                  kernels, gates_});
    gates_ += count * kernels;
    gate_evaluations_ += count * kernels * (&to == &update_ ? 1 : options_.channels);
  };
  std::size_t in = gate::kPatch;
  for (const std::size_t count : options_.perception) {
    add(perception_, "perception", in, count, options_.kernels, {options_.kernels, count, gate::kFunctions});
    shape_.perception.push_back(count * options_.kernels);
    in = count;
  }
  in = shape_.update_inputs();
  for (const std::size_t count : options_.update) {
    add(update_, "update", in, count, 1, {count, gate::kFunctions});
    shape_.update.push_back(count);
    in = count;
  }
}

template <class T>
Automaton<T> Automaton<T>::with_grid(std::size_t height, std::size_t width, std::size_t steps) const {
  AutomatonOptions o = options_;
  o.height = height, o.width = width, o.steps = steps;
  return Automaton(std::move(o));
}

template <class T>
void Automaton<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  std::fill(buffers.begin(), buffers.end(), T(0));
  std::uint32_t number = 0;
  const auto start = [&](const Layer& layer, bool first_kernel) {
    const Slice& logits = parameters_[layer.parameter];
    for (std::size_t g = 0; g < layer.gates * layer.kernels; ++g)
      parameters[logits.offset + g * gate::kFunctions + static_cast<std::size_t>(circuit::Op::a)] = T(10);
    const RandomStream random(seed, RandomUse::wires, 0, number++);
    const std::vector<Wire> wires =
        first_kernel ? first_kernel_wires(random) : make_wires(options_.wires, layer.in, layer.gates, random);
    T* to = buffers.data() + buffers_[layer.buffer].offset;
    for (const Wire& w : wires) *to++ = static_cast<T>(w.a), *to++ = static_cast<T>(w.b);
  };
  for (const Layer& layer : perception_) start(layer, &layer == &perception_.front());
  for (const Layer& layer : update_) start(layer, false);
}

template <class T>
Result<void> Automaton<T>::derive(std::span<T> buffers) const {
  for (const auto* layers : {&perception_, &update_})
    for (const Layer& layer : *layers) {
      const Slice& slice = buffers_[layer.buffer];
      const auto wires = restore_wires<T>(buffers.data() + slice.offset, layer.gates, layer.in, slice.name);
      if (!wires.ok()) return wires.error();
    }
  return {};
}

template <class T>
std::vector<Wire> Automaton<T>::wires(const Layer& layer, std::span<const T> buffers) const {
  const Slice& slice = buffers_[layer.buffer];
  return restore_wires<T>(buffers.data() + slice.offset, layer.gates, layer.in, slice.name).or_throw();
}

template <class T>
std::vector<gate::LayerPlan> Automaton<T>::plan(std::span<const T> buffers, std::span<gate::Gate<T>> gates) const {
  std::vector<gate::LayerPlan> plans;
  for (std::size_t l = 0; l < perception_.size() + update_.size(); ++l) {
    const Layer& now = layer(l);
    // The rows of a signal of kernel k follow those of kernel k - 1, except in the patch, which all kernels share.
    const std::size_t spread = l == 0 ? 1 : now.kernels;
    std::vector<gate::GateRows> rows;
    for (const Wire& wire : wires(now, buffers))
      for (std::size_t k = 0; k < now.kernels; ++k) {
        const auto row = [&](std::uint32_t input) {
          return static_cast<std::uint32_t>(input * spread + (spread > 1 ? k : 0));
        };
        rows.push_back({row(wire.a), row(wire.b)});
      }
    // Centres start with what the update circuit's gradient is.
    plans.push_back(gate::plan_layer(rows, now.in * spread, l == 0 ? std::uint32_t{gate::kCentre} : gate::kNoRow));
    gate::place_gates<T>(rows, plans.back(), gates.data() + now.first);
  }
  return plans;
}

template <class T>
void Automaton<T>::prepare(const Exec& ex, const ModelArrays<T>& arrays, std::span<const gate::LayerPlan> plans,
                           std::span<gate::Gate<T>> gates) const {
  ex.parallel_for(plans.size(), [&](std::size_t l, unsigned) {
    const Layer& now = layer(l);
    const std::size_t logits = now.gates * gate::kFunctions;
    const T* z = arrays.parameters.data() + parameters_[now.parameter].offset;
    for (std::size_t k = 0; k < now.kernels; ++k)
      gate::coefficients<T>(ex.variant(), {z + k * logits, logits}, plans[l].position.data() + k, now.kernels,
                            gates.data() + now.first);
  });
}

template <class T>
bool Automaton<T>::synchronous(const Step& step) const {
  return options_.fire_probability >= 1.0 ||
         (step.mode == Mode::evaluate && options_.evaluation == EvaluationFiring::all);
}

template <class T>
RandomStream Automaton<T>::fire_stream(const Step& step, std::size_t sample) const {
  return {step.seed, RandomUse::fire, step.epoch, static_cast<std::uint32_t>(step.index << 16 | sample)};
}

template <class T>
bool Automaton<T>::fires(const Step& step, std::size_t sample, std::size_t t, std::size_t cell) const {
  return synchronous(step) ||
         fire_stream(step, sample).uniform(static_cast<std::uint32_t>(t * cells() + cell)) < options_.fire_probability;
}

template class Automaton<float>;
template class Automaton<double>;

}  // namespace gradloom::logic
