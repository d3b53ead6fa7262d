// The keys of recipes of graph networks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/graph/options.h"

namespace gradloom::app {
namespace {

// What many keys have an effect with, or without.
constexpr const char *kGraphPath = "data.path", *kGraphFeatures = "data.features", *kTrainNodes = "data.train_nodes";

// How data.path is read, as far as its name and data.format tell: a value of data.format, or the end of a name.
std::string kind_of_file(const ConfigValues& values) {
  const auto text = [&](const char* key) {
    const auto* value = std::get_if<std::string>(&values(key));
    return value ? std::filesystem::path(*value) : std::filesystem::path();
  };
  if (text("data.format") != "auto") return text("data.format").string();
  if (!text("data.nodes").empty()) return "tables";
  const std::filesystem::path path = text(kGraphPath), name = path.extension() == ".gz" ? path.stem() : path;
  return name.has_extension() ? name.extension().string().substr(1) : "";
}

// The key is for other files than those of these kinds.
EffectRule not_for_files(std::vector<std::string> kinds, const char* what) {
  return [kinds = std::move(kinds), what](const ConfigValues& values) -> std::string {
    const bool idle = std::ranges::find(kinds, kind_of_file(values)) != kinds.end();
    return idle ? fmt::format("has no effect: it is for {}", what) : "";
  };
}

// Nodes that are named for training leave all others for the test.
std::string without_train_nodes(const ConfigValues& values) {
  const bool named = std::get<std::string>(values("task")) == "nodes" &&
                     !std::get<std::vector<std::int64_t>>(values(kTrainNodes)).empty();
  return named ? "has no effect with data.train_nodes: all other nodes are the test part" : "";
}

std::string for_held_out_graphs(const ConfigValues& values) {
  const bool folds =
      std::get<std::string>(values("task")) == "graphs" && std::get<std::int64_t>(values("data.folds")) > 0;
  return folds ? "has no effect with data.folds: a fold is the test part" : "";
}

std::string for_a_head(const ConfigValues& values) {
  const bool headless =
      std::get<std::string>(values("task")) == "nodes" && std::get<std::string>(values("model.jumping")) == "none";
  return headless ? "has no effect: with task = \"nodes\" and model.jumping = \"none\" the last layer is the output"
                  : "";
}

// The file of a node task may have a split of its own.
std::string for_best_of_graphs(const ConfigValues& values) {
  const bool of_nodes = std::get<std::string>(values("task")) == "nodes";
  if (!of_nodes) return needs_validation("data.validation")(values);
  return without_train_nodes(values).empty() ? "" : needs_validation("")(values);
}

void bind_graph_data(const OptionPart<GraphDataOptions>& data) {
  using D = GraphDataOptions;
  const auto features = data.part("", &D::features);
  data.key("root", &D::root, "Folder that data.path is looked up in; empty: the current folder, then $GRADLOOM_DATA.");
  data.key("path", &D::path, "File or folder with graphs; docs/graphs.md shows the formats. Unset: data.graph.");
  data.choice("graph", &D::graph, kShippedGraphs, "A graph that ships with the program.")
      .effect([](const ConfigValues& values) {
        return std::holds_alternative<std::string>(values(kGraphPath))
                   ? "has no effect with data.path: the graphs are those of the file"
                   : "";
      });
  data.choice("format", &D::format, kGraphFormats, "Format of data.path.").needs(kGraphPath);
  data.key("nodes", &D::nodes,
           "Table of the nodes, where data.path is the table of the edges; unset: nodes.csv in the same folder.")
      .needs(kGraphPath);
  data.key("graph_folder", &D::graph_folder,
           "Folder of the files that a collection lists; unset: the folder of the collection.")
      .needs(kGraphPath)
      .effect(
          not_for_files({"json", "graphml", "gml", "csv", "tsv", "edges", "tables", "tve", "tu", "gin", "planetoid"},
                        "collections of .gxl files"));
  data.key("class_column", &D::class_column, "Attribute or column with the class of a node or graph.")
      .needs(kGraphPath);
  data.key("drop", &D::drop, "Columns of the table of nodes to leave out, by name or number.")
      .needs(kGraphPath)
      .effect(
          not_for_files({"json", "graphml", "gml", "gxl", "cxl", "tve", "tu", "gin", "planetoid"}, "tables of nodes"));
  features.choice("features", &GraphFeatureOptions::nodes, kNodeFeatures,
                  "Features of nodes; auto: those of the file and labels that repeat, else numbers of neighbours.");
  features.key("normalise_rows", &GraphFeatureOptions::normalise_rows, "Divide the features of each node by their sum.")
      .only_with(kGraphFeatures, {"auto", "given", "all"});
  features
      .key("standardise", &GraphFeatureOptions::standardise,
           "Scale the features of the file to mean 0 and standard deviation 1 over all its nodes.")
      .only_with(kGraphFeatures, {"auto", "given", "all"});
  features.key("edge_labels", &GraphFeatureOptions::edge_labels, "Labels of edges become features of edges.");
  data.key("train_nodes", &D::train_nodes,
           "Nodes: the training nodes; all others are test nodes. None: the split of the file.")
      .at_least(0)
      .only_with("task", {"nodes"});
  data.key("validation", &D::validation, "Fraction held out for validation.")
      .at_least(0)
      .below(1)
      .effect(without_train_nodes);
  data.key("test", &D::test, "Fraction held out for the final test.")
      .at_least(0)
      .below(1)
      .effect(without_train_nodes)
      .effect(for_held_out_graphs);
  data.key("folds", &D::folds, "Graphs: number of folds of a cross-validation; 0: off.")
      .at_least(0)
      .only_with("task", {"graphs"});
  data.key("fold", &D::fold, "Graphs: the fold to test on; -1: the seed modulo data.folds.")
      .at_least(-1)
      .needs("data.folds");
  data.key("seed", &D::seed, "Seed of the split; unset: the run's seed.").at_least(0).effect(without_train_nodes);
  data.key("curve", &D::curve, "Measure the accuracy on validation and test data after every epoch.");
}

void bind_graph_model(const OptionPart<graph::NetworkOptions>& model) {
  using M = graph::NetworkOptions;
  model.choice("layer", &M::kind, graph::kLayers, "Kind of the layers.");
  model.key("hidden", &M::hidden, "Widths of the hidden layers; a layer to the classes follows for node tasks.")
      .at_least(1)
      .at_most(1 << 20);
  model.key("heads", &M::heads, "gat: attention heads.").at_least(1).only_with("model.layer", {"gat"});
  model.choice("activation", &M::activation, kernels::rowwise::kActivations, "Activation.");
  model.choice("norm", &M::norm, graph::kNorms, "Normalisation in every hidden layer.");
  model.choice("jumping", &M::jumping, graph::kJumpings, "Which layers the output layer reads.");
  model.choice("readout", &M::readout, graph::kReadouts, "Graphs: how the rows of the nodes become one row.")
      .only_with("task", {"graphs"});
  model.key("dropout", &M::dropout, "Dropout: share of each layer's inputs that are set to 0 in training.")
      .at_least(0)
      .below(1);
  model.key("head_dropout", &M::head_dropout, "Dropout before the output layer, where there is one.")
      .at_least(0)
      .below(1)
      .effect(for_a_head);
  model.key("residual", &M::residual, "Add the input of a layer to its output where widths agree.");
}

void bind_distances(const OptionPart<GraphDistanceOptions>& ged) {
  using G = GraphDistanceOptions;
  ged.key("ged_sample", &G::sample,
          "Number of graphs whose exact edit distances are compared with the network's outputs; 0: none.")
      .at_least(0)
      .at_most(1000);
  ged.key("ged_nodes", &G::nodes, "Maximum number of nodes of a graph in that sample.")
      .at_least(1)
      .at_most(64)
      .needs("train.ged_sample");
  ged.key("ged_every", &G::every, "Epochs between two such comparisons.").at_least(1).needs("train.ged_sample");
  ged.key("ged_expansions", &G::expansions,
          "Limit of search nodes for each distance; pairs that need more do not count.")
      .at_least(1)
      .needs("train.ged_sample");
}

}  // namespace

void bind_options(const OptionPart<GraphOptions>& o) {
  bind_head(o.as<FamilyOptions>(), "Epochs of each stage.");
  o.part("", &GraphOptions::model)
      .choice("task", &graph::NetworkOptions::task, kGraphTasks,
              "What is predicted: a class of each node of one graph, or a class of each of many graphs.");
  bind_graph_data(o.part("data", &GraphOptions::data));
  bind_graph_model(o.part("model", &GraphOptions::model));
  const auto train = o.part("", &GraphOptions::train);
  bind_training(train, for_best_of_graphs);
  train
      .key("train.parallel_examples", &TrainOptions::parallel_examples,
           "Graphs per micro-batch; larger batches are cut, with equal bits; 0: whole batches.")
      .at_least(0);
  bind_distances(o.part("train", &GraphOptions::ged));
}

}  // namespace gradloom::app
