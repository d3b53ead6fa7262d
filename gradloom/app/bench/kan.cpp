#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "gradloom/app/bench/bench.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/data/rows.h"
#include "gradloom/exec/profile.h"
#include "gradloom/kernels/peak/peak.h"
#include "gradloom/models/kan/device_network.h"
#include "gradloom/models/kan/network.h"
#include "gradloom/train/device_trainer.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

// One network with data, and a trainer on it.
template <class T>
struct KanSetup {
  Exec ex;
  kan::Network<T> network;
  RowDataset<T> data;
  TrainState<T> state;
  std::unique_ptr<Trainer<kan::Network<T>, RowDataset<T>>> trainer;

  static RowDataset<T> random_rows(const BenchKanOptions& o) {
    RowParts<T> parts;
    parts.size = o.batch;
    parts.features = o.widths.front();
    parts.targets = o.widths.back();
    const RandomStream random(1, RandomUse::data);
    for (std::size_t i = 0; i < parts.size * parts.features; ++i)
      parts.x.push_back(static_cast<T>(2 * random.uniform(static_cast<std::uint32_t>(i)) - 1));
    for (std::size_t i = 0; i < parts.size * parts.targets; ++i)
      parts.target.push_back(static_cast<T>(random.normal(static_cast<std::uint32_t>(i) | 0x80000000u)));
    return RowDataset<T>(std::move(parts));
  }
  static kan::NetworkOptions network_options(const BenchKanOptions& o) {
    kan::NetworkOptions n;
    n.widths = o.widths;
    n.grid = o.grid;
    n.degree = o.degree;
    n.base = o.base;
    n.spline_noise = 0.5;  // hidden values spread over the grid, as in a trained network
    return n;
  }

  KanSetup(const BenchKanOptions& o, Variant variant, unsigned threads, Profile* profile = nullptr)
      : ex({.threads = threads, .variant = variant}), network(network_options(o)), data(random_rows(o)) {
    ex.set_profile(profile);
    state.parameters = Buffer<T>(network.parameters().flat_size());
    state.buffers = Buffer<T>(network.buffers().flat_size());
    network.initialise(1, state.parameters.span(), state.buffers.span());
    TrainOptions options;
    options.batch = 0;
    options.epochs = std::uint64_t{1} << 40;
    options.optimizer.lr = 1e-6;  // weights stay as they are, so every step is the same work
    trainer = std::make_unique<Trainer<kan::Network<T>, RowDataset<T>>>(ex, network, data, options, state);
  }
  void step() {
    state.position.batch = 0;
    trainer->step();
  }
};

