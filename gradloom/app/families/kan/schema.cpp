// The keys of recipes of spline networks.
#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/kan/options.h"

namespace gradloom::app {
namespace {

// Epochs before which something happens.
std::string for_epochs_that_come(const ConfigValues& values) {
  const std::int64_t epochs = std::get<std::int64_t>(values("epochs"));
  for (const std::int64_t epoch : std::get<std::vector<std::int64_t>>(values("model.refit")))
    if (epoch > epochs)
      return fmt::format("has no effect at epoch {}, which is never reached: the stage has {}", epoch, epochs);
  return "";
}

// Free knots are placed by the data when grids are refitted, and are even until then.
std::string for_refitted_knots(const ConfigValues& values) {
  const bool chosen = std::get<std::string>(values("model.size")) != name_of(kSizePolicies, SizePolicy::given);
  if (chosen || !std::get<std::vector<std::int64_t>>(values("model.refit")).empty()) return "";
  return "has no effect with model.refit = []: knots are placed when grids are refitted";
}

void bind_kan_model(const OptionPart<KanModelOptions>& model) {
  using M = KanModelOptions;
  model.choice("size", &M::size, kSizePolicies,
               "How model.hidden, model.grid, model.refit, optimizer.weight_decay, train.batch and epochs are chosen.");
  model.key("hidden", &M::hidden, "Widths of the hidden layers; inputs and outputs follow from the data.").at_least(1);
  model
      .key("multiply", &M::multiply,
           "Nodes of each hidden layer that are products of two sums, one number for each of model.hidden; the other "
           "nodes are sums.")
      .at_least(0);
  model.key("grid", &M::grid, "Grid intervals of every spline before a stage refines them.").at_least(1).at_most(1024);
  model.key("degree", &M::degree, "Degree of the splines.").at_least(1).at_most(7);
  model.key("base", &M::base, "Add u * silu(x) to every spline.");
  model.key("bias", &M::bias, "Add a bias to every node.");
  model.choice("outside", &M::outside, kernels::spline::kOutOfGrid, "What a spline does outside its grid.");
  model.choice("knots", &M::knots, kernels::spline::kKnots, "Uniform knots, or knots placed freely for each input.")
      .effect(for_refitted_knots);
  model.key("lo", &M::lo, "Lower end of the grids before they are refitted.").computed();
  model.key("hi", &M::hi, "Upper end of the grids before they are refitted.").computed();
  model
      .key("spline_noise", &M::spline_noise,
           "Standard deviation of the initial spline coefficients, over sqrt(inputs).")
      .at_least(0)
      .computed();
  model.key("base_scale", &M::base_scale, "Standard deviation of the initial base weights, over sqrt(inputs).")
      .at_least(0)
      .computed()
      .needs("model.base");
  model.choice("normalise", &M::normalise, kInputScales,
               "How inputs are scaled: not at all, to mean 0 and standard deviation 1, or to the range of the grid.");
  model.key("scale_targets", &M::scale_targets, "Regression: predict in units of the targets' standard deviation.")
      .only_with("task", {"regression"});
  model
      .key("refit", &M::refit,
           "Epochs of a stage before which its grids are refitted to the data; the number of epochs: after the "
           "last.")
      .at_least(0)
      .effect(for_epochs_that_come);
  model.key("refit_inputs", &M::refit_inputs, "Refit the first layer's grids too, not only those of hidden layers.")
      .needs("model.refit");
  model
      .key("refit_margin", &M::refit_margin,
           "How far refitted grids reach beyond the data, as a fraction of its range.")
      .at_least(0)
      .at_most(1)
      .needs("model.refit");
  model.key("refit_uniform", &M::refit_uniform, "Free knots: 0 puts them at quantiles, 1 evenly.")
      .at_least(0)
      .at_most(1)
      .needs("model.refit")
      .only_with("model.knots", {"free"});
  model
      .key("prune", &M::prune,
           "Before each stage but the first, remove edges and inputs with a smaller share of the outputs' variance; "
           "they "
           "stay 0 in later stages.")
      .at_least(0)
      .at_most(1);
  model.key("prune_inputs", &M::prune_inputs, "Instead of model.prune: the number of inputs to keep.").at_least(1);
  model
      .key("prune_worse", &M::prune_worse,
           "Instead of model.prune: remove as much as possible while the loss on validation data (or training data) "
           "grows by "
           "at most this share.")
      .at_least(0);
  model
      .key("sparsity", &M::sparsity,
           "Weight of a penalty on the strengths of edges, which drives most of them to 0; 0: none.")
      .at_least(0)
      .computed();
  const auto share = [&](const char* name, auto field, const char* text) {
    model.key(name, field, text).at_least(0).computed().effect([](const ConfigValues& values) {
      return std::get<double>(values("model.sparsity")) > 0 ? "" : "has no effect without model.sparsity";
    });
  };
  share("sparsity_l1", &M::sparsity_l1, "Share of the sum of strengths in model.sparsity.");
  share("sparsity_edges", &M::sparsity_edges, "Share of the entropy over edges in model.sparsity.");
  share("sparsity_nodes", &M::sparsity_nodes, "Share of the entropy over nodes in model.sparsity.");
}

void bind_kan_formula(const OptionPart<KanFormulaOptions>& formula) {
  using F = KanFormulaOptions;
  formula.key("search", &F::search, "Search for the formula of the data after training.")
      .only_with("task", {"regression"});
  formula.key("effort", &F::effort, "Limit of the search's work, in millions of multiply-adds.")
      .at_least(1)
      .needs("formula.search");
  formula
      .key("threshold", &F::threshold,
           "Edges with a smaller share of the variance are left out of a formula that is made edge by edge.")
      .at_least(0)
      .at_most(1)
      .needs("formula.search");
  formula.key("functions", &F::functions, "Functions that edges are compared with, by name; none: all of the library.")
      .needs("formula.search");
  formula.key("define", &F::define, "Functions to add to the library, each \"name = expression in x\".")
      .needs("formula.search");
  formula
      .key("forbid", &F::forbid,
           "Functions that are never used, by name; for one edge only, \"LAYER.FROM.TO name\", counted from 0.")
      .needs("formula.search");
  formula.key("fix", &F::fix, "The function of an edge, \"LAYER.FROM.TO name\"; the formula is then made edge by edge.")
      .needs("formula.search");
}

}  // namespace

void bind_options(const OptionPart<KanOptions>& o) {
  bind_head(o.as<FamilyOptions>(), "Epochs of each stage (L-BFGS: steps).");
  o.choice("task", &KanOptions::task, kTasks, "What is learned.");
  bind_row_data(o.part("data", &KanOptions::data));
  bind_kan_model(o.part("model", &KanOptions::model));
  bind_kan_formula(o.part("formula", &KanOptions::formula));
  bind_training(o.part("", &KanOptions::train), needs_validation("data.validation"));
  o.stage("grid", "model.grid", "Grid intervals from this stage on; the function is kept.", Lasting::rest);
  o.stage("sparsity", "model.sparsity", "Weight of the penalty on edges in this stage; unset: model.sparsity.");
  o.stage("prune", "model.prune", "Threshold of pruning before this stage; unset: model.prune.");
  o.stage("prune_inputs", "model.prune_inputs", "Inputs that are kept from this stage on; unset: model.prune_inputs.");
  o.stage("prune_worse", "model.prune_worse",
          "Allowed growth of the loss by pruning before this stage; unset: model.prune_worse.");
  o.stage("refit", "model.refit", "Epochs before which grids are refitted in this stage; unset: model.refit.");
}

}  // namespace gradloom::app
