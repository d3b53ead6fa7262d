// Benchmarks that check their result first, then measure; every speed stands beside the peak measured in the same run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gradloom/base/result.h"

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
  double seconds = 1.0;  // spent on each figure, about
  // Bytes that the program has allocated so far; the command counts them. Empty: bytes_allocated_per_step is null.
  std::function<std::uint64_t()> allocated_bytes;
};

// JSON: forward_us, train_step_us (Adam), single_us, p99_single_us, gflops_forward, gflops_train, peak_gflops,
// peak_fma_gflops, fraction_forward, fraction_train (of peak_gflops), sequential_train_step_us, speedup,
// bytes_allocated_per_step, serial_fraction, parallel_tasks, tape_bytes, parameter_bytes. Fails with numeric when the
// result differs from the scalar reference in any bit.
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
// speedup, tape_bytes, scratch_bytes_per_thread, serial_fraction, parallel_tasks. Fails with numeric when the result
// differs from the scalar reference in any bit.
Result<nlohmann::json> bench_logic(const BenchLogicOptions& options);

}  // namespace gradloom::app
