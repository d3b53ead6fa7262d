#include "gradloom/data/new_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "gradloom/data/align.h"

namespace gradloom {
namespace {

using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;  // of names that outlive it

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Which columns of a new table are what. Failures travel as exceptions inside.
class TableMatch {
 public:
  TableMatch(const RowSource& source, const LoadedRows& training, CsvTable& table, NewTargets wanted)
      : source_(source), training_(training), code_(training.code), table_(table), wanted_(wanted) {
    for (const ColumnCode& column : code_.features) features_.push_back(column.name);
    is_feature_.insert(features_.begin(), features_.end());
  }

  // How to read the table, whose columns get names where they have none.
  RowSource run() {
    RowSource found = source_;
    found.path = table_.source;
    found.categorical.clear();  // the code knows
    found.drop.clear();
    const bool of_formulas = source_.path.empty();
    if (!table_.has_header) name_columns(of_formulas);
    const NameSet there(table_.columns.begin(), table_.columns.end());
    for (const std::string& name : features_)
      if (!there.contains(name)) fail("has no column '{}', which the model was trained on", name);
    if (of_formulas)
      match_formulas(found);
    else
      match_file(found);
    return found;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_invalid(fmt::format("{} {}", table_.source, fmt::format(format, std::forward<Args>(args)...)));
  }

  // Columns without names get those of the training data, with or without targets.
  void name_columns(bool of_formulas) {
    Names all = code_.columns, rest = features_;
    if (of_formulas) {
      all = features_;
      for (std::size_t t = 0; t < targets(); ++t) all.push_back(fmt::format("target {}", t + 1));
    } else {
      if (code_.has_header) fail("has no header, but the training file has one, and columns are matched by name");
      const Names target = names_of(source_.target);
      rest = all;
      std::erase_if(rest, [&](const std::string& name) { return contains(target, name); });
    }
    const std::size_t width = table_.columns.size();
    if (width != all.size() && width != rest.size())
      fail("has {} columns; the training data have {}, and {} without targets", width, all.size(), rest.size());
    table_.columns = width == all.size() ? all : rest;
  }

  std::size_t targets() const { return training_.rows.is_classification() ? 1 : training_.rows.outputs(); }

  // Targets of formulas have no names that a file could know.
  void match_formulas(RowSource& found) const {
    found.target.clear();
    for (const std::string& name : table_.columns)
      if (!is_feature_.contains(name)) found.target.push_back(name);
    if (found.target.empty())
      found.targets = Targets::absent;
    else if (found.target.size() != targets())
      fail("has {} columns beside the variables, but the model has {}", found.target.size(),
           targets() == 1 ? "one target" : fmt::format("{} targets", targets()));
  }

  void match_file(RowSource& found) const {
    const Names dropped = names_of(source_.drop);
    const std::string weight = source_.weight.empty() ? "" : names_of({source_.weight})[0];
    match_targets(found);
    found.weight = found.targets == Targets::present ? weight : "";
    if (!found.weight.empty() && !contains(table_.columns, weight))
      fail("has no column '{}', which data.weight names", weight);
    for (const std::string& name : table_.columns) {
      if (is_feature_.contains(name) || contains(found.target, name) || name == found.weight) continue;
      if (!contains(dropped, name) && name != weight)
        fail("has the column '{}', which the training file does not have", name);
      found.drop.push_back(name);
    }
  }

  // Numbers of columns count in the training file; without its targets they would mean others.
  Names names_of(const std::vector<ColumnName>& asked) const {
    Names names;
    for (const ColumnName& column : asked) {
      const auto place = find_column(code_.columns, column);
      names.push_back(place ? code_.columns[*place] : column);
    }
    return names;
  }

  void match_targets(RowSource& found) const {
    found.target = names_of(source_.target);
    const auto is_there = [&](const std::string& name) { return contains(table_.columns, name); };
    const bool by_place = wanted_ == NewTargets::needed && table_.columns.size() == code_.columns.size();
    for (std::size_t t = 0; t < found.target.size() && by_place; ++t) {  // one with a number may have another name
      const auto place = find_column(table_.columns, source_.target[t]);
      if (!is_there(found.target[t]) && place && !contains(code_.columns, table_.columns[*place]))
        found.target[t] = table_.columns[*place];
    }
    const auto lacking = std::find_if_not(found.target.begin(), found.target.end(), is_there);
    if (lacking == found.target.end()) return;
    if (wanted_ == NewTargets::needed || std::any_of(found.target.begin(), found.target.end(), is_there))
      fail("has no column '{}', which data.target names", *lacking);
    found.target.clear();
    found.targets = Targets::absent;
  }

