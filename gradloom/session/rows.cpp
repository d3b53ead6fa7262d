#include "gradloom/session/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/data/split.h"

namespace gradloom {
namespace {

using nlohmann::json;

std::vector<FeatureRange> ranges_of(const RowDataset<double>& rows) {
  std::vector<FeatureRange> ranges;
  const RowBatch<double> all = rows.all();
  for (std::size_t i = 0; i < rows.features() && all.size > 0; ++i) {
    FeatureRange range{all.x(0, i), all.x(0, i)};
    for (std::size_t s = 1; s < all.size; ++s)
      range = {std::min(range.low, all.x(s, i)), std::max(range.high, all.x(s, i))};
    ranges.push_back(range);
  }
  return ranges;
}

json code_json(const RowCode& code) {
  json features = json::array();
  for (const ColumnCode& column : code.features)
    features.push_back({{"name", column.name}, {"categories", column.categories}, {"means", column.means}});
  json entry{{"header", code.has_header}, {"columns", code.columns}, {"features", features}};
  if (code.decimal_comma) entry["decimal"] = ",";
  return entry;
}

// How many features a column has, and whether its means are there where new rows may need them.
std::size_t check_column(const EntryReader& reader, const ColumnCode& column, const RowSource& source) {
  const bool one_hot = !column.categories.empty() && source.categories == CategoryPolicy::one_hot;
  const std::size_t features = one_hot ? column.categories.size() : 1;
  if (column.means.size() != features && (!column.means.empty() || source.missing == MissingPolicy::mean))
    reader.fail(
        fmt::format("the column '{}' has {} means for {} features", column.name, column.means.size(), features));
  return features;
}

RowCode restore_code(const ModelDescription& description, const RowSource& source) {
  RowCode code;
  if (description.input.is_null()) {  // version 1: the names are all that is known
    for (const std::string& name : description.features) code.features.push_back({name, {}, {}});
    return code;
  }
  EntryReader reader(description.input, "input");
  code.has_header = reader.flag("header");
  code.columns = reader.names("columns");
  const json& list = reader.at("features");
  if (reader.has("decimal")) {
    const auto decimal = value_of<CsvDecimal>(kCsvDecimals, reader.text("decimal"), "input.decimal").or_throw();
    code.decimal_comma = decimal == CsvDecimal::comma;
  }
  reader.done();
  if (!list.is_array()) reader.fail("'features' is not a list");
  std::size_t features = 0;
  for (const json& element : list) {
    EntryReader column(element, "input");
    ColumnCode next{column.text("name"), column.names("categories"), column.numbers("means")};
    column.done();
    features += check_column(column, next, source);
    code.features.push_back(std::move(next));
  }
  if (features != description.features.size())
    reader.fail(
        fmt::format("its columns make {} features, but the model has {}", features, description.features.size()));
  return code;
}

}  // namespace

RowSchema row_schema(const RowSplits& parts) {
  // A row is enough to tell names and classes.
  return {{parts.train.subset(std::vector<std::uint32_t>(parts.train.size() > 0)), parts.code, {}},
          parts.ranges.empty() ? ranges_of(parts.train) : parts.ranges};
}

std::vector<std::size_t> outside_of_ranges(const std::vector<FeatureRange>& ranges, const RowDataset<double>& rows) {
  std::vector<std::size_t> found;
  if (ranges.empty()) return found;
  const View<const double, 2> x = rows.all().x;
  for (std::size_t r = 0; r < x.extent(0); ++r) {
    std::size_t outside = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) outside += x(r, i) < ranges[i].low || x(r, i) > ranges[i].high;
    found.push_back(outside);
  }
  return found;
}

std::optional<std::size_t> count_outside(const std::vector<FeatureRange>& ranges, const RowDataset<double>& rows) {
  if (ranges.empty()) return std::nullopt;
  const std::vector<std::size_t> found = outside_of_ranges(ranges, rows);
  return static_cast<std::size_t>(std::ranges::count_if(found, [](std::size_t features) { return features > 0; }));
}

