// Benchmarks that check their result first, then measure; every speed stands beside the peak measured in the same run.
// Reports become JSON by to_json() of gradloom/io/fields.h. Benchmarks fail with numeric when a result differs in any
// bit from that of the scalar reference.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/result.h"
#include "gradloom/exec/vulkan/device.h"
#include "gradloom/io/fields.h"

namespace gradloom {
class Comm;
}

namespace gradloom::app {

// Milliseconds by phase, where a profile was asked for.
using Phases = std::optional<std::map<std::string, double>>;

struct SerialShare {
  double serial_fraction = 0.0;      // of the time spent outside of parallel loops, on two threads at least
  std::uint64_t parallel_tasks = 0;  // in one call
};

struct BenchKanOptions {
  std::vector<std::size_t> widths = {21, 64, 64, 24};
  unsigned grid = 5;
  unsigned degree = 3;
  std::size_t batch = 64;
  unsigned threads = 1;
  bool base = false;
  std::string precision = "float32";  // of kPrecisions
  std::string knots = "uniform";      // of kernels::spline::kKnots
  bool profile = false;
  double seconds = 1.0;                    // spent on each figure, about
  bool sparsity = false;                   // measure a step with the penalty on edges in turn
  bool against_blas = false;               // measure dense matrices and OpenBLAS in turn (dense_blas.h)
  std::shared_ptr<vulkan::Device> device;  // null: the CPU
  Comm* comm = nullptr;                    // ranks that measure together, for bench_kan_ranks() alone
  // Bytes that the program has allocated so far; the command counts them. Empty: no bytes_allocated_per_step.
  std::function<std::uint64_t()> allocated_bytes;
};

// A training step is one of Adam.
struct BenchKanReport {
  BenchKanOptions options;
  double forward_us = 0.0, train_step_us = 0.0, train_step_p5_us = 0.0, train_step_median_us = 0.0;
  double single_us = 0.0, p99_single_us = 0.0;  // of one sample
  double gflops_forward = 0.0, gflops_train = 0.0;
  // Of one thread: fused multiply-adds in the widest vectors, which the fractions are of; the same under its old name;
  // multiplications and additions as separate instructions.
  double peak_gflops = 0.0, peak_fma_gflops = 0.0, peak_separate_gflops = 0.0;
  double fraction_forward = 0.0, fraction_train = 0.0;  // of peak_gflops
  double sequential_train_step_us = 0.0, speedup = 0.0;
  double one_thread_train_step_us = 0.0, speedup_threads = 0.0;
  std::optional<std::uint64_t> bytes_allocated_per_step;
  SerialShare serial;
  std::size_t tape_bytes = 0, parameter_bytes = 0;
  Phases phases;
  // With the penalty on edges, in turn with the step without; and what that costs, as a share of the latter.
  std::optional<double> sparse_train_step_us, sparsity_cost;
  // Of dense matrices and OpenBLAS in the same run, whose results were compared first (kan.cpp); valid: its
  // product of two matrices reaches 60 % of the peak.
  std::optional<double> blas_forward_us, blas_train_step_us, blas_sgemm_gflops;
  std::optional<bool> blas_valid;
  std::optional<std::string> blas_config;

  GRADLOOM_FIELDS(options.widths, options.grid, options.degree, options.batch, options.base, options.precision,
                  options.knots, options.threads, forward_us, train_step_us, train_step_p5_us, train_step_median_us,
                  single_us, p99_single_us, gflops_forward, gflops_train, peak_gflops, peak_fma_gflops,
                  peak_separate_gflops, fraction_forward, fraction_train, sequential_train_step_us, speedup,
                  one_thread_train_step_us, speedup_threads, bytes_allocated_per_step, serial.serial_fraction,
                  serial.parallel_tasks, tape_bytes, parameter_bytes, phases, sparse_train_step_us, sparsity_cost,
                  blas_forward_us, blas_train_step_us, blas_sgemm_gflops, blas_valid, blas_config)
};

// On the CPU; options.device is null.
Result<BenchKanReport> bench_kan(const BenchKanOptions& options);

struct BenchKanDeviceReport {
  BenchKanOptions options;
  std::string device;
  double train_step_us = 0.0, train_step_median_us = 0.0;
  std::map<std::string, double> kernel_us;  // fastest, by kernel
  std::uint64_t bytes_host_to_device_per_step = 0, bytes_device_to_host_per_step = 0;
  std::uint64_t dispatches_per_step = 0, submits_per_step = 0, device_memory_bytes = 0;
  std::size_t parameter_bytes = 0;
  double max_difference = 0.0;  // from the CPU after two steps, of the largest parameter
  bool equal_bits = false;