template <class T>
Result<json> bench(const BenchKanOptions& o) {
  KanSetup<T> fast(o, Variant::fast, o.threads);
  KanSetup<T> reference(o, Variant::reference, 1);
  for (int i = 0; i < 2; ++i) {
    fast.step();
    reference.step();
  }
  if (!same_bits(fast.state.parameters, reference.state.parameters) ||
      !same_bits(fast.state.gradient, reference.state.gradient))
    return Error{ErrorCode::numeric,
                 "the fast kernels and the scalar reference differ: this build is broken, its speed means nothing"};

  const auto peak_before = kernels::peak::measure_peak(o.double_precision);
  const auto [train, one_thread] = repeat_threads(
      o.seconds, o.threads, [&] { fast.step(); },
      [&] { return [one = std::make_shared<KanSetup<T>>(o, Variant::fast, 1)] { one->step(); }; });
  const auto tape = std::make_unique<typename kan::Network<T>::Tape>(
      fast.network.make_tape(fast.ex, {.batch = o.batch, .backward = false}));
  const std::size_t stride = padded(fast.network.output_width());
  Buffer<T> y(o.batch * stride);
  const View<T, 2> y_view(y.data(), {o.batch, fast.network.output_width()}, {stride, 1});
  const ModelArrays<T> arrays{fast.state.parameters, fast.state.buffers};
  const RowBatch<T> batch = fast.data.all();
  const Timing forward =
      repeat(o.seconds, [&] { fast.network.forward(fast.ex, {.mode = Mode::evaluate}, arrays, batch, *tape, y_view); });
  auto single_workspace = fast.network.make_single_workspace();
  std::vector<T> single_y(fast.network.output_width());
  std::size_t row = 0;
  const Timing single = repeat(o.seconds, [&] {
    fast.network.forward_single(Variant::fast, arrays, std::span<const T>(batch.x.row(row), o.widths.front()),
                                single_workspace, single_y);
    row = row + 1 == o.batch ? 0 : row + 1;
  });
  const auto peak_after = kernels::peak::measure_peak(o.double_precision);
  const Timing sequential = repeat(std::min(o.seconds, 0.5), [&] { reference.step(); });

  json allocated = nullptr;
  if (o.allocated_bytes) {
    const std::uint64_t before = o.allocated_bytes();
    for (int i = 0; i < 10; ++i) fast.step();
    allocated = (o.allocated_bytes() - before) / 10;
  }
  // How much of a step runs outside of parallel loops, measured on two threads at least.
  KanSetup<T> threaded(o, Variant::fast, std::max(2u, o.threads));
  const SerialShare share = serial_share(threaded.ex, 20, [&] { threaded.step(); });

  double pairs = 0.0, first = 0.0;
  for (std::size_t l = 0; l + 1 < o.widths.size(); ++l) pairs += static_cast<double>(o.widths[l] * o.widths[l + 1]);
  first = static_cast<double>(o.widths[0] * o.widths[1]);
  const double work = 2.0 * (o.degree + 1) * static_cast<double>(o.batch);
  const double peak = std::max(peak_before.mul_add_gflops, peak_after.mul_add_gflops);
  const double gflops_forward = work * pairs / forward.fastest * 1e-3;
  const double gflops_train = work * (3 * pairs - first) / train.fastest * 1e-3;

  json r;
  r["widths"] = o.widths;
  r["grid"] = o.grid;
  r["degree"] = o.degree;
  r["batch"] = o.batch;
  r["threads"] = o.threads;
  r["base"] = o.base;
  r["precision"] = o.double_precision ? "float64" : "float32";
  r["forward_us"] = forward.fastest;
  r["train_step_us"] = train.fastest;
  r["train_step_p5_us"] = train.fifth_percentile;
  r["train_step_median_us"] = train.median;
  r["single_us"] = single.median;
  r["p99_single_us"] = single.p99;
  r["gflops_forward"] = gflops_forward;
  r["gflops_train"] = gflops_train;
  r["peak_gflops"] = peak;
  r["peak_fma_gflops"] = std::max(peak_before.fma_gflops, peak_after.fma_gflops);
  r["fraction_forward"] = gflops_forward / (peak * o.threads);
  r["fraction_train"] = gflops_train / (peak * o.threads);
  r["sequential_train_step_us"] = sequential.fastest;
  r["speedup"] = sequential.fastest / train.fastest;
  r["one_thread_train_step_us"] = one_thread.fastest;
  r["speedup_threads"] = one_thread.fastest / train.fastest;
  r["bytes_allocated_per_step"] = allocated;
  r["serial_fraction"] = share.fraction;
  r["parallel_tasks"] = share.tasks;
  r["tape_bytes"] = fast.trainer->tape_bytes();
  r["parameter_bytes"] = fast.state.parameters.size() * sizeof(T);
  if (o.profile) {
    Profile profile(o.threads);
    KanSetup<T> profiled(o, Variant::fast, o.threads, &profile);
    r["phases"] = phases_of(profile, 50, [&] { profiled.step(); });
  }
  return r;
}

