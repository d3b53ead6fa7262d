// Graphs from the files that options name.
#pragma once

#include <filesystem>

#include "gradloom/app/predict/table.h"
#include "gradloom/app/settings.h"
#include "gradloom/session/families/graph/family.h"
#include "gradloom/session/families/graph/layout.h"
#include "gradloom/session/families/graph/options.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {

// The graphs of `path`, in the form `format`.
Result<GraphSet> load_graphs(const GraphFileOptions& data, const std::filesystem::path& data_root);

// New ones, with the numbers of labels and classes that a model knows. `data` tell how the training file was read; its
// format is for a text whose format cannot be detected.
Result<GraphSet> load_new_graphs(const GraphLayout& layout, const GraphFileOptions& data, const NewData& added);

// Those of a file, or of a graph that ships with the program.
Result<std::shared_ptr<const GraphSet>> load_graph(const GraphOptions& options, const std::filesystem::path& data_root);

// What a model says of graphs that align_graphs() has made fit. For float and double.
template <class T>
PredictedTable predict_graph_set(const TypedSession<GraphFamily<T>>& session, const GraphSet& set);

// The embedding (GraphNetwork::embedding) of each node, or of each graph, in their order. For float and double.
template <class T>
PredictedRows embed_graph_set(const TypedSession<GraphFamily<T>>& session, const GraphSet& set);

}  // namespace gradloom::app
