// From the keys that recipes of graphs share to options.
#pragma once

#include "gradloom/data/graph_dataset.h"
#include "gradloom/data/graph_source.h"
#include "gradloom/io/config.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::app {

// The kind of layer of this name. Throws when there is none.
graph::LayerKind layer_kind(std::string_view name);

// data.features; the other options as they are by default.
GraphFeatureOptions feature_options(const Config& recipe);

// The graphs of data.path, in the form data.format.
Result<GraphSet> load_graphs(const Config& recipe, const std::filesystem::path& data_root);

// Fails when model.norm is by batches and something else in the recipe does not go with that.
Result<void> check_norm(const Config& recipe);

}  // namespace gradloom::app
