// The keys of recipes of graph networks.
#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/graph/options.h"

namespace gradloom::app {
namespace {

void bind_graph_data(const OptionPart<GraphDataOptions>& data) {
  using D = GraphDataOptions;
  const auto features = data.part("", &D::features);
  data.key("root", &D::root, "Folder that data.path is looked up in; empty: the current folder, then $GRADLOOM_DATA.");
  data.key("path", &D::path, "File or folder with graphs; docs/graphs.md shows the formats. Unset: data.graph.");
  data.choice("graph", &D::graph, kShippedGraphs, "A graph that ships with the program.");
  data.choice("format", &D::format, kGraphFormats, "Format of data.path.").needs("data.path");
  data.key("nodes", &D::nodes,
           "Table of the nodes, where data.path is the table of the edges; unset: nodes.csv in the same folder.")
      .needs("data.path");
  data.key("graph_folder", &D::graph_folder,
           "Folder of the files that a collection lists; unset: the folder of the collection.")
      .needs("data.path");
  data.key("class_column", &D::class_column, "Attribute or column with the class of a node or graph.")
      .needs("data.path");
  data.key("drop", &D::drop, "Columns of the table of nodes to leave out, by name or number.").needs("data.path");
  features.choice("features", &GraphFeatureOptions::nodes, kNodeFeatures,
                  "Features of nodes; auto: those of the file and labels that repeat, else numbers of neighbours.");
  features.key("normalise_rows", &GraphFeatureOptions::normalise_rows,
               "Divide the features of each node by their sum.");
  features.key("standardise", &GraphFeatureOptions::standardise,
               "Scale the features of the file to mean 0 and standard deviation 1 over all its nodes.");
  features.key("edge_labels", &GraphFeatureOptions::edge_labels, "Labels of edges become features of edges.");
  data.key("train_nodes", &D::train_nodes,
           "Nodes: the training nodes; all others are test nodes. None: the split of the file.")
      .at_least(0)
      .only_with("task", {"nodes"});
  data.key("validation", &D::validation, "Fraction held out for validation.").at_least(0).below(1);
  data.key("test", &D::test, "Fraction held out for the final test.").at_least(0).below(1);
  data.key("folds", &D::folds, "Graphs: number of folds of a cross-validation; 0: off.")
      .at_least(0)
      .only_with("task", {"graphs"});
  data.key("fold", &D::fold, "Graphs: the fold to test on; -1: the seed modulo data.folds.")
      .at_least(-1)
      .needs("data.folds");
  data.key("seed", &D::seed, "Seed of the split; unset: the run's seed.").at_least(0);
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
      .below(1);
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
  bind_training(train);
  train
      .key("train.parallel_examples", &TrainOptions::parallel_examples,
           "Graphs per micro-batch; larger batches are cut, with equal bits; 0: whole batches.")
      .at_least(0);
  bind_distances(o.part("train", &GraphOptions::ged));
}

}  // namespace gradloom::app
