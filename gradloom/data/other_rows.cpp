#include "gradloom/data/other_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "gradloom/data/align.h"

namespace gradloom {
namespace {

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the names are those that parse_csv gives to columns without a header.
bool are_made_up(const Names& columns) {
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c] != fmt::format("column{}", c + 1)) return false;
  return true;
}

// The columns of what the model was trained on. Those of formulas have the names of features and targets.
Names training_columns(const RowSource& source, const RowDataset<double>& like) {
  if (!source.path.empty()) return read_table(source).or_throw().columns;
  Names columns = like.feature_names();
  columns.insert(columns.end(), like.target_names().begin(), like.target_names().end());
  if (like.is_classification()) columns.push_back("class");
  return columns;
}

// Numbers of columns count in the training file; without its targets they would mean others.
void name_columns(const Names& columns, std::span<ColumnName> asked) {
  for (ColumnName& column : asked)
    if (const auto found = find_column(columns, column)) column = columns[*found];
}

// How to read `other`. Tables with headers are matched by name: a dropped column may be missing, and so may the targets
// when everything else is there. Without headers places count, and the columns get those of the training file.
RowSource fitted(const RowSource& source, const Names& columns, CsvTable& other) {
  RowSource named = source;
  for (auto* asked : {&named.target, &named.drop, &named.categorical}) name_columns(columns, *asked);
  name_columns(columns, {&named.weight, named.weight.empty() ? std::size_t{0} : std::size_t{1}});
  Names rest;
  for (const std::string& name : columns)
    if (!contains(named.target, name)) rest.push_back(name);
  if (are_made_up(columns) || are_made_up(other.columns)) {
    if (!are_made_up(columns) || rest.size() == columns.size() || other.columns.size() != rest.size()) return source;
    other.columns = rest;
  }
  const auto is_there = [&](const std::string& name) { return contains(other.columns, name); };
  const bool needs_nothing = std::all_of(
      rest.begin(), rest.end(), [&](const std::string& name) { return is_there(name) || contains(named.drop, name); });
  std::erase_if(named.drop, [&](const ColumnName& name) { return !is_there(name); });
  if (needs_nothing && std::none_of(named.target.begin(), named.target.end(), is_there))
    named.targets = Targets::absent;
  return named;
}

}  // namespace

Result<OtherRows> load_other_rows(const RowSource& source, const RowDataset<double>& like,
                                  const std::filesystem::path& path) try {
  RowSource other = source;
  other.path = path;
  OtherRows result{like, true};
  if (source.path.empty()) {  // formulas: the last columns are the targets
    other.target.clear();
    for (std::size_t t = like.is_classification() ? 1 : like.outputs(); t > 0; --t)
      other.target.push_back(fmt::format("-{}", t));
  }
  if ((source.path.empty() || is_text_table(source)) && is_text_table(other)) {
    CsvTable table = read_table(other).or_throw();
    // Targets of formulas have no names that a file could know; where there are as many columns, their places count.
    const Names columns = training_columns(source, like);
    if (!source.path.empty() || table.columns.size() != columns.size()) other = fitted(other, columns, table);
    result.rows = rows_from_table(table, other).or_throw();
    result.has_targets = other.targets == Targets::present;
    if (!result.has_targets) {
      RowParts<double> parts = result.rows.parts();
      parts.targets = like.is_classification() ? 0 : like.outputs();
      parts.target.assign(parts.size * parts.targets, 0.0);
      parts.target_names = like.target_names();
      parts.label.assign(like.is_classification() ? parts.size : 0, 0);
      parts.class_names = like.class_names();
      result.rows = RowDataset<double>(std::move(parts));
    }
  } else {
    result.rows = load_rows(other).or_throw();
  }
  auto aligned = align_rows(like, result.rows);
  if (!aligned) return Error{aligned.error().code, fmt::format("{}: {}", path.string(), aligned.error().message)};
  result.rows = std::move(*aligned);
  return result;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
