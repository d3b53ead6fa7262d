#include "gradloom/app/run/report.h"

#include <fmt/format.h>

#include <cmath>

namespace gradloom::app {
namespace {

using nlohmann::json;

Value value_of(double v) { return std::isfinite(v) ? Value(v) : Value("–"); }

Value stage_loss(const json& part) {
  return part.is_object() && part["loss"].is_number() ? Value(part["loss"].get<double>()) : Value("–");
}

void add_figures(std::span<const Headline> headlines, const RunSummary& summary, Report& r) {
  const Metrics& metrics = summary.result->metrics;
  const auto add = [&](const char* name, const std::optional<PartMetrics>& part) {
    if (!part) return;
    for (const Headline& h : headlines) {
      const auto at = part->values.find(std::string(h.metric));
      if (at == part->values.end()) continue;
      const bool percent = h.as == Headline::As::percent;
      r.figures.push_back({fmt::format("{} {}", name, h.label),
                           percent ? Value(at->second * 100) : value_of(at->second), percent ? "%" : ""});
    }
  };
  add("test", metrics.test);
  add("validation", metrics.validation);
  r.figures.push_back({"training loss", value_of(metrics.train.loss), ""});
  // Nobody has written down how long a run took that was finished before.
  if (!summary.result->finished_before) r.figures.push_back(time_figure(summary.seconds));
}

Chart loss_chart(const std::vector<json>& log) {
  Chart chart{"Loss", "Mean over each epoch; lower is better.", "epoch", "loss", Scale::logarithmic, {}, {}};
  Series train{"training", Role::train, {}}, validation{"validation", Role::validation, {}};
  double stage_end = 0.0;
  for (const json& line : log) {
    const std::string event = line.value("event", "");
    if (event == "stage") {  // logged at its end; the mark stands at its beginning
      if (stage_end > 0.0) chart.marks.push_back({stage_end, line["note"].get<std::string>()});
      stage_end = line["run_epoch"].get<double>();
    }
    if (event == "start_over") chart.marks.push_back({line["run_epoch"].get<double>(), "new start"});
    if (event != "epoch") continue;
    const double x = line["run_epoch"].get<double>();
    if (line["loss"].is_number()) train.points.push_back({x, line["loss"].get<double>()});
    if (line["validation"].is_number()) validation.points.push_back({x, line["validation"].get<double>()});
  }
  chart.series.push_back(std::move(train));
  if (!validation.points.empty()) chart.series.push_back(std::move(validation));
  return chart;
}

Table metrics_table(const Metrics& metrics) {
  Table table{
      "Metrics",
      "Metrics of the final parameters. The curve shows the mean over each epoch, while the parameters changed.",
      {"part"}};
  const json parts = to_json(metrics);
  for (const auto& [name, value] : parts["train"].items()) table.columns.push_back(name);
  for (const char* part : {"train", "validation", "test"}) {
    if (!parts[part].is_object()) continue;
    std::vector<Value> row{part};
    for (const auto& [name, value] : parts[part].items())
      row.push_back(value.is_number() ? Value(value.get<double>()) : Value("–"));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Nothing where no row is outside.
void add_outside_rows(const RunResult& result, Report& r) {
  Table table{"Rows outside of the training range",
              "Rows with a feature below its minimum or above its maximum in the training data.",
              {"part", "rows"}};
  for (const auto& [part, count] : result.rows_outside)
    if (count > 0) table.rows.push_back({part, count});
  if (!table.rows.empty()) r.sections.push_back(std::move(table));
}

}  // namespace

std::string run_title(const std::string& name, const std::filesystem::path& folder) {
  std::error_code unreadable;
  std::filesystem::path whole = std::filesystem::weakly_canonical(folder, unreadable);
  if (unreadable) whole = folder.lexically_normal();
  const std::string run = (whole / "").parent_path().filename().string();
  if (run.empty()) return name;
  return name.empty() || run == name || run.starts_with(name + "-") ? run : fmt::format("{}: {}", name, run);
}

Figure time_figure(double seconds) {
  // The bounds are those of the rounded number.
  if (seconds < 0.9995) return {"time", fmt::format("{:.{}f}", 1000 * seconds, seconds < 0.00995 ? 1 : 0), "ms"};
  return {"time", fmt::format("{:.{}f}", seconds, seconds < 99.95 ? 1 : 0), "s"};
}

Report run_report(const Session& session, std::span<const Headline> headlines, std::string settings,
                  const RunSummary& summary, const std::filesystem::path& folder, const std::vector<json>& log) {
  const FamilyOptions& options = session.options();
  const RunResult& result = *summary.result;
  Report r;
  r.title = run_title(options.name.value_or(""), folder);
  r.subtitle = fmt::format("{}, {} parameters, {}, {} arithmetic, seed {}", session.learned_from(), result.parameters,
                           name_of(kPrecisions, options.precision), name_of(kArithmetics, session.arithmetic()),
                           options.train.seed);
  r.warnings = result.warnings;
  add_figures(headlines, summary, r);
  r.sections.push_back(loss_chart(log));
  r.sections.push_back(metrics_table(result.metrics));
  add_outside_rows(result, r);
  if (result.stages.size() > 1) {
    Table stages{"Stages", "The function is kept from one stage to the next.", {"stage", "training loss", "test loss"}};
    for (const json& s : result.stages)
      stages.rows.push_back({s["note"].get<std::string>(), stage_loss(s["train"]), stage_loss(s["test"])});
    r.sections.push_back(std::move(stages));
  }
  r.settings = std::move(settings);
  return r;
}

void add_phases(const RunResult& result, Report& r) {
  if (!result.phases) return;
  Table phases{"Where the time went",
               "Elapsed time of each phase; parts of a phase are summed over threads.",
               {"phase", "ms"},
               {},
               1};
  for (const auto& [name, milliseconds] : *result.phases) phases.rows.push_back({name, milliseconds});
  r.sections.push_back(std::move(phases));
}

}  // namespace gradloom::app
