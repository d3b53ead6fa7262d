// Two models, their data and their states, for tests of what trains any model.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/data/rows.h"
#include "gradloom/models/kan/network.h"
#include "gradloom/train/trainer.h"

namespace gradloom::test {

// Every kind but L-BFGS.
inline std::vector<OptimizerKind> element_optimizers() {
  std::vector<OptimizerKind> kinds;
  for (const auto& choice : kOptimizers)
    if (choice.value != OptimizerKind::lbfgs) kinds.push_back(choice.value);
  return kinds;
}

// What a LinearModel was asked to do, in order.
struct LinearLog {
  std::vector<std::vector<double>> batches;  // the first feature of every sample, of each forward pass
  std::vector<bool> fused;                   // of each backward pass: was there a sink?
  std::size_t nan_at = std::numeric_limits<std::size_t>::max();  // this forward pass (from 0) gives NaN
};

// y_j = b_j + sum_i w_ij x_i, in plain loops: the smallest model there is, whose steps a test can redo by hand.
template <class T>
class LinearModel {
 public:
  using Scalar = T;
  using Batch = RowBatch<T>;
  struct Tape {};

  LinearModel(std::size_t in, std::size_t out, LinearLog& log) : in_(in), out_(out), log_(log) {
    parameters_.add("w", {in, out});
    parameters_.add("b", {out});
  }
  const Slices& parameters() const { return parameters_; }
  const Slices& buffers() const { return buffers_; }
  std::size_t output_width() const { return out_; }
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T>) const {
    const RandomStream random(seed, RandomUse::initialise);
    for (const Slice& slice : parameters_)
      for_each_logical(slice, [&](std::size_t at) {
        parameters[at] = static_cast<T>(0.3 * random.normal(static_cast<std::uint32_t>(at)));
      });
  }
  Tape make_tape(const Exec&, const TapeLimits&) const { return {}; }

  void forward(const Exec&, const Step&, const ModelArrays<T>& a, const Batch& batch, Tape&, View<T, 2> y) const {
    const T* w = a.parameters.data() + parameters_[0].offset;
    const T* b = a.parameters.data() + parameters_[1].offset;
    const bool spoil = log_.batches.size() == log_.nan_at;
    log_.batches.emplace_back();
    for (std::size_t s = 0; s < batch.size; ++s) {
      log_.batches.back().push_back(static_cast<double>(batch.x(s, 0)));
      for (std::size_t j = 0; j < out_; ++j) {
        y(s, j) = spoil ? std::numeric_limits<T>::quiet_NaN() : b[j];
        for (std::size_t i = 0; i < in_; ++i) y(s, j) += w[i * out_ + j] * batch.x(s, i);
      }
    }
  }

  void backward(const Exec&, const BackwardCall<T, Batch, Tape>& call) const {
    const Step& step = call.step;
    const Batch& batch = call.batch;
    log_.fused.push_back(call.sink != nullptr);
    const auto put = [&](std::size_t at, T sum) {
      T& g = call.gradient[at];
      g = step.gradient == GradientMode::accumulate ? g + sum : sum;
    };
    for (std::size_t j = 0; j < out_ && !step.is_frozen(0); ++j)
      for (std::size_t i = 0; i < in_; ++i) {
        T sum = 0;
        for (std::size_t s = 0; s < batch.size; ++s) sum += call.dl_dy(s, j) * batch.x(s, i);
        put(parameters_[0].offset + i * out_ + j, sum);
      }
    for (std::size_t j = 0; j < out_ && !step.is_frozen(1); ++j) {
      T sum = 0;
      for (std::size_t s = 0; s < batch.size; ++s) sum += call.dl_dy(s, j);
      put(parameters_[1].offset + j, sum);
    }
    if (!call.sink) return;
    for (std::size_t s = 0; s < 2; ++s)
      if (!step.is_frozen(s)) call.sink->finished(parameters_[s].offset, parameters_[s].end(), 0);
  }

 private:
  std::size_t in_, out_;
  LinearLog& log_;
  Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
};
static_assert(Model<LinearModel<float>, float> && Model<LinearModel<double>, double>);

