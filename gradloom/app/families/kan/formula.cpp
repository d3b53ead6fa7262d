#include "gradloom/app/families/kan/formula.h"

#include <fmt/format.h>

#include <cmath>

#include "gradloom/app/families/families.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/run/run.h"
#include "gradloom/app/settings.h"
#include "gradloom/base/random.h"
#include "gradloom/io/file.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/families/kan/functions.h"
#include "gradloom/session/families/kan/prune.h"
#include "gradloom/session/families/kan/samples.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kMostFunctions = 4096;  // edges of a network that is explained

// Columns of the features and targets of rows.
void take(const RowDataset<double>& rows, formula::Columns& x, std::vector<std::vector<double>>& y) {
  const auto& p = rows.parts();
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
  if (family.options().task == Task::classification)
    return Error{ErrorCode::unsupported, "formulas need a network that predicts numbers; this one predicts classes"};
  std::size_t functions = 0;
  const kan::Network<T> network = session.model();
  for (std::size_t l = 0; l < network.layers(); ++l) functions += network.shape(l).in * network.shape(l).out;
  if (functions > kMostFunctions)
    return Error{ErrorCode::unsupported,
                 fmt::format("the network has {} edges; formulas are made of at most {}; prune it first", functions,
                             kMostFunctions)};
  FormulaData data;
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
    if (splits->validation) take(*splits->validation, data.check_x, data.check_y);
  } else if (!schema.ranges.empty()) {
    seen = rows_in_range(schema.ranges, schema.training.rows);
    data.data = false;
  } else {
    return Error{ErrorCode::invalid_input,
                 "the model file does not contain the range of its features; pass rows with --data FILE"};
  }
  take(*seen, data.x, data.y);
  if (!data.data) data.y = columns_of(session.predict(*seen));
  const RowDataset<double>& measured = test ? *test : *seen;
  take(measured, data.test_x, data.test_y);
  data.predicted = columns_of(session.predict(measured));
  if (!data.data) data.test_y = data.predicted;
  data.features = seen->feature_names();
  if (data.features.empty())
    for (std::size_t i = 0; i < seen->features(); ++i) data.features.push_back(fmt::format("x{}", i + 1));
  name_columns(schema.training.code, family.options().data.source.categories, data);
  data.targets = target_columns(family.options(), schema.training);
  data.network = network_samples(session.exec(), network, session.result_arrays(), *family.new_rows(*seen));
  return data;
}

// Outputs of a network for rows in their own units, by target.
template <class T>
std::vector<std::vector<double>> outputs_of(const Exec& ex, const kan::Network<T>& network,
                                            const ModelArrays<T>& arrays, const RowDataset<T>& rows,
                                            const std::vector<std::size_t>& inputs) {
  RowParts<T> parts = rows.parts();
  std::vector<T> x;
  for (std::size_t r = 0; r < parts.size; ++r)
    for (const std::size_t i : inputs) x.push_back(parts.x[r * parts.features + i]);
  parts.x = std::move(x), parts.features = inputs.size(), parts.feature_names.clear();
  const RowCentres centre = std::move(parts.centre);
  parts.centre = {};
  const RowDataset<T> own(std::move(parts));
  const EvaluatedRows<T> made = evaluate_rows(ex, network, arrays, own.all());
  std::vector<std::vector<double>> columns(network.output_width());
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t r = 0; r < own.size(); ++r)
      columns[j].push_back(static_cast<double>(made.y.data()[r * made.stride + j]) +
                           (centre.target.empty() ? 0 : centre.target[j]));
  return columns;
}

double rms_of(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t j = 0; j < a.size(); ++j)
    for (std::size_t r = 0; r < a[j].size(); ++r, ++n) sum += (a[j][r] - b[j][r]) * (a[j][r] - b[j][r]);
  return n > 0 ? std::sqrt(sum / static_cast<double>(n)) : 0;
}