  GRADLOOM_FIELDS(options.widths, options.grid, options.degree, options.batch, options.base, options.precision,
                  options.knots, device, train_step_us, train_step_median_us, kernel_us, bytes_host_to_device_per_step,
                  bytes_device_to_host_per_step, dispatches_per_step, submits_per_step, device_memory_bytes,
                  parameter_bytes, max_difference, equal_bits)
};

// On options.device. Fails with numeric when max_difference is above 1e-4.
Result<BenchKanDeviceReport> bench_kan_device(const BenchKanOptions& options);

// A step that ranks share.
struct RanksTiming {
  unsigned ranks = 1;
  double train_step_us = 0.0, train_step_median_us = 0.0;  // of all ranks together, with their threads
  // Of rank 0 alone on as many threads as all ranks have, in turn with the above; and that time by the first.
  double alone_train_step_us = 0.0, ratio = 0.0;
  double bytes_sent_per_step = 0.0, messages_per_step = 0.0;  // by rank 0
  // Of a step of rank 0: packing, sending, waiting, adding what came. Beside that, messages were under way while it
  // computed; the share of this time in both together.
  double communication_ms = 0.0, overlap = 0.0;
};

struct BenchKanRanksReport {
  BenchKanOptions options;
  RanksTiming step;
  double bytes_by_formula = 0.0;  // (r + 1) (P - 1) / P N, docs/cluster.md
  std::size_t parameter_bytes = 0;

  GRADLOOM_FIELDS(options.widths, options.grid, options.degree, options.batch, options.base, options.precision,
                  options.knots, options.threads, step.ranks, step.train_step_us, step.train_step_median_us,
                  step.alone_train_step_us, step.ratio, step.bytes_sent_per_step, step.messages_per_step,
                  bytes_by_formula, step.communication_ms, step.overlap, parameter_bytes)
};

// By all ranks of options.comm, which call it alike. Fails with numeric when they do not end with the bits of one
// process.
Result<BenchKanRanksReport> bench_kan_ranks(const BenchKanOptions& options);

// Of other models than splines.
struct BenchRanksReport {
  std::string model;  // a recipe, or what else names it
  unsigned threads = 1;
  RanksTiming step;
  std::size_t parameter_bytes = 0;

  GRADLOOM_FIELDS(model, threads, step.ranks, step.train_step_us, step.train_step_median_us, step.alone_train_step_us,
                  step.ratio, step.bytes_sent_per_step, step.messages_per_step, step.communication_ms, step.overlap,
                  parameter_bytes)
};

struct BenchRecipeOptions {
  std::string recipe;
  std::vector<std::string> overrides;  // "key=value"
  std::filesystem::path data_root = ".";
  unsigned threads = 1;
  bool profile = false;
  double seconds = 1.0;  // spent on each figure, about
  Comm* comm = nullptr;  // ranks that measure together, for bench_logic_ranks() and bench_graph_recipe_ranks() alone
};

struct BenchLogicReport {
  std::string recipe;
  unsigned threads = 1;
  std::size_t gates = 0, gate_evaluations_per_cell = 0, cells = 0, steps = 0, batch = 0;
  double update_ms = 0.0, update_median_ms = 0.0;
  double ns_per_gate_cell = 0.0;  // over the gates of all cells that are computed in all steps
  double gflops = 0.0, peak_gflops = 0.0;
  double sequential_update_ms = 0.0, speedup = 0.0, one_thread_update_ms = 0.0, speedup_threads = 0.0;
  std::size_t tape_bytes = 0, scratch_bytes_per_thread = 0;
  SerialShare serial;
  Phases phases;

