#include "gradloom/app/families/kan/formula.h"

#include "gradloom/app/families/kan/functions.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/run/run.h"
#include "gradloom/app/settings.h"
#include "gradloom/base/random.h"
#include "gradloom/io/file.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kSampledRows = 1000;
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

template <class T>
formula::NetworkSamples samples_of(const TypedSession<KanFamily<T>>& session, const RowDataset<T>& rows) {
  const kan::Network<T> network = session.model();
  const ModelArrays<T> arrays = session.result_arrays();
  const RowBatch<T> batch = first_rows(rows.all(), kSampledRows);
  auto tape = network.make_tape(session.exec(), {.batch = batch.size, .backward = false});
  const std::size_t stride = padded(network.output_width());
  Buffer<T> y(batch.size * stride);
  network.forward(session.exec(), {.mode = Mode::evaluate}, arrays, batch, tape,
                  {y.data(), {batch.size, network.output_width()}, {stride, 1}});
  formula::NetworkSamples s;
  s.widths = network.options().widths;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const LayerFunctions<T> f(network, l, arrays);
    const std::size_t in = f.shape().in, out = f.shape().out;
    std::vector<std::vector<double>> node(in, std::vector<double>(batch.size));
    std::vector<std::vector<double>> edge(in * out, std::vector<double>(batch.size));
    std::vector<double> value(out), bias;
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t m = 0; m < batch.size; ++m) {
        const T x = network.layer_input(tape, l, m, i);
        node[i][m] = static_cast<double>(x);
        f.at(i, x, 0, out, value.data());
        for (std::size_t j = 0; j < out; ++j) edge[i * out + j][m] = value[j];
      }
    for (std::size_t j = 0; j < out; ++j) bias.push_back(f.bias(j));
    s.node.push_back(std::move(node)), s.edge.push_back(std::move(edge)), s.bias.push_back(std::move(bias));
  }
  const auto buffer = [&](std::size_t slice, std::size_t i) {
    return static_cast<double>(arrays.buffers[network.buffers()[slice].offset + i]);
  };
  const RowCentres& centre = rows.parts().centre;
  for (std::size_t i = 0; i < network.input_width(); ++i) {
    s.input_mean.push_back(buffer(network.affine().input_mean, i) + (centre.x.empty() ? 0 : centre.x[i]));
    s.input_scale.push_back(1 / buffer(network.affine().input_std, i));
  }
  for (std::size_t j = 0; j < network.output_width(); ++j) {
    s.output_mean.push_back(buffer(network.affine().output_mean, j) + (centre.target.empty() ? 0 : centre.target[j]));
    s.output_scale.push_back(buffer(network.affine().output_std, j));
  }
  return s;
}

template <class T>
Result<FormulaData> collect(TypedSession<KanFamily<T>>& session, const std::filesystem::path& data_root,
                            const std::filesystem::path& file) {
  const KanFamily<T>& family = session.family();
  const RowSchema& schema = family.schema();
  if (family.options().task == Task::classification)
    return Error{ErrorCode::unsupported,
                 "formulas are made of networks that predict numbers; this one predicts classes"};
  std::size_t functions = 0;
  const kan::Network<T> network = session.model();
  for (std::size_t l = 0; l < network.layers(); ++l) functions += network.shape(l).in * network.shape(l).out;
  if (functions > kMostFunctions)
    return Error{ErrorCode::unsupported, fmt::format("the network has {} functions; formulas are made of at most {}",
                                                     functions, kMostFunctions)};
  FormulaData data;
  std::optional<RowDataset<double>> seen, test;
  if (!file.empty()) {
    auto rows = load_new_rows(family.options(), data_root, schema.training, file);
    if (!rows) return rows.error();
    if (!rows->has_targets)
      return Error{ErrorCode::invalid_input, fmt::format("{} lacks the target column", file.string())};
    seen = std::move(rows->rows);
  } else if (family.train().size() > 1) {
    auto splits = load_splits(family.options(), data_root);
    if (!splits) return splits.error();
    seen = std::move(splits->train);
    test = std::move(splits->test);
  } else if (!schema.ranges.empty()) {
    seen = rows_in_range(schema.ranges, schema.training.rows);
    data.data = false;
  } else {
    return Error{ErrorCode::invalid_input, "the model file does not know the range of its features; --data names rows"};
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
  data.targets = target_columns(family.options(), schema.training);
  data.network = samples_of(session, *family.new_rows(*seen));
  return data;
}

}  // namespace

Result<FormulaData> kan_formula_data(Session& session, const std::filesystem::path& data_root,
                                     const std::filesystem::path& file) {
  if (auto* single = dynamic_cast<TypedSession<KanFamily<float>>*>(&session)) return collect(*single, data_root, file);
  return collect(dynamic_cast<TypedSession<KanFamily<double>>&>(session), data_root, file);
}

Result<nlohmann::json> finish_kan_run(Session& session, const RunOptions& options, const RunFolder* folder) {
  const KanFormulaOptions& asked = static_cast<const KanOptions&>(session.options()).formula;
  if (!asked.search) return nlohmann::json();
  auto data = kan_formula_data(session, options.data_root, {});
  if (!data) return data.error();
  FormulaOptions what;
  what.effort = asked.effort, what.threshold = asked.threshold, what.functions = asked.functions;
  const Exec ex(options.exec);
  nlohmann::json object = to_json(find_formulas(ex, *data, what, {}));
  if (folder)
    if (auto r = write_file_atomic(folder->file(kFormulaFile), object.dump(1)); !r) return r.error();
  return object;
}

}  // namespace gradloom::app
