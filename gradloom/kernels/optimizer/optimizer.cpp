#include "gradloom/kernels/optimizer/optimizer.h"

#include <cmath>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/optimizer/fast.h"

namespace gradloom::kernels::optimizer {

template <class T>
Step<T> make_step(Rule rule, const StepOptions& o, unsigned long t) {
  Step<T> step;
  step.gradient_scale = static_cast<T>(o.gradient_scale);
  step.gradient_limit = static_cast<T>(o.gradient_limit);
  step.l2 = static_cast<T>(o.l2);
  step.rate = static_cast<T>(o.learning_rate);
  step.momentum = static_cast<T>(o.momentum);
  step.beta1 = static_cast<T>(o.beta1), step.one_minus_beta1 = static_cast<T>(1 - o.beta1);
  step.beta2 = static_cast<T>(o.beta2), step.one_minus_beta2 = static_cast<T>(1 - o.beta2);
  step.epsilon = static_cast<T>(o.epsilon);
  step.keep = static_cast<T>(1 - o.learning_rate * o.decoupled_decay);
  step.clip_norm = static_cast<T>(o.clip_norm);
  if (rule == Rule::adam) {
    step.rate = static_cast<T>(o.learning_rate / (1 - std::pow(o.beta1, static_cast<double>(t))));
    step.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(o.beta2, static_cast<double>(t))));
  }
  return step;
}

template <class T>
void update(Variant variant, Rule rule, const Step<T>& step, std::span<T> parameters, std::span<const T> gradient,
            std::span<T> first, std::span<T> second) {
  GRADLOOM_CHOOSE(variant, update<T>)
  (rule, step, parameters.data(), gradient.data(), first.empty() ? nullptr : first.data(),
   second.empty() ? nullptr : second.data(), parameters.size());
}

GRADLOOM_INSTANTIATE(make_step);
GRADLOOM_INSTANTIATE(update);

}  // namespace gradloom::kernels::optimizer
