// The check of one family; only the files of families include it.
#pragma once

#include <cmath>
#include <cstring>

#include "gradloom/kernels/simd_targets.h"
#include "gradloom/session/check.h"
#include "gradloom/session/family_session.h"

namespace gradloom {
namespace check_detail {

constexpr std::uint64_t kSteps = 4;          // of training, for the comparison of bits
constexpr std::size_t kDualElements = 200;   // derivatives by dual numbers
constexpr std::size_t kLossElements = 2000;  // of the output, at which a loss is differentiated
constexpr double kDualTolerance = 1e-11;     // relative to the largest element; rounding of sums over a batch

// The gradient by dual numbers, for elements drawn evenly from all.
template <class F>
double largest_dual_error(const Exec& ex, const typename F::Model& network, const TrainState<double>& state,
                          const typename F::Model::Batch& batch, double noise_size) {
  const std::size_t out = network.output_width(), stride = padded(out);
  Buffer<double> y(batch.size * stride), dl_dy(batch.size * stride), gradient(state.parameters.size()),
      p(state.parameters.size());
  const RandomStream noise(0, RandomUse::check, 2);
  std::copy_n(state.parameters.data(), p.size(), p.data());
  for (const Slice& slice : network.parameters())
    for_each_logical(slice, [&](std::size_t i) { p[i] += noise_size * noise.normal(static_cast<std::uint32_t>(i)); });
  for (std::size_t s = 0; s < batch.size; ++s)
    for (std::size_t j = 0; j < out; ++j)
      dl_dy[s * stride + j] = noise.normal(static_cast<std::uint32_t>(0x80000000u + s * out + j));
  auto tape = network.make_tape(ex, {.batch = std::max<std::size_t>(1, batch.size)});
  const ModelArrays<double> arrays{p, state.buffers};
  network.forward(ex, {}, arrays, batch, tape, {y.data(), {batch.size, out}, {stride, 1}});
  const View<const double, 2> dl_dy_view(dl_dy.data(), {batch.size, out}, {stride, 1});
  Buffer<double> levels = gradient_levels(network, batch);
  network.backward(
      ex,
      {.arrays = arrays, .batch = batch, .tape = tape, .dl_dy = dl_dy_view, .gradient = gradient, .levels = levels});
  double largest = 0.0, error = 0.0;
  for (double g : gradient.span()) largest = std::max(largest, std::abs(g));
  const std::size_t every = std::max<std::size_t>(1, network.parameters().logical_size() / kDualElements);
  std::size_t counter = 0;
  for (const Slice& slice : network.parameters())
    for_each_logical(slice, [&](std::size_t i) {
      if (counter++ % every != 0) return;
      error = std::max(error, std::abs(gradient[i] - F::exact_derivative(network, arrays, batch, dl_dy_view, i)));
    });
  return error == 0.0 ? 0.0 : largest > 0 ? error / largest : std::numeric_limits<double>::infinity();
}

// The gradient of the recipe's loss with respect to the model's output. Where none of the samples counts, they are
// taken without their weights.
template <class Batch>
GradientCheckReport check_loss(const Exec& ex, const LossOptions& loss, Batch batch, std::size_t out) {
  if constexpr (requires { batch.weight = {}; })
    if (std::all_of(batch.weight.begin(), batch.weight.end(), [](double w) { return w == 0.0; })) batch.weight = {};
  std::vector<double> y(batch.size * out), dl_dy(y.size()), partials(loss_partials(batch.size));
  const RandomStream random(0, RandomUse::check, 3);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = random.normal(static_cast<std::uint32_t>(i));
  const View<double, 2> view(y.data(), {batch.size, out});
  const auto evaluate = [&]() -> BranchedValue {
    return {evaluate_loss<double>(ex, loss, batch, view, {}, partials), loss_branches<double>(loss, batch, view)};
  };
  const double value = evaluate_loss<double>(ex, loss, batch, view, {dl_dy.data(), {batch.size, out}}, partials);
  const BranchedValue middle = evaluate();
  double largest = 0.0;
  for (double g : dl_dy) largest = std::max(largest, std::abs(g));
  GradientJudge judge(1e-6, largest, "the loss");
  for (std::size_t i = 0; i < y.size(); i += y.size() / kLossElements + 1) {
    const double centre = y[i];
    const auto moved = [&](double h) {
      y[i] = centre + h;
      return evaluate();
    };
    const double rounding = 16 * std::numeric_limits<double>::epsilon() * std::max(1.0, std::abs(value));
    probe_element(judge, moved, middle, 1e-5, rounding, dl_dy[i],
                  [&] { return fmt::format("loss, output[{},{}]", i / out, i % out); });
    y[i] = centre;
  }
  return judge.finish();
}

// Parameters and loss after a few steps of the recipe's own training.
template <class F>
std::vector<std::byte> trained_bits(const F& family, const ExecOptions& options) {
  using T = typename F::Scalar;
  const Exec ex(options);
  TrainState<T> state = family.start(ex, 0);
  const typename F::Model model = family.model(0);
  Trainer<typename F::Model, typename F::Data> trainer(ex, model, family.train(), family.train_options(0), state);
  for (std::uint64_t i = 0; i < kSteps; ++i)
    if (!trainer.step()) state.position.batch = 0;
  std::vector<std::byte> bits(sizeof(T) * state.parameters.size() + sizeof(double));
  std::memcpy(bits.data(), state.parameters.data(), sizeof(T) * state.parameters.size());
  std::memcpy(bits.data() + sizeof(T) * state.parameters.size(), &state.position.epoch_loss, sizeof(double));
  return bits;
}

// The same on a device, without the loss, which is summed in another order there.
template <class F>
void compare_device(const F& family, vulkan::Device& device, CheckReport& report) {
  using T = typename F::Scalar;
  constexpr double kDeviceTolerance = 1e-4;  // of the largest parameter, after a few steps: the promise for training
  const Exec ex({.threads = 1, .variant = {Variant::fast, device.info().arithmetic}});
  const typename F::Model model = family.model(0);
  TrainState<T> states[2];
  for (int on_device : {0, 1}) {
    states[on_device] = family.start(ex, 0);
    TrainOptions options = family.train_options(0);
    options.compression = {};  // what it changes is wanted
    const auto trainer =
        make_trainer<F>(ex, on_device ? &device : nullptr, model, family.train(), options, states[on_device]);
    for (std::uint64_t i = 0; i < kSteps; ++i)
      if (!trainer->step()) states[on_device].position.batch = 0;
    trainer->sync();
  }
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < states[0].parameters.size(); ++i) {
    const double a = static_cast<double>(states[0].parameters[i]), b = static_cast<double>(states[1].parameters[i]);
    difference = std::isfinite(b) ? std::max(difference, std::abs(a - b)) : std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(a));
  }
  const bool equal = std::memcmp(states[0].parameters.data(), states[1].parameters.data(),
                                 sizeof(T) * states[0].parameters.size()) == 0;
  report.device = {device.info().name, equal, largest > 0 ? difference / largest : difference, kDeviceTolerance,
                   kSteps};
  if (!(difference <= kDeviceTolerance * largest)) report.unequal.push_back(device.info().name);
}

