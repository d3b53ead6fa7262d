#include "gradloom/data/source.h"

#include <fmt/format.h>

#include <new>

#include "gradloom/data/array_rows.h"
#include "gradloom/data/idx.h"
#include "gradloom/data/inflate.h"
#include "gradloom/data/npy.h"
#include "gradloom/io/file.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& message) {
  throw_invalid(fmt::format("{}: {}", source, message));
}

RowFormat format_of(const RowSource& source) {
  if (source.format != RowFormat::automatic) return source.format;
  if (is_idx_name(source.path)) return RowFormat::idx;
  std::filesystem::path path = source.path;
  if (path.extension() == ".gz") path.replace_extension();
  if (path.extension() == ".npy") return RowFormat::npy;
  return path.extension() == ".npz" ? RowFormat::npz : RowFormat::csv;
}

LoadedRows load_npz(const RowSource& source, const RowCode* known) {
  const NpzArrays arrays = read_npz(source.path, source.max_bytes).or_throw();
  const auto find = [&](const std::string& name) {
    const auto it = arrays.find(name);
    if (it != arrays.end()) return to_row_matrix(it->second, fmt::format("{}, array '{}'", source.path.string(), name));
    std::vector<std::string> names;
    for (const auto& entry : arrays) names.push_back(entry.first);
    fail(source.path.string(),
         fmt::format("there is no array '{}'; the nearest is '{}'", name, nearest_name(name, names)));
  };
  const RowMatrix x = find(source.npz_x);
  const bool features_alone = known && !arrays.contains(source.npz_y) && x.columns == known->features.size();
  if (source.npz_y.empty() || features_alone) return rows_from_arrays(x, nullptr, source, known);
  const RowMatrix y = find(source.npz_y);
  return rows_from_arrays(x, &y, source, known);
}

// Images, or any other array, with labels from a file of their own. New images may have none.
LoadedRows load_idx(const RowSource& source, const RowCode* known) {
  const RowMatrix x = to_row_matrix(read_idx(source.path, source.max_bytes).or_throw(), source.path.string());
  const std::filesystem::path labels = source.labels.empty() ? idx_labels_name(source.path) : source.labels;
  std::error_code ignored;
  const bool there = !labels.empty() && std::filesystem::exists(labels, ignored);
  if (known && !there && x.columns == known->features.size()) return rows_from_arrays(x, nullptr, source, known);
  if (!there)
    fail(source.path.string(),
         labels.empty() ? "the file of its labels cannot be derived from its name; set data.labels"
                        : fmt::format("there is no file {} with its labels; set data.labels", labels.string()));
  const RowMatrix y = to_row_matrix(read_idx(labels, source.max_bytes).or_throw(), labels.string());
  return rows_from_arrays(x, &y, source, known);
}

LoadedRows load_formulas(const RowSource& source) {
  if (source.formula.formulas.empty()) throw_invalid("no data is given: set a path, or one or more formulas");
  LoadedRows result{rows_from_formulas(source.formula, source.task == Task::classification).or_throw(), {}, {}};
  const ColumnStatistics statistics = column_statistics<double>(result.rows.all().x);
  for (std::size_t i = 0; i < result.rows.features(); ++i)
    result.code.features.push_back({result.rows.feature_names()[i], {}, {statistics.mean[i]}});
  return result;
}

}  // namespace

bool is_text_table(const RowSource& source) { return !source.path.empty() && format_of(source) == RowFormat::csv; }

Result<CsvTable> read_table(const RowSource& source) {
  auto text = read_file(source.path, source.max_bytes);
  if (text && looks_like_gzip(*text))
    text = inflate_bytes(*text, Compression::gzip, source.max_bytes, source.path.string());
  if (!text) return text.error();
  return parse_csv(std::move(*text), source.csv, source.path.string());
}

Result<LoadedRows> load_coded_rows(const RowSource& source, const RowCode* known) {
  try {
    if (source.path.empty()) return load_formulas(source);
    switch (format_of(source)) {
      case RowFormat::npy: {
        const NpyArray array = read_npy(source.path, source.max_bytes).or_throw();
        return rows_from_arrays(to_row_matrix(array, source.path.string()), nullptr, source, known);
      }
      case RowFormat::npz:
        return load_npz(source, known);
      case RowFormat::idx:
        return load_idx(source, known);
      case RowFormat::automatic:
      case RowFormat::csv:
        break;
    }
    return rows_from_table(read_table(source).or_throw(), source, known);
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, fmt::format("{}: not enough memory to load the data", source.path.string())};
  }
}

Result<RowDataset<double>> load_rows(const RowSource& source) {
  auto loaded = load_coded_rows(source);
  if (!loaded) return loaded.error();
  return std::move(loaded->rows);
}

}  // namespace gradloom