// Rows of these columns, as the family reads them.
template <class T>
RowDataset<T> rows_of(const KanFamily<T>& family, const formula::Columns& x,
                      const std::vector<std::vector<double>>& y) {
  RowParts<double> parts = family.schema().training.rows.parts();
  parts.size = y.front().size();
  parts.x.clear(), parts.target.clear(), parts.weight.clear(), parts.exact_target.clear();
  for (std::size_t r = 0; r < parts.size; ++r) {
    for (const auto& column : x) parts.x.push_back(column[r]);
    for (const auto& column : y) parts.target.push_back(column[r]);
  }
  return *family.new_rows(RowDataset<double>(std::move(parts)));
}

// The description of a model with some of its features.
ModelDescription fewer_features(ModelDescription d, const std::vector<std::size_t>& inputs) {
  const ModelDescription all = d;
  d.features.clear(), d.ranges.clear();
  for (const std::size_t i : inputs) {
    d.features.push_back(all.features[i]);
    if (!all.ranges.empty()) d.ranges.push_back(all.ranges[i]);
  }
  if (d.normalisation.contains("centre") && d.normalisation["centre"].contains("inputs")) {
    nlohmann::json centres = nlohmann::json::array();
    for (const std::size_t i : inputs) centres.push_back(all.normalisation["centre"]["inputs"][i]);
    d.normalisation["centre"]["inputs"] = centres;
  }
  nlohmann::json features = nlohmann::json::array();
  for (const std::size_t i : inputs) features.push_back(all.input["features"][i]);
  d.input["features"] = features;
  return d;
}

formula::FunctionOptions function_options(const KanFormulaOptions& o) {
  return {o.functions, o.define, o.forbid, o.fix};
}

template <class T>
Result<PruneReport> prune_typed(TypedSession<KanFamily<T>>& session, const RunOptions& run, const PruneOptions& o) {
  auto data = collect(session, {o.rows, o.data, o.rows == nullptr, run.data_root});
  if (!data) return data.error();
  if (!data->data)
    return Error{ErrorCode::invalid_input, "a model file contains no rows to score on; pass some with --data FILE"};
  const KanFamily<T>& family = session.family();
  const kan::Network<T> network = session.model();
  const ModelDescription description = family.describe();
  if (description.input.at("features").size() != description.features.size())
    return Error{ErrorCode::unsupported, "columns of categories cannot be pruned: one column has several inputs"};
  const formula::Scores scores = formula::score(data->network);
  const RowDataset<T> seen = rows_of(family, data->x, data->y), test = rows_of(family, data->test_x, data->test_y);
  // How much worse is measured where the network did not learn, but not on the rows that judge the result.
  const bool validates = !data->check_y.empty();
  const std::vector<std::vector<double>>& checked_y = validates ? data->check_y : data->y;
  const RowDataset<T> checked = rows_of(family, validates ? data->check_x : data->x, checked_y);
  std::vector<std::size_t> all(data->features.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto before = outputs_of(session.exec(), network, session.result_arrays(), seen, all);
  PruneReport report;
  report.rmse_before = rms_of(data->predicted, data->test_y);
  const auto attempt = [&](const KeptParts& kept) {
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (kept.nodes[0][i]) inputs.push_back(i);
    PrunedNetwork<T> small = prune_network(network, session.result_arrays(), data->network, kept);
    const ModelArrays<T> arrays{small.parameters.span(), small.buffers.span()};
    report.rmse = rms_of(outputs_of(session.exec(), small.network, arrays, test, inputs), data->test_y);
    const double error = rms_of(outputs_of(session.exec(), small.network, arrays, checked, inputs), checked_y);
    return std::tuple{std::move(small), std::move(inputs), error};
  };
  KeptParts kept;
  if (o.inputs) {
    kept = keep_inputs(data->network, scores, *o.inputs);
  } else if (o.threshold) {
    report.threshold = *o.threshold, kept = keep_above(data->network, scores, *o.threshold);
  } else {
    const double allowed =
        (1 + *o.worse) * rms_of(outputs_of(session.exec(), network, session.result_arrays(), checked, all), checked_y);
    std::tie(report.threshold, kept) = keep_while(
        data->network, scores, [&](const KeptParts& parts) { return std::get<2>(attempt(parts)) <= allowed; });
  }
  auto [small, inputs, error] = attempt(kept);
  const ModelArrays<T> arrays{small.parameters.span(), small.buffers.span()};
  const auto after = outputs_of(session.exec(), small.network, arrays, seen, inputs);
  for (std::size_t j = 0; j < after.size(); ++j)
    for (std::size_t r = 0; r < after[j].size(); ++r)
      report.change = std::max(report.change, std::abs(after[j][r] - before[j][r]));
  KanOptions options = stage_of(family.options(), session.position().stage);
  options.model.hidden.assign(small.network.options().widths.begin() + 1, small.network.options().widths.end() - 1);
  options.model.multiply = small.network.options().multiply;
  options.model.bias = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    (kept.nodes[0][i] ? report.kept : report.removed).push_back(data->features[i]);
    // New tables may have the columns that are gone.
    if (!kept.nodes[0][i] && options.data.path) options.data.source.drop.push_back(data->features[i]);
    report.inputs.push_back({data->features[i], scores.nodes[0][i].value, scores.nodes[0][i].error});
  }
  report.widths = small.network.options().widths, report.widths_before = network.options().widths;
  report.parameters = small.network.parameters().logical_size(),
  report.parameters_before = network.parameters().logical_size();
  for (std::size_t l = 0; l < kept.edges.size(); ++l) {
    report.edges_before += kept.edges[l].size();
    for (const bool edge : kept.edges[l]) report.edges += edge ? 1 : 0;
  }
  ModelHead head{options.family, options.precision, option_schema<KanOptions>().to_json(options),
                 fewer_features(description, inputs)};
  head.epochs = session.position().run_epoch;
  if (auto r = write_model<T>(o.out, head, small.network.parameters(), small.network.buffers(), arrays); !r)
    return r.error();
  report.out = o.out.string();
  return report;
}

}  // namespace