// Which ways of running disagree with one thread of the fast kernels.
template <class F>
void compare_bits(const F& family, Arithmetic arithmetic, CheckReport& report) {
  const Variant fast(Variant::fast, arithmetic), reference(Variant::reference, arithmetic);
  const auto expected = trained_bits(family, {.threads = 1, .variant = fast});
  for (unsigned n : {1u, 2u, 3u, 8u}) {
    report.threads.push_back(n);
    if (trained_bits(family, {.threads = n, .variant = fast}) == expected) continue;
    report.threads_equal = false;
    report.unequal.push_back(fmt::format("{} threads", n));
  }
  for (const std::string& name : kernels::simd_targets(arithmetic)) {
    report.targets.push_back(name);
    const kernels::ForceSimdTarget force(name);
    if (trained_bits(family, {.threads = 1, .variant = fast}) == expected) continue;
    report.targets_equal = false;
    report.unequal.push_back(name);
  }
  report.reference_equal = trained_bits(family, {.threads = 1, .variant = reference}) == expected;
  if (!report.reference_equal) report.unequal.push_back("reference");
}

template <class F>
void compare_runs(const F& family, const SessionOptions& settings, CheckReport& report) {
  compare_bits(family, settings.exec.variant.arithmetic, report);
  if (!settings.device) return;
  if constexpr (kRunsOnDevices<F>)
    compare_device(family, *settings.device, report);
  else if (settings.device_policy == DevicePolicy::required)
    throw Exception(ErrorCode::unsupported,
                    fmt::format("models of family \"{}\" run on the CPU only", family.options().family));
}

}  // namespace check_detail

template <template <class> class F>
CheckReport check_family(const typename F<float>::Options& options, const typename F<float>::Source& source,
                         const SessionOptions& settings, const CheckOptions& what) {
  using namespace check_detail;
  if (what.samples == 0) throw_invalid("a check needs at least one sample");
  const F<double> family(options, source);
  const Exec ex(settings.exec);
  const auto subject = family.check_subject(ex, what.samples);
  const TrainState<double>& state = subject.state;
  const GradientCheckReport model =
      check_gradient(ex, subject.model, subject.batch, state.parameters.span(), state.buffers.span(),
                     {.noise = subject.noise, .input_noise = subject.input_noise, .max_elements = what.max_elements});
  const GradientCheckReport loss =
      check_loss(ex, family.train_options(0).loss, subject.batch, subject.model.output_width());
  CheckReport report;
  report.dual_error = largest_dual_error<F<double>>(
      ex, subject.model, state, first_rows(subject.batch, std::min<std::size_t>(what.samples, 4)), subject.noise);
  for (const GradientCheckReport* r : {&model, &loss})
    report.mismatches.insert(report.mismatches.end(), r->mismatches.begin(), r->mismatches.end());
  report.max_relative_error = std::max(model.max_relative_error, loss.max_relative_error);
  report.checked = model.checked + loss.checked;
  report.zero = model.zero + loss.zero;
  report.redrawn = model.redrawn + loss.redrawn;
  if (options.precision == Precision::float64)
    compare_runs(family, settings, report);
  else
    compare_runs(F<float>(options, source), settings, report);
  const bool duals = report.dual_error <= kDualTolerance;
  report.passed = model.passed && loss.passed && duals && report.unequal.empty();
  if (!model.passed)
    report.reason = model.reason;
  else if (!loss.passed)
    report.reason = loss.reason;
  else if (!duals)
    report.reason = fmt::format("backward and dual numbers differ by {:.3g} of the largest element", report.dual_error);
  else if (!report.unequal.empty())
    report.reason = "the bits differ: " + nlohmann::json(report.unequal).dump();
  return report;
}

}  // namespace gradloom
