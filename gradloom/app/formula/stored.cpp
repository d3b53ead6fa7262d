#include "gradloom/app/formula/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/app/run/open.h"
#include "gradloom/data/new_rows.h"
#include "gradloom/formula/parse.h"
#include "gradloom/formula/print.h"
#include "gradloom/formula/refine.h"
#include "gradloom/io/file.h"
#include "gradloom/io/json.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = 16 << 20;
constexpr int kSteps = 100;        // of a fit
constexpr double kAsGood = 1.001;  // times an error

std::vector<std::string> names_in(const json& object, const char* key) {
  std::vector<std::string> names;
  for (const json& one : object.at(key)) names.push_back(one.at("name").get<std::string>());
  return names;
}

formula::Columns columns(const std::vector<double>& values, std::size_t rows, std::size_t width) {
  formula::Columns all(width, std::vector<double>(rows));
  for (std::size_t i = 0; i < values.size(); ++i) all[i % width][i / width] = values[i];
  return all;
}

struct FormulaRowsOfFile {
  std::size_t rows = 0;
  formula::Columns x;                  // (inputs); zeros where no formula needs them
  std::vector<std::vector<double>> y;  // (targets); empty: the file has none
};

// "city=Bonn" is 1 where the column "city" says Bonn.
struct Category {
  std::size_t input = 0, column = 0;
  std::string_view value;
};

std::optional<Category> category_of(const CsvTable& table, const std::string& input, std::size_t number) {
  if (find_column(table.columns, input)) return std::nullopt;
  for (std::size_t at = input.find('='); at != std::string::npos; at = input.find('=', at + 1)) {
    const auto column = std::ranges::find(table.columns, std::string_view(input).substr(0, at));
    if (column != table.columns.end())
      return Category{number, static_cast<std::size_t>(column - table.columns.begin()),
                      std::string_view(input).substr(at + 1)};
  }
  return std::nullopt;
}

// Rows of a file by the names of a formula, as a model's training data would tell.
Result<FormulaRowsOfFile> rows_for(const StoredFormulas& f, const std::filesystem::path& file, NewTargets wanted) {
  RowSource source;
  source.path = file, source.target = f.targets;
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < f.inputs.size(); ++i)
    if (!is_text_table(source) ||  // the places of an array's columns count
        std::any_of(f.formulas.begin(), f.formulas.end(),
                    [&](const formula::Expr& e) -> bool { return formula::variables_used(e, f.inputs.size())[i]; }))
      used.push_back(i);
  if (used.empty()) used.push_back(0);  // a number: any column tells how many rows there are
  std::optional<CsvTable> table;
  std::vector<Category> categories;
  if (is_text_table(source)) {
    auto read = read_table(source);
    if (!read) return read.error();
    table = std::move(*read);
    for (const std::size_t i : used)
      if (const auto category = category_of(*table, f.inputs[i], i)) categories.push_back(*category);
    if (categories.size() < used.size())  // a feature tells the rows
      std::erase_if(used, [&](std::size_t i) { return std::ranges::count(categories, i, &Category::input) > 0; });
  }
  RowParts<double> like;
  RowCode code;
  for (const std::size_t i : used)
    like.feature_names.push_back(f.inputs[i]), code.features.push_back({f.inputs[i], {}, {}});
  like.size = 1, like.features = used.size(), like.targets = f.targets.size();
  like.x.assign(like.features, 0.0), like.target.assign(like.targets, 0.0);
  like.target_names = f.targets;
  if (table) {
    code.has_header = true;
    code.columns = like.feature_names;
    code.columns.insert(code.columns.end(), f.targets.begin(), f.targets.end());
    for (const std::string& column : table->columns)
      if (std::find(code.columns.begin(), code.columns.end(), column) == code.columns.end())
        source.drop.push_back(column);
  } else {
    source.path.clear();
  }
  const auto read =
      load_new_rows(source, {RowDataset<double>(std::move(like)), std::move(code), {}, true}, file, wanted);
  if (!read) return read.error();
  const auto& parts = read->rows.parts();
  FormulaRowsOfFile rows{parts.size, formula::Columns(f.inputs.size(), std::vector<double>(parts.size, 0.0)), {}};
  formula::Columns x = columns(parts.x, parts.size, parts.features);
  for (std::size_t i = 0; i < used.size(); ++i) rows.x[used[i]] = std::move(x[i]);
  if (!categories.empty() && table->rows() != rows.rows)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: rows with missing values have no categories", file.string())};
  for (const Category& c : categories)
    for (std::size_t r = 0; r < rows.rows; ++r) rows.x[c.input][r] = table->cell(r, c.column) == c.value ? 1.0 : 0.0;
  if (read->has_targets) rows.y = columns(parts.target, parts.size, parts.targets);
  return rows;
}

