// L-BFGS with a strong-Wolfe line search, for full batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/kernels/reduce/reduce.h"
#include "gradloom/train/optimizer.h"

namespace gradloom {

// What one step did.
struct LbfgsReport {
  double loss = 0.0;  // at the new parameters
  unsigned iterations = 0, evaluations = 0;
  bool stalled = false;  // no direction led downhill: a minimum as far as the arithmetic can tell
};

// The memory of past steps: pairs of a step and the difference of gradients that it made, oldest first from `first` on
// in a ring. It is the whole state of the optimizer.
template <class T>
struct LbfgsHistory {
  std::size_t first = 0, count = 0;
  std::vector<Buffer<T>> steps, differences;
};

// The history belongs to the caller (TrainState); an empty one is given its memory here. All arrays are as long as the
// parameters; padding is zero everywhere and stays so.
template <class T>
class Lbfgs {
 public:
  Lbfgs(const Exec& ex, const OptimizerOptions& options, std::size_t size, LbfgsHistory<T>& history);

  // The loss at the given parameters; fills the gradient.
  using Evaluate = FunctionRef<double(std::span<const T> parameters, std::span<T> gradient)>;

  // One step: up to options.iterations iterations or options.evaluations evaluations. `gradient` is scratch and holds
  // the gradient at the new parameters afterwards. Never leaves parameters at a point with a higher or non-finite loss.
  LbfgsReport step(Evaluate evaluate, std::span<T> parameters, std::span<T> gradient);

  void reset();  // forgets the history

 private:
  struct SearchResult {
    bool ok = false;
    double loss = 0.0;
  };
  std::size_t slot(std::size_t pair) const { return (history_.first + pair) % history_.steps.size(); }
  double dot(std::span<const T> a, std::span<const T> b) {
    return static_cast<double>(kernels::reduce::dot<T>(ex_, a, b, scratch_));
  }
  void remember(std::span<const T> step, std::span<const T> difference);
  void direction(std::span<const T> gradient);
  SearchResult search(Evaluate evaluate, std::span<T> x, std::span<T> g, double loss, double slope, double start,
                      unsigned budget, unsigned& used);

  const Exec& ex_;
  OptimizerOptions options_;
  LbfgsHistory<T>& history_;
  std::vector<double> inverse_products_, alpha_;  // of the ring's slots; of the pairs
  Buffer<T> direction_, start_x_, start_g_, low_g_;
  std::vector<T> scratch_;  // of reductions
};

}  // namespace gradloom
