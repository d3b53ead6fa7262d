// The keys of recipes that learn how similar two graphs are.
#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/pairs/options.h"

namespace gradloom::app {
namespace {

void bind_pair_data(const OptionPart<PairDataOptions>& data) {
  using D = PairDataOptions;
  data.key("root", &D::root, "Folder of data.path and data.distances; empty: the current folder, then $GRADLOOM_DATA.");
  data.key("path", &D::path, "File with graphs; docs/graphs.md shows the formats.").required();
  data.key("distances", &D::distances,
           "Exact distances of the graphs, as `gradloom ged FILE --all-pairs --out F` writes them.")
      .required();
  data.choice("format", &D::format, without(kGraphFormats, GraphFormat::planetoid), "Format of data.path.");
  data.part("", &D::features)
      .choice("features", &GraphFeatureOptions::nodes, without(kNodeFeatures, NodeFeatures::identity),
              "Features of nodes; auto: those of the file and labels that repeat, else numbers of neighbours.");
  data.key("validation", &D::validation, "Fraction of the graphs held out for validation.").at_least(0).below(1);
  data.key("test", &D::test, "Fraction of the graphs held out for the final test.").at_least(0).below(1);
  data.key("seed", &D::seed, "Seed of the split; unset: the run's seed.").at_least(0);
}

void bind_pair_model(const OptionPart<graph::PairOptions>& model) {
  using M = graph::NetworkOptions;
  const auto encoder = model.part("", &graph::PairOptions::encoder);
  encoder.choice("layer", &M::kind, graph::kLayers, "Kind of the encoder's layers.");
  encoder.key("hidden", &M::hidden, "Widths of the encoder's layers.").at_least(1).at_most(1 << 20).count(1);
  encoder.key("heads", &M::heads, "gat: attention heads.").at_least(1).only_with("model.layer", {"gat"});
  encoder.key("code", &M::outputs, "Width of the encoder's output for a graph.").at_least(1).at_most(4096);
  model.key("head", &graph::PairOptions::hidden, "Width of the layer that reads a pair.").at_least(1).at_most(4096);
  encoder.choice("activation", &M::activation, kernels::rowwise::kActivations, "Activation.");
  encoder.choice("norm", &M::norm, graph::kNorms, "Normalisation in every layer of the encoder.");
  encoder.choice("jumping", &M::jumping, graph::kJumpings, "Which layers the encoder's output is made of.");
  encoder.choice("readout", &M::readout, graph::kReadouts, "How the rows of the nodes become one row.");
  encoder.key("dropout", &M::dropout, "Dropout: share of each layer's inputs that are set to 0 in training.")
      .at_least(0)
      .below(1);
  encoder.key("residual", &M::residual, "Add the input of a layer to its output where widths agree.");
}

}  // namespace

void bind_options(const OptionPart<PairOptions>& o) {
  bind_head(o.as<FamilyOptions>(), "Epochs of each stage.");
  bind_pair_data(o.part("data", &PairOptions::data));
  bind_pair_model(o.part("model", &PairOptions::model));
  bind_training(o.part("", &PairOptions::train), needs_validation("data.validation"));
}

}  // namespace gradloom::app
