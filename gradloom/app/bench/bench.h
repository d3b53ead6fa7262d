// Benchmarks that check their result first, then measure; every speed stands beside the peak measured in the same run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/exec/vulkan/device.h"

namespace gradloom::app {

struct BenchKanOptions {
  std::vector<std::size_t> widths = {21, 64, 64, 24};
  unsigned grid = 5;
  unsigned degree = 3;
  std::size_t batch = 64;
  unsigned threads = 1;
  bool base = false;
  bool double_precision = false;
  bool profile = false;
  double seconds = 1.0;                    // spent on each figure, about
  std::shared_ptr<vulkan::Device> device;  // null: the CPU
  // Bytes that the program has allocated so far; the command counts them. Empty: bytes_allocated_per_step is null.
  std::function<std::uint64_t()> allocated_bytes;
};

// JSON: forward_us, train_step_us (Adam), single_us, p99_single_us, gflops_forward, gflops_train, peak_gflops,
// peak_fma_gflops, fraction_forward, fraction_train (of peak_gflops), sequential_train_step_us, speedup,
// one_thread_train_step_us, speedup_threads, bytes_allocated_per_step, serial_fraction, parallel_tasks, tape_bytes,
// parameter_bytes. Fails with numeric when the result differs from the scalar reference in any bit.
//
// On a device: train_step_us, train_step_median_us, kernel_us (by kernel, fastest), bytes_host_to_device_per_step,
// bytes_device_to_host_per_step, dispatches_per_step, submits_per_step, device_memory_bytes, parameter_bytes,
// max_difference (from the CPU after two steps, of the largest parameter). Fails with numeric when that is above 1e-4.
Result<nlohmann::json> bench_kan(const BenchKanOptions& options);

struct BenchLogicOptions {
  std::string recipe = "checkerboard";
  std::vector<std::string> overrides;  // "key=value"
  std::filesystem::path data_root = ".";
  unsigned threads = 1;
  bool profile = false;
  double seconds = 2.0;  // spent on the update, about
};

// One update (forward, backward, optimizer) of a logic automaton. JSON: update_ms, ns_per_gate_cell (time over the
// gates of all cells that are computed in all steps), gflops, peak_gflops, sequential_update_ms (the scalar reference),
// speedup, one_thread_update_ms, speedup_threads, tape_bytes, scratch_bytes_per_thread, serial_fraction,
// parallel_tasks. Fails with numeric when the result differs from the scalar reference in any bit.
Result<nlohmann::json> bench_logic(const BenchLogicOptions& options);

enum class RandomGraph { uniform, powerlaw, star };
inline constexpr Choice<RandomGraph> kRandomGraphs[] = {
    {RandomGraph::uniform, "uniform", "all nodes alike"},
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
};

// JSON: nodes, arcs, forward_ms, train_step_ms (Adam), one_thread_train_step_ms, speedup_threads,
// sequential_train_step_ms (the scalar reference), speedup, gflops, gbytes_per_s (of the gathers, counted as rows read
// and written), bytes_per_edge (how much all memory grows with an edge, two arcs), tape_bytes, bandwidth_ratio (reading
// memory with two threads over one), serial_fraction, parallel_tasks, bytes_allocated_per_step. Fails with numeric when
// the result differs from the scalar reference in any bit.
Result<nlohmann::json> bench_graph(const BenchGraphOptions& options);

struct BenchGraphRecipeOptions {
  std::string recipe;
  std::vector<std::string> overrides;  // "key=value"
  std::filesystem::path data_root = ".";
  unsigned threads = 1;
  bool profile = false;
  double seconds = 1.0;  // spent on each figure, about
};

// One epoch (all updates, no validation) of a recipe of graph networks on its own data. JSON: samples, updates,
// epoch_ms, median_epoch_ms, one_thread_epoch_ms, speedup_threads, sequential_epoch_ms (the scalar reference), speedup,
// serial_fraction, parallel_tasks, tape_bytes. Fails with numeric when the result differs from the reference in any
// bit.
Result<nlohmann::json> bench_graph_recipe(const BenchGraphRecipeOptions& options);

}  // namespace gradloom::app
