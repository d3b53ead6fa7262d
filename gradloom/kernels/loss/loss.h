// Losses over rows: their value, and the gradient with respect to the model's output.
//
// Letters: B samples, Out outputs. A term is one (sample, output), or one sample for cross_entropy. It is weighted by
// weight[sample] and mask(sample, output) where those are given; cross_entropy takes no mask. With `mean` and no weight
// at all the loss and its gradient are 0.
//
// Order, in chunks of kChunk samples and in double: term j of each sample is added to sum j % 8; then sums n and n + 4
// are added, of these n and n + 2, and the last two. cross_entropy has one sum. Chunks are the leaves of
// reduce/tree_sum.h. The sum of the weights is taken term by term; in the same chunks and leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gradloom/base/rounding.h"
#include "gradloom/base/view.h"
#include "gradloom/exec/exec.h"

namespace gradloom::kernels::loss {

enum class Kind : std::uint32_t {
#define GRADLOOM_LOSS(number, name) name = number,
#include "gradloom/kernels/loss/kinds.inc"
#undef GRADLOOM_LOSS
};

enum class Reduction {
  mean,  // divided by the sum of the weights of all terms
  sum,
};

struct Options {
  Kind kind = Kind::mse;
  Reduction reduction = Reduction::mean;
  double huber_delta = 1.0;
  double scale = 1.0;  // multiplies value and gradient
  // mean: over this many samples, of which the batch is a part (gradient accumulation); 0: over those of the batch
  std::size_t samples = 0;
  // The factor of the sum of all terms, where the samples are a part of a batch whose normaliser() is known.
  std::optional<double> factor;
};

// What is wanted of B samples; views of the caller's memory.
template <class T>
struct Wanted {
  std::size_t size = 0;                  // B
  View<const T, 2> target;               // (B, Out), empty for classification
  std::span<const std::uint32_t> label;  // (B), empty for regression
  View<const T, 2> mask;                 // (B, Out) 0/1, empty: all count
  std::span<const T> weight;             // (B), empty: all 1
};

inline constexpr std::size_t kChunk = 64;  // samples that are summed by themselves
inline std::size_t partials(std::size_t batch) { return divide_up(batch, kChunk); }

// Throws invalid_input when `wanted` does not fit a loss over `out` outputs: no labels, a label beyond Out, targets of
// another width.
template <class T>
void check(const Options& options, const Wanted<T>& wanted, std::size_t out);

// The factor of the sum of all terms, without the scale.
template <class T>
double normaliser(const Options& options, const Wanted<T>& wanted, std::size_t out);

// y (B, Out); dl_dy (B, Out) is overwritten and may be empty. `sums` has room for partials(B) numbers. Throws as
// check() does, and when y or `sums` is too short.
template <class T>
double evaluate(const Exec& ex, const Options& options, const Wanted<T>& wanted, View<const T, 2> y, View<T, 2> dl_dy,
                std::span<double> sums);

// The value of a loss whose chunks have these sums: what evaluate() returns.
double finish(const Options& options, double factor, std::span<const double> sums);

// Which side of its kinks (mae, huber) every term is on, as a hash; a constant for smooth losses.
template <class T>
std::uint64_t branches(const Options& options, const Wanted<T>& wanted, View<const T, 2> y);

}  // namespace gradloom::kernels::loss