// Numbers that a fit may change.
formula::Expr with_free_constants(const formula::Expr& e) {
  if (e->op == formula::Op::number) return std::abs(e->number.value) == 1 ? e : formula::approximate(e->number.value);
  if (e->args.empty()) return e;
  std::vector<formula::Expr> args;
  for (const formula::Expr& a : e->args) args.push_back(with_free_constants(a));
  return formula::with_args(*e, std::move(args));
}

json& one_of(json& object, std::size_t target) {
  return object.contains("targets") ? object["targets"][target] : object;
}

// Mean squares and their relation to those of the target.
PartMetrics metrics_of(const formula::Columns& y, const std::vector<std::vector<double>>& predicted) {
  double squares = 0, absolute = 0, total = 0;
  std::size_t count = 0;
  for (std::size_t j = 0; j < y.size(); ++j) {
    double mean = 0;
    for (const double v : y[j]) mean += v / static_cast<double>(y[j].size());
    for (std::size_t r = 0; r < y[j].size(); ++r, ++count) {
      const double d = predicted[j][r] - y[j][r];
      squares += d * d, absolute += std::abs(d), total += (y[j][r] - mean) * (y[j][r] - mean);
    }
  }
  const auto n = static_cast<double>(count);
  PartMetrics metrics{squares / n, {{"rmse", std::sqrt(squares / n)}, {"mae", absolute / n}}};
  if (total > 0) metrics.values["r2"] = 1 - squares / total;
  return metrics;
}

}  // namespace

bool is_formula_file(const std::filesystem::path& model) {
  std::error_code ignored;
  return model.extension() == ".json" && !std::filesystem::is_directory(model, ignored);
}

Result<StoredFormulas> formulas_from_json(json object, const std::string& name) try {
  StoredFormulas f;
  f.inputs = names_in(object, "inputs");
  if (f.inputs.empty()) return Error{ErrorCode::invalid_input, fmt::format("{}: the formula has no inputs", name)};
  const std::vector<json> all =
      object.contains("targets") ? object.at("targets").get<std::vector<json>>() : std::vector<json>{object};
  for (const json& one : all) {
    f.targets.push_back(one.at("target").get<std::string>());
    const auto e = formula::parse_expression(one.at("text").get<std::string>(),
                                             formula::printed_names(f.inputs, formula::Notation::text),
                                             formula::Decimals::approximate);
    if (!e)
      return Error{ErrorCode::invalid_input, fmt::format("{}: the formula of '{}' cannot be read: {}", name,
                                                         f.targets.back(), e.error().message)};
    f.formulas.push_back(*e);
  }
  f.object = std::move(object);
  return f;
} catch (const json::exception&) {
  return Error{ErrorCode::invalid_input,
               fmt::format("{} contains no formula; `gradloom formula RUN --out FILE` writes one", name)};
}

Result<StoredFormulas> read_formulas(const std::filesystem::path& file) {
  auto text = read_file(file, kMaxBytes);
  if (!text) return text.error();
  auto object = parse_json(*text, file.string());
  if (!object) return object.error();
  return formulas_from_json(std::move(*object), file.string());
}

