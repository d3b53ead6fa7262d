#include "gradloom/app/options/bind.h"

#include "gradloom/app/recipe.h"

namespace gradloom::app {
namespace {

// More than anybody can wait for; products with the steps of an epoch do not overflow.
constexpr double kMostEpochs = 1000000000;

void bind_loss(const OptionPart<TrainingOptions>& train) {
  const auto loss = train.part("loss", &TrainOptions::loss);
  train.choice_or_auto("loss.kind", &TrainingOptions::loss_kind, kLosses,
                       "auto: mse for regression, cross-entropy for classification.");
  loss.choice("reduction", &LossOptions::reduction, kReductions, "Mean over all terms of a batch, or their sum.");
  loss.key("huber_delta", &LossOptions::huber_delta, "Where the Huber loss turns from square to linear.").above(0);
}

void bind_optimizer(const OptionPart<TrainingOptions>& train) {
  using O = OptimizerOptions;
  const auto o = train.part("optimizer", &TrainOptions::optimizer);
  o.choice("kind", &O::kind, kOptimizers, "How parameters are updated.");
  o.key("lr", &O::lr, "Learning rate (L-BFGS: first trial step).").above(0);
  o.key("momentum", &O::momentum, "SGD: momentum.").at_least(0).below(1);
  o.key("nesterov", &O::nesterov, "SGD: Nesterov's momentum.");
  o.key("beta1", &O::beta1, "Adam, Lion: decay of the mean.").at_least(0).below(1);
  o.key("beta2", &O::beta2, "Adam: decay of the mean square; Lion: of the mean that is kept (0.99 is usual).")
      .at_least(0)
      .below(1);
  o.key("epsilon", &O::epsilon, "Adam: added to the denominator.").above(0);
  o.key("weight_decay", &O::weight_decay, "Pull towards zero; decoupled for adamw and lion.").at_least(0);
  train.key("optimizer.decay", &TrainOptions::decay,
            "Parameters that weight decay is for, by name or prefix*; none named: all.");
  o.key("clip_value", &O::clip_value, "Clip every gradient element to +- this; 0: off.").at_least(0);
  o.key("clip_norm", &O::clip_norm, "Scale the gradient down to this norm; 0: off.").at_least(0);
  o.key("history", &O::history, "L-BFGS: remembered steps.").at_least(1).at_most(1000);
  o.key("iterations", &O::iterations, "L-BFGS: most iterations in one epoch.").at_least(1);
  o.key("evaluations", &O::evaluations, "L-BFGS: most evaluations in one epoch.").at_least(2);
  train.choice("optimizer.device", &TrainOptions::place, kOptimizerPlaces,
               "With --device: where parameters are updated; auto: on the device, L-BFGS on the host.");
  const auto compression = train.part("optimizer", &TrainOptions::compression);
  compression.choice("compress", &kernels::compress::CompressionOptions::kind, kernels::compress::kCompressions,
                     "How gradients of a device travel to an optimizer on the host.");
  compression
      .key("compress_keep", &kernels::compress::CompressionOptions::keep,
           "Top-k: part of the gradient that is sent in a step.")
      .above(0)
      .at_most(1);
}

void bind_schedule(const OptionPart<ScheduleOptions>& schedule) {
  using S = ScheduleOptions;
  schedule.choice("kind", &S::kind, kSchedules, "How the learning rate changes over a stage.");
  schedule.key("warmup", &S::warmup, "Fraction of a stage over which the learning rate rises from 0.")
      .at_least(0)
      .below(1);
  schedule.key("final", &S::final_factor, "Cosine: last learning rate as a fraction of the first.")
      .at_least(0)
      .at_most(1);
  schedule.key("every", &S::every, "Step: fraction of a stage between two steps.").above(0).at_most(1);
  schedule.key("factor", &S::factor, "Step: factor of each step.").above(0).at_most(1);
}

}  // namespace

void bind_head(const OptionPart<FamilyOptions>& o, std::string epochs_doc) {
  o.key("name", &FamilyOptions::name, "Name in the titles of reports; unset: that of the recipe or its file.");
  o.key("family", &FamilyOptions::family, "Kind of network.").one_of(recipe_families());
  const auto train = o.part("", &FamilyOptions::train);
  train.key("epochs", &TrainOptions::epochs, std::move(epochs_doc)).at_least(0).at_most(kMostEpochs);
  train.key("seed", &TrainOptions::seed, "Seed of everything random.").at_least(0);
  o.choice("precision", &FamilyOptions::precision, kPrecisions, "Type of all numbers.");
}

void bind_row_data(const OptionPart<RowDataOptions>& data) {
  using D = RowDataOptions;
  const auto source = data.part("", &D::source);
  const auto csv = source.part("", &RowSource::csv);
  const auto formula = source.part("", &RowSource::formula);
  data.key("root", &D::root, "Folder that data.path is looked up in; empty: the current folder, then $GRADLOOM_DATA.");
  data.key("path", &D::path, "CSV (.gz too), .npy or .npz file. Unset: data.formula.");
  data.key("test_path", &D::test_path, "File with the test samples, in the columns of data.path; empty: none.");
  data.key("formula", &D::formula, "Target as a formula in x1, x2, ...; several targets are separated by ';'.");
  formula
      .key("ranges", &FormulaOptions::ranges,
           "Ranges of the variables: low, high for all, or low1, high1, low2, high2, ...")
      .count(2);
  formula.key("samples", &FormulaOptions::samples, "Formula: samples to train (and validate) on.").at_least(1);
  data.key("test_samples", &D::test_samples, "Formula: further samples to test on.").at_least(0);
  formula
      .key("noise", &FormulaOptions::noise,
           "Formula: standard deviation of the Gaussian noise on the training targets.")
      .at_least(0);
  data.key("seed", &D::seed, "Seed of formula samples and of the split; unset: the run's seed.").at_least(0);
  source.key("target", &RowSource::target, "Target columns, by name or number (0 is the first, -1 the last).").count(1);
  source.key("drop", &RowSource::drop, "Columns to leave out, by name or number.");
  source.key("categorical", &RowSource::categorical, "Numeric columns whose values are names.");
  source.key("weight", &RowSource::weight, "Column of sample weights; empty: none.");
  csv.key("separator", &CsvOptions::separator, "CSV separator: one character, tab, or auto.");
  csv.choice("header", &CsvOptions::header, kCsvHeaders, "Whether the first CSV line holds names.");
  csv.key("skip_rows", &CsvOptions::skip_rows, "CSV lines to skip before the header.").at_least(0);
  csv.key("comment", &CsvOptions::comment, "CSV lines that start with this are skipped; empty: none.");
  source.choice("missing", &RowSource::missing, kMissingPolicies, "What a missing value does.");
  source.choice("categories", &RowSource::categories, kCategoryPolicies, "How text columns become numbers.");
  source.key("npz_x", &RowSource::npz_x, "Array of an .npz file that holds the inputs.");
  source.key("npz_y", &RowSource::npz_y, "Array of an .npz file that holds the targets; empty: columns of the inputs.");
  data.key("validation", &D::validation, "Fraction of the samples held out to watch training.").at_least(0).below(1);
  data.key("test", &D::test, "Fraction of a file's samples held out for the final test.").at_least(0).below(1);
  data.key("folds", &D::folds, "Cross-validation: number of folds; 0: off.").at_least(0);
  data.key("fold", &D::fold, "Cross-validation: the fold to test on.").at_least(0);
}

void bind_training(const OptionPart<TrainingOptions>& options) {
  using T = TrainingOptions;
  bind_loss(options);
  bind_optimizer(options);
  bind_schedule(options.part("schedule", &TrainOptions::schedule));
  const auto train = options.within("train");
  train.key("batch", &T::batch, "Samples per batch; 0: all at once.").at_least(0);
  train.key("accumulate", &T::accumulate, "Batches per update.").at_least(1).at_most(1000000);
  train.key("shuffle", &T::shuffle, "Another order in each epoch.");
  train.key("patience", &T::patience, "Epochs without progress before a stage ends; 0: never.").at_least(0);
  train.key("freeze", &T::freeze, "Parameters that stay as they are, by name or prefix*.");
  train.flag("fused", &T::fused, FusedUpdate::automatic, FusedUpdate::off,
             "Update parameters while their gradient is in the cache; the same bits.");
  train.key("keep_best", &T::keep_best, "End each stage with the parameters that did best on validation data.");
  train.key("restarts", &T::restarts, "Starts from different weights; the one with the lowest training loss goes on.")
      .at_least(1)
      .at_most(1000);
  train.key("restart_epochs", &T::restart_epochs, "Epochs of each start.").at_least(1);
  train.key("checkpoint_seconds", &T::checkpoint_seconds, "Time between two checkpoints.").above(0);
  options.stage("epochs", "epochs", "Epochs of this stage; unset: the recipe's.");
  options.stage("lr", "optimizer.lr", "Learning rate of this stage; unset: optimizer.lr.");
  options.stage("freeze", "train.freeze", "Parameters frozen in this stage; unset: train.freeze.");
}

}  // namespace gradloom::app
