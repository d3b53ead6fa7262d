#include "gradloom/app/settings.h"

#include <fmt/format.h>

#include <cmath>
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

RowSource row_source(const RowFamilyOptions& o, const std::filesystem::path& data_root) {
  RowSource s = o.data.source;
  s.task = o.task;
  if (o.data.path) {
    s.path = data_path(o.data.root, *o.data.path, data_root);
    if (o.data.labels) s.labels = data_path(o.data.root, *o.data.labels, data_root);
  } else if (o.data.formula) {  // a model of rows from memory has neither
    s.formula.formulas = split_formulas(*o.data.formula);
    s.formula.seed = data_seed(o);
  }
  return s;
}

// An empty name takes back what a shipped recipe sets.
bool has_test_file(const RowDataOptions& data) { return data.test_path && !data.test_path->empty(); }

// Test samples of a formula follow its training samples in the same stream, without the noise.
Result<RowDataset<double>> formula_test_rows(std::size_t test, RowSource source) {
  const std::size_t train = source.formula.samples;
  source.formula.samples = train + test;
  source.formula.noise = 0.0;
  auto all = load_rows(source);
  if (!all) return all.error();
  std::vector<std::uint32_t> rows(test);
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(train));
  return all->subset(rows);
}

}  // namespace

std::filesystem::path data_path(const std::string& root, const FileName& name, const std::filesystem::path& data_root) {
  if (!root.empty()) return std::filesystem::path(root) / name.text;
  std::error_code unreadable;
  return std::filesystem::exists(name.text, unreadable) ? std::filesystem::path(name.text) : data_root / name.text;
}

std::vector<std::filesystem::path> data_paths(const Config& r, const std::filesystem::path& data_root) {
  std::vector<std::filesystem::path> paths;
  for (const SchemaKey& key : r.schema().keys())
    if (key.names_file && r.has(key.path) && !r.string(key.path).empty())
      paths.push_back(data_path(r.string("data.root"), {r.string(key.path)}, data_root));
  return paths;
}

Error with_places(Error error, const Config& r, const std::filesystem::path& data_root) {
  const bool has_root = r.schema().find("data.root") < r.schema().keys().size();
  if (error.code == ErrorCode::not_found && has_root && r.string("data.root").empty())
    error.message += fmt::format(
        "; data are looked for in the current folder, then in $GRADLOOM_DATA{} (or only in data.root, if set); "
        "docs/data.md says where to get public data sets",
        data_root == "." ? ", which is not set" : "");
  return error;
}

Result<RowSplits> load_splits(const RowFamilyOptions& o, const std::filesystem::path& data_root) {
  const RowDataOptions& data = o.data;
  if (data.path && data.formula && !data.formula->empty())
    return Error{
        ErrorCode::invalid_input,
        "data.path and data.formula are both set; set only one of them (an empty value removes what a recipe sets)"};
  if (!data.path && !data.formula)
    return Error{ErrorCode::invalid_input,
                 "the recipe names no data: set data.path to a CSV, .npy, .npz or IDX file (--set data.path=FILE), or "
                 "data.formula"};
  if (has_test_file(data) && (!data.path || data.folds > 0))
    return Error{ErrorCode::invalid_input,
                 "data.test_path needs data.path and excludes data.folds: all test samples come from it"};
  const RowSource source = row_source(o, data_root);
  auto loaded = load_coded_rows(source);
  if (!loaded) return loaded.error();
  const bool formula = !data.path;
  RowDataOptions split = data;
  if (data.folds == 0 && (formula || has_test_file(data))) split.test = 0.0;
  auto made = split_rows(*loaded, split, data_seed(o));
  if (!made) return made.error();
  RowSplits parts = std::move(*made);
  if (formula && data.test_samples > 0 && data.folds == 0) {
    auto test = formula_test_rows(data.test_samples, source);
    if (!test) return test.error();
    parts.test = std::move(*test);
  }
  if (has_test_file(data)) {
    auto test = load_new_rows(source, *loaded, data_path(data.root, *data.test_path, data_root), NewTargets::needed);
    if (!test) return test.error();
    parts.test = std::move(test->rows);
  }
  return parts;
}

Result<NewRows<double>> load_new_rows(const RowFamilyOptions& o, const std::filesystem::path& data_root,
                                      const LoadedRows& training, const std::filesystem::path& file,
                                      double largest_input) {
  auto read = gradloom::load_new_rows(row_source(o, data_root), training, file, NewTargets::optional);
  if (!read) return read;
  const RowBatch<double> all = read->rows.all();
  for (std::size_t r = 0; r < all.size; ++r)
    for (std::size_t i = 0; i < read->rows.features(); ++i)
      if (std::abs(all.x(r, i)) > largest_input)
        return Error{ErrorCode::invalid_input,
                     fmt::format("{}: row {}: '{}' is {}, which is too large for {}, the precision of the model",
                                 file.string(), read->numbers.empty() ? r + 1 : read->numbers[r],
                                 read->rows.feature_names()[i], all.x(r, i), name_of(kPrecisions, o.precision))};
  return read;
}

}  // namespace gradloom::app