// One step of training on a device: checked against the CPU, then timed, then looked at kernel by kernel.
template <class T>
Result<json> bench_device(const BenchKanOptions& o) {
  using DeviceTraining = DeviceTrainer<kan::DeviceNetwork<T>, RowDataset<T>>;
  constexpr double kTolerance = 1e-4;
  vulkan::Device& device = *o.device;
  KanSetup<T> cpu(o, Variant::fast, 1), gpu(o, Variant::fast, 1);
  gpu.trainer.reset();
  const std::uint64_t taken = device.counters().memory_bytes;
  const kan::DeviceNetwork<T> network(device, gpu.network);
  TrainOptions options;
  options.batch = 0;
  options.epochs = std::uint64_t{1} << 40;
  options.optimizer.lr = 1e-6;
  DeviceTraining trainer(gpu.ex, network, gpu.data, options, gpu.state);
  const auto step = [&] {
    gpu.state.position.batch = 0;
    trainer.step();
  };
  for (int i = 0; i < 2; ++i) {
    cpu.step();
    step();
  }
  trainer.sync();
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < cpu.state.parameters.size(); ++i) {
    const double a = static_cast<double>(cpu.state.parameters[i]), b = static_cast<double>(gpu.state.parameters[i]);
    difference = std::isfinite(b) ? std::max(difference, std::abs(a - b)) : std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(a));
  }
  if (!(difference <= kTolerance * largest))
    return Error{ErrorCode::numeric, fmt::format("{} and the cpu differ by {}: its speed means nothing",
                                                 device.info().name, difference / largest)};
  const bool equal = same_bits(cpu.state.parameters, gpu.state.parameters);
  const vulkan::DeviceCounters before = device.counters();
  step();
  const vulkan::DeviceCounters after = device.counters();
  // Steps overlap with the host's work, so their time is that of several.
  constexpr int kTogether = 4;
  const Timing together = repeat(o.seconds, [&] {
    for (int i = 0; i < kTogether; ++i) step();
  });
  trainer.sync();

  DeviceTraining timed(gpu.ex, network, gpu.data, options, gpu.state, vulkan::Timestamps::on);
  constexpr int kTimed = 16;
  std::map<std::string, double> fastest, before_step;
  for (int i = 0; i < kTimed + 2; ++i) {  // times are read when a command buffer is used again, two steps later
    gpu.state.position.batch = 0;
    timed.step();
    for (const auto& [label, milliseconds] : timed.kernel_times()) {
      const double us = (milliseconds - std::exchange(before_step[label], milliseconds)) * 1e3;
      if (us <= 0.0) continue;
      const auto [at, is_new] = fastest.try_emplace(label, us);
      if (!is_new) at->second = std::min(at->second, us);
    }
  }
  timed.sync();

  json r;
  r["device"] = device.info().name;
  r["widths"] = o.widths;
  r["grid"] = o.grid;
  r["degree"] = o.degree;
  r["batch"] = o.batch;
  r["base"] = o.base;
  r["precision"] = o.double_precision ? "float64" : "float32";
  r["train_step_us"] = together.fastest / kTogether;
  r["train_step_median_us"] = together.median / kTogether;
  r["kernel_us"] = fastest;
  r["bytes_host_to_device_per_step"] = after.bytes_up - before.bytes_up;
  r["bytes_device_to_host_per_step"] = after.bytes_down - before.bytes_down;
  r["dispatches_per_step"] = after.dispatches - before.dispatches;
  r["submits_per_step"] = after.submits - before.submits;
  r["device_memory_bytes"] = before.memory_bytes - taken;
  r["parameter_bytes"] = gpu.state.parameters.size() * sizeof(T);
  r["max_difference"] = difference / largest;
  r["equal_bits"] = equal;
  return r;
}

}  // namespace

Result<json> bench_kan(const BenchKanOptions& o) try {
  if (o.batch == 0) return Error{ErrorCode::invalid_input, "--batch is 0; it must be at least 1"};
  if (o.device) return o.double_precision ? bench_device<double>(o) : bench_device<float>(o);
  return o.double_precision ? bench<double>(o) : bench<float>(o);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
