// A model of one's own: a network of radial units, written against the concept in gradloom/models/model.h.
//
//   phi_k(x) = exp(-sum_i (rate_ki (x_i - centre_ki))^2)         a bump around its centre
//   y_j      = bias_j + sum_k weight_kj phi_k(x)
//
// It is here to be read: what gradloom asks of a model is small, and each piece below says why it is asked for.
#pragma once

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/data/batch.h"
#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/models/model.h"

namespace example {

// Shapes: B samples, In inputs, K units, Out outputs. T is float or double: float to train fast, double to check
// gradients.
template <class T>
class RadialNetwork {
 public:
  using Scalar = T;
  using Batch = gradloom::RowBatch<T>;  // rows of a table; a model may also define a batch of its own

  // What backward needs from forward. The trainer makes it once, for the largest batch, and hands it to both.
  struct Tape {
    gradloom::Buffer<T> phi;    // (B, K)
    gradloom::Buffer<T> dl_ds;  // (B, K): dl/ds with s_k = the sum in the exponent, without its sign
    std::size_t limit = 0;
    std::size_t bytes() const { return (phi.size() + dl_ds.size()) * sizeof(T); }
  };

  RadialNetwork(std::size_t inputs, std::size_t units, std::size_t outputs)
      : inputs_(inputs), units_(units), outputs_(outputs) {
    // The model owns no weights. It says which tensors there are; the trainer keeps them in one flat array, and so do
    // the optimizer (its moments), the checkpoint (by name) and the option `freeze` (by name).
    centre_ = parameters_.add("centre", {units, inputs});
    rate_ = parameters_.add("rate", {units, inputs});
    weight_ = parameters_.add("weight", {units, outputs});
    bias_ = parameters_.add("bias", {outputs});
  }

  const gradloom::Slices& parameters() const { return parameters_; }
  const gradloom::Slices& buffers() const { return buffers_; }  // nothing that is saved but not trained
  std::size_t output_width() const { return outputs_; }

  // Random numbers are functions of (seed, purpose, position). There is no generator whose state could depend on who
  // asked first, so initialisation is the same whatever else the program does.
  void initialise(std::uint64_t seed, std::span<T> parameters, std::span<T>) const {
    std::fill(parameters.begin(), parameters.end(), T(0));
    const gradloom::RandomStream random(seed, gradloom::RandomUse::initialise);
    std::uint32_t position = 0;
    for (std::size_t at = 0; at < units_ * inputs_; ++at) {
      parameters[parameters_[centre_].offset + at] = static_cast<T>(2 * random.uniform(position++) - 1);
      parameters[parameters_[rate_].offset + at] = T(2);
    }
    for (std::size_t at = 0; at < units_ * outputs_; ++at)
      parameters[parameters_[weight_].offset + at] = static_cast<T>(0.1 * random.normal(position++));
  }

  Tape make_tape(const gradloom::Exec&, const gradloom::TapeLimits& limits) const {
    Tape tape;
    tape.limit = limits.batch;
    tape.phi = gradloom::Buffer<T>(limits.batch * units_);
    if (limits.backward) tape.dl_ds = gradloom::Buffer<T>(limits.batch * units_);
    return tape;
  }

  // Samples are independent here, so they are what the threads share. Each task writes rows that no other task writes:
  // the result cannot depend on how many threads there are.
  void forward(const gradloom::Exec& ex, const gradloom::Step&, const gradloom::ModelArrays<T>& arrays,
               const Batch& batch, Tape& tape, gradloom::View<T, 2> y) const {
    if (batch.size > tape.limit)
      throw gradloom::Exception(gradloom::ErrorCode::invalid_input, "the batch is larger than the tape");
    const Weights w = weights(arrays);
    ex.parallel_for(tasks(batch.size, kSamplesPerTask), [&](std::size_t task, unsigned) {
      const std::size_t end = std::min(batch.size, (task + 1) * kSamplesPerTask);
      for (std::size_t s = task * kSamplesPerTask; s < end; ++s) {
        const T* x = batch.x.row(s);
        T* out = y.row(s);
        std::copy_n(w.bias, outputs_, out);
        for (std::size_t k = 0; k < units_; ++k) {
          T sum = 0;
          for (std::size_t i = 0; i < inputs_; ++i) {
            const T u = w.rate[k * inputs_ + i] * (x[i] - w.centre[k * inputs_ + i]);
            sum += u * u;
          }
          // gradloom's exp gives the same bits with every compiler and processor; the system's does not promise that.
          const T phi = gradloom::kernels::split::exp(-sum);
          tape.phi[s * units_ + k] = phi;
          for (std::size_t j = 0; j < outputs_; ++j) out[j] += phi * w.weight[k * outputs_ + j];
        }
      }
    });
  }

