// The shape of a model: what the trainer, the gradient check and the checkpoints ask of it. A concept, not a base
// class.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/base/slices.h"
#include "gradloom/base/view.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/exec/exec.h"
#include "gradloom/kernels/gradient_mode.h"
#include "gradloom/kernels/reduce/tree_sum.h"

namespace gradloom {

enum class Mode { train, evaluate };

// Whether more micro-batches are added to a gradient before it is used.
enum class GradientIs { partial, complete };

// What one step needs to know, and no more.
struct Step {
  Mode mode = Mode::train;
  GradientMode gradient = GradientMode::overwrite;
  GradientIs gradient_is = GradientIs::complete;
  // Leaves of this optimizer step that were summed before (HasLeaves); 0 where the gradient is overwritten, and only
  // there.
  std::size_t leaf = 0;
  // The leaves are an aligned range of a larger sum, which they do not begin: that of several ranks.
  bool apart = false;
  // The key of the step's random stream.
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t index = 0;
  // One flag per parameter slice; empty: nothing is frozen.
  std::span<const std::uint8_t> frozen;

  bool is_frozen(std::size_t slice) const { return !frozen.empty() && frozen[slice]; }
};

// The flat arrays that a model reads; they belong to the trainer (or to whoever runs inference).
template <class T>
struct ModelArrays {
  std::span<const T> parameters;
  std::span<const T> buffers;
};

// Is told when a range of the gradient is final and the model will not read those parameters again in this step. Every
// element of a slice that is not frozen is reported exactly once; ranges may come from several workers at once.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // This worker will soon report the range, alone or as part of a larger one, and nobody reads its parameters any more
  // in this step. At most once for each element, before finished(); a model need not say it at all. The sink may use
  // the time to prepare.
  virtual void expected(std::size_t /*begin*/, std::size_t /*end*/, unsigned /*worker*/) {}
  virtual void finished(std::size_t begin, std::size_t end, unsigned worker) = 0;
};

// How much memory a tape must hold.
struct TapeLimits {
  std::size_t batch = 1;        // the largest
  bool backward = true;         // false: forward only
  bool input_gradient = false;  // dl_dx will be requested
};

// One call of backward. Designated initialisers name the fields; a field that is added later has a default, so neither
// callers nor models have to change.
template <class T, class Batch, class Tape>
struct BackwardCall {
  Step step = {};  // that of the forward pass, as are arrays and batch
  ModelArrays<T> arrays = {};
  const Batch& batch;
  Tape& tape;                    // holds what that forward pass left
  View<const T, 2> dl_dy = {};   // (B, output_width()); rows as those of y
  std::span<T> gradient = {};    // flat; overwritten or added to, as step.gradient says; frozen slices are left alone
  View<T, 2> dl_dx = {};         // overwritten; empty: not wanted
  GradientSink* sink = nullptr;  // null: no sink
  // The upper levels of the stack whose level 0 is the gradient, each as long as it; they keep what they hold between
  // the pieces of a step. Only for models with leaves, and only as many as the leaves need (gradient_levels()).
  std::span<T> levels = {};
};

// T is the scalar. `forward` overwrites y (B, output_width()); row stride is a multiple of 16, columns beyond the width
// are padding. `backward` follows a forward pass with the same tape.
template <class M, class T>
concept Model = requires(const M& m, const Exec& ex, const Step& step, const ModelArrays<T>& arrays,
                         const typename M::Batch& batch, typename M::Tape& tape, View<T, 2> y,
                         const BackwardCall<T, typename M::Batch, typename M::Tape>& call, std::span<T> flat,
                         std::uint64_t seed) {
  { m.parameters() } -> std::convertible_to<const Slices&>;
  { m.buffers() } -> std::convertible_to<const Slices&>;
  { m.output_width() } -> std::convertible_to<std::size_t>;
  m.initialise(seed, flat, flat);  // parameters, buffers
  { m.make_tape(ex, TapeLimits{}) } -> std::same_as<typename M::Tape>;
  m.forward(ex, step, arrays, batch, tape, y);
  m.backward(ex, call);
};

