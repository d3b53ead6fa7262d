#include "gradloom/app/families/kan/formula.h"

#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/run/run.h"
#include "gradloom/app/settings.h"
#include "gradloom/base/random.h"
#include "gradloom/io/file.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/families/kan/samples.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

// Columns of the features and targets of rows, and their classes.
void take(const RowDataset<double>& rows, formula::Columns& x, std::vector<std::vector<double>>& y,
          std::vector<std::uint32_t>& label) {
  const auto& p = rows.parts();
  label = p.label;
  x.assign(p.features, std::vector<double>(p.size));
  y.assign(p.targets, std::vector<double>(p.size));
  for (std::size_t s = 0; s < p.size; ++s) {
    for (std::size_t i = 0; i < p.features; ++i) x[i][s] = p.x[s * p.features + i];
    for (std::size_t j = 0; j < p.targets; ++j) y[j][s] = p.target[s * p.targets + j];
  }
}

std::vector<std::vector<double>> columns_of(const PredictedRows& y) {
  std::vector<std::vector<double>> columns(y.width);
  for (std::size_t i = 0; i < y.values.size(); ++i) columns[i % y.width].push_back(y.values[i]);
  return columns;
}

// Uniform rows in the range of each feature; targets are zeros.
RowDataset<double> rows_in_range(const std::vector<FeatureRange>& ranges, const RowDataset<double>& like) {
  RowParts<double> parts = like.parts();
  parts.size = kSampledRows;
  parts.x.clear(), parts.weight.clear(), parts.exact_target.clear();
  for (std::size_t s = 0; s < kSampledRows; ++s) {
    const RandomStream random(0, RandomUse::data, 0, static_cast<std::uint32_t>(s));
    for (std::size_t i = 0; i < parts.features; ++i)
      parts.x.push_back(ranges[i].low +
                        (ranges[i].high - ranges[i].low) * random.uniform(static_cast<std::uint32_t>(i)));
  }
  parts.target.assign(kSampledRows * parts.targets, 0.0);
  if (like.is_classification()) parts.label.assign(kSampledRows, 0);
  return RowDataset<double>(std::move(parts));
}

// A column of categories has a feature for each of them; a feature of any other kind is its own column.
void name_columns(const RowCode& code, CategoryPolicy categories, FormulaData& data) {
  for (std::size_t c = 0; c < code.features.size(); ++c) {
    const ColumnCode& column = code.features[c];
    const bool one_hot = !column.categories.empty() && categories == CategoryPolicy::one_hot;
    data.columns.push_back(column.name);
    data.column_of.insert(data.column_of.end(), one_hot ? column.categories.size() : 1, c);
  }
  if (data.column_of.size() == data.features.size()) return;
  data.columns = data.features;
  data.column_of.resize(data.features.size());
  for (std::size_t i = 0; i < data.features.size(); ++i) data.column_of[i] = i;
}

template <class T>
Result<FormulaData> collect(TypedSession<KanFamily<T>>& session, const FormulaRows& given) {
  const KanFamily<T>& family = session.family();
  const RowSchema& schema = family.schema();
  const kan::Network<T> network = session.model();
  FormulaData data;
  data.classes = schema.training.rows.class_names();
  std::optional<RowDataset<double>> seen, test;
  if (given.rows) {
    if (given.rows->features() != network.input_width() || given.rows->outputs() != network.output_width())
      return Error{
          ErrorCode::invalid_input,
          fmt::format("the rows have {} features and {} targets, the network {} inputs and {} outputs",
                      given.rows->features(), given.rows->outputs(), network.input_width(), network.output_width())};
    seen = *given.rows;
  } else if (!given.file.empty()) {
    auto rows = load_new_rows(family.options(), given.data_root, schema.training, given.file, family.kLargestInput);
    if (!rows) return rows.error();
    if (!rows->has_targets)
      return Error{ErrorCode::invalid_input, fmt::format("{} has no target column", given.file.string())};
    seen = std::move(rows->rows);
  } else if (given.of_run && family.train().size() > 1) {
    auto splits = load_splits(family.options(), given.data_root);
    if (!splits) return splits.error();
    seen = std::move(splits->train);
    test = std::move(splits->test);
    if (splits->validation) take(*splits->validation, data.check_x, data.check_y, data.check_label);
  } else if (!schema.ranges.empty()) {
    seen = rows_in_range(schema.ranges, schema.training.rows);
    data.data = false;
  } else {
    return Error{ErrorCode::invalid_input,
                 "the model file does not contain the range of its features; pass rows with --data FILE"};
  }
  const bool numbers = data.classes.empty();
  take(*seen, data.x, data.y, data.label);
  if (!data.data && numbers) data.y = columns_of(session.predict(*seen));
  const RowDataset<double>& measured = test ? *test : *seen;
  take(measured, data.test_x, data.test_y, data.test_label);
  data.unseen = test.has_value();
  if (numbers) data.predicted = columns_of(session.predict(measured));
  if (!data.data && numbers) data.test_y = data.predicted;
  data.features = seen->feature_names();
  if (data.features.empty())
    for (std::size_t i = 0; i < seen->features(); ++i) data.features.push_back(fmt::format("x{}", i + 1));
  name_columns(schema.training.code, family.options().data.source.categories, data);
  data.targets = target_columns(family.options(), schema.training);
  data.network = network_samples(session.exec(), network, session.result_arrays(), *family.new_rows(*seen));
  return data;
}

