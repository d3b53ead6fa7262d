#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "gradloom/app/bench/dense_blas.h"
#include "gradloom/app/bench/ranks.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/data/rows.h"
#include "gradloom/kernels/peak/peak.h"
#include "gradloom/models/kan/device_network.h"
#include "gradloom/models/kan/network.h"
#include "gradloom/session/options/family.h"
#include "gradloom/train/device_trainer.h"

namespace gradloom::app {
namespace {

template <class T>
RowDataset<T> random_rows(const BenchKanOptions& o) {
  RowParts<T> parts;
  parts.size = o.batch;
  parts.features = o.widths.front();
  parts.targets = o.widths.back();
  const RandomStream random(1, RandomUse::data);
  // The same numbers in both precisions.
  for (std::size_t i = 0; i < parts.size * parts.features; ++i)
    parts.x.push_back(static_cast<float>(2 * random.uniform(static_cast<std::uint32_t>(i)) - 1));
  for (std::size_t i = 0; i < parts.size * parts.targets; ++i)
    parts.target.push_back(static_cast<float>(random.normal(static_cast<std::uint32_t>(i) | 0x80000000u)));
  return RowDataset<T>(std::move(parts));
}

kan::NetworkOptions spline_options(const BenchKanOptions& o) {
  kan::NetworkOptions n;
  n.widths = o.widths;
  n.grid = o.grid;
  n.degree = o.degree;
  n.base = o.base;
  n.knots = value_of<kernels::spline::Knots>(kernels::spline::kKnots, o.knots, "kind of knots").or_throw();
  n.spline_noise = 0.5;  // hidden values spread over the grid, as in a trained network
  return n;
}

template <class T>
auto make_spline_training(const BenchKanOptions& o, const RowDataset<T>& data, const ExecOptions& exec,
                          Profile* profile, Comm* comm = nullptr, double sparsity = 0.0) {
  kan::NetworkOptions shape = spline_options(o);
  shape.sparsity = sparsity;
  kan::Network<T> network(shape);
  TrainOptions options = steady_options();
  options.comm = comm;
  auto start = initial_state(network, 1);
  return std::make_unique<BenchTraining<kan::Network<T>, RowDataset<T>>>(exec, profile, std::move(network), data,
                                                                         options, std::move(start));
}

// Throws when two arrays are not the same to 2e-5 per grid interval of the largest number: slopes of splines, which
// magnify the rounding of hidden values, grow with the intervals.
void require_near(std::span<const float> ours, std::span<const float> theirs, std::size_t grid) {
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])));
    largest = std::max(largest, std::abs(static_cast<double>(ours[i])));
  }
  if (!(difference <= 2e-5 * static_cast<double>(grid) * largest))
    throw Exception(ErrorCode::numeric,
                    fmt::format("the output of the dense matrices differs from that of gradloom by {}; the largest "
                                "value is {}",
                                difference, largest));
}

// The gradient of the same step in double, in the layout of `network`.
std::vector<double> exact_gradient(const BenchKanOptions& o, const kan::Network<float>& network,
                                   const TrainState<float>& state) {
  const RowDataset<double> data = random_rows<double>(o);
  const auto exact = make_spline_training<double>(o, data, {.threads = o.threads}, nullptr);
  const Slices &ours = network.parameters(), &wide = exact->model.parameters();
  for (std::size_t k = 0; k < ours.size(); ++k)
    std::copy_n(state.parameters.data() + ours[k].offset, ours[k].stored_size(),
                exact->state.parameters.data() + wide[k].offset);
  exact->step();
  std::vector<double> gradient(state.gradient.size());
  for (std::size_t k = 0; k < ours.size(); ++k)
    std::copy_n(exact->state.gradient.data() + wide[k].offset, wide[k].stored_size(), gradient.data() + ours[k].offset);
  return gradient;
}

