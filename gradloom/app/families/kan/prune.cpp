#include "gradloom/app/families/kan/prune.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "gradloom/app/families/families.h"
#include "gradloom/app/families/kan/formula.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/run/run.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/families/kan/functions.h"
#include "gradloom/session/families/kan/prune.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

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

// The mean of -log softmax(logits) of the classes of rows; a single logit is that of the second of two classes.
double cross_entropy(const std::vector<std::vector<double>>& logits, const std::vector<std::uint32_t>& label) {
  double sum = 0;
  for (std::size_t r = 0; r < label.size(); ++r) {
    std::vector<double> z;
    for (const auto& column : logits) z.push_back(column[r]);
    if (z.size() == 1) z.insert(z.begin(), 0.0);
    const double most = *std::max_element(z.begin(), z.end());
    double total = 0;
    for (const double v : z) total += std::exp(v - most);
    sum += most + std::log(total) - z[label[r]];
  }
  return label.empty() ? 0 : sum / static_cast<double>(label.size());
}

// Rows of these columns, as the family reads them.
template <class T>
RowDataset<T> rows_of(const KanFamily<T>& family, const formula::Columns& x, const std::vector<std::vector<double>>& y,
                      const std::vector<std::uint32_t>& label) {
  RowParts<double> parts = family.schema().training.rows.parts();
  parts.size = x.front().size(), parts.label = label;
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

// A network, and the rows that its parts are scored and judged on.
template <class T>
struct PruneTask {
  const TypedSession<KanFamily<T>>& session;
  kan::Network<T> network;
  FormulaData data;
  formula::Scores scores;
  RowDataset<T> seen, test, checked;
  std::vector<std::vector<double>> checked_y;
  std::vector<std::size_t> all;  // inputs

  // Of numbers the RMSE, of classes the cross entropy.
  double error(const std::vector<std::vector<double>>& outputs, const std::vector<std::vector<double>>& y,
               const std::vector<std::uint32_t>& label) const {
    return data.classes.empty() ? rms_of(outputs, y) : cross_entropy(outputs, label);
  }
  double error_on_checked(const kan::Network<T>& asked, const ModelArrays<T>& arrays,
                          const std::vector<std::size_t>& inputs) const {
    return error(outputs_of(session.exec(), asked, arrays, checked, inputs), checked_y, checked.parts().label);
  }
};

template <class T>
PruneTask<T> prune_task(const TypedSession<KanFamily<T>>& session, FormulaData data) {
  const KanFamily<T>& family = session.family();
  formula::Scores scores = formula::score(data.network);
  RowDataset<T> seen = rows_of(family, data.x, data.y, data.label);
  RowDataset<T> test = rows_of(family, data.test_x, data.test_y, data.test_label);
  // How much worse is measured where the network did not learn, but not on the rows that judge the result.
  const bool validates = !data.check_x.empty();
  std::vector<std::vector<double>> checked_y = validates ? data.check_y : data.y;
  RowDataset<T> checked =
      rows_of(family, validates ? data.check_x : data.x, checked_y, validates ? data.check_label : data.label);
  std::vector<std::size_t> all(data.features.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return {session,         session.model(),    std::move(data),      std::move(scores), std::move(seen),
          std::move(test), std::move(checked), std::move(checked_y), std::move(all)};
}

template <class T>
struct SmallerNetwork {
  PrunedNetwork<T> pruned;
  std::vector<std::size_t> inputs;  // those that are left
  ModelArrays<T> arrays() const { return {pruned.parameters.span(), pruned.buffers.span()}; }
};

template <class T>
SmallerNetwork<T> smaller(const PruneTask<T>& task, const KeptParts& kept) {
  std::vector<std::size_t> inputs;
  for (const std::size_t i : task.all)
    if (kept.nodes[0][i]) inputs.push_back(i);
  return {prune_network(task.network, task.session.result_arrays(), task.data.network, kept), std::move(inputs)};
}

// The threshold that was used, 0 when inputs were counted; and what stays.
template <class T>
std::pair<double, KeptParts> choose_parts(const PruneTask<T>& task, const PruneOptions& o) {
  if (o.inputs) return {0.0, keep_inputs(task.data.network, task.scores, *o.inputs)};
  if (o.threshold) return {*o.threshold, keep_above(task.data.network, task.scores, *o.threshold)};
  const double allowed = (1 + *o.worse) * task.error_on_checked(task.network, task.session.result_arrays(), task.all);
  return keep_while(task.data.network, task.scores, [&](const KeptParts& parts) {
    const SmallerNetwork<T> small = smaller(task, parts);
    return task.error_on_checked(small.pruned.network, small.arrays(), small.inputs) <= allowed;
  });
}

template <class T>
void fill_report(const PruneTask<T>& task, const KeptParts& kept, const SmallerNetwork<T>& small, PruneReport& report) {
  const Exec& ex = task.session.exec();
  const kan::Network<T>& network = small.pruned.network;
  const ModelArrays<T> arrays = small.arrays();
  const bool numbers = task.data.classes.empty();
  const auto measured = [&](const auto& outputs) {
    return task.error(outputs, task.data.test_y, task.data.test_label);
  };
  (numbers ? report.rmse : report.loss) = measured(outputs_of(ex, network, arrays, task.test, small.inputs));
  (numbers ? report.rmse_before : report.loss_before) = measured(
      numbers ? task.data.predicted : outputs_of(ex, task.network, task.session.result_arrays(), task.test, task.all));
  const auto before = outputs_of(ex, task.network, task.session.result_arrays(), task.seen, task.all);
  const auto after = outputs_of(ex, network, arrays, task.seen, small.inputs);
  for (std::size_t j = 0; j < after.size(); ++j)
    for (std::size_t r = 0; r < after[j].size(); ++r)
      report.change = std::max(report.change, std::abs(after[j][r] - before[j][r]));
  for (const std::size_t i : task.all) {
    const std::string& name = task.data.features[i];
    (kept.nodes[0][i] ? report.kept : report.removed).push_back(name);
    report.inputs.push_back({name, task.scores.nodes[0][i].value, task.scores.nodes[0][i].error});
  }
  report.widths = network.options().widths, report.widths_before = task.network.options().widths;
  report.parameters = network.parameters().logical_size();
  report.parameters_before = task.network.parameters().logical_size();
  for (const auto& edges : kept.edges) {
    report.edges_before += edges.size();
    report.edges += static_cast<std::size_t>(std::count(edges.begin(), edges.end(), true));
  }
}

template <class T>
Result<void> write_smaller(const PruneTask<T>& task, const SmallerNetwork<T>& small,
                           const std::vector<std::string>& removed, const std::filesystem::path& out) {
  const KanFamily<T>& family = task.session.family();
  const kan::Network<T>& network = small.pruned.network;
  const std::vector<std::size_t>& widths = network.options().widths;
  KanOptions options = stage_of(family.options(), task.session.position().stage);
  options.model.hidden.assign(widths.begin() + 1, widths.end() - 1);
  options.model.multiply = network.options().multiply;
  options.model.bias = true;
  // New tables may have the columns that are gone.
  if (options.data.path)
    options.data.source.drop.insert(options.data.source.drop.end(), removed.begin(), removed.end());
  ModelHead head{options.family, options.precision, option_schema<KanOptions>().to_json(options),
                 fewer_features(family.describe(), small.inputs)};
  head.epochs = task.session.position().run_epoch;
  return write_model<T>(out, head, network.parameters(), network.buffers(), small.arrays());
}

template <class T>
Result<PruneReport> prune_typed(TypedSession<KanFamily<T>>& session, const RunOptions& run, const PruneOptions& o) {
  auto data = kan_formula_data(session, {o.rows, o.data, o.rows == nullptr, run.data_root});
  if (!data) return data.error();
  if (!data->data)
    return Error{ErrorCode::invalid_input, "a model file contains no rows to score on; pass some with --data FILE"};
  const ModelDescription description = session.family().describe();
  if (description.input.at("features").size() != description.features.size())
    return Error{
        ErrorCode::unsupported,
        "columns of categories cannot be pruned, because one column has several inputs; leave columns out with "
        "data.drop and train again (`columns` of `gradloom formula --json` has their scores)"};
  const PruneTask<T> task = prune_task(session, std::move(*data));
  PruneReport report;
  KeptParts kept;
  std::tie(report.threshold, kept) = choose_parts(task, o);
  const SmallerNetwork<T> small = smaller(task, kept);
  fill_report(task, kept, small, report);
  if (auto r = write_smaller(task, small, report.removed, o.out); !r) return r.error();
  report.out = o.out.string();
  return report;
}

}  // namespace

Result<PruneReport> prune_kan(Session& session, const RunOptions& run, const PruneOptions& options) {
  return with_typed<KanFamily>(session, [&](auto& typed) { return prune_typed(typed, run, options); });
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

}  // namespace gradloom::app
