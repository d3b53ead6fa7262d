// The keys of recipes that learn to rewrite expressions.
#include "gradloom/app/schema_parts.h"

namespace gradloom::app {

Schema rewrite_schema() {
  Schema s;
  add_head(s, "graph-rewrite", 40, "Passes over the training samples in each stage.");
  s.integer("data.samples", 4000, "Training expressions; each gives a sample for every pass to its normal form.")
      .at_least(1)
      .at_most(1 << 20);
  s.integer("data.validation_samples", 500, "Further expressions to watch training.").at_least(0).at_most(1 << 20);
  s.integer("data.test_samples", 1000, "Further expressions for the final test.").at_least(0).at_most(1 << 20);
  s.integer("data.large_samples", 500, "Further expressions that are larger than any trained on.")
      .at_least(0)
      .at_most(1 << 20);
  s.integer("data.least_nodes", 5, "Nodes of the smallest expressions.").at_least(1).at_most(1000);
  s.integer("data.most_nodes", 25, "Nodes of the largest expressions to train on.").at_least(1).at_most(1000);
  s.integer("data.large_least", 26, "Nodes of the smallest of the larger expressions.").at_least(1).at_most(1000);
  s.integer("data.large_most", 40, "Nodes of the largest of the larger expressions.").at_least(1).at_most(1000);
  s.integer("data.expansions", 2000,
            "Nodes of the search tree that may be opened to prove that a sample's edits are an exact path; a sample "
            "that is not proven is not trained on.")
      .at_least(1);
  s.integer("data.seed", std::nullopt, "Seed of the expressions; unset: the run's seed.").at_least(0);
  s.integer("model.width", 64, "Numbers of a node, a multiple of 16.").at_least(16).at_most(4096);
  s.integer("model.layers", 4, "Layers: how many edges away a node can see.").at_least(1).at_most(256);
  s.integer("model.passes", 32, "How often the network is applied at most when it is judged.")
      .at_least(1)
      .at_most(1000);
  s.number("loss.soft_weight", 0.1, "How much the soft edit distance to the target counts; 0: not at all.").at_least(0);
  s.number("loss.soft_temperature", 0.3, "Soft edit distance: temperature of the matching.").above(0);
  s.integer("loss.soft_iterations", 10, "Soft edit distance: iterations of Sinkhorn.").at_least(1).at_most(10000);
  s.integer("loss.soft_rounds", 2, "Soft edit distance: rounds; from the second on edges count.")
      .at_least(1)
      .at_most(100);
  add_training_keys(s, {.loss = "cross-entropy", .lr = 2e-3, .batch = 64});
  add_stages(s, stage_schema());
  return s;
}

}  // namespace gradloom::app
