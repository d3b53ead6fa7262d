#include "gradloom/app/model/draw.h"

#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/families/kan/picture.h"
#include "gradloom/app/report/parts.h"
#include "gradloom/app/run/report.h"
#include "gradloom/app/run/run.h"
#include "gradloom/base/random.h"
#include "gradloom/io/fields.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

constexpr std::size_t kDrawnRows = 512;
constexpr std::size_t kMostDrawnEdges = 400;

// Rows from where the training data were, for a model that has none.
template <class T>
RowDataset<T> rows_in_ranges(const KanFamily<T>& family) {
  const RowSchema& schema = family.schema();
  RowParts<double> parts = schema.training.rows.parts();
  parts.size = kDrawnRows;
  parts.x.clear();
  const RandomStream random(0, RandomUse::data);
  for (std::uint32_t r = 0; r < kDrawnRows; ++r)
    for (std::size_t i = 0; i < parts.features; ++i) {
      const FeatureRange range =
          schema.ranges.empty() ? FeatureRange{family.options().model.lo, family.options().model.hi} : schema.ranges[i];
      const double share = random.uniform(static_cast<std::uint32_t>(r * parts.features + i));
      parts.x.push_back(range.low + (range.high - range.low) * share);
    }
  parts.target.assign(parts.size * parts.targets, 0.0);
  parts.label.assign(parts.targets == 0 ? parts.size : 0, 0);
  parts.weight.clear();
  return *family.new_rows(RowDataset<double>(std::move(parts)));
}

template <class T>
SplineNetwork network_of(const TypedSession<KanFamily<T>>& session) {
  const KanFamily<T>& family = session.family();
  const bool has_rows = session.samples() > 0;
  const RowDataset<T> rows = has_rows ? family.train() : rows_in_ranges(family);
  return spline_picture(session.exec(), session.model(), session.result_arrays(), rows);
}

SplineNetwork network_of_any(const Session& session) {
  if (!is_of<KanFamily>(session))
    throw Exception(
        ErrorCode::unsupported,
        fmt::format("models of family \"{}\" cannot be drawn; only spline networks can", session.options().family));
  return with_typed<KanFamily>(session, [](const auto& typed) { return network_of(typed); });
}

json line_of(const EpochReport& e) {
  return {{"event", "epoch"},
          {"stage", e.position.stage},
          {"epoch", e.position.epoch},
          {"run_epoch", e.position.run_epoch},
          {"loss", finite_or_null(e.loss)},
          {"validation", finite_or_null(e.validation)},
          {"lr", e.learning_rate},
          {"best", e.improved}};
}

}  // namespace

std::string draw_network(const Session& session) {
  const SplineNetwork network = network_of_any(session);
  if (network.functions > kMostDrawnEdges)
    throw Exception(ErrorCode::unsupported,
                    fmt::format("a network of {} edges is too large to be drawn; at most {} are drawn",
                                network.functions, kMostDrawnEdges));
  std::string picture;
  append_network_picture(picture, network);
  const std::size_t begin = picture.find("<svg"), end = picture.find("</svg>");
  std::string svg = picture.substr(begin, end - begin) + "</svg>\n";
  svg.replace(0, 4, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
  // The classes of the drawing have their colours in the style of the page, which also puts space around it.
  svg.insert(svg.find('>') + 1, fmt::format("<style>{}.network {{ margin: 0; }}</style>", report_style()));
  return svg;
}

json network_edges(const Session& session) {
  json edges = json::array();
  for (const EdgeFunction& e : network_of_any(session).edges)
    edges.push_back({{"layer", e.layer},
                     {"from", e.from},
                     {"to", e.to},
                     {"x", e.x},
                     {"y", e.y},
                     {"importance", clamped_importance(e)}});
  return edges;
}

std::string model_page(Session& session, const std::vector<EpochReport>& epochs) {
  const AppFamily& family = find_family(session.options().family);
  const std::string title = session.options().name.value_or(session.options().family);
  if (session.samples() == 0) {  // from a file
    Report report;
    report.title = title;
    report.figures = {{"parameters", session.parameter_count(), ""}, {"epochs", session.position().run_epoch, ""}};
    if (session.options().family == "kan") report.sections.push_back(network_of_any(session));
    return report_html(report);
  }
  std::vector<json> lines;
  for (const EpochReport& e : epochs) lines.push_back(line_of(e));
  RunSummary summary;
  summary.epochs = session.position().run_epoch;
  RunResult& result = summary.result.emplace();
  result.metrics = session.metrics();
  result.parameters = session.parameter_count();
  result.device = session.device();
  result.warnings = session.warnings();
  result.found = session.conclude(result.metrics);
  Report report = run_report(session, family.headlines, "", summary, "", lines);
  report.title = title;
  std::erase_if(report.figures, [](const Figure& f) { return f.name == "time"; });  // nobody took it
  family.describe(session, result, report);
  return report_html(report);
}

}  // namespace gradloom::app
