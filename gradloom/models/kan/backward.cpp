// The backward pass of a spline network. Each parallel loop cuts samples (input gradients) or inputs (weight
// gradients); a cut never changes bits, because every sum has one owner (kernels/spline/spline.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/exec/profile.h"
#include "gradloom/kernels/product/product.h"
#include "gradloom/models/kan/network.h"
#include "gradloom/models/kan/panels.h"

namespace gradloom::kan {

namespace {

// Inputs per task of the weight gradient: multiply-adds for several microseconds, in steps of kInputs or one half of
// it.
constexpr std::size_t kTaskWork = 200'000;
// Inputs that the kernel takes at once, so that a part of dl_dy in the cache serves all of them.
constexpr std::size_t kInputs = 8;

std::size_t inputs_per_task(const spline::Shape& s, std::size_t batch) {
  const std::size_t work = std::max<std::size_t>(1, batch * (s.degree + 1) * s.out_padded());
  return std::max<std::size_t>(1, kTaskWork / work / kInputs) * kInputs;
}

// About half as many.
std::size_t half_of(std::size_t inputs) { return inputs == kInputs ? kInputs / 2 : inputs / kInputs / 2 * kInputs; }

// The gradient of edges whose weights are all 0 becomes 0, for the inputs of a range.
template <class T>
void keep_zero_edges(const spline::Shape& s, const T* weight, spline::Range inputs, T* gradient) {
  const std::size_t pitch = s.out_padded();
  for (std::size_t i = inputs.begin; i < inputs.end; ++i)
    for (std::size_t j = 0; j < pitch; j += kPanel) {
      const std::size_t first = i * s.rows() * pitch + j;
      T largest[kPanel] = {};
      for (std::size_t r = 0; r < s.rows(); ++r)
        for (std::size_t c = 0; c < kPanel; ++c)
          largest[c] = std::max(largest[c], std::abs(weight[first + r * pitch + c]));
      for (std::size_t r = 0; r < s.rows(); ++r)
        for (std::size_t c = 0; c < kPanel; ++c)
          gradient[first + r * pitch + c] = largest[c] > T(0) ? gradient[first + r * pitch + c] : T(0);
    }
}

}  // namespace

template <class T>
LayerStrengths<T> Network<T>::layer_strengths(std::size_t l, Tape& tape) const {
  const spline::Shape& s = shapes_[l];
  const auto& at = tape.layers_[l];
  Workspace& w = tape.workspace_;
  return {
      {w.at<T>(at.mean), w.at<T>(at.strength), w.at<T>(at.logarithm), w.at<double>(at.node), w.at<double>(at.weighted)},
      {w.at<double>(at.log_node), s.in},
      {w.at<T>(at.common), s.in}};
}

template <class T>
double Network<T>::penalty(const Exec& ex, std::span<const T> parameters, Tape& tape) const {
  tape.penalty_ = 0.0;
  if (!(options_.sparsity > 0)) return 0.0;
  constexpr std::size_t kInputsOfTask = 8;
  std::size_t tasks = 0;
  for (const spline::Shape& s : shapes_) tasks += divide_up(s.in, kInputsOfTask);
  ex.parallel_for(tasks, [&](std::size_t task, unsigned) {
    std::size_t l = 0;
    for (; task >= divide_up(shapes_[l].in, kInputsOfTask); ++l) task -= divide_up(shapes_[l].in, kInputsOfTask);
    const spline::Range inputs{task * kInputsOfTask, std::min(shapes_[l].in, (task + 1) * kInputsOfTask)};
    kernels::sparsity::strengths<T>(ex.variant(), shapes_[l], parameters.data() + parameters_[slices_[l].weight].offset,
                                    inputs, layer_strengths(l, tape).edges);
  });
  for (std::size_t l = 0; l < layers(); ++l) {
    tape.penalties_[l] = layer_penalty<T>(ex.variant(), shapes_[l], options_, layer_strengths(l, tape));
    tape.penalty_ += tape.penalties_[l].value(options_);
  }
  return tape.penalty_;
}

template <class T>
void Network<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Tape& tape = call.tape;
  if (!tape.limits_.backward) throw_invalid("the tape was made for forward passes only");
  if (tape.batch_ != call.batch.size)
    throw_invalid(fmt::format("backward of {} samples after a forward pass of {}", call.batch.size, tape.batch_));
  if (!call.dl_dx.empty() && !tape.limits_.input_gradient)
    throw_invalid("dl_dx was requested, but the tape was made without input gradients");
  const auto trainable = [&](std::size_t l) {
    return !call.step.is_frozen(slices_[l].weight) || (shapes_[l].bias && !call.step.is_frozen(slices_[l].bias));
  };
  // Nothing below the lowest trainable layer is computed, unless dl_dx is asked for.
  std::size_t lowest = 0;
  if (call.dl_dx.empty())
    while (lowest < layers() && !trainable(lowest)) ++lowest;
  if (lowest == layers()) return;
  input_gradients(ex, call, lowest);
  parameter_gradients(ex, call, lowest);
}

