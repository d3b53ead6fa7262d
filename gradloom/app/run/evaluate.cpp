#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/run/open.h"
#include "gradloom/app/run/run.h"
#include "gradloom/app/settings.h"
#include "gradloom/data/csv.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

// What can be wrong about the files of an evaluation, before any of them is read.
Result<void> check_evaluation(const std::filesystem::path& run, const RunOptions& options,
                              const EvaluateOptions& what) {
  if (!what.data.file.empty() && !std::filesystem::exists(what.data.file))
    return Error{ErrorCode::not_found, fmt::format("there is no file {}", what.data.file.string())};
  return refuse_overwriting_inputs(what.predictions, run, options.data_root, what.data.files());
}

// A row for each sample: its number or its names where it has some, and the outputs.
Result<void> write_outputs(const std::filesystem::path& path, const PredictedRows& y,
                           std::span<const std::uint32_t> numbers) {
  std::string text = numbers.empty() ? "" : "row,";
  for (const SampleNames& samples : y.samples) text += csv_field(samples.column) + ",";
  for (std::size_t j = 0; j < y.width; ++j) {
    if (j > 0) text += ',';
    text += y.names.size() == y.width ? csv_field(y.names[j]) : fmt::format("y{}", j + 1);
  }
  text += '\n';
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const std::size_t row = i / y.width;
    if (i % y.width == 0 && !numbers.empty()) text += fmt::format("{},", numbers[row]);
    for (const SampleNames& samples : y.samples)
      if (i % y.width == 0) text += csv_field(samples.names.at(row)) + ",";
    text += number_text(y.values[i], y.precision);
    text += (i + 1) % y.width == 0 ? '\n' : ',';
  }
  return write_file_atomic(path, text);
}

// The metrics of a new file, and predictions for it or for the run's own data.
// `added` are the rows of the file, where the family reads rows.
Result<void> evaluate_files(const AppFamily& family, Session& session, const std::optional<NewRows<double>>& added,
                            const EvaluateOptions& what, bool writes, Evaluation& evaluation) {
  const auto wrote = [&](std::size_t rows) {
    evaluation.rows = rows;
    evaluation.predictions = what.predictions.string();
  };
  const auto warn = [&](std::span<const double> values, std::size_t width) {
    if (std::string warning = not_finite_warning(values, width); !warning.empty())
      evaluation.warnings.push_back(std::move(warning));
  };
  const auto take_metrics = [&](const std::optional<PartMetrics>& metrics) {
    evaluation.data = metrics ? to_json(*metrics) : json();
    if (!metrics) return;
    for (std::string& warning : metric_warnings(*metrics, "new data", session.options().precision))
      evaluation.warnings.push_back(std::move(warning));
  };
  const auto warn_of_outside = [&](std::size_t rows) {
    if (std::string warning = outside_warning(evaluation.outside, rows); !warning.empty())
      evaluation.warnings.push_back(std::move(warning));
  };
  const auto rows_of = [](const PredictedRows& y) { return y.width == 0 ? 0 : y.values.size() / y.width; };
  if (what.data.file.empty()) {
    if (what.predictions.empty()) return {};
    const PredictedRows y = session.predict();
    warn(y.values, y.width);
    wrote(rows_of(y));
    return writes ? write_outputs(what.predictions, y, {}) : Result<void>();
  }
  if (added) {
    for (std::string& warning : session.warnings(added->rows, "new rows"))
      evaluation.warnings.push_back(std::move(warning));
    evaluation.outside = session.rows_outside(added->rows);
    warn_of_outside(added->rows.size());
    take_metrics(added->has_targets ? std::optional(session.measure(added->rows)) : std::nullopt);
    const PredictedRows y = session.predict(added->rows);
    warn(y.values, y.width);
    if (what.predictions.empty()) return {};
    wrote(rows_of(y));
    return writes ? write_outputs(what.predictions, y, added->numbers) : Result<void>();
  }
  if (!family.predict)
    return Error{ErrorCode::unsupported,
                 fmt::format("models of family \"{}\" cannot be applied to new data", family.name)};
  auto table = family.predict(session, what.data);
  if (!table) return table.error();
  take_metrics(table->metrics);
  evaluation.outside = table->outside;
  warn_of_outside(table->rows);
  for (std::string& warning : table->warnings) evaluation.warnings.push_back(std::move(warning));
  if (!table->shape.empty()) warn(table->values, table->shape.back());
  if (what.predictions.empty()) return {};
  wrote(table->rows);
  return writes ? write_predictions(what.predictions, *table) : Result<void>();
}

}  // namespace

nlohmann::json to_json(const Evaluation& evaluation) {
  json object = to_json<Evaluation>(evaluation);
  object.update(to_json(evaluation.metrics));
  return object;
}

Result<Evaluation> evaluate(const std::filesystem::path& path, const RunOptions& asked, const EvaluateOptions& what) {
  std::vector<std::filesystem::path> files = {path / "recipe.toml", path / "checkpoint" / "last.safetensors"};
  for (const std::filesystem::path& file : what.data.files()) files.push_back(file);
  auto shared = guarded([&]() -> Result<std::optional<RunOptions>> { return options_of_rank(asked, files); });
  if (!shared) return shared.error();
  if (!*shared) return Evaluation();
  const RunOptions& given = **shared;
  auto folder = RunFolder::open(path, FolderAccess::read);
  if (!folder) return folder.error();
  auto recipe = reopen_recipe(*folder);
  if (!recipe) return recipe.error();
  if (auto r = check_evaluation(path, given, what); !r) return r.error();
  return guarded([&]() -> Result<Evaluation> {
    const RunOptions options = follow_checkpoint(*folder, given, OtherData::tell).or_throw();
    const AppFamily& family = find_family(recipe->string("family"));
    if (auto r = check_new_data(family, what.data); !r) return r.error();
    if (auto r = require_checkpoint(*folder); !r) return r.error();
    auto opened = reopen_session(*recipe, options, *folder);
    if (!opened) return opened.error();
    Session& session = **opened;
    // What is wrong with the file is told before the checkpoint is looked at.
    std::optional<NewRows<double>> added;
    if (!what.data.file.empty() && family.read_rows) {
      auto rows = family.read_rows(session, options.data_root, what.data.file);
      if (!rows) return rows.error();
      added = std::move(*rows);
    }
    auto restored = restore(session, *folder, OtherData::tell, options);
    if (!restored) return restored.error();
    if (options.comm) {
      const Session::Fingerprints data = session.data_fingerprints();
      require_same(*options.comm, {{"other training data", data.train},
                                   {"other validation data", data.validation},
                                   {"other test data", data.test},
                                   {"another arithmetic", static_cast<std::uint64_t>(session.arithmetic())}});
    }
    if (!session.shares_steps()) session.leave_ranks();  // each computes all
    Evaluation evaluation;
    evaluation.run = path.string();
    evaluation.epochs = session.position().run_epoch;
    evaluation.data_changed = restored->data_changed;
    evaluation.warnings = std::move(restored->warnings);
    evaluation.metrics = session.metrics();
    for (std::string& warning : metric_warnings(evaluation.metrics, session.options().precision))
      evaluation.warnings.push_back(std::move(warning));
    if (json study = session.study(); !study.is_null()) {
      if (family.study_rows) evaluation.found = family.study_rows(study);
      evaluation.study = std::move(study);
    }
    evaluation.rows_outside = session.rows_outside();
    if (auto r = evaluate_files(family, session, added, what, !options.comm || options.comm->rank() == 0, evaluation);
        !r)
      return r.error();
    return evaluation;
  });
}

}  // namespace gradloom::app
