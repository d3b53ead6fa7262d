#include "gradloom/train/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"

namespace gradloom {

void validate(const OptimizerOptions& o) {
  const auto need = [](bool ok, const char* name, double value, const char* rule) {
    if (!ok)
      throw Exception(ErrorCode::invalid_input, fmt::format("optimizer.{} is {}; it must be {}", name, value, rule));
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

std::vector<std::string> optimizer_state_names(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return options.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return {"first", "second"};
    case OptimizerKind::lbfgs:
      break;
  }
  throw Exception(ErrorCode::invalid_input, "L-BFGS is not an element-wise optimizer");
}

template <class T>
ElementOptimizer<T>::ElementOptimizer(const OptimizerOptions& options, std::size_t size,
                                      std::vector<OptimizerState<T>>& state)
    : options_(options), state_(state) {
  validate(options);
  const std::vector<std::string> names = optimizer_state_names(options);
  if (state_.empty())
    for (const std::string& name : names) state_.push_back({name, Buffer<T>(size)});
  bool matches = state_.size() == names.size();
  for (std::size_t i = 0; matches && i < names.size(); ++i)
    matches = state_[i].name == names[i] && state_[i].values.size() == size;
  if (!matches)
    throw Exception(ErrorCode::invalid_input, "the optimizer's saved state belongs to another optimizer or model");
}

template <class T>
void ElementOptimizer<T>::begin_step(std::uint64_t step, double lr, double gradient_scale) {
  kernels::GradientOptions<T> gradient;
  gradient.scale = static_cast<T>(gradient_scale);
  if (options_.clip_value > 0) gradient.limit = static_cast<T>(options_.clip_value);
  const bool decoupled = options_.kind == OptimizerKind::adamw;
  if (!decoupled) gradient.l2 = static_cast<T>(options_.weight_decay);
  sgd_ = {.gradient = gradient,
          .rate = static_cast<T>(lr),
          .momentum = static_cast<T>(options_.momentum),
          .nesterov = options_.nesterov};
  adam_ = kernels::adam_step<T>(lr, options_.beta1, options_.beta2, options_.epsilon,
                                decoupled ? options_.weight_decay : 0.0, step + 1, gradient);
}

template <class T>
void ElementOptimizer<T>::update(Variant variant, std::size_t begin, std::size_t end, std::span<T> parameters,
                                 std::span<const T> gradient) {
  const std::size_t count = end - begin;
  const auto state = [&](std::size_t i) { return state_[i].values.span().subspan(begin, count); };
  if (options_.kind == OptimizerKind::sgd)
    kernels::sgd_update<T>(variant, sgd_, parameters.subspan(begin, count), gradient.subspan(begin, count),
                           state_.empty() ? std::span<T>() : state(0));
  else
    kernels::adam_update<T>(variant, adam_, parameters.subspan(begin, count), gradient.subspan(begin, count), state(0),
                            state(1));
}

template class ElementOptimizer<float>;
template class ElementOptimizer<double>;

}  // namespace gradloom
