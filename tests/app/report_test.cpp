#include "gradloom/app/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/app/report/axis.h"
#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"
#include "gradloom/app/text.h"
#include "gradloom/base/error.h"

namespace gradloom::app {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Empty when every tag is closed in the right order and no bare '<', '>' or '&' stands in the text; else what is wrong.
std::string find_markup_error(std::string_view html) {
  static const std::set<std::string, std::less<>> kVoid = {"meta", "!DOCTYPE", "br"};
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < html.size()) {
    if (html[at] == '>') return "bare > at " + std::string(html.substr(at, 40));
    if (html[at] == '&') {
      const std::size_t end = html.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "bare & at " + std::string(html.substr(at, 40));
    }
    if (html[at] != '<') {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    bool quoted = false;
    for (; end < html.size() && (quoted || html[end] != '>'); ++end) {
      if (html[end] == '"') quoted = !quoted;
      if (html[end] == '<') return "< inside a tag at " + std::string(html.substr(at, 60));
    }
    if (end == html.size()) return "unfinished tag " + std::string(html.substr(at, 40));
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    const std::size_t name_begin = tag.starts_with('/') ? 1 : 0;
    const std::string name(tag.substr(name_begin, tag.find_first_of(" /\n", name_begin) - name_begin));
    if (name_begin == 1) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!tag.ends_with('/') && !kVoid.contains(name)) {
      open.push_back(name);
    }
    at = name == "style" && name_begin == 0 ? html.find("</style>", end) : end + 1;
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

SplineNetwork make_network(std::vector<std::size_t> widths) {
  SplineNetwork network{.title = "Network", .widths = std::move(widths)};
  for (std::size_t l = 0; l + 1 < network.widths.size(); ++l)
    for (std::size_t i = 0; i < network.widths[l]; ++i)
      for (std::size_t j = 0; j < network.widths[l + 1]; ++j) {
        const double rank = static_cast<double>(i * network.widths[l + 1] + j + 1);
        network.edges.push_back(
            {.layer = l, .from = i, .to = j, .x = {-1, 0, 1}, .y = {0, rank, -1}, .importance = 1 / rank});
      }
  return network;
}

Report make_report() {
  Report report{.title = "kan-hello", .subtitle = "a first network"};
  report.figures = {{"Test loss", 1.25e-5, "RMSE"}, {"Parameters", 12345, ""}, {"Device", "cpu", ""}};
  report.warnings = {"3 % of inputs of layer 2 lie outside its grid."};
  report.sections.push_back(Chart{.title = "Loss",
                                  .x_label = "step",
                                  .y_label = "loss",
                                  .y_scale = Scale::logarithmic,
                                  .series = {{"train", Role::train, {{0, 1}, {1, 0.1}, {2, 0.01}}}},
                                  .marks = {{1, "grid 5 → 10"}}});
  report.sections.push_back(make_network({2, 5, 1}));
  report.sections.push_back(
      Table{.title = "Phases", .columns = {"phase", "ms"}, .rows = {{"forward", 1.5}, {"loss", 0.1}}, .bar_column = 1});
  report.settings = "seed = 0\n";
  return report;
}

std::string chart_html(const Chart& chart) {
  std::string html;
  append_chart(html, chart);
  return html;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

TEST(MarkupChecker, RejectsBrokenMarkup) {
  EXPECT_EQ(find_markup_error("<p>a <b>b</b></p>"), "");
  EXPECT_NE(find_markup_error("<p><b></p></b>"), "");
  EXPECT_NE(find_markup_error("<p>"), "");
  EXPECT_NE(find_markup_error("<p>1 & 2</p>"), "");
  EXPECT_NE(find_markup_error("<p>1 > 2</p>"), "");
  EXPECT_NE(find_markup_error("<p title=\"a"), "");
}

GraphPicture make_graph() {
  GraphPicture graph{"A <graph>", "", {}, {{0, 1}, {1, 2}, {2, 0}, {2, 2}}, {"red & round"}};
  graph.nodes = {{"n0", 0, false, true}, {"n1", 1, true, false}, {"n2", 0, false, false}, {"alone", 6, false, false}};
  return graph;
}

TEST(Report, OptionsWaitUntilTheyAreAskedFor) {
  app::Report report;
  report.settings = "epochs = 3";
  const std::string html = app::report_html(report);
  EXPECT_THAT(html, testing::HasSubstr("<details><summary>Options</summary><pre>epochs = 3</pre></details>"));
}

TEST(Report, DrawsGraphsWithErrorsRinged) {
  const std::string html = report_html({.title = "g", .sections = {make_graph()}});
  EXPECT_EQ(find_markup_error(html), "");
  EXPECT_EQ(count(html, "<title>n"), 3u);
  EXPECT_EQ(count(html, "class=\"ring\""), 2u) << "one node, and the legend";
  EXPECT_EQ(count(html, "<path d="), 3u) << "a loop is no line";
  EXPECT_THAT(html, HasSubstr("n1: class 1, wrong"));
  EXPECT_THAT(html, HasSubstr("red &amp; round"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_EQ(report_html({.title = "g", .sections = {make_graph()}}), html) << "the layout has no chance in it";
  const GraphPicture one{.nodes = {{"only", 0, false, false}}};
  EXPECT_THAT(report_html({.title = "g", .sections = {one}}), Not(HasSubstr("nan")));
}

TEST(Report, RefusesEdgesToNodesThatAreNotThere) {
  GraphPicture graph = make_graph();
  graph.edges.emplace_back(0, 4);
  EXPECT_THROW(report_html({.title = "g", .sections = {graph}}), Exception);
}

TEST(Report, TablesOfManyColumnsTakeTheWholeWidth) {
  const Table broad{.title = "t", .columns = {"1", "2", "3", "4", "5", "6"}}, narrow{.title = "t", .columns = {"1"}};
  EXPECT_EQ(count(report_html({.title = "r", .sections = {broad, narrow}}), "<section class=\"broad\">"), 1u);
}

TEST(Report, IsWellFormedAndShowsEverything) {
  const std::string html = report_html(make_report());
  EXPECT_EQ(find_markup_error(html), "");
  for (const char* text : {"kan-hello", "a first network", "1.25 × 10⁻⁵", "12,345", "outside its grid", "grid 5 → 10",
                           "forward", "seed = 0"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_EQ(count(html, "class=\"function\""), 15u);
}

TEST(Report, NeedsNothingFromElsewhere) {
  const std::string html = report_html(make_report());
  for (const char* text : {"http:", "https:", "<script", "<link", "src=", "url(", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(text)));
}

TEST(Report, IsTheSameForTheSameInput) { EXPECT_EQ(report_html(make_report()), report_html(make_report())); }

TEST(Report, OfNothingIsStillAPage) {
  Report empty;
  EXPECT_EQ(find_markup_error(report_html(empty)), "");
  empty.sections = {Chart{}, Table{}, SplineNetwork{}, Chart{.series = {Series{}}}, SplineNetwork{.widths = {3, 0, 1}}};
  const std::string html = report_html(empty);
  EXPECT_EQ(find_markup_error(html), "");
  EXPECT_EQ(count(html, "Nothing to draw"), 4u);
}

TEST(Report, ShowsAFormulaItsEdgesAndItsPredictions) {
  const std::string evil = "<script>x</script>";
  EdgePlots plots{"Edges", "", {}, make_network({2, 1})};
  plots.network.input_names = {evil, "b"};
  EdgePlot plot{plots.network.edges[0], {0.1, 0.9, std::nan("")}, "<mi>x</mi>", "sin, R² 0.99 " + evil};
  plot.function.density = {0, 3, 1};
  plots.plots = {plot, EdgePlot{}};
  const double infinite = std::numeric_limits<double>::infinity();
  Report report;
  report.sections = {
      TypesetFormula{"Formula", evil, {"<mi>y</mi><mo>=</mo>", "<mn>2</mn>"}, "y = 2", {{"status", "exact", ""}}},
      plots,
      Scatter{"Predicted", "", "true", "predicted", {{evil, Role::train, {{0, 0.1}, {1, infinite}, {2, 2}}}, {}}},
      Scatter{}};
  const std::string html = report_html(report);
  EXPECT_EQ(find_markup_error(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(count(html, "<math>"), 3u);
  EXPECT_EQ(count(html, "class=\"density\""), 2u);
  EXPECT_EQ(count(html, "class=\"candidate\""), 1u);
  EXPECT_EQ(count(html, "<circle class=\"dot\""), 2u);
  EXPECT_THAT(html, HasSubstr("1 point is not drawn"));
  EXPECT_THAT(html, HasSubstr("Nothing to draw"));
}

TEST(Report, EscapesEveryText) {
  const std::string evil = "<script>\"x\" & 'y'</script>\x01\xff";
  Report report = make_report();
  report.title = report.subtitle = report.settings = evil;
  report.figures = {{evil, evil, evil}};
  report.warnings = {evil};
  SplineNetwork network = make_network({2, 1});
  network.title = network.note = evil;
  network.input_names = {evil, evil};
  network.output_names = {evil};
  SplineNetwork large = make_network({41, 2});
  large.input_names.assign(41, evil);
  Chart chart{evil, evil, evil, evil, Scale::linear, {{evil, Role::test, {{0, 0}, {1, 1}}}}, {{0.5, evil}}};
  report.sections = {chart, Table{evil, evil, {evil}, {{evil}}}, network, large};
  const std::string html = report_html(report);
  EXPECT_EQ(find_markup_error(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;&lt;/script&gt;\uFFFD"));
}

TEST(Report, SurvivesNumbersThatAreNone) {
  Report report = make_report();
  report.figures = {{"a", kNan, ""}, {"b", kInf, ""}, {"c", -kInf, ""}};
  SplineNetwork network = make_network({2, 2, 1});
  network.edges[0].y = {kNan, kNan, kNan};
  network.edges[1].x = {kNan, 0, kInf};
  network.edges[2].importance = kNan;
  network.edges[3].grid_lo = kNan;
  network.edges[4].x = network.edges[4].y = {};
  network.edges[5].y = {1e308, -1e308, 0};
  report.sections = {
      Chart{.y_scale = Scale::logarithmic,
            .series = {{"train", Role::train, {{0, kNan}, {1, 1}, {2, kInf}, {3, 0.5}, {4, -1}, {5, 0}, {kNan, 1}}}},
            .marks = {{kNan, "nowhere"}, {1e9, "far away"}}},
      Chart{.series = {{"all", Role::test, {{0, kNan}, {kInf, kInf}}}}},
      Table{.columns = {"a", "b"}, .rows = {{"x", kNan}, {"y", kInf}, {"z", -1.0}, {}}, .bar_column = 1}, network};
  const std::string html = report_html(report);
  EXPECT_EQ(find_markup_error(html), "");
  for (const char* attribute : {"nan", "inf"}) {
    EXPECT_THAT(html, Not(HasSubstr(std::string("\"") + attribute)));
    EXPECT_THAT(html, Not(HasSubstr(std::string(" ") + attribute)));
    EXPECT_THAT(html, Not(HasSubstr(std::string("M") + attribute)));
  }
  EXPECT_THAT(html, HasSubstr("5 points are not drawn"));
  EXPECT_THAT(html, Not(HasSubstr("far away")));
}

TEST(Report, RefusesEdgesThatAreNotInTheNetwork) {
  Report report;
  SplineNetwork network{.widths = {2, 1}, .edges = {{.layer = 0, .from = 2, .to = 0}}};
  report.sections = {network};
  EXPECT_THROW(report_html(report), Exception);
  network.edges = {{.layer = 1, .from = 0, .to = 0}};
  report.sections = {network};
  EXPECT_THROW(report_html(report), Exception);
  network.edges = {{.x = {0, 1}, .y = {0}}};
  report.sections = {network};
  EXPECT_THROW(report_html(report), Exception);
}

TEST(NetworkDrawing, ShowsEveryFunctionOfSmallNetworks) {
  for (const auto& widths : {std::vector<std::size_t>{2, 5, 1}, {4, 2, 1, 1}, {8, 16, 1}, {1, 1}, {40, 4}, {1, 40}}) {
    const SplineNetwork network = make_network(widths);
    std::string html;
    append_network(html, network);
    EXPECT_EQ(find_markup_error(html), "");
    EXPECT_THAT(html, HasSubstr("class=\"network\""));
    EXPECT_EQ(count(html, "class=\"function\""), network.edges.size());
    EXPECT_EQ(count(html, "class=\"node\""), [&] {
      std::size_t nodes = 0;
      for (const std::size_t w : widths) nodes += w;
      return nodes;
    }());
  }
}

TEST(NetworkDrawing, ShowsProductsAsCrossesAboveTheirFactors) {
  SplineNetwork network = make_network({2, 5, 1});  // five sums
  network.widths[1] = 3, network.multiply = {2};
  std::erase_if(network.edges, [](const EdgeFunction& e) { return e.layer == 1 && e.from >= 3; });
  std::string html;
  append_network(html, network);
  EXPECT_EQ(find_markup_error(html), "");
  EXPECT_EQ(count(html, "<circle class=\"times\""), 2u);
  EXPECT_EQ(count(html, "<path class=\"times\""), 2u);
  EXPECT_EQ(count(html, "class=\"node\""), 2u + 1u + 1u + 4u);  // inputs, a sum, the output, factors
  EXPECT_EQ(count(html, "class=\"function\""), 2u * 5u + 3u);
  EXPECT_THAT(html, HasSubstr("h1.2, a product"));
  EXPECT_THAT(html, HasSubstr("x1 → h1.1\n"));
  EXPECT_THAT(html, HasSubstr("x1 → h1.2 factor 1"));
  EXPECT_THAT(html, HasSubstr("x2 → h1.3 factor 2"));
  network.edges.push_back({.layer = 0, .from = 0, .to = 5});
  EXPECT_THROW(append_network(html, network), Exception);
}

TEST(NetworkDrawing, OfLargeNetworksSaysWhatIsNotDrawn) {
  std::string html;
  append_network(html, make_network({64, 32, 10}));
  EXPECT_EQ(find_markup_error(html), "");
  EXPECT_THAT(html, Not(HasSubstr("class=\"network\"")));
  EXPECT_THAT(html, HasSubstr("The 48 most important of 2,368 functions"));
  EXPECT_THAT(html, HasSubstr("2,320 are not drawn"));
  EXPECT_EQ(count(html, "class=\"function\""), 48u);
  EXPECT_THAT(html, HasSubstr("x1 → h1.1 <span>1.00</span>"));
}

TEST(ThinPoints, KeepsShortSeriesAsTheyAre) {
  const std::vector<Point> points = {{0, 3}, {1, 1}, {2, 2}};
  const auto strokes = thin_points(points, Scale::linear, 500);
  ASSERT_EQ(strokes.size(), 1u);
  EXPECT_EQ(strokes[0].line.size(), 3u);
  EXPECT_TRUE(strokes[0].low.empty());
}

TEST(ThinPoints, KeepsExtremesOfLongSeries) {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({static_cast<double>(i), 1.0});
  points[31415].y = 1e6;
  points[92653].y = 1e-6;
  const auto strokes = thin_points(points, Scale::logarithmic, 500);
  ASSERT_EQ(strokes.size(), 1u);
  const Stroke& s = strokes[0];
  EXPECT_LE(s.low.size() + s.high.size(), 500u);
  EXPECT_EQ(s.low.size(), s.line.size());
  EXPECT_EQ(*std::max_element(s.high.begin(), s.high.end()), 1e6);
  EXPECT_EQ(*std::min_element(s.low.begin(), s.low.end()), 1e-6);
  for (std::size_t i = 0; i < s.line.size(); ++i) {
    EXPECT_LE(s.low[i], s.line[i].y * (1 + 1e-12));
    EXPECT_GE(s.high[i], s.line[i].y * (1 - 1e-12));
  }
}

TEST(ThinPoints, LeavesGapsWherePointsCannotBeDrawn) {
  const std::vector<Point> points = {{0, kNan}, {1, 1}, {2, 2}, {3, kInf}, {4, 0}, {5, 1}};
  EXPECT_EQ(thin_points(points, Scale::linear, 500).size(), 2u);
  const auto strokes = thin_points(points, Scale::logarithmic, 500);
  ASSERT_EQ(strokes.size(), 2u);
  EXPECT_EQ(strokes[0].line.size(), 2u);
  EXPECT_EQ(strokes[1].line.size(), 1u);
}

TEST(Chart, ColoursSplitsByRoleAndStaysSmall) {
  Chart chart{
      .series = {{"train", Role::train, {}}, {"test", Role::test, {{0, 1}, {9, 2}}}, {"a", Role::other, {{0, 1}}}}};
  for (int i = 0; i < 200000; ++i) chart.series[0].points.push_back({i * 1e-3, std::sin(i * 0.7)});
  const std::string html = chart_html(chart);
  EXPECT_THAT(html, HasSubstr("series s-train"));
  EXPECT_THAT(html, HasSubstr("envelope s-train"));
  EXPECT_THAT(html, HasSubstr("series s-test"));
  EXPECT_THAT(html, HasSubstr("series s-a"));
  EXPECT_LT(html.size(), 30000u);
}

TEST(Chart, GivesEachMarkItsLineAndMovesLabelsApart) {
  Chart chart{.series = {{"train", Role::train, {{0, 1}, {100, 2}}}}};
  for (int i = 0; i < 12; ++i) chart.marks.push_back({40.0 + i, "grid 5 → 10"});
  const std::string html = chart_html(chart);
  EXPECT_EQ(count(html, "class=\"mark\""), 12u);
  EXPECT_EQ(count(html, "class=\"marktext\""), 3u);  // one per row
}

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> texts;
  for (const Tick& t : axis.ticks) texts.push_back(t.label);
  return texts;
}

TEST(Axis, HasRoundLinearTicks) {
  EXPECT_THAT(labels(make_axis(Scale::linear, 0, 1, 5, Fit::round)),
              testing::ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(labels(make_axis(Scale::linear, 0, 4321, 5, Fit::exact)),
              testing::ElementsAre("0", "1,000", "2,000", "3,000", "4,000"));
  EXPECT_THAT(labels(make_axis(Scale::linear, -0.9, 1.1, 4, Fit::round)),
              testing::ElementsAre("−1.0", "−0.5", "0", "0.5", "1.0", "1.5"));
}

TEST(Axis, HasPowersOfTenOnLogarithmicScales) {
  EXPECT_THAT(labels(make_axis(Scale::logarithmic, 2e-6, 0.5, 8, Fit::round)),
              testing::ElementsAre("10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"));
  EXPECT_THAT(labels(make_axis(Scale::logarithmic, 0.01, 100, 8, Fit::exact)),
              testing::ElementsAre("0.01", "0.1", "1", "10", "100"));
  EXPECT_LE(make_axis(Scale::logarithmic, 1e-300, 1e300, 6, Fit::round).ticks.size(), 8u);
  EXPECT_THAT(labels(make_axis(Scale::logarithmic, 1, 9, 6, Fit::exact)), testing::ElementsAre("1", "2", "5"));
}

TEST(Axis, IsUsableForEveryRange) {
  const double denormal = std::numeric_limits<double>::denorm_min(), largest = std::numeric_limits<double>::max();
  const double values[] = {kNan, kInf, -kInf, 0, 1, -1, 1 + 1e-15, 3.3, 1e-300, denormal, largest, -largest, 1e17, 42};
  for (const Scale scale : {Scale::linear, Scale::logarithmic})
    for (const Fit fit : {Fit::exact, Fit::round})
      for (const double lo : values)
        for (const double hi : values) {
          const Axis axis = make_axis(scale, lo, hi, 6, fit);
          SCOPED_TRACE(testing::Message() << lo << " to " << hi << ", logarithmic: " << (scale == Scale::logarithmic));
          ASSERT_TRUE(std::isfinite(axis.lo) && std::isfinite(axis.hi));
          ASSERT_LT(axis.lo, axis.hi);
          ASSERT_GE(axis.ticks.size(), 1u);
          ASSERT_LE(axis.ticks.size(), 16u);
          for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
            ASSERT_GE(axis.ticks[i].value, axis.lo);
            ASSERT_LE(axis.ticks[i].value, axis.hi);
            if (i > 0) {
              ASSERT_LT(axis.ticks[i - 1].value, axis.ticks[i].value);
            }
          }
          for (const double v : values) {
            ASSERT_GE(axis.position(v), 0);
            ASSERT_LE(axis.position(v), 1);
          }
          if (std::isfinite(lo) && std::isfinite(hi) && lo < hi && (scale == Scale::linear || lo > 1e-300)) {
            ASSERT_LE(axis.lo, lo);
            ASSERT_GE(axis.hi, hi);
          }
        }
}

TEST(FormatNumber, IsForPeople) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(0.5), "0.5");
  EXPECT_EQ(format_number(0.99999), "1.000");
  EXPECT_EQ(format_number(-12.3456), "−12.35");
  EXPECT_EQ(format_number(1234567.8), "1,234,568");
  EXPECT_EQ(format_number(1.5e-9), "1.5 × 10⁻⁹");
  EXPECT_EQ(format_number(9.9999e6), "1.000 × 10⁷");
  EXPECT_EQ(format_number(-6.02214e23), "−6.022 × 10²³");
  EXPECT_EQ(format_number(-5e-324), "−4.941 × 10⁻³²⁴");
  EXPECT_EQ(format_number(1.7976931348623157e308), "1.798 × 10³⁰⁸");
  EXPECT_EQ(format_number(kNan), "NaN");
  EXPECT_EQ(format_number(-kInf), "−∞");
  EXPECT_EQ(format_count(-1234567), "−1,234,567");
  EXPECT_EQ(format_count(999), "999");
}

TEST(WithDigits, RoundsNumbersOfEverySizeInEveryLocale) {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  for (const char* locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8"}) {  // decimal commas where the system has them
    std::setlocale(LC_NUMERIC, locale);
    EXPECT_EQ(with_digits(0.123456, 3), 0.123);
    EXPECT_EQ(with_digits(-1234567, 4), -1235000);
    EXPECT_EQ(with_digits(5e-324, 3), 5e-324);
    EXPECT_EQ(with_digits(2.2250738585072011e-308, 3), 2.23e-308);
    EXPECT_EQ(with_digits(std::numeric_limits<double>::max(), 3), kInf);
    EXPECT_EQ(with_digits(-kInf, 3), -kInf);
    EXPECT_TRUE(std::isnan(with_digits(kNan, 3)));
  }
  std::setlocale(LC_NUMERIC, before.c_str());
}

TEST(EscapeHtml, ReplacesInvalidUtf8AndKeepsTheRest) {
  EXPECT_EQ(escape_html("é → 日本 😀"), "é → 日本 😀");
  EXPECT_EQ(escape_html("a\xC0\x80z"), "a\uFFFD\uFFFDz");          // overlong
  EXPECT_EQ(escape_html("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");    // a surrogate
  EXPECT_EQ(escape_html("\xE2\x82"), "\uFFFD\uFFFD");              // cut off
  EXPECT_EQ(escape_html(std::string("a\0b\tc\n", 6)), "ab\tc\n");  // control characters
}

TEST(Shorten, CutsBetweenCharacters) {
  EXPECT_EQ(shorten("äöü", 3), "äöü");
  EXPECT_EQ(shorten("äöüß", 3), "äö…");
  EXPECT_EQ(shorten("", 3), "");
}

}  // namespace
}  // namespace gradloom::app
