// gradloom check: is the gradient of a recipe's model right, and are its bits the same however it is run?
#include <fmt/format.h>

#include <cstring>

#include "gradloom/app/device_training.h"
#include "gradloom/app/families.h"
#include "gradloom/app/run.h"
#include "gradloom/app/settings.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/simd_targets.h"
#include "gradloom/models/graph/dual.h"
#include "gradloom/models/kan/dual.h"
#include "gradloom/models/logic/dual.h"
#include "gradloom/train/gradient_check.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSteps = 4;          // of training, for the comparison of bits
constexpr std::size_t kDualElements = 200;   // derivatives by dual numbers
constexpr std::size_t kLossElements = 2000;  // of the output, at which a loss is differentiated
constexpr double kDualTolerance = 1e-11;     // relative to the largest element; rounding of sums over a batch

double exact_derivative(const kan::Network<double>& m, const ModelArrays<double>& arrays, const RowBatch<double>& batch,
                        View<const double, 2> dl_dy, std::size_t i) {
  return kan::dual_derivative(m, arrays, batch, {dl_dy.data(), dl_dy.extent(0) * dl_dy.stride(0)}, dl_dy.stride(0), i);
}

double exact_derivative(const logic::Automaton<double>& m, const ModelArrays<double>& arrays,
                        const RowBatch<double>& batch, View<const double, 2> dl_dy, std::size_t i) {
  return logic::dual_derivative(m, {}, arrays, batch, dl_dy, i);
}

double exact_derivative(const logic::GateClassifier<double>& m, const ModelArrays<double>& arrays,
                        const RowBatch<double>& batch, View<const double, 2> dl_dy, std::size_t i) {
  return logic::dual_derivative(m, arrays, batch, dl_dy, i);
}

double exact_derivative(const graph::GraphNetwork<double>& m, const ModelArrays<double>& arrays,
                        const GraphBatch<double>& batch, View<const double, 2> dl_dy, std::size_t i) {
  return graph::dual_derivative(m, {}, arrays, batch, dl_dy, {graph::DualDirection::What::parameter, i});
}

double exact_derivative(const graph::PairNetwork<double>& m, const ModelArrays<double>& arrays,
                        const PairBatch<double>& batch, View<const double, 2> dl_dy, std::size_t i) {
  return graph::dual_derivative(m, {}, arrays, batch, dl_dy, i);
}

double exact_derivative(const graph::TreeNetwork<double>& m, const ModelArrays<double>& arrays,
                        const TreeBatch<double>& batch, View<const double, 2> dl_dy, std::size_t i) {
  return graph::dual_derivative(m, arrays, batch, dl_dy, i);
}

