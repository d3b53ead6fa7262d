#include "gradloom/app/settings.h"

#include <fmt/format.h>

#include <numeric>

#include "gradloom/data/align.h"

namespace gradloom::app {
namespace {

std::vector<std::string> split_formulas(const std::string& text) {
  std::vector<std::string> formulas;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    if (end > begin) formulas.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return formulas;
}

RowSource row_source(const Config& r, const std::filesystem::path& data_root) {
  RowSource s;
  s.task = r.string("task") == "classification" ? Task::classification : Task::regression;
  if (r.has("data.path")) s.path = data_path(r, "data.path", data_root);
  s.target = r.strings("data.target");
  s.drop = r.strings("data.drop");
  s.categorical = r.strings("data.categorical");
  s.weight = r.string("data.weight");
  s.csv.separator = r.string("data.separator");
  s.csv.header = r.string("data.header") == "yes"  ? CsvHeader::present
                 : r.string("data.header") == "no" ? CsvHeader::absent
                                                   : CsvHeader::automatic;
  s.csv.comment = r.string("data.comment");
  s.csv.skip_rows = static_cast<std::size_t>(r.integer("data.skip_rows"));
  const std::string& missing = r.string("data.missing");
  s.missing = missing == "drop" ? MissingPolicy::drop : missing == "mean" ? MissingPolicy::mean : MissingPolicy::error;
  const std::string& categories = r.string("data.categories");
  s.categories = categories == "one-hot"   ? CategoryPolicy::one_hot
                 : categories == "ordinal" ? CategoryPolicy::ordinal
                                           : CategoryPolicy::error;
  s.npz_x = r.string("data.npz_x");
  s.npz_y = r.string("data.npz_y");
  if (!r.has("data.path")) {
    s.formula.formulas = split_formulas(r.string("data.formula"));
    s.formula.ranges = r.numbers("data.ranges");
    s.formula.samples = static_cast<std::size_t>(r.integer("data.samples"));
    s.formula.noise = r.number("data.noise");
    s.formula.seed = data_seed(r);
  }
  return s;
}

// An empty name takes back what a shipped recipe sets.
bool has_test_file(const Config& r) { return r.has("data.test_path") && !r.string("data.test_path").empty(); }

bool has_labels(const Config& r) {
  return r.schema().find("task") < r.schema().keys().size() && r.string("task") == "classification";
}

// Test samples of a formula follow its training samples in the same stream, without the noise.
Result<RowDataset<double>> formula_test_rows(const Config& r, RowSource source) {
  const std::size_t train = source.formula.samples, test = static_cast<std::size_t>(r.integer("data.test_samples"));
  source.formula.samples = train + test;
  source.formula.noise = 0.0;
  auto all = load_rows(source);
  if (!all) return all.error();
  std::vector<std::uint32_t> rows(test);
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(train));
  return all->subset(rows);
}

}  // namespace

std::uint64_t data_seed(const Config& r) {
  return static_cast<std::uint64_t>(r.has("data.seed") ? r.integer("data.seed") : r.integer("seed"));
}

std::filesystem::path data_path(const Config& r, const std::string& key, const std::filesystem::path& data_root) {
  const std::size_t index = r.schema().find(key);
  if (index < r.schema().keys().size() && !r.schema().keys()[index].names_file)
    throw Exception(ErrorCode::invalid_input, fmt::format("the schema does not say that {} names a file", key));
  const std::filesystem::path path = r.string(key);
  if (!r.string("data.root").empty()) return std::filesystem::path(r.string("data.root")) / path;
  std::error_code unreadable;
  return std::filesystem::exists(path, unreadable) ? path : data_root / path;
}

std::vector<std::filesystem::path> data_paths(const Config& r, const std::filesystem::path& data_root) {
  std::vector<std::filesystem::path> paths;
  for (const SchemaKey& key : r.schema().keys())
    if (key.names_file && r.has(key.path) && !r.string(key.path).empty())
      paths.push_back(data_path(r, key.path, data_root));
  return paths;
}

Error with_places(Error error, const Config& r, const std::filesystem::path& data_root) {
  const bool has_root = r.schema().find("data.root") < r.schema().keys().size();
  if (error.code == ErrorCode::not_found && has_root && r.string("data.root").empty())
    error.message += fmt::format(
        "; data are looked for in the current folder, then in $GRADLOOM_DATA{} (or only in data.root, if set); "
        "docs/data.md says where public sets come from",
        data_root == "." ? ", which is not set" : "");
  return error;
}