// Throws when one of the two gradients is much further from the exact one than the other. Each layer magnifies the
// rounding of the layers below by its slopes, so no fixed distance suits all grids.
void require_as_exact(std::span<const float> ours, std::span<const float> theirs, std::span<const double> exact) {
  constexpr double kOtherOrder = 8.0, kRounding = 1e-6;
  double our_error = 0.0, their_error = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    our_error = std::max(our_error, std::abs(static_cast<double>(ours[i]) - exact[i]));
    their_error = std::max(their_error, std::abs(static_cast<double>(theirs[i]) - exact[i]));
    largest = std::max(largest, std::abs(exact[i]));
  }
  const double slack = kRounding * largest;
  if (!(their_error <= kOtherOrder * our_error + slack && our_error <= kOtherOrder * their_error + slack))
    throw Exception(ErrorCode::numeric, fmt::format("gradients differ from that in double by {} (dense matrices) and "
                                                    "{} (gradloom); the largest value is {}",
                                                    their_error, our_error, largest));
}

// The same step and forward pass by dense matrices, in turn with ours. Fills the figures of both.
template <class Training, class Forward>
void bench_dense(const BenchKanOptions& o, const RowBatch<float>& batch, Training& fast, const View<float, 2>& y,
                 const Forward& forward, BenchKanReport& r) {
  const Blas blas = Blas::load(o.threads).or_throw();
  DenseNetwork dense(blas, fast.model, {fast.state.parameters, fast.state.buffers}, o.batch);
  forward();
  dense.forward(batch.x);
  std::vector<float> ours, theirs;
  for (std::size_t s = 0; s < o.batch; ++s)
    for (std::size_t j = 0; j < o.widths.back(); ++j) {
      ours.push_back(y(s, j));
      theirs.push_back(dense.y()(s, j));
    }
  require_near(ours, theirs, o.grid);
  const auto dense_step = [&] { dense.train_step(batch.x, batch.target, 1e-6f); };
  const std::vector<double> exact = exact_gradient(o, fast.model, fast.state);
  fast.step();
  dense_step();
  require_as_exact(fast.state.gradient.span(), dense.gradient(), exact);
  const auto [our_step, their_step] = repeat_in_turn(
      o.seconds, [&] { fast.step(); }, dense_step);
  const auto [our_forward, their_forward] = repeat_in_turn(o.seconds, forward, [&] { dense.forward(batch.x); });
  r.train_step_us = std::min(r.train_step_us, our_step.fastest);
  r.forward_us = std::min(r.forward_us, our_forward.fastest);
  r.blas_train_step_us = their_step.fastest;
  r.blas_forward_us = their_forward.fastest;
  r.blas_sgemm_gflops = sgemm_gflops(blas, 0.2);
  r.blas_valid = *r.blas_sgemm_gflops >= 0.6 * r.peak_gflops * o.threads;
  r.blas_config = blas.config();
}

// A step with the penalty on edges, in turn with one without.
template <class T, class Training>
void bench_sparsity(const BenchKanOptions& o, const RowDataset<T>& data, Training& plain, BenchKanReport& r) {
  constexpr double kWeight = 1e-3;
  const auto make = [&](const ExecOptions& exec, Profile* profile) {
    return make_spline_training(o, data, exec, profile, nullptr, kWeight);
  };
  const auto step = [](auto& training) { training.step(); };
  TrainingPair sparse(o.threads, make, step);
  const auto [with, without] = repeat_in_turn(
      o.seconds, [&] { sparse.fast().step(); }, [&] { plain.step(); });
  r.sparse_train_step_us = with.fastest;
  r.sparsity_cost = with.fastest / without.fastest - 1;
}

