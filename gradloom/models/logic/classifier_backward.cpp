#include <fmt/format.h>

#include "gradloom/models/logic/classifier_shared.h"

namespace gradloom::logic {
namespace {

// f(range) for `count` leaves from `first` on, in order.
template <class F>
void for_leaf_ranges(std::size_t first, std::size_t count, F&& f) {
  for (std::size_t size, most = range_leaves(count); count > 0; first += size, count -= size) {
    size = std::min(most, std::bit_floor(count));
    if (first > 0) size = std::min(size, std::size_t{1} << std::countr_zero(first));
    f(LeafRange{first, size});
  }
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

template class GateClassifier<float>;
template class GateClassifier<double>;

}  // namespace gradloom::logic
