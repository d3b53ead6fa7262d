// Element-wise optimizers (SGD, Adam, AdamW, Lion), on ranges of flat arrays.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/exec/exec.h"
#include "gradloom/kernels/optimizer/optimizer.h"

namespace gradloom {

enum class OptimizerKind { sgd, adam, adamw, lion, lbfgs };
inline constexpr Choice<OptimizerKind> kOptimizers[] = {
    {OptimizerKind::sgd, "sgd", "stochastic gradient descent, optionally with momentum"},
    {OptimizerKind::adam, "adam", "Adam"},
    {OptimizerKind::adamw, "adamw", "Adam with decoupled weight decay"},
    {OptimizerKind::lion, "lion", "steps of equal size along the sign of a mean gradient"},
    {OptimizerKind::lbfgs, "lbfgs", "L-BFGS over all samples at once"},
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double lr = 1e-2;
  double momentum = 0.0;                              // sgd
  bool nesterov = false;                              // sgd
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adamw; betas also lion
  double weight_decay = 0.0;                          // added to the gradient (sgd, adam) or decoupled (adamw, lion)
  double clip_value = 0.0;                            // clip every element of the gradient to +- this; 0: off
  double clip_norm = 0.0;                             // scale the gradient down to this Euclidean norm; 0: off
  // lbfgs: one step is at most this many iterations and evaluations
  unsigned history = 10, iterations = 20, evaluations = 25;
};

// Throws Exception{invalid_input} that names the option.
void validate(const OptimizerOptions& options);

// One flat array of an optimizer's memory, saved under this name.
template <class T>
struct OptimizerState {
  std::string name;
  Buffer<T> values;
};

// What an element-wise optimizer does to each element. Throws for L-BFGS.
kernels::optimizer::Rule optimizer_rule(const OptimizerOptions& options);

// The constants of step number `step` (from 0, counted since the state arrays were zero). `gradient_scale` multiplies
// the gradient first (norm clipping).
template <class T>
kernels::optimizer::Step<T> optimizer_step(const OptimizerOptions& options, std::uint64_t step, double lr,
                                           double gradient_scale = 1.0);

// The arrays that an element-wise optimizer keeps, in order. Throws for L-BFGS.
std::vector<std::string> optimizer_state_names(const OptimizerOptions& options);

// The state arrays are as long as the parameters and belong to the caller (TrainState): an empty list is filled with
// zeroed arrays, a present one is continued and must match. update() is element-wise: ranges may be updated in any
// order, at once, by several threads, and the bits are those of one call over everything.
template <class T>
class ElementOptimizer {
 public:
  ElementOptimizer(const OptimizerOptions& options, std::size_t size, std::vector<OptimizerState<T>>& state);

  // Element i has its state at index i - first of the state arrays; only elements of which that is true are updated
  // until the next call. 0, as in the beginning: the arrays hold all.
  void hold_from(std::size_t first) { first_ = first; }

  // Fixes the constants of the step: optimizer_step().
  void begin_step(std::uint64_t step, double lr, double gradient_scale = 1.0);
  void update(Variant variant, std::size_t begin, std::size_t end, std::span<T> parameters,
              std::span<const T> gradient);

 private:
  OptimizerOptions options_;
  std::vector<OptimizerState<T>>& state_;
  std::size_t first_ = 0;
  kernels::optimizer::Rule rule_ = kernels::optimizer::Rule::sgd;
  kernels::optimizer::Step<T> step_;
};

}  // namespace gradloom