template <class T>
BenchKanReport bench(const BenchKanOptions& o) {
  if (o.against_blas && (sizeof(T) != 4 || o.base))
    throw Exception(ErrorCode::unsupported, "--against-blas needs --precision float32 and --base off");
  const RowDataset<T> data = random_rows<T>(o);
  const auto make = [&](const ExecOptions& exec, Profile* profile) {
    return make_spline_training(o, data, exec, profile);
  };
  const auto step = [](auto& training) { training.step(); };
  TrainingPair pair(o.threads, make, step);
  auto& fast = pair.fast();
  const bool is_double = sizeof(T) == 8;
  const auto peak_before = kernels::peak::measure_peak(is_double);
  const auto [train, one_thread] = pair.time(o.seconds);
  const auto tape = std::make_unique<typename kan::Network<T>::Tape>(
      fast.model.make_tape(fast.ex, {.batch = o.batch, .backward = false}));
  const std::size_t stride = padded(fast.model.output_width());
  Buffer<T> y(o.batch * stride);
  const View<T, 2> y_view(y.data(), {o.batch, fast.model.output_width()}, {stride, 1});
  const ModelArrays<T> arrays{fast.state.parameters, fast.state.buffers};
  const RowBatch<T> batch = data.all();
  const auto run_forward = [&] { fast.model.forward(fast.ex, {.mode = Mode::evaluate}, arrays, batch, *tape, y_view); };
  const Timing forward = repeat(o.seconds, run_forward);
  auto single_workspace = fast.model.make_single_workspace();
  std::vector<T> single_y(fast.model.output_width());
  std::size_t row = 0;
  const Timing single = repeat(o.seconds, [&] {
    fast.model.forward_single(Variant::fast, arrays, std::span<const T>(batch.x.row(row), o.widths.front()),
                              single_workspace, single_y);
    row = row + 1 == o.batch ? 0 : row + 1;
  });
  const auto peak_after = kernels::peak::measure_peak(is_double);
  const Timing sequential = pair.time_reference(std::min(o.seconds, 0.5));

  double pairs = 0.0, first = 0.0;
  for (std::size_t l = 0; l + 1 < o.widths.size(); ++l) pairs += static_cast<double>(o.widths[l] * o.widths[l + 1]);
  first = static_cast<double>(o.widths[0] * o.widths[1]);
  const double work = 2.0 * (o.degree + 1) * static_cast<double>(o.batch);

  BenchKanReport r;
  r.options = o;
  r.forward_us = forward.fastest;
  r.train_step_us = train.fastest;
  r.train_step_p5_us = train.fifth_percentile;
  r.train_step_median_us = train.median;
  r.single_us = single.median;
  r.p99_single_us = single.p99;
  r.peak_gflops = r.peak_fma_gflops = std::max(peak_before.fma_gflops, peak_after.fma_gflops);
  r.peak_separate_gflops = std::max(peak_before.mul_add_gflops, peak_after.mul_add_gflops);
  if (o.sparsity) bench_sparsity(o, data, fast, r);
  if constexpr (sizeof(T) == 4)
    if (o.against_blas) bench_dense(o, batch, fast, y_view, run_forward, r);
  r.gflops_forward = work * pairs / r.forward_us * 1e-3;
  r.gflops_train = work * (3 * pairs - first) / r.train_step_us * 1e-3;
  r.fraction_forward = r.gflops_forward / (r.peak_gflops * o.threads);
  r.fraction_train = r.gflops_train / (r.peak_gflops * o.threads);
  r.sequential_train_step_us = sequential.fastest;
  r.speedup = sequential.fastest / train.fastest;
  r.one_thread_train_step_us = one_thread.fastest;
  r.speedup_threads = one_thread.fastest / train.fastest;
  if (o.allocated_bytes) {
    const std::uint64_t before = o.allocated_bytes();
    for (int i = 0; i < 10; ++i) fast.step();
    r.bytes_allocated_per_step = (o.allocated_bytes() - before) / 10;
  }
  r.serial = serial_share(o.threads, 20, make, step);
  r.tape_bytes = fast.trainer.tape_bytes();
  r.parameter_bytes = fast.state.parameters.size() * sizeof(T);
  if (o.profile) r.phases = phases_of(o.threads, 50, make, step);
  return r;
}

