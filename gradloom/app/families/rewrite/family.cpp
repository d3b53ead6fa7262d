// Rewriting of expressions in the application: they are drawn, so there is nothing to load.
#include "gradloom/session/families/rewrite/family.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
#include "gradloom/io/file.h"
#include "gradloom/models/graph/rewrite_run.h"

namespace gradloom::app {

Result<NoSource> load_rewrite(const RewriteOptions&, const std::filesystem::path&) { return NoSource(); }

template <class T>
void describe(const TypedSession<RewriteFamily<T>>& session, const RunResult& result, Report& report) {
  const RewriteFamily<T>& family = session.family();
  Table table{"The expressions", "A sample is one pass of the rules.", {"", "number"}};
  table.rows.push_back({"rules", kRules});
  table.rows.push_back({"training samples", family.train().size()});
  table.rows.push_back({"left out: a cheaper edit path exists", family.proofs().beaten});
  table.rows.push_back({"left out: not proven", family.proofs().open});
  report.sections.push_back(std::move(table));
  add_figures("Expressions larger than those of training", result.found["large"], report);
  const TreeDataset<T>& shown = family.test() ? *family.test() : family.train();
  std::vector<Expression> some;
  for (std::size_t k = 0; k < std::min<std::size_t>(8, shown.size()); ++k) some.push_back(shown.samples()[k].source);
  Table examples{"Some expressions", "", {"expression", "as rewritten", "normal form"}};
  const auto runs = graph::rewrite<T>(session.exec(), session.model(), session.result_arrays(), some,
                                      {.passes = family.options().model.passes});
  for (std::size_t k = 0; k < some.size(); ++k)
    examples.rows.push_back({to_text(some[k]), to_text(runs[k].result), to_text(normal_form(some[k]))});
  report.sections.push_back(std::move(examples));
}

namespace {

// One expression in each line that is not empty.
Result<std::vector<Expression>> read_expressions(const std::filesystem::path& file) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 28, kMostNodes = 1000;
  auto text = read_file(file, kMostBytes);
  if (!text) return text.error();
  std::vector<Expression> expressions;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    std::string_view line(text->data() + begin, end - begin);
    begin = end + 1;
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    try {
      if (line.size() > 4 * kMostNodes) throw_invalid(fmt::format("the expression has more than {} nodes", kMostNodes));
      expressions.push_back(parse_expression(line));
    } catch (const Exception& e) {
      return Error{e.code(), fmt::format("{}: line {}: {}", file.string(), number, e.what())};
    }
  }
  if (expressions.empty()) return Error{ErrorCode::invalid_input, file.string() + ": there are no expressions"};
  return expressions;
}

}  // namespace

template <class T>
Result<PredictedTable> predict_new(const TypedSession<RewriteFamily<T>>& session, const NewData& data) {
  auto read = read_expressions(data.file);
  if (!read) return read.error();
  const RewriteFamily<T>& family = session.family();
  const graph::TreeNetwork<T> model = session.model();
  const auto runs = graph::rewrite<T>(session.exec(), model, session.result_arrays(), *read,
                                      {.passes = family.options().model.passes});
  PredictedTable table;
  table.rows = runs.size();
  std::vector<std::string> row, given, truth, found, passes, settled;
  std::vector<std::size_t> outside;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    row.push_back(fmt::format("{}", k + 1));
    given.push_back(to_text((*read)[k]));
    truth.push_back(to_text(normal_form((*read)[k])));
    found.push_back(to_text(runs[k].result));
    passes.push_back(fmt::format("{}", runs[k].passes));
    settled.emplace_back(runs[k].settled ? "1" : "0");
    outside.push_back((*read)[k].size() > family.most_nodes());
  }
  table.add("row", std::move(row));
  table.add("expression", std::move(given));
  table.add("normal_form", std::move(truth));
  table.add("normal_form_predicted", std::move(found));
  table.add("passes", std::move(passes));
  table.add("settled", std::move(settled));
  add_outside(table, outside);
  // There is no loss: that is of single passes.
  table.metrics = PartMetrics{std::numeric_limits<double>::quiet_NaN(),
                              family.final_metrics(session.exec(), model, session.result_arrays(), *read), 0, false};
  return table;
}

AppFamily rewrite_family() {
  AppFamily entry = make_entry<RewriteFamily, load_rewrite>("graph-rewrite");
  entry.headlines = {{"exact_match", "exact match", Headline::As::percent}};
  entry.load = load_model<RewriteFamily>;
  entry.reads = NewDataKind::expressions;
  entry.predict = predict_with<RewriteFamily>;
  return entry;
}

}  // namespace gradloom::app
