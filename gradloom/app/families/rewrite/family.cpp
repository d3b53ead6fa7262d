// Rewriting of expressions in the application: they are drawn, so there is nothing to load.
#include "gradloom/session/families/rewrite/family.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/families/entry.h"
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
  add_figures("Larger expressions than were trained on", result.found["large"], report);
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

AppFamily rewrite_family() {
  AppFamily entry = make_entry<RewriteFamily, load_rewrite>("graph-rewrite");
  entry.headlines = {{"exact_match", "exact match", Headline::As::percent}};
  return entry;
}

}  // namespace gradloom::app
