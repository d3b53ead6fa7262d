// The keys of recipes that learn to rewrite expressions.
#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/rewrite/options.h"

namespace gradloom::app {
namespace {

void bind_expressions(const OptionPart<RewriteDataOptions>& data) {
  using E = ExpressionSetOptions;
  const auto set = data.part("", &RewriteDataOptions::expressions);
  set.key("samples", &E::train, "Training expressions; each gives a sample for every pass to its normal form.")
      .at_least(1)
      .at_most(1 << 20);
  set.key("validation_samples", &E::validation, "Expressions for validation.").at_least(0).at_most(1 << 20);
  set.key("test_samples", &E::test, "Expressions for the final test.").at_least(0).at_most(1 << 20);
  set.key("large_samples", &E::large, "Expressions for the test on larger expressions than those of training.")
      .at_least(0)
      .at_most(1 << 20);
  set.key("least_nodes", &E::least_nodes, "Nodes of the smallest expressions.").at_least(1).at_most(1000);
  set.key("most_nodes", &E::most_nodes, "Nodes of the largest expressions to train on.").at_least(1).at_most(1000);
  set.key("large_least", &E::large_least, "Nodes of the smallest of the larger expressions.")
      .at_least(1)
      .at_most(1000)
      .needs("data.large_samples");
  set.key("large_most", &E::large_most, "Nodes of the largest of the larger expressions.")
      .at_least(1)
      .at_most(1000)
      .needs("data.large_samples");
  data.key("expansions", &RewriteDataOptions::expansions,
           "Limit of search nodes to prove that a sample's edits are an exact edit path; a sample "
           "that is not proven is not trained on.")
      .at_least(1);
  data.key("seed", &RewriteDataOptions::seed, "Seed of the expressions; unset: the run's seed.").at_least(0);
}

}  // namespace

void bind_options(const OptionPart<RewriteOptions>& o) {
  using M = RewriteModelOptions;
  bind_head(o.as<FamilyOptions>(), "Epochs of each stage.");
  bind_expressions(o.part("data", &RewriteOptions::data));
  const auto model = o.part("model", &RewriteOptions::model);
  model.key("width", &M::width, "Width of the layers, a multiple of 16.").at_least(16).at_most(4096);
  model.key("layers", &M::layers, "Number of layers, which is how many edges away a node can see.")
      .at_least(1)
      .at_most(256);
  model.key("passes", &M::passes, "Maximum number of times the network is applied when it is tested.")
      .at_least(1)
      .at_most(1000);
  const auto loss = o.part("loss", &RewriteOptions::soft);
  loss.key("soft_weight", &RewriteLoss::soft_weight,
           "Weight of the soft edit distance to the target in the loss; 0: none.")
      .at_least(0)
      .computed();
  loss.key("soft_temperature", &RewriteLoss::temperature, "Soft edit distance: temperature of the matching.")
      .above(0)
      .computed()
      .needs("loss.soft_weight");
  loss.key("soft_iterations", &RewriteLoss::iterations, "Soft edit distance: iterations of Sinkhorn.")
      .at_least(1)
      .at_most(10000)
      .needs("loss.soft_weight");
  loss.key("soft_rounds", &RewriteLoss::rounds, "Soft edit distance: rounds; from the second on edges count.")
      .at_least(1)
      .at_most(100)
      .needs("loss.soft_weight");
  bind_training(o.part("", &RewriteOptions::train), needs_validation("data.validation_samples"));
}

}  // namespace gradloom::app