  // By hand, with d = x_i - centre_ki and g_k = dl/ds_k:
  //   dl/dphi_k = sum_j dl_dy_j weight_kj         g_k = -phi_k dl/dphi_k
  //   dl/dweight_kj = sum_samples dl_dy_j phi_k   dl/dbias_j = sum_samples dl_dy_j
  //   dl/drate_ki = sum_samples 2 g_k rate_ki d^2      dl/dcentre_ki = -sum_samples 2 g_k rate_ki^2 d
  //   dl/dx_i = sum_k 2 g_k rate_ki^2 d
  void backward(const gradloom::Exec& ex, const gradloom::BackwardCall<T, Batch, Tape>& call) const {
    const Batch& batch = call.batch;
    Tape& tape = call.tape;
    const Weights w = weights(call.arrays);
    // First everything that goes from sample to sample and may read all parameters.
    ex.parallel_for(tasks(batch.size, kSamplesPerTask), [&](std::size_t task, unsigned) {
      const std::size_t end = std::min(batch.size, (task + 1) * kSamplesPerTask);
      for (std::size_t s = task * kSamplesPerTask; s < end; ++s) {
        for (std::size_t k = 0; k < units_; ++k) {
          T dl_dphi = 0;
          for (std::size_t j = 0; j < outputs_; ++j) dl_dphi += call.dl_dy(s, j) * w.weight[k * outputs_ + j];
          tape.dl_ds[s * units_ + k] = -tape.phi[s * units_ + k] * dl_dphi;
        }
        if (call.dl_dx.empty()) continue;  // asked for by the gradient check, or by whoever stacks models
        for (std::size_t i = 0; i < inputs_; ++i) {
          T sum = 0;
          for (std::size_t k = 0; k < units_; ++k) {
            const T rate = w.rate[k * inputs_ + i];
            sum += 2 * tape.dl_ds[s * units_ + k] * rate * rate * (batch.x(s, i) - w.centre[k * inputs_ + i]);
          }
          call.dl_dx(s, i) = sum;
        }
      }
    });

    // Then the parameters. Sums over samples must not depend on the number of threads, so a unit is one task that owns
    // its elements of the gradient and adds the samples in order; the last task has the bias.
    ex.parallel_for(units_ + 1, [&](std::size_t k, unsigned worker) {
      // Each range is reported when it is final; the optimizer updates it at once, while it is in this core's cache.
      // From then on nobody may read these parameters in this call.step. That holds: a unit reads only its own.
      const auto own = [&](std::size_t slice, std::size_t first, std::size_t count, auto&& sum_of) {
        if (call.step.is_frozen(slice)) return;  // neither computed nor reported
        T* to = call.gradient.data() + parameters_[slice].offset + first;
        for (std::size_t at = 0; at < count; ++at)
          to[at] = call.step.gradient == gradloom::GradientMode::accumulate ? to[at] + sum_of(at) : sum_of(at);
      };
      const auto report = [&](std::size_t slice, std::size_t first, std::size_t count) {
        const std::size_t begin = parameters_[slice].offset + first;
        if (call.sink && !call.step.is_frozen(slice)) call.sink->finished(begin, begin + count, worker);
      };
      const auto over_samples = [&](auto&& term) {
        T sum = 0;
        for (std::size_t s = 0; s < batch.size; ++s) sum += term(s);
        return sum;
      };
      if (k == units_) {
        own(bias_, 0, outputs_,
            [&](std::size_t j) { return over_samples([&](std::size_t s) { return call.dl_dy(s, j); }); });
        report(bias_, 0, outputs_);
        return;
      }
      own(weight_, k * outputs_, outputs_, [&](std::size_t j) {
        return over_samples([&](std::size_t s) { return call.dl_dy(s, j) * tape.phi[s * units_ + k]; });
      });
      own(rate_, k * inputs_, inputs_, [&](std::size_t i) {
        return 2 * w.rate[k * inputs_ + i] * over_samples([&](std::size_t s) {
                 const T d = batch.x(s, i) - w.centre[k * inputs_ + i];
                 return tape.dl_ds[s * units_ + k] * d * d;
               });
      });
      own(centre_, k * inputs_, inputs_, [&](std::size_t i) {
        const T rate = w.rate[k * inputs_ + i];
        return -2 * rate * rate * over_samples([&](std::size_t s) {
          return tape.dl_ds[s * units_ + k] * (batch.x(s, i) - w.centre[k * inputs_ + i]);
        });
      });
      // Only now: the gradient of the centre still read the rate.
      report(weight_, k * outputs_, outputs_);
      report(rate_, k * inputs_, inputs_);
      report(centre_, k * inputs_, inputs_);
    });
  }

 private:
  static constexpr std::size_t kSamplesPerTask = 32;  // of the problem, not of the machine
  static std::size_t tasks(std::size_t n, std::size_t each) { return (n + each - 1) / each; }

  struct Weights {
    const T *centre, *rate, *weight, *bias;
  };
  Weights weights(const gradloom::ModelArrays<T>& arrays) const {
    const T* p = arrays.parameters.data();
    return {p + parameters_[centre_].offset, p + parameters_[rate_].offset, p + parameters_[weight_].offset,
            p + parameters_[bias_].offset};
  }

  std::size_t inputs_, units_, outputs_;
  gradloom::Slices parameters_{sizeof(T)}, buffers_{sizeof(T)};
  std::size_t centre_, rate_, weight_, bias_;
};

// Says in one place, with a readable error, whether anything is missing.
static_assert(gradloom::Model<RadialNetwork<float>, float> && gradloom::Model<RadialNetwork<double>, double>);

}  // namespace example
