// What families that read graphs share.
#pragma once

#include <filesystem>

#include "gradloom/app/options/family.h"
#include "gradloom/app/options/graphs.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::app {

// The graphs of `path`, in the form `format`.
Result<GraphSet> load_graphs(const GraphFileOptions& data, const std::filesystem::path& data_root);

// Fails when a norm over batches and something else in the options exclude each other.
Result<void> check_norm(const graph::NetworkOptions& model, const TrainingOptions& train);

}  // namespace gradloom::app
