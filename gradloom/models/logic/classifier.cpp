#include "gradloom/models/logic/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gradloom/base/rounding.h"
#include "gradloom/circuit/circuit.h"

namespace gradloom::logic {

namespace gate = kernels::gate;
namespace reduce = kernels::reduce;

namespace {

constexpr std::size_t kTile = gate::kTile;
constexpr std::size_t kShards = 32;
constexpr std::size_t kGates = 256;                     // of one task that works on gates
constexpr std::size_t kLargest = std::size_t{1} << 24;  // so that wires are exact as floats
constexpr std::size_t kLeafTiles = kLeafRows / kTile;
static_assert(kLeafRows % kTile == 0);

// Leaves of one range at most, so that there are about kShards of them.
std::size_t range_leaves(std::size_t leaves) { return std::bit_ceil(divide_up(leaves, kShards)); }

// f(range) for `count` leaves from `first` on, in order.
template <class F>
void for_leaf_ranges(std::size_t first, std::size_t count, F&& f) {
  for (std::size_t size, most = range_leaves(count); count > 0; first += size, count -= size) {
    size = std::min(most, std::bit_floor(count));
    if (first > 0) size = std::min(size, std::size_t{1} << std::countr_zero(first));
    f(LeafRange{first, size});
  }
}

// At most so many for so many leaves, wherever they begin: those of full size, and smaller ones at both ends.
std::size_t most_ranges(std::size_t leaves) {
  return std::min(leaves, kShards + 2 * static_cast<std::size_t>(std::bit_width(range_leaves(leaves))));
}

// The sums of at most kGates gates become the gradient of their logits, in place.
template <class T>
void sums_to_gradient(const Exec& ex, const T* logits, std::size_t gates, T* to) {
  T sums[kGates * gate::kPartial];
  std::uint32_t in_order[kGates];
  for (std::size_t g = 0; g < gates; ++g) {
    in_order[g] = static_cast<std::uint32_t>(g);
    std::copy_n(to + g * gate::kFunctions, gate::kPartial, sums + g * gate::kPartial);
  }
  gate::logit_gradient<T>(ex.variant(), {logits, gates * gate::kFunctions}, in_order, 1, sums, GradientMode::overwrite,
                          to);
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

template <class T>
template <class F>
void GateClassifier<T>::each_layer(std::size_t begin, std::size_t end, F&& f) const {
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    const std::size_t first = starts_[l + 1] - options_.inputs;
    const std::size_t from = std::max(begin, first), to = std::min(end, first + options_.layers[l]);
    if (from < to) f(l, from - first, to - first);
  }
}

template <class T>
void GateClassifier<T>::prepare(const Exec& ex, const ModelArrays<T>& arrays, Tape& tape) const {
  gate::Gate<T>* gates = tape.workspace_.template at<gate::Gate<T>>(tape.gates_);
  const std::span<const T> buffers(arrays.buffers.data(), buffers_.flat_size());
  tape.planned_.update(buffers, [&] { return plan(buffers, gates); });
  ex.parallel_for(divide_up(gates_, kGates), [&](std::size_t task, unsigned) {
    each_layer(task * kGates, std::min(gates_, (task + 1) * kGates),
               [&](std::size_t l, std::size_t n, std::size_t end) {
                 const T* z = arrays.parameters.data() + parameters_[l].offset + n * gate::kFunctions;
                 gate::coefficients<T>(ex.variant(), {z, (end - n) * gate::kFunctions},
                                       tape.planned_.layers()[l].position.data() + n, 1,
                                       gates + starts_[l + 1] - options_.inputs);
               });
  });
}

template <class T>
gate::Layer<T> GateClassifier<T>::layer(const Tape& tape, std::size_t l) const {
  const gate::Gate<T>* gates = tape.workspace_.template at<gate::Gate<T>>(tape.gates_);
  return {{gates + starts_[l + 1] - options_.inputs, options_.layers[l]}, &tape.planned_.layers()[l]};
}

template <class T>
const T* GateClassifier<T>::run_tile(const Exec& ex, const Batch& batch, std::size_t tile, const Tape& tape,
                                     T* signals) const {
  const std::size_t first = tile * kTile, count = std::min(kTile, batch.size - first);
  for (std::size_t i = 0; i < options_.inputs; ++i)
    for (std::size_t l = 0; l < kTile; ++l) signals[i * kTile + l] = l < count ? batch.x(first + l, i) : T(0);
  const T* in = signals;
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    T* out = signals + starts_[l + 1] * kTile;
    gate::forward<T>(ex.variant(), layer(tape, l), in, out);
    in = out;
  }
  return in;
}

template <class T>
void GateClassifier<T>::forward(const Exec& ex, const Step&, const ModelArrays<T>& arrays, const Batch& batch,
                                Tape& tape, View<T, 2> y) const {
  check(ex, batch, tape);
  tape.batch_ = kNoPass;  // until wires are known to be good
  prepare(ex, arrays, tape);
  tape.batch_ = batch.size;
  const std::size_t classes = options_.classes, votes = options_.layers.back() / classes;
  const T scale = static_cast<T>(1 / options_.tau);
  ex.parallel_for(divide_up(batch.size, kTile), [&](std::size_t tile, unsigned worker) {
    T* memory = tape.workspace_.template at<T>(tape.scratch_ + worker * tape.scratch_bytes_);
    const T* out = run_tile(ex, batch, tile, tape, memory);
    T* sum = memory + (starts_.back() + 2 * widest_) * kTile;
    std::fill_n(sum, classes * kTile, T(0));
    for (std::size_t k = 0; k < classes; ++k)
      for (std::size_t v = 0; v < votes; ++v)
        for (std::size_t l = 0; l < kTile; ++l)
          sum[k * kTile + l] = sum[k * kTile + l] + out[(k * votes + v) * kTile + l];
    const std::size_t first = tile * kTile, count = std::min(kTile, batch.size - first);
    for (std::size_t l = 0; l < count; ++l)
      for (std::size_t k = 0; k < classes; ++k) y(first + l, k) = sum[k * kTile + l] * scale;
  });
}

template <class T>
void GateClassifier<T>::tile_backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t tile,
                                      std::size_t lowest, T* signals, T* sums) const {
  const std::size_t layers = options_.layers.size(), votes = options_.layers.back() / options_.classes;
  const T scale = static_cast<T>(1 / options_.tau);
  run_tile(ex, call.batch, tile, call.tape, signals);
  const std::size_t first = tile * kTile, size = std::min(kTile, call.batch.size - first);
  T* const turns[] = {signals + starts_.back() * kTile, signals + (starts_.back() + widest_) * kTile};
  T* dl_dout = turns[layers % 2];
  for (std::size_t g = 0; g < options_.layers.back(); ++g)
    for (std::size_t l = 0; l < kTile; ++l)
      dl_dout[g * kTile + l] = l < size ? call.dl_dy(first + l, g / votes) * scale : T(0);
  for (std::size_t l = layers; l-- > lowest;) {
    T* dl_din = turns[l % 2];
    const std::size_t gate = starts_[l + 1] - options_.inputs;
    gate::backward<T>(ex.variant(), layer(call.tape, l),
                      {signals + starts_[l] * kTile, dl_dout, dl_din, sums + gate * gate::kPartial});
    dl_dout = dl_din;
  }
  if (call.dl_dx.empty()) return;
  for (std::size_t l = 0; l < size; ++l)
    for (std::size_t i = 0; i < options_.inputs; ++i)  // 0 + -0 is 0
      call.dl_dx(first + l, i) = T(0) + dl_dout[i * kTile + l];
}