Result<RowSplits> load_splits(const Config& r, const std::filesystem::path& data_root) {
  if (r.has("data.path") && r.has("data.formula"))
    return Error{ErrorCode::invalid_input, "data.path and data.formula are both set; a run has one source of data"};
  if (!r.has("data.path") && !r.has("data.formula"))
    return Error{
        ErrorCode::invalid_input,
        "the recipe names no data: set data.path to a CSV, .npy or .npz file (--set data.path=FILE), or data.formula"};
  if (has_test_file(r) && (!r.has("data.path") || r.integer("data.folds") > 0))
    return Error{ErrorCode::invalid_input,
                 "data.test_path goes with data.path, and without data.folds: it is where all test samples come from"};
  const RowSource source = row_source(r, data_root);
  auto loaded = load_coded_rows(source);
  if (!loaded) return loaded.error();
  const RowDataset<double>* rows = &loaded->rows;
  if (rows->is_classification() && rows->outputs() < 2)
    return Error{ErrorCode::invalid_input, fmt::format("every sample has the class '{}'; there is nothing to learn",
                                                       rows->outputs() == 1 ? rows->class_names()[0] : "")};
  const bool formula = !r.has("data.path");
  const std::size_t folds = static_cast<std::size_t>(r.integer("data.folds"));
  Split split;
  if (folds > 0) {
    const std::size_t fold = static_cast<std::size_t>(r.integer("data.fold"));
    if (folds < 2 || fold >= folds || folds > rows->size())
      return Error{ErrorCode::invalid_input,
                   fmt::format("data.fold = {} of data.folds = {} does not exist for {} samples; folds "
                               "are 2 to the number of samples, counted from 0",
                               fold, folds, rows->size())};
    split = make_fold(rows->size(), folds, fold, data_seed(r), rows->parts().label);
    hold_out(split, r.number("data.validation"), data_seed(r), rows->parts().label);
  } else {
    const double validation = r.number("data.validation");
    const double test = formula || has_test_file(r) ? 0.0 : r.number("data.test");
    if (validation + test >= 1.0)
      return Error{ErrorCode::invalid_input,
                   fmt::format("data.validation = {} and data.test = {} leave nothing to train on", validation, test)};
    split = make_split(rows->size(), SplitFractions{1.0 - validation - test, validation, test}, data_seed(r),
                       rows->parts().label);
  }
  if (split.train.empty())
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} samples leave nothing to train on after the split", rows->size())};
  RowSplits parts{rows->subset(split.train), std::nullopt, std::nullopt, loaded->code};
  if (!split.validation.empty()) parts.validation = rows->subset(split.validation);
  if (!split.test.empty()) parts.test = rows->subset(split.test);
  if (formula && r.integer("data.test_samples") > 0) {
    auto test = formula_test_rows(r, source);
    if (!test) return test.error();
    parts.test = std::move(*test);
  }
  if (has_test_file(r)) {
    auto test = load_further_rows(source, *loaded, data_path(r, "data.test_path", data_root), FurtherTargets::needed);
    if (!test) return test.error();
    parts.test = std::move(test->rows);
  }
  return parts;
}

Result<FurtherRows<double>> load_further_rows(const Config& r, const std::filesystem::path& data_root,
                                              const LoadedRows& training, const std::filesystem::path& file) {
  return gradloom::load_further_rows(row_source(r, data_root), training, file, FurtherTargets::optional);
}

std::size_t stage_count(const Config& r) { return std::max<std::size_t>(1, r.tables("stage").size()); }

unsigned stage_grid(const Config& r, std::size_t stage) {
  unsigned grid = static_cast<unsigned>(r.integer("model.grid"));
  const auto& stages = r.tables("stage");
  for (std::size_t s = 0; s < stages.size() && s <= stage; ++s)
    if (stages[s].has("grid")) grid = static_cast<unsigned>(stages[s].integer("grid"));
  return grid;
}

kan::NetworkOptions network_options(const Config& r, std::size_t stage, std::size_t inputs, std::size_t outputs) {
  kan::NetworkOptions o;
  o.widths.push_back(inputs);
  for (std::int64_t width : r.integers("model.hidden")) o.widths.push_back(static_cast<std::size_t>(width));
  o.widths.push_back(outputs);
  o.grid = stage_grid(r, stage);
  o.degree = static_cast<unsigned>(r.integer("model.degree"));
  o.base = r.boolean("model.base");
  o.bias = r.boolean("model.bias");
  const std::string& outside = r.string("model.outside");
  o.outside = outside == "clamp"    ? kan::OutOfGrid::clamp
              : outside == "extend" ? kan::OutOfGrid::extend
              : outside == "zero"   ? kan::OutOfGrid::zero
                                    : kan::OutOfGrid::linear;
  o.knots = r.string("model.knots") == "free" ? kan::Knots::free : kan::Knots::uniform;
  o.lo = r.number("model.lo");
  o.hi = r.number("model.hi");
  o.spline_noise = r.number("model.spline_noise");
  o.base_scale = r.number("model.base_scale");
  return o;
}