template <class T>
void Network<T>::input_gradients(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::size_t lowest) const {
  Tape& tape = call.tape;
  const std::size_t size = call.batch.size, tile = tile_size(ex, options_.grid, size), stride = tape.stride_;
  const T* scale = call.arrays.buffers.data() + buffers_[affine_.input_scale].offset;
  const T* out_std = call.arrays.buffers.data() + buffers_[affine_.output_std].offset;
  const auto gradient_of = [&](std::size_t l) { return tape.workspace_.template at<T>(tape.layers_[l].gradient); };
  ex.parallel_for((size + tile - 1) / tile, [&](std::size_t index, unsigned worker) {
    const spline::Range samples{index * tile, std::min(size, (index + 1) * tile)};
    to_panels(
        samples, output_width(), stride, gradient_of(layers() - 1), [&](std::size_t s) { return call.dl_dy.row(s); },
        [=](T v, std::size_t j) { return v * out_std[j]; });
    for (std::size_t l = layers(); l-- > lowest;) {
      if (l == lowest && call.dl_dx.empty()) break;
      const ProfileScope scope(ex, tape.phases_[l].input, worker);
      const LayerNodes shape = l > 0 ? nodes(l - 1) : LayerNodes{};
      T* below = l == 0               ? tape.workspace_.template at<T>(tape.dl_dx_)
                 : shape.products > 0 ? tape.workspace_.template at<T>(tape.layers_[l - 1].node_gradient)
                                      : gradient_of(l - 1);
      spline::input_gradient(ex.variant(), layer(l, call.arrays), layer_tape(l, tape), gradient_of(l), samples, below);
      if (shape.products > 0)
        kernels::product::backward<T>(ex.variant(), shape, stride, samples,
                                      tape.workspace_.template at<T>(tape.layers_[l - 1].sums), below,
                                      gradient_of(l - 1));
    }
    if (call.dl_dx.empty()) return;
    const T* panel = tape.workspace_.template at<T>(tape.dl_dx_);
    for (std::size_t s = samples.begin; s < samples.end; ++s)
      for (std::size_t i = 0; i < input_width(); ++i)
        call.dl_dx(s, i) = panel[(i / kPanel * stride + s) * kPanel + i % kPanel] * scale[i];
  });
}

// What follows the sums over samples, for some inputs of a layer; penalty() came before.
template <class T>
void Network<T>::complete_inputs(const Exec& ex, std::size_t l, spline::Range inputs, std::span<const T> parameters,
                                 Tape& tape, std::span<T> gradient) const {
  const std::size_t offset = parameters_[slices_[l].weight].offset;
  if (options_.sparsity > 0)
    add_penalty_gradient<T>(ex.variant(), shapes_[l], options_, parameters.data() + offset, layer_strengths(l, tape),
                            tape.penalties_[l], inputs, gradient.data() + offset);
  if (options_.keep_zero) keep_zero_edges<T>(shapes_[l], parameters.data() + offset, inputs, gradient.data() + offset);
}

template <class T>
double Network<T>::complete_gradient(const Exec& ex, const Step& step, std::span<const T> parameters, Tape& tape,
                                     std::span<T> gradient) const {
  if (sums_are_gradient()) return 0.0;
  const double value = penalty(ex, parameters, tape);
  for (std::size_t l = 0; l < layers(); ++l)
    if (!step.is_frozen(slices_[l].weight))
      ex.parallel_for(divide_up(shapes_[l].in, kInputs), [&](std::size_t task, unsigned) {
        const spline::Range inputs{task * kInputs, std::min(shapes_[l].in, (task + 1) * kInputs)};
        complete_inputs(ex, l, inputs, parameters, tape, gradient);
      });
  return value;
}