Result<PredictReport> predict_formulas(const std::filesystem::path& model, const std::filesystem::path& data_root,
                                       const PredictOptions& what) {
  return guarded([&]() -> Result<PredictReport> {
    const auto f = read_formulas(model);
    if (!f) return f.error();
    if (!what.nodes.empty() || !what.folder.empty() || !what.distances.empty())
      return Error{ErrorCode::invalid_input,
                   fmt::format("{} is a formula, which reads one table; a table of nodes, a folder of files and "
                               "distances are for models of graphs",
                               model.string())};
    if (!what.out.empty()) {
      if (auto r = check_prediction_file(what.out); !r) return r.error();
      if (auto r = refuse_overwriting_inputs(what.out, model, data_root, std::span(&what.file, 1)); !r)
        return r.error();
    }
    const auto read = rows_for(*f, what.file, NewTargets::optional);
    if (!read) return read.error();
    PredictedRows y;
    y.width = f->targets.size(), y.values.resize(read->rows * y.width);
    std::vector<std::vector<double>> predicted;
    for (std::size_t j = 0; j < y.width; ++j) {
      predicted.push_back(formula::evaluate(f->formulas[j], read->x, read->rows));
      for (std::size_t r = 0; r < read->rows; ++r) y.values[r * y.width + j] = predicted.back()[r];
    }
    PredictedTable table;
    table.rows = read->rows;
    add_numbers(table, y, f->targets);
    PredictReport report;
    report.model = model.string(), report.family = "formula", report.rows = read->rows;
    if (!read->y.empty()) {
      const PartMetrics metrics = metrics_of(read->y, predicted);
      report.data = to_json(metrics);
      report.warnings = metric_warnings(metrics, "new data", Precision::float64);
    }
    if (std::string warning = not_finite_warning(table.values, y.width); !warning.empty())
      report.warnings.push_back(std::move(warning));
    if (what.out.empty()) return report;
    if (auto r = write_predictions(what.out, table); !r) return r.error();
    report.out = what.out.string();
    return report;
  });
}

json fit_formulas(const StoredFormulas& stored, const formula::Columns& x, const std::vector<std::vector<double>>& y) {
  json object = stored.object;
  for (std::size_t j = 0; j < stored.formulas.size(); ++j) {
    const formula::Expr& before = stored.formulas[j];
    const formula::Expr fitted =
        formula::refine_constants(with_free_constants(before), x, y[j], {.iterations = kSteps});
    const double error = formula::rms_error(fitted, x, y[j]);
    const double as_it_is = formula::rms_error(before, x, y[j]);
    const bool better = kAsGood * error < as_it_is;
    FormulaReport texts;
    write_texts(better ? fitted : before, stored.inputs, texts);
    json& one = one_of(object, j);
    one["text"] = texts.text, one["latex"] = texts.latex, one["sympy"] = texts.sympy, one["python"] = texts.python;
    one["c"] = texts.c, one["complexity"] = texts.complexity;
    one["rmse_formula"] = better ? error : as_it_is;
    one["rmse_network"] = nullptr;
    one["status"] = "fitted";
    one["note"] = better ? "its numbers were fitted to other rows"
                  : std::isfinite(as_it_is)
                      ? "no other numbers suit the other rows better"
                      : "it is not defined on all of the other rows, so its numbers were not fitted";
  }
  if (object.contains("targets")) {
    const json first = object["targets"][0];
    for (const auto& [key, value] : first.items())
      if (key != "targets") object[key] = value;
  }
  return object;
}

Result<json> fit_formulas_to(const std::filesystem::path& model, const std::filesystem::path& data) {
  return guarded([&]() -> Result<json> {
    const auto f = read_formulas(model);
    if (!f) return f.error();
    const auto read = rows_for(*f, data, NewTargets::needed);
    if (!read) return read.error();
    return fit_formulas(*f, read->x, read->y);
  });
}

}  // namespace gradloom::app
