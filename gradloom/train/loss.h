// Losses over rows: their value, and the gradient with respect to the model's output.
#pragma once

#include <string>

#include "gradloom/data/batch.h"
#include "gradloom/exec/exec.h"

namespace gradloom {

enum class LossKind {
  mse,                   // (y - t)^2
  mae,                   // |y - t|; the gradient at 0 is 0
  huber,                 // e^2 / 2 for |e| <= delta, delta (|e| - delta / 2) beyond
  cross_entropy,         // -log softmax(y)[label]
  binary_cross_entropy,  // over logits: log(1 + exp(y)) - t y; t is the target or, without targets, the label
};

enum class Reduction {
  mean,  // divided by the sum of the weights of all terms
  sum,
};

struct LossOptions {
  LossKind kind = LossKind::mse;
  Reduction reduction = Reduction::mean;
  double huber_delta = 1.0;
  double scale = 1.0;  // multiplies value and gradient
  // mean: over this many samples, of which the batch is a part (gradient accumulation); 0: over those of the batch
  std::size_t samples = 0;
};

inline constexpr std::size_t kLossChunk = 64;  // samples that are summed by themselves

// A term is one (sample, output), or one sample for cross_entropy. It is weighted by batch.weight[sample] and
// batch.mask(sample, output) where those are given; cross_entropy takes no mask. With `mean` and no weight at all the
// loss and its gradient are 0. y (B, Out); dl_dy (B, Out) is overwritten and may be empty. `partials` needs
// loss_partials(B) elements. Throws when the batch or `partials` does not fit the loss (no labels, a label beyond Out,
// targets of another width).
//
// Order, in chunks of kLossChunk samples and in double: term j of each sample is added to sum j % 8; then sums n and
// n + 4 are added, of these n and n + 2, and the last two. cross_entropy has one sum. Chunks are added in order.
template <class T>
double evaluate_loss(const Exec& ex, const LossOptions& options, const RowBatch<T>& batch, View<const T, 2> y,
                     View<T, 2> dl_dy, std::span<double> partials);

// Throws as evaluate_loss does when a batch does not fit a loss over `out` outputs.
template <class T>
void check_loss_batch(const LossOptions& options, const RowBatch<T>& batch, std::size_t out);

inline std::size_t loss_partials(std::size_t batch) { return (batch + kLossChunk - 1) / kLossChunk; }

// Which side of its kinks (mae, huber) every term is on, as a hash; a constant for smooth losses.
template <class T>
std::uint64_t loss_branches(const LossOptions& options, const RowBatch<T>& batch, View<const T, 2> y);

}  // namespace gradloom