  const RowSource& source_;
  const LoadedRows& training_;
  const RowCode& code_;
  CsvTable& table_;
  NewTargets wanted_;
  Names features_;  // columns that the model needs
  NameSet is_feature_;
};

// Targets that mean nothing, in the shape of those of the training data.
RowDataset<double> with_blank_targets(const RowDataset<double>& rows, const RowDataset<double>& like) {
  RowParts<double> parts = rows.parts();
  parts.targets = like.is_classification() ? 0 : like.outputs();
  parts.target.assign(parts.size * parts.targets, 0.0);
  parts.target_names = like.target_names();
  parts.label.assign(like.is_classification() ? parts.size : 0, 0);
  parts.class_names = like.class_names();
  return RowDataset<double>(std::move(parts));
}

// The table is read as the training file was.
CsvOptions csv_options(const RowSource& source, const LoadedRows& training) {
  CsvOptions csv = source.csv;
  if (source.path.empty()) {
    csv.header_names = training.rows.feature_names();
  } else {
    csv.header_names = training.code.columns;
    if (training.code.decimal_comma) csv.usual_decimal = CsvDecimal::comma;
    if (!training.code.has_header) csv.header = CsvHeader::absent;
  }
  return csv;
}

LoadedRows load_array(const RowSource& source, const LoadedRows& training, RowSource added) {
  if (source.path.empty()) {  // formulas: the last columns are the targets
    added.target.clear();
    for (std::size_t t = training.rows.is_classification() ? 1 : training.rows.outputs(); t > 0; --t)
      added.target.push_back(fmt::format("-{}", t));
  }
  return load_coded_rows(added, &training.code).or_throw();
}

// Rows of a table with the columns of the training file; targets are blank where it has none.
LoadedRows match_table(const RowSource& source, const LoadedRows& training, CsvTable table, NewTargets wanted) {
  const RowSource found = TableMatch(source, training, table, wanted).run();
  LoadedRows rows = rows_from_table(table, found, &training.code).or_throw();
  rows.has_targets = found.targets == Targets::present;
  return rows;
}

// In the features and classes of the training rows.
NewRows<double> align_new(const LoadedRows& training, LoadedRows loaded, std::string_view name) {
  if (!loaded.has_targets) loaded.rows = with_blank_targets(loaded.rows, training.rows);
  auto aligned = align_rows(training.rows, loaded.rows);
  if (!aligned) throw Exception(aligned.error().code, fmt::format("{}: {}", name, aligned.error().message));
  for (std::uint32_t& row : loaded.kept) ++row;
  return {std::move(*aligned), loaded.has_targets, std::move(loaded.kept)};
}

}  // namespace

Result<NewRows<double>> load_new_rows(const RowSource& source, const LoadedRows& training,
                                      const std::filesystem::path& path, NewTargets wanted) try {
  RowSource added = source;
  added.path = path;
  added.labels.clear();  // those of the training file
  const auto kind = [](const RowSource& s) { return is_text_table(s) ? "a text table" : "an array"; };
  if (!source.path.empty() && is_text_table(source) != is_text_table(added))
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} is {}, but the training file {}", path.string(), kind(added), kind(source))};
  if (is_text_table(added)) {
    added.csv = csv_options(source, training);
    return align_new(training, match_table(source, training, read_table(added).or_throw(), wanted), path.string());
  }
  LoadedRows loaded = load_array(source, training, added);
  if (!loaded.has_targets && wanted == NewTargets::needed)
    return Error{ErrorCode::invalid_input, fmt::format("{} has only the features, without targets", path.string())};
  return align_new(training, std::move(loaded), path.string());
} catch (const Exception& e) {
  return e.error();
}

Result<NewRows<double>> new_rows_from_text(const RowSource& source, const LoadedRows& training, std::string text,
                                           std::string_view name, NewTargets wanted) try {
  CsvTable table = parse_csv(std::move(text), csv_options(source, training), name).or_throw();
  return align_new(training, match_table(source, training, std::move(table), wanted), name);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
