// The keys of every family's recipes.
#include "gradloom/app/recipe.h"
#include "gradloom/app/schema_parts.h"

namespace gradloom::app {
namespace {

// More than anybody can wait for; products with the steps of an epoch do not overflow.
constexpr std::int64_t kMostEpochs = 1000000000;

void add_row_data_keys(Schema& s) {
  s.string("data.root", "", "Folder that data.path is looked up in; empty: the current folder, then $GRADLOOM_DATA.");
  s.string("data.path", std::nullopt, "CSV (.gz too), .npy or .npz file. Unset: data.formula.").file();
  s.string("data.test_path", std::nullopt, "File with the test samples, in the columns of data.path; empty: none.")
      .file();
  s.string("data.formula", std::nullopt, "Target as a formula in x1, x2, ...; several targets are separated by ';'.");
  s.numbers("data.ranges", {-1.0, 1.0}, "Ranges of the variables: low, high for all, or low1, high1, low2, high2, ...")
      .count(2);
  s.integer("data.samples", 1000, "Formula: samples to train (and validate) on.").at_least(1);
  s.integer("data.test_samples", 1000, "Formula: further samples to test on.").at_least(0);
  s.number("data.noise", 0.0, "Formula: deviation of the Gaussian noise on the training targets.").at_least(0);
  s.integer("data.seed", std::nullopt, "Seed of formula samples and of the split; unset: the run's seed.").at_least(0);
  s.strings("data.target", {"-1"}, "Target columns, by name or number (0 is the first, -1 the last).").count(1);
  s.strings("data.drop", std::vector<std::string>{}, "Columns to leave out, by name or number.");
  s.strings("data.categorical", std::vector<std::string>{}, "Numeric columns whose values are names.");
  s.string("data.weight", "", "Column of sample weights; empty: none.");
  s.string("data.separator", "auto", "CSV separator: one character, tab, or auto.");
  s.string("data.header", "auto", "Whether the first CSV line holds names.").one_of({"auto", "yes", "no"});
  s.integer("data.skip_rows", 0, "CSV lines to skip before the header.").at_least(0);
  s.string("data.comment", "", "CSV lines that start with this are skipped; empty: none.");
  s.string("data.missing", "error", "What a missing value does.").one_of({"error", "drop", "mean"});
  s.string("data.categories", "one-hot", "How text columns become numbers.").one_of({"one-hot", "ordinal", "error"});
  s.string("data.npz_x", "x", "Array of an .npz file that holds the inputs.");
  s.string("data.npz_y", "y", "Array of an .npz file that holds the targets; empty: columns of the inputs.");
  s.number("data.validation", 0.1, "Fraction of the samples held out to watch training.").at_least(0).below(1);
  s.number("data.test", 0.2, "Fraction of a file's samples held out for the final test.").at_least(0).below(1);
  s.integer("data.folds", 0, "Cross-validation: number of folds; 0: off.").at_least(0);
  s.integer("data.fold", 0, "Cross-validation: the fold to test on.").at_least(0);
}

void add_kan_keys(Schema& s) {
  s.integers("model.hidden", std::vector<std::int64_t>{5},
             "Widths of the hidden layers; inputs and outputs follow from the data.")
      .at_least(1);
  s.integer("model.grid", 5, "Grid intervals of every spline, until a stage refines them.").at_least(1).at_most(1024);
  s.integer("model.degree", 3, "Degree of the splines.").at_least(1).at_most(7);
  s.boolean("model.base", true, "Add u * silu(x) to every spline.");
  s.boolean("model.bias", true, "Add a bias to every node.");
  s.string("model.outside", "linear", "What a spline does outside its grid.")
      .one_of({"linear", "clamp", "extend", "zero"});
  s.string("model.knots", "uniform", "Even knots, or knots of each input's own.").one_of({"uniform", "free"});
  s.number("model.lo", -1.0, "Lower end of the grids before they are refitted.");
  s.number("model.hi", 1.0, "Upper end of the grids before they are refitted.");
  s.number("model.spline_noise", 0.1, "Deviation of the initial spline coefficients, over sqrt(inputs).").at_least(0);
  s.number("model.base_scale", 1.0, "Deviation of the initial base weights, over sqrt(inputs).").at_least(0);
  s.string("model.normalise", "none", "How inputs are scaled: not, to mean 0 and deviation 1, or to the grid's range.")
      .one_of({"none", "standard", "range"});
  s.boolean("model.scale_targets", true, "Regression: let the network predict in units of the targets' deviation.");
  s.integers("model.refit", std::vector<std::int64_t>{},
             "Epochs of a stage before which its grids are refitted to the data; the number of epochs itself: after "
             "the last.")
      .at_least(0);
  s.boolean("model.refit_inputs", false, "Refit the first layer's grids too, not only those of hidden layers.");
  s.number("model.refit_margin", 0.02, "How far refitted grids reach beyond the data, as a fraction of its range.")
      .at_least(0)
      .at_most(1);
  s.number("model.refit_uniform", 0.05, "Free knots: 0 puts them at quantiles, 1 evenly.").at_least(0).at_most(1);
}

}  // namespace

void add_training_keys(Schema& s, const TrainingDefaults& defaults) {
  s.string("loss.kind", defaults.loss, "auto: mse for regression, cross-entropy for classification.")
      .one_of({"auto", "mse", "mae", "huber", "cross-entropy", "binary-cross-entropy"});
  s.string("loss.reduction", defaults.reduction, "Mean over all terms of a batch, or their sum.")
      .one_of({"mean", "sum"});
  s.number("loss.huber_delta", 1.0, "Where the Huber loss turns from square to linear.").above(0);
  s.string("optimizer.kind", defaults.optimizer, "How parameters are updated.")
      .one_of({"sgd", "adam", "adamw", "lbfgs"});
  s.number("optimizer.lr", defaults.lr, "Learning rate (L-BFGS: first trial step).").above(0);
  s.number("optimizer.momentum", 0.0, "SGD: momentum.").at_least(0).below(1);
  s.boolean("optimizer.nesterov", false, "SGD: Nesterov's momentum.");
  s.number("optimizer.beta1", 0.9, "Adam: decay of the mean.").at_least(0).below(1);
  s.number("optimizer.beta2", defaults.beta2, "Adam: decay of the mean square.").at_least(0).below(1);
  s.number("optimizer.epsilon", 1e-8, "Adam: added to the denominator.").above(0);
  s.number("optimizer.weight_decay", defaults.weight_decay, "Pull towards zero; decoupled for adamw.").at_least(0);
  s.strings("optimizer.decay", std::vector<std::string>{},
            "Parameters that weight decay is for, by name or prefix*; none named: all.");
  s.number("optimizer.clip_value", defaults.clip_value, "Clip every gradient element to +- this; 0: off.").at_least(0);
  s.number("optimizer.clip_norm", 0.0, "Scale the gradient down to this norm; 0: off.").at_least(0);
  s.integer("optimizer.history", 10, "L-BFGS: remembered steps.").at_least(1).at_most(1000);
  s.integer("optimizer.iterations", 20, "L-BFGS: most iterations in one epoch.").at_least(1);
  s.integer("optimizer.evaluations", 25, "L-BFGS: most evaluations in one epoch.").at_least(2);
  s.string("optimizer.device", "auto",
           "With --device: where parameters are updated; auto: on the device, L-BFGS on the host.")
      .one_of({"auto", "device", "host"});
  s.string("optimizer.compress", "none", "How gradients of a device travel to an optimizer on the host.")
      .one_of({"none", "16-bit", "top-k"});
  s.number("optimizer.compress_keep", 0.05, "Top-k: part of the gradient that is sent in a step.").above(0).at_most(1);
  s.string("schedule.kind", "constant", "How the learning rate changes over a stage.")
      .one_of({"constant", "step", "cosine"});
  s.number("schedule.warmup", 0.0, "Fraction of a stage over which the rate rises from 0.").at_least(0).below(1);
  s.number("schedule.final", 0.0, "Cosine: last rate as a fraction of the first.").at_least(0).at_most(1);
  s.number("schedule.every", 0.3, "Step: fraction of a stage between two steps.").above(0).at_most(1);
  s.number("schedule.factor", 0.1, "Step: factor of each step.").above(0).at_most(1);
  s.integer("train.batch", defaults.batch, "Samples per batch; 0: all at once.").at_least(0);
  s.integer("train.accumulate", 1, "Batches per update.").at_least(1).at_most(1000000);
  s.boolean("train.shuffle", true, "Another order in each epoch.");
  s.integer("train.patience", 0, "Epochs without progress before a stage ends; 0: never.").at_least(0);
  s.strings("train.freeze", std::vector<std::string>{}, "Parameters that stay as they are, by name or prefix*.");
  s.boolean("train.fused", true, "Update parameters while their gradient is in the cache; the same bits.");
  s.boolean("train.keep_best", true, "End each stage with the parameters that did best on validation data.");
  s.integer("train.restarts", 1, "Starts from different weights; the one with the lowest training loss goes on.")
      .at_least(1)
      .at_most(1000);
  s.integer("train.restart_epochs", 10, "Epochs of each start.").at_least(1);
  s.number("train.checkpoint_seconds", 30.0, "Time between two checkpoints.").above(0);
}

void add_head(Schema& s, const std::string& family, std::int64_t epochs, std::string epochs_doc) {
  s.string("name", std::nullopt, "Name in the titles of reports; unset: that of the recipe or its file.");
  s.string("family", family, "Kind of network.").one_of(recipe_families());
  s.integer("epochs", epochs, std::move(epochs_doc)).at_least(0).at_most(kMostEpochs);
  s.integer("seed", 0, "Seed of everything random.").at_least(0);
  s.string("precision", "float32", "Type of all numbers.").one_of({"float32", "float64"});
}

Schema stage_schema() {
  Schema stage;
  stage.integer("epochs", std::nullopt, "Epochs of this stage; unset: the recipe's.").at_least(0).at_most(kMostEpochs);
  stage.number("lr", std::nullopt, "Learning rate of this stage; unset: optimizer.lr.").above(0);
  stage.strings("freeze", std::nullopt, "Parameters frozen in this stage; unset: train.freeze.");
  return stage;
}

void add_stages(Schema& s, Schema stage) {
  s.tables("stage", std::move(stage), "Stages of the run, one after the other; none means a single one.");
}

namespace {

Schema kan_schema() {
  Schema s;
  add_head(s, "kan", 100, "Passes over the data in each stage (L-BFGS: steps).");
  s.string("task", "regression", "What is learned.").one_of({"regression", "classification"});
  add_row_data_keys(s);
  add_kan_keys(s);
  add_training_keys(s, {});
  Schema stage = stage_schema();
  stage.integer("grid", std::nullopt, "Grid intervals from here on; the function is kept.").at_least(1).at_most(1024);
  stage.integers("refit", std::nullopt, "Epochs before which grids are refitted in this stage; unset: model.refit.")
      .at_least(0);
  add_stages(s, std::move(stage));
  return s;
}

void add_automaton_keys(Schema& s) {
  s.string("data.root", "", "Folder that data.image is looked up in; empty: the current folder, then $GRADLOOM_DATA.");
  s.string("data.task", "checkerboard", "What the cells learn: one step of a rule, or a pattern to reach.")
      .one_of({"life", "checkerboard", "picture"});
  s.integer("data.height", 16, "Rows of the grid; a picture brings its own.").at_least(1).at_most(1 << 16);
  s.integer("data.width", 16, "Columns of the grid; a picture brings its own.").at_least(1).at_most(1 << 16);
  s.integer("data.square", 2, "Checkerboard: cells along the side of a square.").at_least(1).at_most(1 << 16);
  s.string("data.image", "lizard", "Picture: the name of a shipped one (lizard, letter), or a PNG file.").file();
  s.string("data.start", "random", "State before the first step: random bits, one cell of ones in the centre, zeros.")
      .one_of({"random", "centre", "zeros"});
  s.number("data.damage", 0.0, "Share of the training samples in which a block of cells is dead and does not count.")
      .at_least(0)
      .at_most(1);
  s.integer("data.samples", 2, "Samples drawn anew for each epoch.").at_least(1);
  s.integer("data.test_samples", 8, "Samples for the final test, never trained on when starts are random.").at_least(1);
  s.integer("data.test_steps", 0, "Steps of the hard circuit before it is judged; 0: as many as model.steps.")
      .at_least(0)
      .at_most(100000);
  s.integer("model.channels", 8, "Bits of a cell.").at_least(1).at_most(1024);
  s.integer("model.kernels", 16, "Perception kernels; each runs on every channel.").at_least(1).at_most(1024);
  s.integers("model.perception", {8, 4, 2}, "Gates of the perception layers; the first reads the 3 x 3 patch.")
      .count(1)
      .at_least(1);
  s.integers("model.update", {256, 128, 64, 32, 16, 8}, "Gates of the update layers; the last is the new state.")
      .count(1)
      .at_least(1);
  s.string("model.wires", "unique", "How the gates of a layer choose their two inputs.").one_of({"unique", "random"});
  s.string("model.boundary", "periodic", "What lies beyond the edge of the grid.").one_of({"periodic", "zero"});
  s.integer("model.steps", 20, "Steps before the state is compared with the target.").at_least(1).at_most(100000);
  s.number("model.gate_noise", 0.0, "Gumbel noise on the logits in training: makes gates choose clearly; 0: none.")
      .at_least(0);
  s.integer("model.noise_ramp", 0, "Epochs over which model.gate_noise grows from nothing.")
      .at_least(0)
      .at_most(1 << 24);
  s.number("model.fire", 1.0, "Probability that a cell is updated in a step; below 1: asynchronous.")
      .above(0)
      .at_most(1);
}

Schema automaton_schema() {
  Schema s;
  add_head(s, "automaton", 500, "Epochs of each stage; every epoch draws data.samples new samples.");
  add_automaton_keys(s);
  add_training_keys(s, {.loss = "mse",
                        .reduction = "sum",
                        .optimizer = "adamw",
                        .lr = 0.05,
                        .beta2 = 0.99,
                        .weight_decay = 1e-2,
                        .clip_value = 100.0,
                        .batch = 0});
  s.integer("train.goal_every", 0,
            "Epochs between two looks at the hard circuit; training ends when it does all that is asked; 0: never.")
      .at_least(0);
  s.integer("train.start_over", 0,
            "Epochs after which the first stage begins again with other wires, if the goal is not reached; 0: never.")
      .at_least(0);
  s.integer("train.search", 0,
            "Circuits near the hard one that each look tries in search of one that does all that is asked; 0: none.")
      .at_least(0)
      .at_most(100000000);
  Schema stage = stage_schema();
  stage.integer("steps", std::nullopt, "Steps in this stage; unset: model.steps.").at_least(1).at_most(100000);
  stage.number("fire", std::nullopt, "Probability that a cell is updated in this stage; unset: model.fire.")
      .above(0)
      .at_most(1);
  add_stages(s, std::move(stage));
  return s;
}

Schema gates_schema() {
  Schema s;
  add_head(s, "gates", 200, "Passes over the data in each stage.");
  s.string("task", "classification", "What is learned.").one_of({"classification"});
  add_row_data_keys(s);
  s.integer("data.thresholds", 4, "Bits of a numeric column with more than two values: one for each quantile.")
      .at_least(1)
      .at_most(255);
  s.integers("model.gates", {256, 256, 256},
             "Gates of each layer; the last is divided among the classes, rounded up to a multiple.")
      .count(1)
      .at_least(1);
  s.string("model.wires", "random",
           "How the gates of a layer choose their two inputs; auto: unique where the widths allow it, else random.")
      .one_of({"auto", "unique", "random"});
  s.number("model.temperature", 8.0, "The count of a class's gates is divided by this before the softmax.").above(0);
  add_training_keys(s, {.optimizer = "adamw", .lr = 0.05, .beta2 = 0.99, .weight_decay = 1e-2, .clip_value = 100.0});
  add_stages(s, stage_schema());
  return s;
}

Schema graph_schema() {
  Schema s;
  add_head(s, "graph", 200, "Passes over the data in each stage.");
  s.string("task", "nodes", "What is learned: something about each node of one graph, or about each of many graphs.")
      .one_of({"nodes", "graphs"});
  s.string("data.root", "", "Folder that data.path is looked up in; empty: the current folder, then $GRADLOOM_DATA.");
  s.string("data.path", std::nullopt,
           "File or folder with graphs; docs/graphs.md shows the formats. Unset: data.graph.")
      .file();
  s.string("data.graph", "", "A graph that ships with the program.").one_of({"", "karate"});
  s.string("data.format", "auto", "Format of data.path.")
      .one_of({"auto", "tve", "tu", "gin", "gxl", "edges", "json", "planetoid"});
  s.string("data.features", "auto", "Features of nodes; auto: those given, else labels, else numbers of neighbours.")
      .one_of({"auto", "given", "labels", "degrees", "identity", "constant"});
  s.boolean("data.normalise_rows", false, "Divide given features by the sum of their node.");
  s.boolean("data.edge_labels", false, "Labels of edges become features of edges.");
  s.integers("data.train_nodes", std::vector<std::int64_t>{},
             "Nodes: those whose class is told; all others are tested. None: the split of the file.")
      .at_least(0);
  s.number("data.validation", 0.1, "Fraction held out to watch training.").at_least(0).below(1);
  s.number("data.test", 0.2, "Fraction held out for the final test.").at_least(0).below(1);
  s.integer("data.folds", 0, "Graphs: number of folds of a cross-validation; 0: off.").at_least(0);
  s.integer("data.fold", -1, "Graphs: the fold to test on; -1: the seed modulo data.folds.").at_least(-1);
  s.integer("data.seed", std::nullopt, "Seed of the split; unset: the run's seed.").at_least(0);
  s.boolean("data.curve", false, "Note the accuracy on validation and test data after every epoch.");
  s.string("model.layer", "gcn", "Kind of the layers.").one_of({"mean", "gcn", "sage-mean", "sage-max", "gin", "gat"});
  s.integers("model.hidden", {16}, "Widths of the layers; for nodes one more, to the classes, follows.")
      .at_least(1)
      .at_most(1 << 20);
  s.integer("model.heads", 1, "gat: heads of attention.").at_least(1);
  s.string("model.activation", "relu", "Activation.").one_of({"relu", "silu"});
  s.string("model.norm", "none", "Normalisation in every hidden layer.").one_of({"none", "layer", "batch"});
  s.string("model.jumping", "none", "Which layers the last one sees.").one_of({"none", "concat", "max"});
  s.string("model.readout", "sum", "Graphs: how nodes become one row.").one_of({"sum", "mean", "max"});
  s.number("model.dropout", 0.0, "Share of the inputs of each layer that training leaves out.").at_least(0).below(1);
  s.number("model.head_dropout", 0.0, "The same before the last product, where there is one.").at_least(0).below(1);
  s.boolean("model.residual", false, "Add the input of a layer to its output where widths agree.");
  add_training_keys(s, {.loss = "cross-entropy", .batch = 0});
  s.integer("train.parallel_examples", 0,
            "Graphs that are computed at once; larger batches are cut, with the same bits; 0: whole batches.")
      .at_least(0);
  s.integer("train.ged_sample", 0,
            "Graphs whose exact edit distances are measured and compared with what the network makes of them; 0: none.")
      .at_least(0)
      .at_most(1000);
  s.integer("train.ged_nodes", 16, "Most nodes of a graph in that sample.").at_least(1).at_most(64);
  s.integer("train.ged_every", 10, "Epochs between two such comparisons.").at_least(1);
  s.integer("train.ged_expansions", 20000, "Steps of each search for a distance; pairs that need more do not count.")
      .at_least(1);
  add_stages(s, stage_schema());
  return s;
}

}  // namespace

std::vector<std::string> recipe_families() {
  return {"kan", "automaton", "gates", "graph", "graph-pairs", "graph-rewrite"};
}

const Schema& recipe_schema(std::string_view family) {
  static const Schema kan = kan_schema(), automaton = automaton_schema(), gates = gates_schema(),
                      graph = graph_schema(), pairs = pair_schema(), rewrite = rewrite_schema();
  if (family == "automaton") return automaton;
  if (family == "gates") return gates;
  if (family == "graph") return graph;
  if (family == "graph-pairs") return pairs;
  if (family == "graph-rewrite") return rewrite;
  return kan;
}

}  // namespace gradloom::app
