#include "gradloom/train/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"

namespace gradloom {

void validate(const OptimizerOptions& o) {
  const auto need = [](bool ok, const char* name, double value, const char* rule) {
    if (!ok) throw_invalid(fmt::format("optimizer.{} is {}; it must be {}", name, value, rule));
  };
  need(std::isfinite(o.lr) && o.lr > 0, "lr", o.lr, "positive and finite");
  need(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "at least 0 and below 1");
  need(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "at least 0 and below 1");
  need(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "at least 0 and below 1");
  need(std::isfinite(o.epsilon) && o.epsilon > 0, "epsilon", o.epsilon, "positive and finite");
  need(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight_decay", o.weight_decay, "at least 0");
  need(std::isfinite(o.clip_value) && o.clip_value >= 0, "clip_value", o.clip_value, "at least 0 (0 turns it off)");
  need(std::isfinite(o.clip_norm) && o.clip_norm >= 0, "clip_norm", o.clip_norm, "at least 0 (0 turns it off)");
  need(!o.nesterov || o.momentum > 0, "momentum", o.momentum, "positive when nesterov is on");
  need(o.history >= 1 && o.history <= 1000, "history", o.history, "1 to 1000");
  need(o.iterations >= 1, "iterations", o.iterations, "at least 1");
  need(o.evaluations >= 2, "evaluations", o.evaluations, "at least 2");
}

kernels::optimizer::Rule optimizer_rule(const OptimizerOptions& o) {
  using kernels::optimizer::Rule;
  switch (o.kind) {
    case OptimizerKind::sgd:
      return !(o.momentum > 0) ? Rule::sgd : o.nesterov ? Rule::nesterov : Rule::momentum;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return Rule::adam;
    case OptimizerKind::lion:
      return Rule::lion;
    case OptimizerKind::lbfgs:
      break;
  }
  throw_invalid("L-BFGS is not an element-wise optimizer");
}

template <class T>
kernels::optimizer::Step<T> optimizer_step(const OptimizerOptions& o, std::uint64_t step, double lr,
                                           double gradient_scale) {
  kernels::optimizer::StepOptions s{.learning_rate = lr, .momentum = o.momentum, .beta1 = o.beta1, .beta2 = o.beta2};
  s.epsilon = o.epsilon;
  s.gradient_scale = gradient_scale;
  s.clip_norm = o.clip_norm;
  if (o.clip_value > 0) s.gradient_limit = o.clip_value;
  const bool decoupled = o.kind == OptimizerKind::adamw || o.kind == OptimizerKind::lion;
  (decoupled ? s.decoupled_decay : s.l2) = o.weight_decay;
  return kernels::optimizer::make_step<T>(optimizer_rule(o), s, step + 1);
}

std::vector<std::string> optimizer_state_names(const OptimizerOptions& options) {
  const kernels::optimizer::RuleFacts& rule = kernels::optimizer::facts(optimizer_rule(options));
  return {rule.state_names.begin(), rule.state_names.begin() + rule.states};
}

template <class T>
ElementOptimizer<T>::ElementOptimizer(const OptimizerOptions& options, std::size_t size,
                                      std::vector<OptimizerState<T>>& state)
    : options_(options), state_(state) {
  validate(options);
  rule_ = optimizer_rule(options);
  const std::vector<std::string> names = optimizer_state_names(options);
  if (state_.empty())
    for (const std::string& name : names) state_.push_back({name, Buffer<T>(size)});
  bool matches = state_.size() == names.size();
  for (std::size_t i = 0; matches && i < names.size(); ++i)
    matches = state_[i].name == names[i] && state_[i].values.size() == size;
  if (!matches) throw_invalid("the saved state is of another optimizer or model");
}

template <class T>
void ElementOptimizer<T>::begin_step(std::uint64_t step, double lr, double gradient_scale) {
  step_ = optimizer_step<T>(options_, step, lr, gradient_scale);
}

template <class T>
void ElementOptimizer<T>::update(Variant variant, std::size_t begin, std::size_t end, std::span<T> parameters,
                                 std::span<const T> gradient) {
  const std::size_t count = end - begin;
  const auto state = [&](std::size_t i) {
    return i < state_.size() ? state_[i].values.span().subspan(begin - first_, count) : std::span<T>();
  };
  kernels::optimizer::update<T>(variant, rule_, step_, parameters.subspan(begin, count), gradient.subspan(begin, count),
                                state(0), state(1));
}

template kernels::optimizer::Step<float> optimizer_step(const OptimizerOptions&, std::uint64_t, double, double);
template kernels::optimizer::Step<double> optimizer_step(const OptimizerOptions&, std::uint64_t, double, double);
template class ElementOptimizer<float>;
template class ElementOptimizer<double>;

}  // namespace gradloom