// One step of training on a device: checked against the CPU, then timed, then looked at kernel by kernel.
template <class T>
BenchKanDeviceReport bench_device(const BenchKanOptions& o) {
  using DeviceTraining = DeviceTrainer<kan::DeviceNetwork<T>, RowDataset<T>>;
  constexpr double kTolerance = 1e-4;
  vulkan::Device& device = *o.device;
  const RowDataset<T> data = random_rows<T>(o);
  const Variant variant(Variant::fast, device.info().arithmetic);
  const auto cpu = make_spline_training(o, data, {.threads = 1, .variant = variant}, nullptr);
  TrainState<T> state = initial_state(cpu->model, 1);
  const std::uint64_t taken = device.counters().memory_bytes;
  const kan::DeviceNetwork<T> network(device, cpu->model);
  DeviceTraining trainer(cpu->ex, network, data, steady_options(), state);
  const auto step = [&] {
    state.position.batch = 0;
    trainer.step();
  };
  for (int i = 0; i < 2; ++i) {
    cpu->step();
    step();
  }
  trainer.sync();
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < cpu->state.parameters.size(); ++i) {
    const double a = static_cast<double>(cpu->state.parameters[i]), b = static_cast<double>(state.parameters[i]);
    difference = std::isfinite(b) ? std::max(difference, std::abs(a - b)) : std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(a));
  }
  if (!(difference <= kTolerance * largest))
    throw Exception(ErrorCode::numeric, fmt::format("{} and the CPU differ by {}: its speed means nothing",
                                                    device.info().name, difference / largest));
  const bool equal = same_bits(cpu->state.parameters, state.parameters);
  const vulkan::DeviceCounters before = device.counters();
  step();
  const vulkan::DeviceCounters after = device.counters();
  // Steps overlap with the host's work, so their time is that of several.
  constexpr int kTogether = 4;
  const Timing together = repeat(o.seconds, [&] {
    for (int i = 0; i < kTogether; ++i) step();
  });
  trainer.sync();

  DeviceTraining timed(cpu->ex, network, data, steady_options(), state, vulkan::Timestamps::on);
  constexpr int kTimed = 16;
  std::map<std::string, double> fastest, before_step;
  for (int i = 0; i < kTimed + 2; ++i) {  // times are read when a command buffer is used again, two steps later
    state.position.batch = 0;
    timed.step();
    for (const auto& [label, milliseconds] : timed.kernel_times()) {
      const double us = (milliseconds - std::exchange(before_step[label], milliseconds)) * 1e3;
      if (us <= 0.0) continue;
      const auto [at, is_new] = fastest.try_emplace(label, us);
      if (!is_new) at->second = std::min(at->second, us);
    }
  }
  timed.sync();

  BenchKanDeviceReport r;
  r.options = o;
  r.device = device.info().name;
  r.train_step_us = together.fastest / kTogether;
  r.train_step_median_us = together.median / kTogether;
  r.kernel_us = fastest;
  r.bytes_host_to_device_per_step = after.bytes_up - before.bytes_up;
  r.bytes_device_to_host_per_step = after.bytes_down - before.bytes_down;
  r.dispatches_per_step = after.dispatches - before.dispatches;
  r.submits_per_step = after.submits - before.submits;
  r.device_memory_bytes = before.memory_bytes - taken;
  r.parameter_bytes = state.parameters.size() * sizeof(T);
  r.max_difference = difference / largest;
  r.equal_bits = equal;
  return r;
}

template <class T>
BenchKanRanksReport bench_ranks(const BenchKanOptions& o) {
  const RowDataset<T> data = random_rows<T>(o);
  const auto make = [&](const ExecOptions& exec, Profile* profile, Comm* comm) {
    return make_spline_training(o, data, exec, profile, comm);
  };
  BenchKanRanksReport r;
  r.options = o;
  r.step = time_ranks(*o.comm, o.threads, o.seconds, 1.0, make, [](auto& training) { training.step(); });
  const kan::Network<T> network(spline_options(o));
  const unsigned ranks = o.comm->size();
  const LeafShare share = share_of(o.comm->rank(), ranks, network.leaves(data.all()), 1);
  double nodes = 0.0;
  each_node(share.first, share.count, [&](const LeafNode&) { ++nodes; });
  r.parameter_bytes = network.parameters().flat_size() * sizeof(T);
  r.bytes_by_formula = (nodes + 1) * (ranks - 1.0) / ranks * static_cast<double>(r.parameter_bytes);
  return r;
}

template <class Report>
Result<Report> bench_with(const BenchKanOptions& o, Report (*of_float)(const BenchKanOptions&),
                          Report (*of_double)(const BenchKanOptions&)) try {
  if (o.batch == 0) return Error{ErrorCode::invalid_input, "--batch is 0; it must be at least 1"};
  const auto precision = value_of<Precision>(kPrecisions, o.precision, "precision").or_throw();
  return precision == Precision::float64 ? of_double(o) : of_float(o);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace

Result<BenchKanReport> bench_kan(const BenchKanOptions& o) { return bench_with(o, bench<float>, bench<double>); }

Result<BenchKanDeviceReport> bench_kan_device(const BenchKanOptions& o) {
  return bench_with(o, bench_device<float>, bench_device<double>);
}

Result<BenchKanRanksReport> bench_kan_ranks(const BenchKanOptions& o) {
  return bench_with(o, bench_ranks<float>, bench_ranks<double>);
}

}  // namespace gradloom::app
