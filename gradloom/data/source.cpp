#include "gradloom/data/source.h"

#include <fmt/format.h>

#include <cmath>
#include <new>

#include "gradloom/data/inflate.h"
#include "gradloom/data/labels.h"
#include "gradloom/data/npy.h"
#include "gradloom/io/file.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& message) {
  throw Exception(ErrorCode::invalid_input, fmt::format("{}: {}", source, message));
}

struct Matrix {
  std::string source;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // (rows, columns)
};

// All dimensions after the first become columns; a vector is one column.
Matrix to_matrix(const NpyArray& array, std::string source) {
  if (array.shape.empty()) fail(source, "the array is a single number; rows are needed");
  Matrix m{std::move(source), array.shape[0], 1, array.to_doubles()};
  for (std::size_t d = 1; d < array.shape.size(); ++d) m.columns *= array.shape[d];
  if (m.rows == 0 || m.columns == 0) fail(m.source, "the array is empty");
  return m;
}

// `key` is what asked for the column, as a recipe names it.
std::size_t column_of(const ColumnName& name, const Matrix& m, std::string_view key) {
  const auto width = static_cast<long long>(m.columns);
  double number = 0;
  if (!parse_number(name, number) || number != std::floor(number) || number < static_cast<double>(-width) ||
      number >= static_cast<double>(width))
    fail(
        m.source,
        fmt::format("{} names the column '{}', which is not there; arrays have numbers as columns, here 0 to {}, or -1 "
                    "to -{} from the end",
                    key, name, width - 1, width));
  return static_cast<std::size_t>(number < 0 ? number + static_cast<double>(width) : number);
}

// Columns that keep their order, apart from those with another purpose.
RowDataset<double> encode(const Matrix& x, const Matrix* y, const RowSource& source) {
  enum class Role { feature, target, weight, dropped };
  if (!source.categorical.empty())
    fail(x.source, "data.categorical is for text files; the columns of an array are numbers");
  std::vector<Role> roles(x.columns, Role::feature);
  const auto assign = [&](const ColumnName& name, Role role, std::string_view key) {
    Role& old = roles[column_of(name, x, key)];
    if (old != Role::feature)
      fail(x.source,
           fmt::format("{} names the column {}, which data.target, data.drop or data.weight names already", key, name));
    old = role;
  };
  std::vector<std::size_t> targets;
  if (y == nullptr) {
    for (const ColumnName& name : source.target) {
      assign(name, Role::target, "data.target");
      targets.push_back(column_of(name, x, "data.target"));
    }
  } else {
    for (std::size_t c = 0; c < y->columns; ++c) targets.push_back(c);
  }
  for (const ColumnName& name : source.drop) assign(name, Role::dropped, "data.drop");
  if (!source.weight.empty()) assign(source.weight, Role::weight, "data.weight");
  const Matrix& labels = y ? *y : x;
  if (labels.rows != x.rows)
    fail(x.source, fmt::format("there are {} rows of features and {} of targets", x.rows, labels.rows));
  if (targets.empty()) fail(x.source, "no target column is given");
  if (source.task == Task::classification && targets.size() != 1)
    fail(x.source, fmt::format("classification needs one target column, not {}", targets.size()));

  RowParts<double> p;
  std::vector<double> target;
  std::vector<std::size_t> missing;  // places in p.x
  for (Role role : roles) p.features += role == Role::feature;
  if (p.features == 0) fail(x.source, "no column is left for the features");
  for (std::size_t r = 0; r < x.rows; ++r) {
    bool drop = false;
    const auto check = [&](const Matrix& m, std::size_t c, bool fill) {
      const double v = m.values[r * m.columns + c];
      if (std::isfinite(v)) return v;
      if (std::isnan(v) && source.missing == MissingPolicy::drop) drop = true;
      if (!std::isnan(v) || source.missing == MissingPolicy::error || (source.missing == MissingPolicy::mean && !fill))
        fail(m.source,
             fmt::format("row {}, column {} (from 0) is {}; correct it, or leave the row or column out", r, c, v));
      return v;
    };
    std::vector<double> row_x, row_y;
    double weight = 1;
    for (std::size_t c = 0; c < x.columns; ++c) {
      if (roles[c] == Role::feature) row_x.push_back(check(x, c, true));
      if (roles[c] == Role::weight) weight = check(x, c, false);
    }
    for (std::size_t c : targets) row_y.push_back(check(labels, c, false));
    if (drop) continue;
    for (double v : row_x) {
      if (std::isnan(v)) missing.push_back(p.x.size());
      p.x.push_back(v);
    }
    target.insert(target.end(), row_y.begin(), row_y.end());
    if (weight < 0) fail(x.source, fmt::format("the weight of row {} is negative", r));
    if (!source.weight.empty()) p.weight.push_back(weight);
    ++p.size;
  }
  if (p.size == 0) fail(x.source, "a value is missing in every row, so none is left");

  if (!missing.empty()) {
    std::vector<double> sum(p.features, 0), count(p.features, 0);
    for (std::size_t i = 0; i < p.x.size(); ++i)
      if (!std::isnan(p.x[i])) sum[i % p.features] += p.x[i], count[i % p.features] += 1;
    for (std::size_t i : missing) {
      p.x[i] = sum[i % p.features] / count[i % p.features];
      if (!std::isfinite(p.x[i])) fail(x.source, fmt::format("feature {} has no finite mean", i % p.features));
    }
  }
  if (source.task == Task::classification) {
    Labels encoded = encode_labels(std::span<const double>(target));
    p.label = std::move(encoded.index);
    p.class_names = std::move(encoded.names);
  } else {
    p.targets = targets.size();
    p.target = std::move(target);
  }
  return RowDataset<double>(std::move(p));
}

RowFormat format_of(const RowSource& source) {
  if (source.format != RowFormat::automatic) return source.format;
  std::filesystem::path path = source.path;
  if (path.extension() == ".gz") path.replace_extension();
  if (path.extension() == ".npy") return RowFormat::npy;
  return path.extension() == ".npz" ? RowFormat::npz : RowFormat::csv;
}

RowDataset<double> load_npz(const RowSource& source) {
  const NpzArrays arrays = read_npz(source.path, source.max_bytes).or_throw();
  const auto find = [&](const std::string& name) {
    const auto it = arrays.find(name);
    if (it != arrays.end()) return to_matrix(it->second, fmt::format("{}, array '{}'", source.path.string(), name));
    std::vector<std::string> names;
    for (const auto& entry : arrays) names.push_back(entry.first);
    fail(source.path.string(),
         fmt::format("there is no array '{}'; the nearest is '{}'", name, nearest_name(name, names)));
  };
  const Matrix x = find(source.npz_x);
  if (source.npz_y.empty()) return encode(x, nullptr, source);
  const Matrix y = find(source.npz_y);
  return encode(x, &y, source);
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

Result<RowDataset<double>> load_rows(const RowSource& source) {
  try {
    if (source.path.empty()) {
      if (source.formula.formulas.empty())
        return Error{ErrorCode::invalid_input, "no data is given: set a path, or one or more formulas"};
      return rows_from_formulas(source.formula, source.task == Task::classification);
    }
    switch (format_of(source)) {
      case RowFormat::npy:
        return encode(to_matrix(read_npy(source.path, source.max_bytes).or_throw(), source.path.string()), nullptr,
                      source);
      case RowFormat::npz:
        return load_npz(source);
      default:
        return rows_from_table(read_table(source).or_throw(), source);
    }
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, fmt::format("{}: not enough memory to load the data", source.path.string())};
  }
}

}  // namespace gradloom
