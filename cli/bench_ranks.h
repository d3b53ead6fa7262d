// Benchmarks that all ranks run together.
#pragma once

#include <optional>
#include <string_view>

#include "cli/output.h"
#include "gradloom/app/bench/bench.h"
#include "gradloom/base/function_ref.h"

namespace gradloom::cli {

void print_ranks_bench(const Output& out, std::string_view what, unsigned threads, const app::RanksTiming& step);

// What `bench` of all ranks says, told by rank 0. False: rank 0 has to measure alone, because ranks do not share the
// steps of the model; the others are done.
bool bench_ranks(const Output& out, FunctionRef<Result<std::optional<app::BenchRanksReport>>(Comm&)> bench);

}  // namespace gradloom::cli
