#include "gradloom/models/logic/classifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/circuit/circuit.h"
#include "gradloom/models/logic/classifier_shared.h"

namespace gradloom::logic {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 24;  // so that wires are exact as floats

// At most so many for so many leaves, wherever they begin: those of full size, and smaller ones at both ends.
std::size_t most_ranges(std::size_t leaves) {
  return std::min(leaves, kShards + 2 * static_cast<std::size_t>(std::bit_width(range_leaves(leaves))));
}

}  // namespace

void validate(const ClassifierOptions& o) {
  if (o.inputs == 0 || o.inputs >= kLargest)
    throw_invalid(fmt::format("inputs is {}; it must be 1 to {}", o.inputs, kLargest - 1));
  if (o.layers.empty()) throw_invalid("a classifier of gates needs at least one layer");
  if (o.classes == 0 || o.layers.back() % o.classes != 0)
    throw_invalid(fmt::format("the last layer has {} gates; they cannot be divided evenly among {} classes",
                              o.layers.back(), o.classes));
  if (!(o.tau > 0)) throw_invalid(fmt::format("tau is {}; it must be positive", o.tau));
  std::size_t in = o.inputs;
  for (std::size_t l = 0; l < o.layers.size(); in = o.layers[l++]) {
    const std::string where = fmt::format("layer.{}", l);
    if (o.layers[l] == 0 || o.layers[l] >= kLargest)
      throw_invalid(fmt::format("{} has {} gates; it must have 1 to {}", where, o.layers[l], kLargest - 1));
    if (o.wires == WireKind::unique) check_unique(in, o.layers[l], where);
  }
}

template <class T>
GateClassifier<T>::GateClassifier(ClassifierOptions options) : options_(std::move(options)) {
  validate(options_);
  starts_ = {0, options_.inputs};
  widest_ = options_.inputs;
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    const std::size_t count = options_.layers[l];
    parameters_.add(fmt::format("layer.{}", l), {count, gate::kFunctions});
    buffers_.add(fmt::format("layer.{}.wires", l), {count, 2});
    starts_.push_back(starts_.back() + count);
    widest_ = std::max(widest_, count);
    gates_ += count;
  }
}

template <class T>
void GateClassifier<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  std::fill(buffers.begin(), buffers.end(), T(0));
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    const std::size_t count = options_.layers[l];
    T* logits = parameters.data() + parameters_[l].offset;
    for (std::size_t g = 0; g < count; ++g)
      logits[g * gate::kFunctions + static_cast<std::size_t>(circuit::Op::a)] = T(10);
    const RandomStream random(seed, RandomUse::wires, 0, static_cast<std::uint32_t>(l));
    T* to = buffers.data() + buffers_[l].offset;
    for (const Wire& w : make_wires(options_.wires, layer_inputs(l), count, random))
      *to++ = static_cast<T>(w.a), *to++ = static_cast<T>(w.b);
  }
}

template <class T>
Result<void> GateClassifier<T>::derive(std::span<T> buffers) const {
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    const Slice& slice = buffers_[l];
    const auto wires = restore_wires<T>(buffers.data() + slice.offset, options_.layers[l], layer_inputs(l), slice.name);
    if (!wires.ok()) return wires.error();
  }
  return {};
}

template <class T>
std::vector<Wire> GateClassifier<T>::wires(std::size_t l, std::span<const T> buffers) const {
  const Slice& slice = buffers_[l];
  return restore_wires<T>(buffers.data() + slice.offset, options_.layers[l], layer_inputs(l), slice.name).or_throw();
}

template <class T>
ClassifierTape<T> GateClassifier<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 samples was asked for");
  Tape tape;
  tape.limits_ = limits;
  tape.workers_ = ex.threads();
  tape.gates_ = tape.workspace_.template reserve<gate::Gate<T>>(gates_);
  // Signals of all layers, and gradients of two; then the votes.
  const std::size_t rows = starts_.back() + 2 * widest_ + options_.classes;
  tape.scratch_bytes_ = round_up(rows * kTile * sizeof(T), kMemoryAlignment);
  tape.scratch_ = tape.workspace_.template reserve<std::byte>(tape.scratch_bytes_ * tape.workers_);
  if (limits.backward) {
    const std::size_t leaves = divide_up(limits.batch, kLeafRows);
    tape.shards_ = most_ranges(leaves);
    tape.levels_ = reduce::tree_levels(range_leaves(leaves));
    tape.stacks_ = tape.workspace_.template reserve<T>(tape.workers_ * tape.levels_ * gates_ * gate::kPartial);
    tape.ranges_.reserve(tape.shards_);
  }
  if (limits.backward) tape.sums_ = tape.workspace_.template reserve<T>(tape.shards_ * gates_ * gate::kPartial);
  tape.workspace_.allocate();
  return tape;
}

template <class T>
void GateClassifier<T>::check(const Exec& ex, const Batch& batch, const Tape& tape) const {
  if (ex.threads() > tape.workers_)
    throw_invalid(fmt::format("{} threads with a tape that was made for {}", ex.threads(), tape.workers_));
  if (batch.size > tape.limits_.batch)
    throw_invalid(fmt::format("the batch has {} samples, the tape was made for {}", batch.size, tape.limits_.batch));
  if (batch.size > 0 && batch.x.extent(1) != input_width())
    throw_invalid(fmt::format("the batch has {} features, the classifier {} inputs", batch.x.extent(1), input_width()));
}

template <class T>
std::vector<gate::LayerPlan> GateClassifier<T>::plan(std::span<const T> buffers, gate::Gate<T>* gates) const {
  std::vector<gate::LayerPlan> plans;
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    std::vector<gate::GateRows> rows;
    for (const Wire& wire : wires(l, buffers)) rows.push_back({wire.a, wire.b});
    plans.push_back(gate::plan_layer(rows, layer_inputs(l)));
    gate::place_gates<T>(rows, plans.back(), gates + starts_[l + 1] - options_.inputs);
  }
  return plans;
}

template class ClassifierTape<float>;
template class ClassifierTape<double>;
template class GateClassifier<float>;
template class GateClassifier<double>;

}  // namespace gradloom::logic