// A model whose function has kinks (a knot of a low degree, a ReLU, a maximum's winner) reports which side of each it
// is on: two forward passes with different signatures crossed a kink, and a difference between them says nothing.
template <class M>
concept HasBranches = requires(const M& m, const typename M::Tape& tape) {
  { m.branches(tape) } -> std::convertible_to<std::uint64_t>;
};

// A model that sums its gradient over leaves in the tree of kernels/reduce/tree_sum.h says how many a batch has, at
// least 1 unless the batch is empty. Leaves are numbered through the pieces of an optimizer step; behind the last piece
// the model finishes the sums. Any other model adds the gradient of a piece to what there is. leaf_samples() of a leaf
// follow each other in a batch; pieces of a batch that are multiples of it have the leaves of the whole. 0: pieces have
// other leaves.
template <class M>
concept HasLeaves = requires(const M& m, const typename M::Batch& batch) {
  { m.leaves(batch) } -> std::convertible_to<std::size_t>;
  { m.leaf_samples() } -> std::convertible_to<std::size_t>;
};

// A model whose sums become the gradient behind the last leaf says how, for sums that were finished elsewhere: in
// place.
template <class M>
concept FinishesGradient = requires(const M& m, const Exec& ex, const Step& step,
                                    const ModelArrays<typename M::Scalar>& arrays, std::span<typename M::Scalar> sums) {
  m.finish_gradient(ex, step, arrays, sums);
};

// A model with leaves that tells a sink of ranges of its sums long before the end of the pass, also of unfinished sums,
// says in which order it finishes its slices: all of them, each once. Ranks send them while the pass goes on; what is
// not listed is not sent.
template <class M>
concept HasFinishingOrder = HasLeaves<M> && requires(const M& m) {
  { m.finishing_order() } -> std::same_as<std::vector<std::size_t>>;
};

// The stack that a backward pass with so many leaves goes on with. Throws invalid_input when the call has too few
// levels for them, or contradicts itself.
template <class T, class Batch, class Tape>
kernels::reduce::TreeSum<T> tree_of(const BackwardCall<T, Batch, Tape>& call, std::size_t leaves) {
  const Step& step = call.step;
  if ((step.leaf == 0) != (step.gradient == GradientMode::overwrite))
    throw_invalid("only the first leaf of a step overwrites the gradient; this one is leaf " +
                  std::to_string(step.leaf));
  const std::size_t all = step.leaf + leaves, size = call.gradient.size();
  if (call.levels.size() < (kernels::reduce::tree_levels(all) - 1) * size)
    throw_invalid("a gradient over " + std::to_string(all) + " leaves needs " +
                  std::to_string(kernels::reduce::tree_levels(all) - 1) + " upper levels; the call has room for " +
                  std::to_string(size == 0 ? 0 : call.levels.size() / size));
  return {.root = call.gradient.data(),
          .upper = call.levels.data(),
          .stride = size,
          .leaf = step.leaf,
          .complete = step.gradient_is == GradientIs::complete,
          .apart = step.apart};
}

// Memory for BackwardCall::levels where this batch is the whole step.
template <class M>
Buffer<typename M::Scalar> gradient_levels(const M& model, const typename M::Batch& batch) {
  if constexpr (HasLeaves<M>)
    return Buffer<typename M::Scalar>((kernels::reduce::tree_levels(model.leaves(batch)) - 1) *
                                      model.parameters().flat_size());
  else
    return {};
}

// A model with buffers that follow the training batches (the statistics of batch norm): the trainer calls this after
// each step, with the tape of its forward pass.
template <class M>
concept HasRunningBuffers = requires(const M& m, const typename M::Tape& tape, std::span<typename M::Scalar> buffers) {
  m.update_buffers(tape, buffers);
};

}  // namespace gradloom
