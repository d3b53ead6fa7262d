#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "gradloom/data/labels.h"
#include "gradloom/data/source.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

constexpr std::size_t kMostCategories = 1000;
constexpr std::string_view kTarget = "data.target", kDrop = "data.drop", kWeight = "data.weight",
                           kCategorical = "data.categorical", kFeature = "the model";
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// From cells to columns of numbers. Failures travel as exceptions inside.
class TableEncoder {
 public:
  TableEncoder(const CsvTable& table, const RowSource& source, const RowCode* known)
      : table_(table), source_(source), known_(known) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) places_.emplace(table.columns[c], c);
  }

  LoadedRows run() {
    if (is_header_alone()) fail("there is a header, but no row follows it");
    choose_columns();
    choose_rows();
    RowParts<double> parts;
    parts.size = rows_.size();
    RowCode code = known_ ? *known_ : learn();
    if (code.features.empty()) fail("no column is left for the features");
    for (ColumnCode& column : code.features) add_feature(column);
    encode_targets(parts);
    if (!source_.weight.empty()) {
      const std::size_t column = find_column(source_.weight, kWeight);
      parts.weight = numbers(column, MissingPolicy::error);
      for (std::size_t r = 0; r < parts.size; ++r)
        if (parts.weight[r] < 0) fail("{} is negative, but a weight must be 0 or more", place(rows_[r], column));
    }
    parts.features = features_.size();
    interleave(features_, parts.size, parts.x);
    parts.feature_names = std::move(feature_names_);
    if (rows_.size() == table_.rows()) rows_.clear();
    return {RowDataset<double>(std::move(parts)), std::move(code), std::move(rows_)};
  }

 private:
  enum class Role { feature, target, weight, dropped };

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_invalid(fmt::format("{}: {}", table_.source, fmt::format(format, std::forward<Args>(args)...)));
  }

  // One row of words cannot be told from a header, and nothing could be learned from it either.
  bool is_header_alone() const {
    double value;
    return !known_ && !table_.has_header && table_.rows() == 1 && source_.csv.header == CsvHeader::automatic &&
           std::ranges::none_of(table_.cells, [&](std::string_view cell) { return parse_number(cell, value); });
  }

  std::string place(std::size_t row, std::size_t column) const {
    return fmt::format("line {} (row {}), column '{}': '{}'", table_.lines[row], row + 1, table_.columns[column],
                       table_.cell(row, column).substr(0, 40));
  }

  // `key` is what asked for the column, as a recipe names it.
  std::size_t find_column(const ColumnName& name, std::string_view key) const {
    if (const auto place = places_.find(name); place != places_.end()) return place->second;
    const auto& columns = table_.columns;
    if (const auto found = gradloom::find_column(columns, name)) return *found;
    double number = 0;
    if (!parse_number(name, number))
      fail("{} names the column '{}', which does not exist; the nearest is '{}'{}", key, name,
           nearest_name(name, columns), advice(key));
    fail("{0} names column {1}, which does not exist; the {2} columns are 0 to {3}, or -1 to -{2} from the end{4}", key,
         name, columns.size(), columns.size() - 1, advice(key));
  }

  // A shipped recipe may have set the key for other data.
  static std::string advice(std::string_view key) {
    return key == kDrop || key == kCategorical ? fmt::format("; {} = [] names none", key) : std::string();
  }

  static std::string_view key_of(Role role) {
    return role == Role::target ? kTarget : role == Role::weight ? kWeight : kDrop;
  }

  void assign(const ColumnName& name, Role role) {
    const std::size_t c = find_column(name, key_of(role));
    if (roles_[c] == role)
      fail("{} names the column '{}' twice{}", key_of(role), table_.columns[c], advice(key_of(role)));
    if (roles_[c] != Role::feature)
      fail("{} and {} both name the column '{}'{}", key_of(roles_[c]), key_of(role), table_.columns[c],
           advice(key_of(role)));
    roles_[c] = role;
  }

  void choose_columns() {
    roles_.assign(table_.columns.size(), Role::feature);
    if (source_.targets == Targets::absent) return choose_others();
    if (source_.target.empty()) fail("no target column is set ({})", kTarget);
    if (source_.task == Task::classification && source_.target.size() != 1)
      fail("classification needs one target column, not {}", source_.target.size());
    for (const ColumnName& name : source_.target) assign(name, Role::target);
    choose_others();
  }

  void choose_others() {
    for (const ColumnName& name : source_.drop) assign(name, Role::dropped);
    if (!source_.weight.empty()) assign(source_.weight, Role::weight);
    categorical_.assign(table_.columns.size(), false);
    for (const ColumnName& name : source_.categorical) categorical_[find_column(name, kCategorical)] = true;
  }

  bool is_missing(std::string_view cell) const {
    return std::find(source_.missing_words.begin(), source_.missing_words.end(), cell) != source_.missing_words.end();
  }

  void choose_rows() {
    rows_.reserve(table_.rows());
    for (std::size_t r = 0; r < table_.rows(); ++r) {
      bool keep = true;
      if (source_.missing == MissingPolicy::drop)
        for (std::size_t c = 0; c < roles_.size() && keep; ++c)
          keep = roles_[c] == Role::dropped || !is_missing(table_.cell(r, c));
      if (keep) rows_.push_back(static_cast<std::uint32_t>(r));
    }
    if (rows_.empty()) fail("every row has a missing value, so no row is left");
  }

  // The cells of a column as numbers; a missing one fails, or becomes NaN under `mean`.
  std::vector<double> numbers(std::size_t column, MissingPolicy missing) const {
    std::vector<double> values(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::string_view cell = table_.cell(rows_[i], column);
      double value = 0;
      if (!parse_number(cell, value) || std::isnan(value)) {
        if (!is_missing(cell))
          fail("{} is not a number{}", place(rows_[i], column),
               roles_[column] == Role::target ? "; classes are learned with task = \"classification\"" : "");
        if (missing != MissingPolicy::mean) fail_missing(rows_[i], column);
        value = kMissing;
      } else if (!std::isfinite(value)) {
        fail("{} is not finite", place(rows_[i], column));
      }
      values[i] = value;
    }
    return values;
  }

  [[noreturn]] void fail_missing(std::size_t row, std::size_t column) const {
    if (known_ && source_.missing == MissingPolicy::error)
      fail("{} is missing; the model was trained without missing values; data.missing = \"mean\" fills in the mean",
           place(row, column));
    if (source_.missing == MissingPolicy::mean)
      fail("{} is missing, and a target or weight cannot be filled in; data.missing = \"drop\" leaves such rows out",
           place(row, column));
    fail(
        "{} is missing; data.missing = \"drop\" leaves such rows out, \"mean\" fills in the mean of a column, "
        "data.drop "
        "leaves out columns",
        place(row, column));
  }

  enum class Kind { numbers, text };

  Kind kind_of(std::size_t column) const {
    if (categorical_[column]) return Kind::text;
    std::size_t numeric = 0, text = 0, first_text = 0;
    double value;
    for (std::size_t r : rows_) {
      const std::string_view cell = table_.cell(r, column);
      if (parse_number(cell, value))
        ++numeric;
      else if (!is_missing(cell) && text++ == 0)
        first_text = r;
    }
    if (text == 0) return Kind::numbers;
    if (numeric > text)
      fail("{} is not a number, but most of the column is; correct it, or name the column in data.categorical",
           place(first_text, column));
    return Kind::text;
  }

  RowCode learn() const {
    RowCode code{table_.has_header, table_.decimal == CsvDecimal::comma, table_.columns, {}};
    for (std::size_t c = 0; c < roles_.size(); ++c)
      if (roles_[c] == Role::feature) code.features.push_back({table_.columns[c], categories_of(c), {}});
    return code;
  }

  // The different categories of a text column; none for numbers.
  std::vector<std::string> categories_of(std::size_t column) const {
    if (kind_of(column) == Kind::numbers) return {};
    const std::string& name = table_.columns[column];
    if (source_.categories == CategoryPolicy::error)
      fail("the column '{}' holds text; name it in data.drop, or set data.categories to one-hot or ordinal", name);
    std::vector<std::string_view> cells;
    for (std::size_t r : rows_)
      if (!is_missing(table_.cell(r, column))) cells.push_back(table_.cell(r, column));
    if (cells.empty()) fail_empty(name);
    Labels labels = encode_labels(cells);
    if (source_.categories == CategoryPolicy::one_hot && labels.names.size() > kMostCategories)
      fail(
          "the column '{}' has {} different values, too many for one feature each; name it in data.drop, or set "
          "data.categories to "
          "ordinal",
          name, labels.names.size());
    return std::move(labels.names);
  }

  // Means that `code` does not have yet are taken from this table.
  void add_feature(ColumnCode& code) {
    const std::size_t column = find_column(code.name, kFeature);
    std::vector<std::vector<double>> features;
    if (code.categories.empty())
      features.push_back(numbers(column, source_.missing));
    else
      features = category_features(column, code);
    const bool one_hot = !code.categories.empty() && source_.categories == CategoryPolicy::one_hot;
    for (std::size_t k = 0; k < features.size(); ++k) {
      if (source_.missing == MissingPolicy::mean) {
        if (!known_) code.means.push_back(mean_of(features[k], code.name));
        fill(features[k], code.means.at(k), code.name);
      }
      feature_names_.push_back(one_hot ? fmt::format("{}={}", code.name, code.categories[k]) : code.name);
      features_.push_back(std::move(features[k]));
    }
  }

  // The features of a text column; a missing category fails, or becomes NaN under `mean`.
  std::vector<std::vector<double>> category_features(std::size_t column, const ColumnCode& code) const {
    const bool one_hot = source_.categories == CategoryPolicy::one_hot;
    const LabelIndex index(code.categories);
    std::vector<std::vector<double>> features(one_hot ? code.categories.size() : 1,
                                              std::vector<double>(rows_.size(), kMissing));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::string_view cell = table_.cell(rows_[i], column);
      if (is_missing(cell)) {
        if (source_.missing != MissingPolicy::mean) fail_missing(rows_[i], column);
        continue;
      }
      const auto category = index.find(cell);
      if (!category)
        fail("{} is a value that the model was not trained on; it knows {}", place(rows_[i], column),
             some_of(code.categories));
      if (!one_hot) features[0][i] = static_cast<double>(*category);
      for (std::size_t k = 0; k < features.size() && one_hot; ++k) features[k][i] = *category == k ? 1.0 : 0.0;
    }
    return features;
  }

  static std::string some_of(const std::vector<std::string>& categories) {
    constexpr std::size_t kMost = 20;
    const std::size_t shown = std::min(categories.size(), kMost);
    std::string text =
        fmt::format("'{}'", fmt::join(categories.begin(), categories.begin() + static_cast<long>(shown), "', '"));
    return shown == categories.size() ? text : fmt::format("{} and {} more", text, categories.size() - shown);
  }

  [[noreturn]] void fail_empty(const std::string& name) const {
    fail("every value of the column '{}' is missing; name it in data.drop", name);
  }

  double mean_of(const std::vector<double>& values, const std::string& name) const {
    double sum = 0;
    std::size_t count = 0;
    for (double v : values)
      if (!std::isnan(v)) sum += v, ++count;
    if (count == 0) fail_empty(name);
    return sum / static_cast<double>(count);
  }

  void fill(std::vector<double>& values, double mean, const std::string& name) const {
    for (double& v : values) {
      if (!std::isnan(v)) continue;
      if (!std::isfinite(mean)) fail("the mean of the column '{}' is not finite", name);
      v = mean;
    }
  }

  void encode_targets(RowParts<double>& parts) {
    if (source_.targets == Targets::absent) {
      parts.targets = 1;
      parts.target.assign(parts.size, 0.0);
      return;
    }
    if (source_.task == Task::classification) {
      const std::size_t column = find_column(source_.target[0], kTarget);
      std::vector<std::string_view> cells;
      for (std::size_t r : rows_) {
        cells.push_back(table_.cell(r, column));
        if (is_missing(cells.back())) fail_missing(r, column);
      }
      Labels labels = encode_labels(cells);
      parts.label = std::move(labels.index);
      parts.class_names = std::move(labels.names);
      parts.target_names = {};
      return;
    }
    std::vector<std::vector<double>> targets;
    for (const ColumnName& name : source_.target) {
      const std::size_t column = find_column(name, kTarget);
      targets.push_back(numbers(column, MissingPolicy::error));
      parts.target_names.push_back(table_.columns[column]);
    }
    parts.targets = targets.size();
    interleave(targets, parts.size, parts.target);
  }

  static void interleave(const std::vector<std::vector<double>>& columns, std::size_t rows, std::vector<double>& out) {
    out.resize(rows * columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c)
      for (std::size_t r = 0; r < rows; ++r) out[r * columns.size() + c] = columns[c][r];
  }

  const CsvTable& table_;
  const RowSource& source_;
  const RowCode* known_;                                      // null: learn it
  std::unordered_map<std::string_view, std::size_t> places_;  // of columns, by their names
  std::vector<Role> roles_;
  std::vector<bool> categorical_;
  std::vector<std::uint32_t> rows_;  // kept
  std::vector<std::vector<double>> features_;
  std::vector<std::string> feature_names_;
};

}  // namespace

Result<LoadedRows> rows_from_table(const CsvTable& table, const RowSource& source, const RowCode* known) {
  try {
    return TableEncoder(table, source, known).run();
  } catch (const Exception& e) {
    return e.error();
  }
}

}  // namespace gradloom