// Nobody reads parameters here, but for the penalty, whose strengths are known before the first range is finished and
// whose gradient reads the range that is about to be, and to see which edges are zero. Tasks are some inputs of a layer
// or its bias, the top layer first; those of the lowest layer are small, so that the threads end at about the same
// time.
template <class T>
void Network<T>::parameter_gradients(const Exec& ex, const BackwardCall<T, Batch, Tape>& call,
                                     std::size_t lowest) const {
  const Step& step = call.step;
  Tape& tape = call.tape;
  const auto tree = tree_of(call, leaves(call.batch));
  const bool penalised = options_.sparsity > 0 && step.gradient_is == GradientIs::complete;
  const bool keeps_zero = options_.keep_zero && step.gradient_is == GradientIs::complete;
  if (penalised) penalty(ex, call.arrays.parameters, tape);
  const std::size_t size = call.batch.size, stride = tape.stride_;
  const auto gradient_of = [&](std::size_t l) { return tape.workspace_.template at<T>(tape.layers_[l].gradient); };
  const auto group_of = [&](std::size_t l) {
    const std::size_t inputs = inputs_per_task(shapes_[l], size);
    return l == lowest && ex.threads() > 1 ? half_of(inputs) : inputs;
  };
  const auto tasks_of = [&](std::size_t l) { return (shapes_[l].in + group_of(l) - 1) / group_of(l) + 1; };
  std::size_t tasks = 0;
  for (std::size_t l = lowest; l < layers(); ++l) tasks += tasks_of(l);
  ex.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    std::size_t l = layers() - 1;
    for (; task >= tasks_of(l); --l) task -= tasks_of(l);
    const spline::Shape& s = shapes_[l];
    const std::size_t group = group_of(l), row = s.rows() * s.out_padded();
    if (task + 1 == tasks_of(l)) {
      if (!s.bias || step.is_frozen(slices_[l].bias)) return;
      const Slice& slice = parameters_[slices_[l].bias];
      spline::bias_gradient(ex.variant(), s, {size, stride}, gradient_of(l), tree.at(slice.offset));
      if (call.sink) call.sink->finished(slice.offset, slice.end(), worker);
      return;
    }
    if (step.is_frozen(slices_[l].weight)) return;
    const Slice& slice = parameters_[slices_[l].weight];
    const spline::Range inputs{task * group, std::min(s.in, (task + 1) * group)};
    for (std::size_t i = inputs.begin; i < inputs.end; i += kInputs) {
      const std::size_t last = std::min(inputs.end, i + kInputs);
      {
        const ProfileScope scope(ex, tape.phases_[l].weights, worker);
        const auto expect = [&](std::size_t input) {
          if (call.sink && !penalised && !keeps_zero)
            call.sink->expected(slice.offset + input * row, slice.offset + (input + 1) * row, worker);
        };
        spline::weight_gradient(ex.variant(), s, layer_tape(l, tape), gradient_of(l), {i, last}, tree.at(slice.offset),
                                expect);
        if (penalised || keeps_zero) complete_inputs(ex, l, {i, last}, call.arrays.parameters, tape, call.gradient);
      }
      // While the gradient of these inputs is in the cache.
      if (call.sink) call.sink->finished(slice.offset + i * row, slice.offset + last * row, worker);
    }
  });
}

template <class T>
std::vector<std::size_t> Network<T>::finishing_order() const {
  std::vector<std::size_t> order;
  for (std::size_t l = layers(); l-- > 0;) {
    order.push_back(slices_[l].weight);
    if (shapes_[l].bias) order.push_back(slices_[l].bias);
  }
  return order;
}

template double Network<float>::penalty(const Exec&, std::span<const float>, Tape&) const;
template double Network<double>::penalty(const Exec&, std::span<const double>, Tape&) const;
template double Network<float>::complete_gradient(const Exec&, const Step&, std::span<const float>, Tape&,
                                                  std::span<float>) const;
template double Network<double>::complete_gradient(const Exec&, const Step&, std::span<const double>, Tape&,
                                                   std::span<double>) const;
template std::vector<std::size_t> Network<float>::finishing_order() const;
template std::vector<std::size_t> Network<double>::finishing_order() const;
template void Network<float>::backward(const Exec&, const BackwardCall<float, Batch, Tape>&) const;
template void Network<double>::backward(const Exec&, const BackwardCall<double, Batch, Tape>&) const;

}  // namespace gradloom::kan