formula::FunctionOptions function_options(const KanFormulaOptions& o) {
  return {o.functions, o.define, o.forbid, o.fix};
}

}  // namespace

Result<FormulaData> kan_formula_data(Session& session, const FormulaRows& rows) {
  return with_typed<KanFamily>(session, [&](auto& typed) { return collect(typed, rows); });
}

template <class T>
nlohmann::json kan_scores(const TypedSession<KanFamily<T>>& session) {
  const KanFamily<T>& family = session.family();
  FormulaData data;
  data.features = family.train().feature_names();
  for (std::size_t i = data.features.size(); i < family.train().features(); ++i)
    data.features.push_back(fmt::format("x{}", i + 1));
  name_columns(family.schema().training.code, family.options().data.source.categories, data);
  data.network = network_samples(session.exec(), session.model(), session.result_arrays(), family.train());
  const formula::Scores scores = formula::score(data.network, data.column_of);
  nlohmann::json object{{"columns", nlohmann::json::array()}, {"edges", nlohmann::json::array()}};
  for (const FormulaScore& s : named_scores(data.columns, scores.columns)) object["columns"].push_back(to_json(s));
  for (std::size_t l = 0; l < scores.edges.size(); ++l) {
    const std::size_t out = data.network.sums(l);
    for (std::size_t e = 0; e < scores.edges[l].size(); ++e)
      object["edges"].push_back(
          to_json(FormulaEdge{l, e / out, e % out, scores.edges[l][e].value, scores.edges[l][e].error, true, {}}));
  }
  return object;
}

template nlohmann::json kan_scores(const TypedSession<KanFamily<float>>&);
template nlohmann::json kan_scores(const TypedSession<KanFamily<double>>&);

void check_formula_options(const Session& session) {
  const formula::Functions functions(function_options(static_cast<const KanOptions&>(session.options()).formula));
  with_typed<KanFamily>(session, [&](const auto& typed) {
    const kan::NetworkOptions o = typed.model().options();
    functions.require_edges(o.widths, o.multiply);
  });
}

Result<nlohmann::json> finish_kan_run(Session& session, const RunOptions& options, const RunFolder* folder) {
  const KanFormulaOptions& asked = static_cast<const KanOptions&>(session.options()).formula;
  if (!asked.search) return nlohmann::json();
  auto data = kan_formula_data(session, {.of_run = true, .data_root = options.data_root});
  if (!data) return data.error();
  if (auto r = can_have_formula(*data); !r) return r.error();
  FormulaSearchOptions what;
  static_cast<formula::FunctionOptions&>(what) = function_options(asked);
  what.effort = asked.effort, what.threshold = asked.threshold;
  what.comm = options.comm, what.stop = options.stop;
  int shown = 0;
  const auto tell = [&](const std::string& text) {
    if (options.log) options.log(LogLevel::info, text);
  };
  tell("searching for the formula");
  const auto progress = [&](double used, double limit) {
    const int percent = static_cast<int>(100 * used / limit);
    if (percent < shown + 10 || percent > 100) return;
    shown = percent;
    tell(fmt::format("searched {} % of the effort", percent));
  };
  const Exec ex(options.exec);
  nlohmann::json object = to_json(find_formulas(ex, *data, what, progress));
  // What a search has before its end is not what an undisturbed one would find.
  if (options.stop && *options.stop && !options.comm) return nlohmann::json::object();
  if (folder)
    if (auto r = write_file_atomic(folder->file(kFormulaFile), object.dump(1)); !r) return r.error();
  return object;
}

}  // namespace gradloom::app