template <class T>
void GateClassifier<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  check(ex, batch, tape);
  if (!tape.limits_.backward) throw_invalid("the tape was made for forward passes only");
  if (tape.batch_ == kNoPass) throw_invalid("backward was called before forward, or after a forward pass that failed");
  if (tape.batch_ != batch.size)
    throw_invalid(fmt::format("backward of {} samples after a forward pass of {}", batch.size, tape.batch_));
  const std::size_t layers = options_.layers.size();
  // Nothing below the lowest trainable layer is computed, unless dl_dx is asked for.
  std::size_t lowest = 0;
  if (call.dl_dx.empty())
    while (lowest < layers && call.step.is_frozen(lowest)) ++lowest;
  if (lowest == layers) return;
  const reduce::TreeSum<T> tree = tree_of(call, leaves(batch));
  sum_leaves(ex, call, lowest);
  finish_leaves(ex, call, tree, lowest);
}

// The sums of each range of leaves, which one worker adds up in a stack of its own.
template <class T>
void GateClassifier<T>::sum_leaves(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t lowest) const {
  Tape& tape = call.tape;
  const std::size_t numbers = gates_ * gate::kPartial, first_leaf = call.step.leaf;
  const std::size_t tiles = divide_up(call.batch.size, kTile);
  tape.ranges_.clear();
  for_leaf_ranges(first_leaf, leaves(call.batch), [&](const LeafRange& range) { tape.ranges_.push_back(range); });
  ex.parallel_for(tape.ranges_.size(), [&](std::size_t r, unsigned worker) {
    const LeafRange& range = tape.ranges_[r];
    T* signals = tape.workspace_.template at<T>(tape.scratch_ + worker * tape.scratch_bytes_);
    T* apart = tape.workspace_.template at<T>(tape.stacks_) + worker * tape.levels_ * numbers;
    const reduce::TreeSum<T> sum{
        .root = tape.workspace_.template at<T>(tape.sums_) + r * numbers, .upper = apart + numbers, .stride = numbers};
    for (std::size_t n = 0; n < range.size; ++n) {
      const reduce::LeafPlace place = reduce::place_of(n);
      T *const level = sum.level(place.level), *const to = place.store ? level : apart;
      std::fill_n(to, numbers, T(0));
      const std::size_t begin = (range.first - first_leaf + n) * kLeafTiles, end = std::min(tiles, begin + kLeafTiles);
      for (std::size_t tile = begin; tile < end; ++tile) tile_backward(ex, call, tile, lowest, signals, to);
      if (!place.store)
        for (std::size_t i = 0; i < numbers; ++i) level[i] = level[i] + apart[i];
      reduce::merge_levels(sum, n, 0, numbers);
    }
  });
}

