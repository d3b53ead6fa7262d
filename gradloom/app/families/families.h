// What the application knows of a family beyond its session: the keys of its recipes, the files its data come from,
// what its report shows. A new family is a line in list.inc and a folder here and in gradloom/session/families.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gradloom/app/predict/new_data.h"
#include "gradloom/app/report/report.h"
#include "gradloom/app/text.h"
#include "gradloom/data/new_rows.h"
#include "gradloom/io/config.h"
#include "gradloom/io/option_schema.h"
#include "gradloom/session/check.h"

namespace gradloom {
class RunFolder;
#define GRADLOOM_FAMILY(name, Options) struct Options;
#include "gradloom/app/families/list.inc"
#undef GRADLOOM_FAMILY
}  // namespace gradloom

namespace gradloom::app {

struct ExportedNetwork;
struct ExportNetworkOptions;
struct FormulaData;
struct FormulaRows;
struct PruneOptions;
struct PruneReport;
struct PredictedTable;
struct RunOptions;
struct RunResult;

// A metric that the head of a report shows.
struct Headline {
  std::string_view metric, label;
  enum class As { number, percent } as = As::number;
};

// A recipe whose open settings were chosen by the data.
struct SettledRecipe {
  Config recipe;
  nlohmann::json found;  // how: folds, candidates with their losses, chosen
};

struct AppFamily {
  std::string_view name;  // in recipes
  const AnyOptionSchema& (*schema)();
  // Loads the data that the recipe names. Fails or throws when it cannot be read or does not fit the options.
  Result<std::unique_ptr<Session>> (*open)(const Config& recipe, const std::filesystem::path& data_root,
                                           const SessionOptions& settings);
  Result<CheckReport> (*check)(const Config& recipe, const std::filesystem::path& data_root,
                               const SessionOptions& settings, const CheckOptions& what);
  // Adds the sections that only this family has. The session is one that `open` made.
  void (*describe)(Session& session, const RunResult& result, Report& report);
  std::vector<Headline> headlines;
  // What only this family can tell, for people: from RunResult::found, and from what its session's study() found.
  // Null: nothing.
  std::vector<TextRow> (*summary_rows)(const nlohmann::json& found);
  std::vector<TextRow> (*study_rows)(const nlohmann::json& study);
  // A few words for the progress line, from what the family measured last. Null: none.
  std::string (*progress)(const nlohmann::json& metrics);
  // What to set where training data are predicted far better than held-out data; empty: here that says nothing about
  // the settings. Null: the metrics of the family tell nothing of overfitting and short training.
  std::string_view (*overfit_cure)(const Session& session, const Metrics& metrics);
  // Whether a run ends before its last epoch when it is good enough. Null: it does not.
  bool (*has_goal)(const FamilyOptions& options);
  // The recipe with settings that it leaves to the data, and how they were found; null: there are none such. The recipe
  // that is returned leaves nothing to the data. Null: the family has no such settings.
  Result<std::optional<SettledRecipe>> (*settle)(const Config& recipe, const std::filesystem::path& data_root,
                                                 const SessionOptions& settings);
  // The options of the stage that a session is in, by their keys.
  nlohmann::json (*options)(const Session& session);
  // A session without data from a model file, which is called `name` in messages. Null: the family has none.
  Result<std::unique_ptr<Session>> (*load)(const ModelHead& head, const TensorFile& file,
                                           const std::filesystem::path& name, const SessionOptions& settings);
  // Rows of a new file in the columns of the training data; targets may be missing. Null: outputs for new data are
  // written by `predict` alone.
  Result<NewRows<double>> (*read_rows)(Session& session, const std::filesystem::path& data_root,
                                       const std::filesystem::path& file);
  NewDataKind reads;
  // What the model says of new data. Null: the family takes none. Fails or throws when they do not fit the model.
  Result<PredictedTable> (*predict)(Session& session, const NewData& data);
  // What the search for a formula looks at. Null: the family has no formulas.
  Result<FormulaData> (*formula_data)(Session& session, const FormulaRows& rows);
  // Writes a smaller model. Null: the family cannot be pruned.
  Result<PruneReport> (*prune)(Session& session, const RunOptions& run, const PruneOptions& options);
  // Writes the network for other programs. Null: the family has no such export.
  Result<ExportedNetwork> (*export_network)(Session& session, const ExportNetworkOptions& options);
  // What follows training when the recipe asks for it, under the key `finish_key` of the results; null: nothing was
  // asked for, or (the function) nothing can be. An empty object: it was stopped, and whoever resumes the run gets it.
  Result<nlohmann::json> (*finish)(Session& session, const RunOptions& options, const RunFolder* folder);
  std::string_view finish_key;
  std::string_view finish_file;  // of the run's folder, which `finish` leaves there
};

// In the order of list.inc.
std::span<const AppFamily> families();
// The family of this name. Throws invalid_input, naming those there are.
const AppFamily& find_family(std::string_view name);

// The keys of each family's options, and its entry.
#define GRADLOOM_FAMILY(name, Options)             \
  void bind_options(const OptionPart<Options>& o); \
  AppFamily name##_family();
#include "gradloom/app/families/list.inc"
#undef GRADLOOM_FAMILY

template <class O>
const OptionSchema<O>& option_schema() {
  static const OptionSchema<O> schema(bind_options);
  return schema;
}

}  // namespace gradloom::app