  GRADLOOM_FIELDS(recipe, threads, gates, gate_evaluations_per_cell, cells, steps, batch, update_ms, update_median_ms,
                  ns_per_gate_cell, gflops, peak_gflops, sequential_update_ms, speedup, one_thread_update_ms,
                  speedup_threads, tape_bytes, scratch_bytes_per_thread, serial.serial_fraction, serial.parallel_tasks,
                  phases)
};

// One update (forward, backward, optimizer) of a logic automaton.
Result<BenchLogicReport> bench_logic(const BenchRecipeOptions& options);
// As bench_kan_ranks(). None, for all ranks alike: they do not share the steps of this model.
Result<std::optional<BenchRanksReport>> bench_logic_ranks(const BenchRecipeOptions& options);

enum class RandomGraph { uniform, powerlaw, star };
inline constexpr Choice<RandomGraph> kRandomGraphs[] = {
    {RandomGraph::uniform, "uniform", "all nodes have about the same number of neighbours"},
    {RandomGraph::powerlaw, "powerlaw", "a few nodes have most neighbours"},
    {RandomGraph::star, "star", "one node has all neighbours"},
};

struct BenchGraphOptions {
  std::size_t nodes = 10000;     // of each graph
  double degree = 8;             // neighbours of a node, on average
  std::size_t features = 64;     // and width of all layers
  std::size_t depth = 2;         // layers
  std::size_t graphs = 1;        // 1: classes of nodes; more: classes of graphs, in one batch
  std::string layers = "gcn";    // of graph::kLayers
  std::string kind = "uniform";  // of kRandomGraphs
  unsigned threads = 1;
  bool profile = false;
  double seconds = 0.5;  // spent on each figure, about
  std::function<std::uint64_t()> allocated_bytes;
  Comm* comm = nullptr;  // ranks that measure together, for bench_graph_ranks() alone
};

// A training step is one of Adam.
struct BenchGraphReport {
  BenchGraphOptions options;
  std::size_t nodes = 0, arcs = 0;  // of all graphs
  double forward_ms = 0.0, train_step_ms = 0.0;
  double one_thread_train_step_ms = 0.0, speedup_threads = 0.0, sequential_train_step_ms = 0.0, speedup = 0.0;
  double gflops = 0.0, gflops_forward = 0.0;
  double gbytes_per_s = 0.0;    // of the gathers, counted as rows read and written
  double bytes_per_edge = 0.0;  // how much all memory grows with an edge, two arcs
  std::size_t tape_bytes = 0;
  double bandwidth_ratio = 0.0, read_gbytes_per_s = 0.0;  // reading memory with two threads over one; with one
  std::optional<std::uint64_t> bytes_allocated_per_step;
  std::optional<std::uint64_t> peak_rss_bytes;  // of the process, which the command asks for
  SerialShare serial;
  Phases phases;

  GRADLOOM_FIELDS(nodes, arcs, options.graphs, options.features, options.layers, options.kind, options.threads,
                  forward_ms, train_step_ms, one_thread_train_step_ms, speedup_threads, sequential_train_step_ms,
                  speedup, gflops, gflops_forward, gbytes_per_s, bytes_per_edge, tape_bytes, bandwidth_ratio,
                  read_gbytes_per_s, bytes_allocated_per_step, peak_rss_bytes, serial.serial_fraction,
                  serial.parallel_tasks, phases)
};

Result<BenchGraphReport> bench_graph(const BenchGraphOptions& options);
Result<std::optional<BenchRanksReport>> bench_graph_ranks(const BenchGraphOptions& options);  // as bench_logic_ranks()

struct BenchGraphRecipeReport {
  std::string recipe;
  unsigned threads = 1;
  std::size_t samples = 0;
  std::uint64_t updates = 0;
  double epoch_ms = 0.0, median_epoch_ms = 0.0;
  double one_thread_epoch_ms = 0.0, speedup_threads = 0.0, sequential_epoch_ms = 0.0, speedup = 0.0;
  SerialShare serial;
  std::size_t tape_bytes = 0;
  Phases phases;

  GRADLOOM_FIELDS(recipe, threads, samples, updates, epoch_ms, median_epoch_ms, one_thread_epoch_ms, speedup_threads,
                  sequential_epoch_ms, speedup, serial.serial_fraction, serial.parallel_tasks, tape_bytes, phases)
};

// One epoch (all updates, no validation) of a recipe of graph networks on its own data.
Result<BenchGraphRecipeReport> bench_graph_recipe(const BenchRecipeOptions& options);
Result<std::optional<BenchRanksReport>> bench_graph_recipe_ranks(const BenchRecipeOptions& options);

}  // namespace gradloom::app