template <class T>
void GateClassifier<T>::finish_gradient(const Exec& ex, const Step& step, const ModelArrays<T>& arrays,
                                        std::span<T> sums) const {
  ex.parallel_for(divide_up(gates_, kGates), [&](std::size_t task, unsigned) {
    each_layer(task * kGates, std::min(gates_, (task + 1) * kGates),
               [&](std::size_t l, std::size_t n, std::size_t end) {
                 if (step.is_frozen(l)) return;
                 const std::size_t at = parameters_[l].offset + n * gate::kFunctions;
                 sums_to_gradient(ex, arrays.parameters.data() + at, end - n, sums.data() + at);
               });
  });
}

// Ranges are nodes of the step's tree. Behind the last leaf the sums become the gradient of the logits, in their place.
template <class T>
void GateClassifier<T>::finish_leaves(const Exec& ex, const BackwardCall<T, Batch, Tape>& call,
                                      const reduce::TreeSum<T>& tree, std::size_t lowest) const {
  const Tape& tape = call.tape;
  const T* all_sums = tape.workspace_.template at<T>(tape.sums_);
  const std::size_t all = tree.leaf + leaves(call.batch);
  const auto finish_gates = [&](std::size_t l, std::size_t n, std::size_t end, unsigned worker) {
    if (l < lowest || call.step.is_frozen(l)) return;
    const reduce::TreeSum<T> sum = tree.at(parameters_[l].offset);
    const std::uint32_t* position = tape.planned_.layers()[l].position.data();
    const std::size_t begin = n * gate::kFunctions, last = end * gate::kFunctions;
    if (all == 0) std::fill(sum.root + begin, sum.root + last, T(0));
    for (std::size_t r = 0; r < tape.ranges_.size(); ++r) {
      const std::size_t node = tape.ranges_[r].first / tape.ranges_[r].size;
      const reduce::LeafPlace place = reduce::place_of(node);
      const T* from = all_sums + (r * gates_ + starts_[l + 1] - options_.inputs) * gate::kPartial;
      for (std::size_t g = n; g < end; ++g) {
        T* to = sum.level(place.level) + g * gate::kFunctions;
        if (place.store) std::fill_n(to, gate::kFunctions, T(0));
        for (std::size_t i = 0; i < gate::kPartial; ++i) {
          const T own = from[position[g] * gate::kPartial + i];
          to[i] = place.store ? own : to[i] + own;
        }
      }
      reduce::merge_levels(sum, node, begin, last);
    }
    if (!sum.complete) return;
    reduce::finish_levels(sum, all, begin, last);
    sums_to_gradient(ex, call.arrays.parameters.data() + parameters_[l].offset + begin, end - n, sum.root + begin);
    if (call.sink) call.sink->finished(parameters_[l].offset + begin, parameters_[l].offset + last, worker);
  };
  ex.parallel_for(divide_up(gates_, kGates), [&](std::size_t task, unsigned worker) {
    each_layer(task * kGates, std::min(gates_, (task + 1) * kGates),
               [&](std::size_t l, std::size_t n, std::size_t end) { finish_gates(l, n, end, worker); });
  });
}

template class ClassifierTape<float>;
template class ClassifierTape<double>;
template class GateClassifier<float>;
template class GateClassifier<double>;

}  // namespace gradloom::logic
