// Makes the entry of a family from its functions and an overload of describe(). Only the files of families include it.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "gradloom/app/families/families.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/run/run.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {

// For family F with options O = F::Options:
//   load    Result<typename F<float>::Source>(const O&, const std::filesystem::path& data_root)
// and, found by overloading,
//   template <class T> void describe(const TypedSession<F<T>>&, const RunResult& result, Report&);
template <template <class> class F, auto load>
AppFamily make_entry(std::string_view name) {
  using O = typename F<float>::Options;
  AppFamily entry{};
  entry.name = name;
  entry.schema = []() -> const AnyOptionSchema& { return option_schema<O>(); };
  entry.open = [](const Config& recipe, const std::filesystem::path& data_root,
                  const SessionOptions& settings) -> Result<std::unique_ptr<Session>> {
    const O options = option_schema<O>().read(recipe);
    auto source = load(options, data_root);
    if (!source) return source.error();
    return make_session<F>(options, *source, settings);
  };
  entry.check = [](const Config& recipe, const std::filesystem::path& data_root, const SessionOptions& settings,
                   const CheckOptions& what) -> Result<CheckReport> {
    const O options = option_schema<O>().read(recipe);
    auto source = load(options, data_root);
    if (!source) return source.error();
    return check_family<F>(options, *source, settings, what);
  };
  entry.options = [](const Session& session) {
    const O& options = static_cast<const O&>(session.options());
    return option_schema<O>().to_json(stage_of(options, session.position().stage));
  };
  entry.describe = [](Session& session, const RunResult& result, Report& report) {
    with_typed<F>(std::as_const(session), [&](const auto& typed) { describe(typed, result, report); });
  };
  return entry;
}

// For families that predict new data by an overload of
//   template <class T> Result<PredictedTable> predict_new(const TypedSession<F<T>>&, const NewData&);
template <template <class> class F>
Result<PredictedTable> predict_with(Session& session, const NewData& data) {
  return with_typed<F>(std::as_const(session), [&](const auto& typed) { return predict_new(typed, data); });
}

// For families of rows that have model files.
template <template <class> class F>
Result<std::unique_ptr<Session>> load_row_model(const ModelHead& head, const TensorFile& file,
                                                const std::filesystem::path& name, const SessionOptions& settings) {
  auto options = option_schema<typename F<float>::Options>().from_json(head.options, name.string() + ", options");
  if (!options) return options.error();
  // The outputs depend on the task: those of another one would not be as many as their names.
  if ((options->task == Task::classification) == head.description.classes.empty())
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: options.task is \"{}\", but it has {} classes", name.string(),
                             name_of(kTasks, options->task), head.description.classes.size())};
  return load_session<F>(*options, head, file, name, settings);
}

// For other families.
template <template <class> class F>
Result<std::unique_ptr<Session>> load_model(const ModelHead& head, const TensorFile& file,
                                            const std::filesystem::path& name, const SessionOptions& settings) {
  auto options = option_schema<typename F<float>::Options>().from_json(head.options, name.string() + ", options");
  if (!options) return options.error();
  return load_session<F>(*options, head, file, name, settings);
}

inline constexpr Headline kAccuracy{"accuracy", "accuracy", Headline::As::percent};
inline constexpr Headline kHardAccuracy{"hard_accuracy", "accuracy, hard circuit", Headline::As::percent};
inline constexpr Headline kRmse{"rmse", "RMSE"};

// A table of figures, by name; nothing where there are none.
inline void add_figures(const char* title, const nlohmann::json& figures, Report& report) {
  if (!figures.is_object()) return;
  Table table{title, "", {"figure", "value"}};
  for (const auto& [name, value] : figures.items())
    if (value.is_number()) table.rows.push_back({std::string(name), value.get<double>()});
  report.sections.push_back(std::move(table));
}

// The slices of a model, for a report.
inline Table parameter_table(const Slices& slices) {
  Table table{"Parameters", "", {"slice", "values"}};
  for (const Slice& slice : slices) table.rows.push_back({slice.name, slice.logical_size()});
  return table;
}

}  // namespace gradloom::app