// N rows of three features in [-1, 1] and two smooth targets.
template <class T>
RowDataset<T> smooth_rows(std::size_t samples, std::uint64_t seed = 5) {
  RowParts<T> parts;
  parts.size = samples;
  parts.features = 3;
  parts.targets = 2;
  for (std::uint32_t s = 0; s < samples; ++s) {
    const RandomStream random(seed, RandomUse::data, 0, s);
    double x[3];
    for (std::uint32_t i = 0; i < 3; ++i) {
      x[i] = 2 * random.uniform(i) - 1;
      parts.x.push_back(static_cast<T>(x[i]));
    }
    parts.target.push_back(static_cast<T>(std::sin(3 * x[0]) + x[1] * x[2]));
    parts.target.push_back(static_cast<T>(x[0] * x[0] - 0.5 * x[2]));
  }
  return RowDataset<T>(std::move(parts));
}

// Fits smooth_rows.
template <class T>
kan::Network<T> small_network() {
  kan::NetworkOptions o;
  o.widths = {3, 5, 2};
  o.grid = 4;
  return kan::Network<T>(o);
}

template <class T>
Buffer<T> copy_of(const Buffer<T>& from) {
  Buffer<T> to(from.size());
  std::copy_n(from.data(), from.size(), to.data());
  return to;
}

enum class Zeros { by_sign, alike };

template <class T>
::testing::AssertionResult same_bits(const Buffer<T>& a, const Buffer<T>& b, Zeros zeros = Zeros::by_sign) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0 && !(zeros == Zeros::alike && a[i] == 0 && b[i] == 0))
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
  return ::testing::AssertionSuccess();
}

// Every array of two states, and where they stand.
template <class T>
::testing::AssertionResult same_state(const TrainState<T>& a, const TrainState<T>& b) {
  if (auto r = same_bits(a.parameters, b.parameters); !r) return r << " (parameters)";
  if (auto r = same_bits(a.buffers, b.buffers); !r) return r << " (buffers)";
  if (a.optimizer.size() != b.optimizer.size()) return ::testing::AssertionFailure() << "optimizer arrays";
  for (std::size_t s = 0; s < a.optimizer.size(); ++s)
    if (auto r = same_bits(a.optimizer[s].values, b.optimizer[s].values); !r) return r << " " << a.optimizer[s].name;
  if (a.lbfgs.count != b.lbfgs.count) return ::testing::AssertionFailure() << "L-BFGS pairs";
  // Steps are differences, so padding that never reaches a file may be -0 in one and 0 in the other.
  for (std::size_t pair = 0; pair < a.lbfgs.count; ++pair) {
    const std::size_t i = (a.lbfgs.first + pair) % a.lbfgs.steps.size(),
                      j = (b.lbfgs.first + pair) % b.lbfgs.steps.size();
    if (auto r = same_bits(a.lbfgs.steps[i], b.lbfgs.steps[j], Zeros::alike); !r)
      return r << " (L-BFGS step " << pair << ")";
    if (auto r = same_bits(a.lbfgs.differences[i], b.lbfgs.differences[j], Zeros::alike); !r)
      return r << " (difference " << pair << ")";
  }
  if (auto r = same_bits(a.residual, b.residual); !r) return r << " (residual)";
  if (a.best.has_value() != b.best.has_value()) return ::testing::AssertionFailure() << "only one has a best state";
  if (a.best) {
    if (a.best->loss != b.best->loss || a.best->run_epoch != b.best->run_epoch)
      return ::testing::AssertionFailure() << "best losses " << a.best->loss << " and " << b.best->loss;
    if (auto r = same_bits(a.best->parameters, b.best->parameters); !r) return r << " (best)";
  }
  const TrainPosition &p = a.position, &q = b.position;
  if (p.stage != q.stage || p.epoch != q.epoch || p.run_epoch != q.run_epoch || p.batch != q.batch ||
      p.step != q.step || p.optimizer_age != q.optimizer_age || p.epoch_loss != q.epoch_loss ||
      p.epoch_samples != q.epoch_samples || p.epochs_without_progress != q.epochs_without_progress ||
      p.stage_done != q.stage_done)
    return ::testing::AssertionFailure() << "positions differ: epochs " << p.epoch << ", " << q.epoch << ", batches "
                                         << p.batch << ", " << q.batch;
  return ::testing::AssertionSuccess();
}

// What `call` throws, or "" when it throws nothing.
template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace gradloom::test