std::vector<std::string> table_warnings(const RowSplits& parts, const RowSource& source) {
  std::vector<std::string> found;
  std::size_t rows = parts.train.size();
  for (const auto* part : {&parts.validation, &parts.test})
    if (*part) rows += (*part)->size();
  if (parts.train.size() == 0) return found;
  for (const ColumnCode& column : parts.code.features)
    if (column.categories.size() > std::max<std::size_t>(20, rows / 5))
      found.push_back(
          fmt::format("column '{}' has {} values in {} rows; leave it out with data.drop, or turn it into "
                      "a number",
                      column.name, column.categories.size(), rows));
  const std::vector<std::string>& classes = parts.train.class_names();
  if (!parts.train.is_classification() || classes.size() <= std::max<std::size_t>(10, rows / 5)) return found;
  const bool numbers = std::ranges::all_of(classes, [](const std::string& name) {
    double value;
    return parse_number(name, value);
  });
  const std::string target = source.target.empty() ? std::string() : fmt::format(" '{}'", source.target[0]);
  found.push_back(fmt::format("the target{} has {} classes in {} rows; {}", target, classes.size(), rows,
                              numbers ? "numbers are learned by regression, such as the recipe kan-tabular with task = "
                                        "\"regression\""
                                      : "is it the right column for data.target?"));
  return found;
}

std::vector<std::string> target_columns(const RowFamilyOptions& options, const LoadedRows& training) {
  const RowDataset<double>& rows = training.rows;
  if (rows.is_classification()) {
    const std::vector<ColumnName>& asked = options.data.source.target;
    const auto place = asked.empty() ? std::nullopt : find_column(training.code.columns, asked[0]);
    return {place ? training.code.columns[*place] : "class"};
  }
  std::vector<std::string> names = rows.target_names();
  for (std::size_t j = names.size(); j < rows.outputs(); ++j) names.push_back(fmt::format("y{}", j + 1));
  return names;
}

ModelDescription describe_rows(const RowFamilyOptions& options, const RowSchema& schema) {
  const RowDataset<double>& rows = schema.training.rows;
  ModelDescription d;
  d.features = rows.feature_names();
  if (!rows.is_classification()) d.targets = target_columns(options, schema.training);
  d.classes = rows.class_names();
  RowCode code = schema.training.code;
  if (code.features.empty())  // rows from memory
    for (const std::string& name : d.features) code.features.push_back({name, {}, {}});
  d.input = code_json(code);
  d.ranges = schema.ranges;
  return d;
}

Result<RowSplits> split_rows(const LoadedRows& loaded, const RowDataOptions& data, std::uint64_t seed) {
  const RowDataset<double>& rows = loaded.rows;
  if (rows.is_classification() && rows.outputs() < 2)
    return Error{ErrorCode::invalid_input, fmt::format("every sample has the class '{}'; there is nothing to learn",
                                                       rows.outputs() == 1 ? rows.class_names()[0] : "")};
  Split split;
  if (data.folds > 0) {
    if (data.folds < 2 || data.fold >= data.folds || data.folds > rows.size())
      return Error{ErrorCode::invalid_input,
                   fmt::format("data.fold = {} of data.folds = {} does not exist for {} samples; folds "
                               "are 2 to the number of samples, counted from 0",
                               data.fold, data.folds, rows.size())};
    split = make_fold(rows.size(), data.folds, data.fold, seed, rows.parts().label);
    hold_out(split, data.validation, seed, rows.parts().label);
  } else {
    if (data.validation + data.test >= 1.0)
      return Error{
          ErrorCode::invalid_input,
          fmt::format("data.validation = {} and data.test = {} leave nothing to train on", data.validation, data.test)};
    split = make_split(rows.size(), SplitFractions{1.0 - data.validation - data.test, data.validation, data.test}, seed,
                       rows.parts().label);
  }
  if (split.train.empty())
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} samples leave nothing to train on after the split", rows.size())};
  RowSplits parts{rows.subset(split.train), std::nullopt, std::nullopt, loaded.code, {}, {}};
  if (!split.validation.empty()) parts.validation = rows.subset(split.validation);
  if (!split.test.empty()) parts.test = rows.subset(split.test);
  return parts;
}

RowSplits no_rows(const ModelDescription& description) {
  if (description.features.empty() || description.targets.empty() == description.classes.empty() ||
      description.classes.size() == 1)
    throw_invalid(
        fmt::format("a model of rows has features, and targets or several classes, not {} features, {} "
                    "targets and {} classes",
                    description.features.size(), description.targets.size(), description.classes.size()));
  RowParts<double> parts;
  parts.features = description.features.size();
  parts.targets = description.targets.size();
  parts.feature_names = description.features;
  parts.target_names = description.targets;
  parts.class_names = description.classes;
  return {RowDataset<double>(std::move(parts)), std::nullopt, std::nullopt, {}, {}, {}};
}

RowSplits restore_rows(const ModelDescription& description, const RowFamilyOptions& options) {
  RowSplits rows = no_rows(description);
  rows.code = restore_code(description, options.data.source);
  rows.ranges = description.ranges;
  return rows;
}

}  // namespace gradloom