const std::vector<std::int64_t>& refit_epochs(const Config& r, std::size_t stage) {
  const auto& stages = r.tables("stage");
  return stage < stages.size() && stages[stage].has("refit") ? stages[stage].integers("refit")
                                                             : r.integers("model.refit");
}

kan::RefitOptions refit_options(const Config& r) {
  return {.uniform_share = r.number("model.refit_uniform"),
          .margin = r.number("model.refit_margin"),
          .first_layer = r.boolean("model.refit_inputs")};
}

TrainOptions train_options(const Config& r, std::size_t stage) {
  TrainOptions o;
  o.seed = static_cast<std::uint64_t>(r.integer("seed"));
  o.epochs = static_cast<std::uint64_t>(r.integer("epochs"));
  o.batch = static_cast<std::size_t>(r.integer("train.batch"));
  o.accumulate = static_cast<std::size_t>(r.integer("train.accumulate"));
  if (r.string("family") == "graph")
    o.parallel_examples = static_cast<std::size_t>(r.integer("train.parallel_examples"));
  o.shuffle = r.boolean("train.shuffle");
  o.patience = static_cast<std::uint64_t>(r.integer("train.patience"));
  o.freeze = r.strings("train.freeze");
  o.decay = r.strings("optimizer.decay");
  o.fused = r.boolean("train.fused") ? FusedUpdate::automatic : FusedUpdate::off;

  const std::string& loss = r.string("loss.kind");
  o.loss.kind = loss == "mse"                    ? LossKind::mse
                : loss == "mae"                  ? LossKind::mae
                : loss == "huber"                ? LossKind::huber
                : loss == "cross-entropy"        ? LossKind::cross_entropy
                : loss == "binary-cross-entropy" ? LossKind::binary_cross_entropy
                : has_labels(r)                  ? LossKind::cross_entropy
                                                 : LossKind::mse;
  o.loss.reduction = r.string("loss.reduction") == "sum" ? Reduction::sum : Reduction::mean;
  o.loss.huber_delta = r.number("loss.huber_delta");

  OptimizerOptions& p = o.optimizer;
  const std::string& kind = r.string("optimizer.kind");
  p.kind = kind == "sgd"     ? OptimizerKind::sgd
           : kind == "adamw" ? OptimizerKind::adamw
           : kind == "lbfgs" ? OptimizerKind::lbfgs
                             : OptimizerKind::adam;
  p.lr = r.number("optimizer.lr");
  p.momentum = r.number("optimizer.momentum");
  p.nesterov = r.boolean("optimizer.nesterov");
  p.beta1 = r.number("optimizer.beta1");
  p.beta2 = r.number("optimizer.beta2");
  p.epsilon = r.number("optimizer.epsilon");
  p.weight_decay = r.number("optimizer.weight_decay");
  p.clip_value = r.number("optimizer.clip_value");
  p.clip_norm = r.number("optimizer.clip_norm");
  p.history = static_cast<unsigned>(r.integer("optimizer.history"));
  p.iterations = static_cast<unsigned>(r.integer("optimizer.iterations"));
  p.evaluations = static_cast<unsigned>(r.integer("optimizer.evaluations"));
  const std::string &place = r.string("optimizer.device"), &compress = r.string("optimizer.compress");
  o.place = place == "host"     ? OptimizerPlace::host
            : place == "device" ? OptimizerPlace::device
                                : OptimizerPlace::automatic;
  o.compression.kind = compress == "16-bit"  ? kernels::compress::Compression::half
                       : compress == "top-k" ? kernels::compress::Compression::top_k
                                             : kernels::compress::Compression::none;
  o.compression.keep = r.number("optimizer.compress_keep");

  const std::string& schedule = r.string("schedule.kind");
  o.schedule.kind = schedule == "step"     ? ScheduleKind::step
                    : schedule == "cosine" ? ScheduleKind::cosine
                                           : ScheduleKind::constant;
  o.schedule.warmup = r.number("schedule.warmup");
  o.schedule.final_factor = r.number("schedule.final");
  o.schedule.every = r.number("schedule.every");
  o.schedule.factor = r.number("schedule.factor");

  const auto& stages = r.tables("stage");
  if (stage < stages.size()) {
    const Config& s = stages[stage];
    if (s.has("epochs")) o.epochs = static_cast<std::uint64_t>(s.integer("epochs"));
    if (s.has("lr")) p.lr = s.number("lr");
    if (s.has("freeze")) o.freeze = s.strings("freeze");
  }
  return o;
}

}  // namespace gradloom::app