// The gradient by dual numbers, for elements drawn evenly from all.
template <class M>
double largest_dual_error(const Exec& ex, const M& network, const TrainState<double>& state,
                          const typename M::Batch& batch, double noise_size) {
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
  network.backward(ex, {.arrays = arrays, .batch = batch, .tape = tape, .dl_dy = dl_dy_view, .gradient = gradient});
  double largest = 0.0, error = 0.0;
  for (double g : gradient.span()) largest = std::max(largest, std::abs(g));
  const std::size_t every = std::max<std::size_t>(1, network.parameters().logical_size() / kDualElements);
  std::size_t counter = 0;
  for (const Slice& slice : network.parameters())
    for_each_logical(slice, [&](std::size_t i) {
      if (counter++ % every != 0) return;
      error = std::max(error, std::abs(gradient[i] - exact_derivative(network, arrays, batch, dl_dy_view, i)));
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

template <class F>
TrainOptions first_stage(const F& family) {
  return train_options(stage_of(family.options(), 0));
}

// Parameters and loss after a few steps of the recipe's own training.
template <class F>
std::vector<std::byte> fingerprint(const F& family, const ExecOptions& options) {
  using T = typename F::Scalar;
  const Exec ex(options);
  TrainState<T> state = family.start(ex, 0);
  const typename F::Model model = family.model(0);
  Trainer<typename F::Model, typename F::Data> trainer(ex, model, family.train(), first_stage(family), state);
  for (std::uint64_t i = 0; i < kSteps; ++i)
    if (!trainer.step()) state.position.batch = 0;
  std::vector<std::byte> bits(sizeof(T) * state.parameters.size() + sizeof(double));
  std::memcpy(bits.data(), state.parameters.data(), sizeof(T) * state.parameters.size());
  std::memcpy(bits.data() + sizeof(T) * state.parameters.size(), &state.position.epoch_loss, sizeof(double));
  return bits;
}

// The same on a device, without the loss, which is summed in another order there.
template <class F>
void compare_device(const F& family, vulkan::Device& device, json& result) {
  using T = typename F::Scalar;
  constexpr double kDeviceTolerance = 1e-4;  // of the largest parameter, after a few steps: the promise for training
  const Exec ex({.threads = 1});
  const typename F::Model model = family.model(0);
  TrainState<T> states[2];
  for (int on_device : {0, 1}) {
    states[on_device] = family.start(ex, 0);
    TrainOptions options = first_stage(family);
    options.compression = {};  // what it changes is wanted
    StageTrainer<F> trainer(ex, on_device ? &device : nullptr, model, family.train(), options, states[on_device]);
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
  result["device"] = device.info().name;
  result["device_equal"] = std::memcmp(states[0].parameters.data(), states[1].parameters.data(),
                                       sizeof(T) * states[0].parameters.size()) == 0;
  result["device_difference"] = largest > 0 ? difference / largest : difference;
  result["device_allowed"] = kDeviceTolerance;
  result["device_steps"] = kSteps;
  if (!(difference <= kDeviceTolerance * largest)) result["unequal"].push_back(device.info().name);
}

// Which ways of running disagree with one thread of the fast kernels.
template <class F>
void compare_bits(const F& family, json& result) {
  const auto expected = fingerprint(family, {.threads = 1});
  json threads = json::array(), targets = json::array(), unequal = json::array();
  bool threads_equal = true, targets_equal = true;
  for (unsigned n : {1u, 2u, 3u, 8u}) {
    threads.push_back(n);
    if (fingerprint(family, {.threads = n}) == expected) continue;
    threads_equal = false;
    unequal.push_back(fmt::format("{} threads", n));
  }
  for (const std::string& name : kernels::simd_targets()) {
    targets.push_back(name);
    const kernels::ForceSimdTarget force(name);
    if (fingerprint(family, {.threads = 1}) == expected) continue;
    targets_equal = false;
    unequal.push_back(name);
  }
  const bool reference_equal = fingerprint(family, {.threads = 1, .variant = Variant::reference}) == expected;
  if (!reference_equal) unequal.push_back("reference");
  result["threads"] = threads;
  result["targets"] = targets;
  result["threads_equal"] = threads_equal;
  result["targets_equal"] = targets_equal;
  result["reference_equal"] = reference_equal;
  result["unequal"] = unequal;
}

// F64 and F32 are one family in its two precisions.
template <class F64, class F32>
Result<json> check_family(const Config& recipe, const typename F64::Options& of_family, const RunOptions& options,
                          const CheckOptions& what) {
  auto family = F64::load(of_family, options.data_root);
  if (!family) return with_places(family.error(), recipe, options.data_root);
  const Exec ex(options.exec);
  const auto subject = family->check_subject(ex, what.samples);
  const TrainState<double>& state = subject.state;
  const GradientCheckReport model =
      check_gradient(ex, subject.model, subject.batch, state.parameters.span(), state.buffers.span(),
                     {.noise = subject.noise, .input_noise = subject.input_noise, .max_elements = what.max_elements});
  const GradientCheckReport loss =
      check_loss(ex, first_stage(*family).loss, subject.batch, subject.model.output_width());
  const double dual = largest_dual_error(
      ex, subject.model, state, first_rows(subject.batch, std::min<std::size_t>(what.samples, 4)), subject.noise);

  json result;
  json mismatches = json::array();
  for (const GradientCheckReport* r : {&model, &loss})
    for (const GradientMismatch& m : r->mismatches)
      mismatches.push_back({{"where", m.where}, {"analytic", m.analytic}, {"numeric", m.numeric}});
  result["max_relative_error"] = std::max(model.max_relative_error, loss.max_relative_error);
  result["dual_error"] = dual;
  result["checked"] = model.checked + loss.checked;
  result["zero"] = model.zero + loss.zero;
  result["redrawn"] = model.redrawn + loss.redrawn;
  result["mismatches"] = mismatches;
  const auto on_device = [&](const auto& f) {
    using F = std::remove_cvref_t<decltype(f)>;
    if (!options.device) return;
    if constexpr (OnDevice<F>::available)
      compare_device(f, *options.device, result);
    else if (options.wish == DeviceWish::required)
      throw Exception(ErrorCode::unsupported,
                      fmt::format("models of family \"{}\" run on the cpu only", of_family.family));
  };
  if (of_family.precision == Precision::float64) {
    compare_bits(*family, result);
    on_device(*family);
  } else {
    auto single = F32::load(of_family, options.data_root);
    if (!single) return single.error();
    compare_bits(*single, result);
    on_device(*single);
  }
  const bool gradients = model.passed && loss.passed && dual <= kDualTolerance;
  const bool bits = result["unequal"].empty();
  result["passed"] = gradients && bits;
  result["reason"] = !model.passed  ? model.reason
                     : !loss.passed ? loss.reason
                     : !gradients
                         ? fmt::format("backward and dual numbers differ by {:.3g} of the largest element", dual)
                     : !bits ? "the bits differ: " + result["unequal"].dump()
                             : "";
  return result;
}

}  // namespace

Result<json> check(const Config& recipe, const RunOptions& options, const CheckOptions& what) try {
  if (what.samples == 0) return Error{ErrorCode::invalid_input, "a check needs at least one sample"};
  return with_family(recipe, [&]<class Tag>(Tag, const auto& of_family) {
    return check_family<typename Tag::template In<double>, typename Tag::template In<float>>(recipe, of_family, options,
                                                                                             what);
  });
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
