// The keys of recipes that learn how similar two graphs are.
#include "gradloom/app/schema_parts.h"

namespace gradloom::app {

Schema pair_schema() {
  Schema s;
  add_head(s, "graph-pairs", 100, "Passes over the training pairs in each stage.");
  s.string("data.root", "", "Folder of data.path and data.distances; empty: the current folder, then $GRADLOOM_DATA.");
  s.string("data.path", std::nullopt, "File with graphs; docs/graphs.md shows the formats.").required().file();
  s.string("data.distances", std::nullopt, "Their exact distances, as `gradloom ged FILE --all-pairs --out F` writes.")
      .required()
      .file();
  s.string("data.format", "auto", "Format of data.path.").one_of({"auto", "tve", "tu", "gin", "gxl", "edges", "json"});
  s.string("data.features", "auto", "Features of nodes; auto: those given, else labels, else numbers of neighbours.")
      .one_of({"auto", "given", "labels", "degrees", "constant"});
  s.number("data.validation", 0.2, "Fraction of the graphs held out to watch training.").at_least(0).below(1);
  s.number("data.test", 0.2, "Fraction of the graphs held out for the final test.").at_least(0).below(1);
  s.integer("data.seed", std::nullopt, "Seed of the split; unset: the run's seed.").at_least(0);
  s.string("model.layer", "gin", "Kind of the encoder's layers.")
      .one_of({"mean", "gcn", "sage-mean", "sage-max", "gin", "gat"});
  s.integers("model.hidden", {64, 64, 64}, "Widths of the encoder's layers.").at_least(1).at_most(1 << 20).count(1);
  s.integer("model.heads", 1, "gat: heads of attention.").at_least(1);
  s.integer("model.code", 64, "Numbers that the encoder makes of a graph.").at_least(1).at_most(4096);
  s.integer("model.head", 64, "Width of the layer that sees a pair.").at_least(1).at_most(4096);
  s.string("model.activation", "relu", "Activation.").one_of({"relu", "silu"});
  s.string("model.norm", "none", "Normalisation in every layer of the encoder.").one_of({"none", "layer", "batch"});
  s.string("model.jumping", "concat", "Which layers the code is made of.").one_of({"none", "concat", "max"});
  s.string("model.readout", "sum", "How nodes become one row.").one_of({"sum", "mean", "max"});
  s.number("model.dropout", 0.0, "Share of the inputs of each layer that training leaves out.").at_least(0).below(1);
  s.boolean("model.residual", false, "Add the input of a layer to its output where widths agree.");
  add_training_keys(s, {.loss = "mse", .lr = 1e-3, .batch = 256});
  add_stages(s, stage_schema());
  return s;
}

}  // namespace gradloom::app
