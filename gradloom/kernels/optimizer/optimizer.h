// One step of an optimizer on a flat range of parameters. Element by element, so any split into ranges gives the same
// bits.
//
// Every update begins with g = gradient_scale * g; then g = -gradient_limit below -gradient_limit, gradient_limit above
// it; then g = mul_add(l2, w, g), unless l2 is 0; then w = keep * w. What follows depends on the rule: rules.inc.
// `gradient` is read only. Ranges have equal sizes, may be empty and need no alignment; they do not overlap. sqrt and /
// are the correctly rounded ones; what is fused stands as mul_add (contract.h). Elements that are zero with a zero
// gradient and state (padding) stay zero.
#pragma once

#include <limits>
#include <span>

#include "gradloom/exec/exec.h"
#include "gradloom/kernels/optimizer/rules.h"

namespace gradloom::kernels::optimizer {

// The constants of a step; a rule reads those that it names.
template <class T>
struct Step {
  T gradient_scale = 1;                                   // of norm clipping, or 1 / (accumulated batches)
  T gradient_limit = std::numeric_limits<T>::infinity();  // element-wise clipping
  T l2 = 0;                                               // coupled weight decay
  T rate = 0;                                             // adam: learning rate / (1 - beta1^t)
  T momentum = 0;
  T beta1 = 0, one_minus_beta1 = 1;
  T beta2 = 0, one_minus_beta2 = 1;
  T epsilon = 0;
  T root_correction = 1;  // 1 / sqrt(1 - beta2^t)
  T keep = 1;             // 1 - learning rate * decoupled decay (AdamW)
  T clip_norm = 0;        // on a device: the norm that gradients are clipped to, in passes that ask for it
};

struct StepOptions {
  double learning_rate = 0, momentum = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  double l2 = 0, decoupled_decay = 0, clip_norm = 0;
  double gradient_scale = 1, gradient_limit = std::numeric_limits<double>::infinity();
};

// The constants of step t = 1, 2, ... computed in double.
template <class T>
Step<T> make_step(Rule rule, const StepOptions& options, unsigned long t);

// `first` and `second` are the rule's states; empty where it has none.
template <class T>
void update(Variant variant, Rule rule, const Step<T>& step, std::span<T> parameters, std::span<const T> gradient,
            std::span<T> first, std::span<T> second);

}  // namespace gradloom::kernels::optimizer
