#include "gradloom/app/options/bind.h"

#include <fmt/format.h>

#include "gradloom/app/recipe.h"
#include "gradloom/data/idx.h"

namespace gradloom::app {
namespace {

// More than anybody can wait for; products with the steps of an epoch do not overflow.
constexpr double kMostEpochs = 1000000000;

// What many keys have an effect with, or without.
constexpr const char *kKind = "optimizer.kind", *kLbfgs = "lbfgs", *kPath = "data.path", *kFormula = "data.formula";

std::string path_of(const ConfigValues& values) {
  const auto* path = std::get_if<std::string>(&values(kPath));
  std::string name = path ? *path : "";
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

// Of files that are tables of text.
std::string for_text(const ConfigValues& values) {
  const std::string path = path_of(values);
  return path.ends_with(".npy") || path.ends_with(".npz") || is_idx_name(path)
             ? "has no effect: it is for text files, and data.path is an array"
             : "";
}

std::string for_idx(const ConfigValues& values) {
  return is_idx_name(path_of(values)) ? "" : "has no effect: it is for IDX files";
}

std::string for_npz(const ConfigValues& values) {
  return path_of(values).ends_with(".npz") ? "" : "has no effect: it is for .npz files";
}

// Targets of an .npz file are an array of their own, unless data.npz_y is empty.
std::string for_target_columns(const ConfigValues& values) {
  if (is_idx_name(path_of(values))) return "has no effect: the targets are the labels of the IDX file";
  const bool own = path_of(values).ends_with(".npz") && !std::get<std::string>(values("data.npz_y")).empty();
  return own ? "has no effect: the targets are the array data.npz_y" : "";
}

// The test part comes from elsewhere.
std::string for_held_out_test(const ConfigValues& values) {
  if (std::get<std::int64_t>(values("data.folds")) > 0) return "has no effect with data.folds: a fold is the test part";
  const auto* file = std::get_if<std::string>(&values("data.test_path"));
  return file && !file->empty() ? "has no effect with data.test_path" : "";
}

// What is left of a recipe for L-BFGS when another optimizer is set.
std::string for_step_of_lbfgs(const ConfigValues& values) {
  const std::string& kind = std::get<std::string>(values(kKind));
  const bool scaled = kind == "adam" || kind == "adamw" || kind == "lion";
  return scaled && std::get<double>(values("optimizer.lr")) >= 0.5
             ? fmt::format("is a step for L-BFGS or SGD; {} diverges with it: set 0.01 or less", kind)
             : "";
}

void bind_loss(const OptionPart<TrainingOptions>& train) {
  const auto loss = train.part("loss", &TrainOptions::loss);
  train.choice_or_auto("loss.kind", &TrainingOptions::loss_kind, kLosses,
                       "auto: mse for regression, cross-entropy for classification.");
  loss.choice("reduction", &LossOptions::reduction, kReductions, "Mean over all terms of a batch, or their sum.");
  loss.key("huber_delta", &LossOptions::huber_delta, "Error at which the Huber loss changes from quadratic to linear.")
      .above(0)
      .computed()
      .only_with("loss.kind", {"huber"});
}

void bind_optimizer(const OptionPart<TrainingOptions>& train) {
  using O = OptimizerOptions;
  const auto o = train.part("optimizer", &TrainOptions::optimizer);
  o.choice("kind", &O::kind, kOptimizers, "How parameters are updated.");
  o.key("lr", &O::lr, "Learning rate (L-BFGS: first trial step).").above(0).computed().effect(for_step_of_lbfgs);
  o.key("momentum", &O::momentum, "SGD: momentum.").at_least(0).below(1).computed().only_with(kKind, {"sgd"});
  o.key("nesterov", &O::nesterov, "SGD: Nesterov momentum.").only_with(kKind, {"sgd"});
  o.key("beta1", &O::beta1, "Adam: decay of the mean gradient; Lion: of the mean in the update.")
      .at_least(0)
      .below(1)
      .computed()
      .only_with(kKind, {"adam", "adamw", "lion"});
  o.key("beta2", &O::beta2,
        "Adam: decay of the mean squared gradient; Lion: of the mean that is stored (0.99 is usual).")
      .at_least(0)
      .below(1)
      .computed()
      .only_with(kKind, {"adam", "adamw", "lion"});
  o.key("epsilon", &O::epsilon, "Adam: added to the denominator.")
      .above(0)
      .computed()
      .only_with(kKind, {"adam", "adamw"});
  o.key("weight_decay", &O::weight_decay, "Weight decay; decoupled for adamw and lion.")
      .at_least(0)
      .computed()
      .not_with(kKind, {kLbfgs});
  train
      .key("optimizer.decay", &TrainOptions::decay,
           "Parameters that weight decay applies to, by name or prefix*; none named: all.")
      .not_with(kKind, {kLbfgs})
      .needs("optimizer.weight_decay");
  o.key("clip_value", &O::clip_value, "Clip every gradient element to +- this; 0: off.")
      .at_least(0)
      .computed()
      .not_with(kKind, {kLbfgs});
  o.key("clip_norm", &O::clip_norm, "Scale the gradient down to this norm; 0: off.")
      .at_least(0)
      .computed()
      .not_with(kKind, {kLbfgs});
  o.key("history", &O::history, "L-BFGS: number of stored steps.").at_least(1).at_most(1000).only_with(kKind, {kLbfgs});
  o.key("iterations", &O::iterations, "L-BFGS: maximum number of iterations in one epoch.")
      .at_least(1)
      .only_with(kKind, {kLbfgs});
  o.key("evaluations", &O::evaluations, "L-BFGS: maximum number of evaluations in one epoch.")
      .at_least(2)
      .only_with(kKind, {kLbfgs});
  train.choice("optimizer.device", &TrainOptions::place, kOptimizerPlaces,
               "With --device: where parameters are updated; auto: on the device, L-BFGS on the host.");
  const auto compression = train.part("optimizer", &TrainOptions::compression);
  compression.choice("compress", &kernels::compress::CompressionOptions::kind, kernels::compress::kCompressions,
                     "How gradients are compressed on their way from a device to an optimizer on the host.");
  compression
      .key("compress_keep", &kernels::compress::CompressionOptions::keep,
           "Top-k: part of the gradient that is sent in a step.")
      .above(0)
      .at_most(1)
      .only_with("optimizer.compress", {"top-k"});
}

void bind_schedule(const OptionPart<ScheduleOptions>& schedule) {
  using S = ScheduleOptions;
  schedule.choice("kind", &S::kind, kSchedules, "How the learning rate changes over a stage.")
      .not_with(kKind, {kLbfgs});
  schedule.key("warmup", &S::warmup, "Fraction of a stage over which the learning rate rises from 0.")
      .at_least(0)
      .below(1)
      .not_with(kKind, {kLbfgs});
  schedule.key("final", &S::final_factor, "Cosine: last learning rate as a fraction of the first.")
      .at_least(0)
      .at_most(1)
      .not_with(kKind, {kLbfgs})
      .only_with("schedule.kind", {"cosine"});
  schedule.key("every", &S::every, "Step: fraction of a stage between two steps.")
      .above(0)
      .at_most(1)
      .not_with(kKind, {kLbfgs})
      .only_with("schedule.kind", {"step"});
  schedule.key("factor", &S::factor, "Step: factor of each step.")
      .above(0)
      .at_most(1)
      .computed()
      .not_with(kKind, {kLbfgs})
      .only_with("schedule.kind", {"step"});
}

}  // namespace

void bind_head(const OptionPart<FamilyOptions>& o, std::string epochs_doc) {
  o.key("name", &FamilyOptions::name, "Name in the titles of reports; unset: that of the recipe or its file.");
  o.key("family", &FamilyOptions::family, "Kind of network.").one_of(recipe_families());
  const auto train = o.part("", &FamilyOptions::train);
  train.key("epochs", &TrainOptions::epochs, std::move(epochs_doc)).at_least(0).at_most(kMostEpochs);
  train.key("seed", &TrainOptions::seed, "Seed of all random numbers.").at_least(0);
  o.choice("precision", &FamilyOptions::precision, kPrecisions, "Precision of all numbers.");
}

void bind_row_data(const OptionPart<RowDataOptions>& data) {
  using D = RowDataOptions;
  const auto source = data.part("", &D::source);
  const auto csv = source.part("", &RowSource::csv);
  const auto formula = source.part("", &RowSource::formula);
  data.key("root", &D::root, "Folder that data.path is looked up in; empty: the current folder, then $GRADLOOM_DATA.")
      .needs(kPath);
  data.key("path", &D::path, "CSV (.gz too), .npy, .npz or IDX file. Unset: data.formula.");
  data.key("labels", &D::labels, "IDX: file with the labels of data.path; unset: found by its name.")
      .needs(kPath)
      .effect(for_idx);
  data.key("test_path", &D::test_path, "File with the test samples, in the columns of data.path; empty: none.");
  data.key("formula", &D::formula, "Target as a formula; several targets are separated by ';'.");
  formula
      .key("variables", &FormulaOptions::variables,
           "Formula: names of the variables; none: x1, x2, ... up to the last one used.")
      .needs(kFormula);
  formula
      .key("ranges", &FormulaOptions::ranges,
           "Ranges of the variables: low, high for all, or low1, high1, low2, high2, ...")
      .count(2)
      .needs(kFormula);
  formula.key("samples", &FormulaOptions::samples, "Formula: samples to train (and validate) on.")
      .at_least(1)
      .needs(kFormula);
  data.key("test_samples", &D::test_samples, "Formula: samples to test on.")
      .at_least(0)
      .needs(kFormula)
      .effect([](const ConfigValues& values) {
        const bool folds = std::get<std::int64_t>(values("data.folds")) > 0;
        return folds ? "has no effect with data.folds: a fold is the test part" : "";
      });
  formula
      .key("noise", &FormulaOptions::noise,
           "Formula: standard deviation of the Gaussian noise on the training targets.")
      .at_least(0)
      .needs(kFormula);
  data.key("seed", &D::seed, "Seed of formula samples and of the split; unset: the run's seed.").at_least(0);
  source.key("target", &RowSource::target, "Target columns, by name or number (0 is the first, -1 the last).")
      .count(1)
      .needs(kPath)
      .effect(for_target_columns);
  source.key("drop", &RowSource::drop, "Columns to leave out, by name or number.").needs(kPath);
  source.key("categorical", &RowSource::categorical, "Numeric columns whose values are categories.").needs(kPath);
  source.key("weight", &RowSource::weight, "Column of sample weights; empty: none.").needs(kPath);
  csv.key("separator", &CsvOptions::separator, "CSV separator: one character, tab, or auto.")
      .needs(kPath)
      .effect(for_text);
  csv.choice("header", &CsvOptions::header, kCsvHeaders, "Whether the first CSV line holds names.")
      .needs(kPath)
      .effect(for_text);
  csv.choice("decimal", &CsvOptions::decimal, kCsvDecimals, "Decimal separator of numbers in CSV files.")
      .needs(kPath)
      .effect(for_text);
  csv.key("skip_rows", &CsvOptions::skip_rows, "CSV lines to skip before the header.")
      .at_least(0)
      .needs(kPath)
      .effect(for_text);
  csv.key("comment", &CsvOptions::comment, "CSV lines that start with this are skipped; empty: none.")
      .needs(kPath)
      .effect(for_text);
  source.choice("missing", &RowSource::missing, kMissingPolicies, "How missing values are treated.").needs(kPath);
  source.choice("categories", &RowSource::categories, kCategoryPolicies, "How text columns become numbers.")
      .needs(kPath)
      .effect(for_text);
  source.key("npz_x", &RowSource::npz_x, "Array of an .npz file that holds the inputs.").needs(kPath).effect(for_npz);
  source.key("npz_y", &RowSource::npz_y, "Array of an .npz file that holds the targets; empty: columns of the inputs.")
      .needs(kPath)
      .effect(for_npz);
  data.key("validation", &D::validation, "Fraction of the samples held out for validation.").at_least(0).below(1);
  data.key("test", &D::test, "Fraction of a file's samples held out for the final test.")
      .at_least(0)
      .below(1)
      .needs(kPath)
      .effect(for_held_out_test);
  data.key("folds", &D::folds, "Cross-validation: number of folds; 0: off.").at_least(0);
  data.key("fold", &D::fold, "Cross-validation: the fold to test on.").at_least(0).needs("data.folds");
}

EffectRule needs_validation(std::string share) {
  return [share = std::move(share)](const ConfigValues& values) -> std::string {
    const auto* asked = std::get_if<bool>(&values("train.keep_best"));
    if (!asked || !*asked || std::get<std::int64_t>(values("train.patience")) > 0) return "";
    const auto validates = [](const ConfigValue& value) {
      const auto* count = std::get_if<std::int64_t>(&value);
      return count ? *count > 0 : std::get<double>(value) > 0;
    };
    if (!share.empty() && validates(values(share))) return "";
    return fmt::format(
        "has no effect without validation data; {}set train.patience to keep the lowest loss on "
        "training data",
        share.empty() ? "" : fmt::format("set {}, or ", share));
  };
}

void bind_training(const OptionPart<TrainingOptions>& options, EffectRule for_best) {
  using T = TrainingOptions;
  bind_loss(options);
  bind_optimizer(options);
  bind_schedule(options.part("schedule", &TrainOptions::schedule));
  const auto train = options.within("train");
  train.key("batch", &T::batch, "Samples per batch; 0: all at once.").at_least(0).not_with(kKind, {kLbfgs});
  train.key("accumulate", &T::accumulate, "Batches per update.").at_least(1).at_most(1000000).needs("train.batch");
  train.key("shuffle", &T::shuffle, "Shuffle the samples in each epoch.")
      .not_with(kKind, {kLbfgs})
      .needs("train.batch");
  train.key("patience", &T::patience, "Early stopping: epochs without progress before a stage ends; 0: never.")
      .at_least(0);
  train.key("freeze", &T::freeze, "Parameters that are frozen, by name or prefix*.");
  train.flag("fused", &T::fused, FusedUpdate::automatic, FusedUpdate::off,
             "Update parameters while their gradient is in the cache; equal bits.");
  train
      .key("keep_best", &T::best,
           "End each stage with the parameters that had the lowest loss on validation data (with train.patience and "
           "none, on training data); unset: true.")
      .effect(std::move(for_best));
  train
      .key("restarts", &T::restarts,
           "Number of restarts from different initial weights; the one with the lowest training loss goes on.")
      .at_least(1)
      .at_most(1000);
  train.key("restart_epochs", &T::restart_epochs, "Epochs of each restart.")
      .at_least(1)
      .effect([](const ConfigValues& values) {
        return std::get<std::int64_t>(values("train.restarts")) > 1 ? "" : "has no effect with train.restarts = 1";
      });
  train.key("checkpoint_seconds", &T::checkpoint_seconds, "Time between two checkpoints.").above(0);
  options.stage("epochs", "epochs", "Epochs of this stage; unset: the recipe's.");
  options.stage("lr", "optimizer.lr", "Learning rate of this stage; unset: optimizer.lr.");
  options.stage("freeze", "train.freeze", "Parameters frozen in this stage; unset: train.freeze.");
}

}  // namespace gradloom::app