Result<PruneReport> prune_kan(Session& session, const RunOptions& run, const PruneOptions& options) {
  return with_typed<KanFamily>(session, [&](auto& typed) { return prune_typed(typed, run, options); });
}

Result<FormulaData> kan_formula_data(Session& session, const FormulaRows& rows) {
  return with_typed<KanFamily>(session, [&](auto& typed) { return collect(typed, rows); });
}

void check_prune_options(const Session& session) {
  const KanOptions& options = static_cast<const KanOptions&>(session.options());
  const auto check = [](const KanModelOptions& o) {
    if ((o.prune ? 1 : 0) + (o.prune_inputs ? 1 : 0) + (o.prune_worse ? 1 : 0) > 1)
      throw_invalid(
          "model.prune, model.prune_inputs and model.prune_worse exclude each other; a stage has one of them");
    if (o.prunes() && !o.bias)
      throw_invalid("model.prune needs model.bias = true: the bias takes up the mean of what is removed");
  };
  check(options.model);
  for (const KanOptions& stage : options.stages) check(stage.model);
  if (session.stages() == 1 && options.model.prunes())
    throw_invalid(
        "model.prune removes edges before each stage but the first, and the run has only one stage; add a [[stage]]");
}

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
  FormulaSearchOptions what;
  static_cast<formula::FunctionOptions&>(what) = function_options(asked);
  what.effort = asked.effort, what.threshold = asked.threshold;
  what.comm = options.comm;
  const Exec ex(options.exec);
  nlohmann::json object = to_json(find_formulas(ex, *data, what, {}));
  if (folder)
    if (auto r = write_file_atomic(folder->file(kFormulaFile), object.dump(1)); !r) return r.error();
  return object;
}

}  // namespace gradloom::app
