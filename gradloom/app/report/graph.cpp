// The picture of a graph: edges pull nodes together, all nodes push each other apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"
#include "gradloom/base/error.h"

namespace gradloom::app {
namespace {

constexpr double kGraphWidth = 900, kGraphHeight = 560, kGraphSide = 28, kDot = 9, kRing = 14;
constexpr std::array<const char*, kMostDrawnClasses> kClassStyles = {"s-train", "s-validation", "s-test", "s-a",
                                                                     "s-b",     "s-c",          "s-d"};

std::size_t class_count(const GraphPicture& graph) {
  std::size_t classes = graph.classes.size();
  for (const GraphNode& node : graph.nodes) classes = std::max(classes, node.node_class + 1);
  return classes;
}

// Forces of Fruchterman and Reingold in units of the wanted distance, and a weak pull to the middle, which keeps parts
// without edges between them on the page. It starts from a spiral and takes a fixed number of steps, so that a graph
// always looks the same.
std::vector<Point> settle(const GraphPicture& graph) {
  constexpr int kSteps = 400;
  constexpr double kGolden = 2.399963229728653, kPull = 0.06;
  const std::size_t n = graph.nodes.size();
  const double side = std::sqrt(static_cast<double>(n));
  std::vector<Point> at(n), force(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double radius = 0.5 * std::sqrt(static_cast<double>(i) + 0.5), angle = kGolden * static_cast<double>(i);
    at[i] = {radius * std::cos(angle), radius * std::sin(angle)};
  }
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < n; ++i) force[i] = {-kPull * at[i].x, -kPull * at[i].y};
    const auto act = [&](std::size_t a, std::size_t b, auto strength) {
      const double x = at[a].x - at[b].x, y = at[a].y - at[b].y, d = std::max(std::hypot(x, y), 1e-3),
                   f = strength(d) / d;
      force[a].x += f * x, force[a].y += f * y;
      force[b].x -= f * x, force[b].y -= f * y;
    };
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < a; ++b) act(a, b, [](double d) { return 1 / d; });
    for (const auto& [a, b] : graph.edges)
      if (a != b) act(a, b, [](double d) { return -d * d; });
    const double most = 0.1 * side * (1 - static_cast<double>(step) / kSteps);
    for (std::size_t i = 0; i < n; ++i) {
      const double length = std::hypot(force[i].x, force[i].y), scale = std::min(length, most) / std::max(length, 1e-9);
      at[i].x += scale * force[i].x, at[i].y += scale * force[i].y;
    }
  }
  return at;
}

// Turned so that it is widest from left to right.
void turn(std::vector<Point>& at) {
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const Point& p : at) x += p.x, y += p.y;
  x /= static_cast<double>(at.size()), y /= static_cast<double>(at.size());
  for (Point& p : at) {
    p.x -= x, p.y -= y;
    xx += p.x * p.x, xy += p.x * p.y, yy += p.y * p.y;
  }
  const double angle = 0.5 * std::atan2(2 * xy, xx - yy), c = std::cos(angle), s = std::sin(angle);
  for (Point& p : at) p = {c * p.x + s * p.y, c * p.y - s * p.x};
}

// Into the picture; each direction by itself, up to a half more than the other.
void fit(std::vector<Point>& at) {
  Range x, y;
  for (const Point& p : at) x.take(p.x), y.take(p.y);
  double sx = (kGraphWidth - 2 * kGraphSide) / std::max(x.hi - x.lo, 1e-6);
  double sy = (kGraphHeight - 2 * kGraphSide) / std::max(y.hi - y.lo, 1e-6);
  sx = std::min(sx, 1.5 * sy), sy = std::min(sy, 1.5 * sx);
  for (Point& p : at)
    p = {kGraphWidth / 2 + sx * (p.x - (x.lo + x.hi) / 2), kGraphHeight / 2 + sy * (p.y - (y.lo + y.hi) / 2)};
}

std::string class_name(const GraphPicture& graph, std::size_t node_class) {
  return node_class < graph.classes.size() ? graph.classes[node_class] : fmt::format("class {}", node_class);
}

void append_dot(std::string& out, const GraphPicture& graph, const GraphNode& node, Point at) {
  const char* verdict = node.wrong ? ", wrong" : node.labelled ? ", labelled" : "";
  fmt::format_to(std::back_inserter(out), "<g class=\"{}\"><title>{}: {}{}</title>", kClassStyles[node.node_class],
                 escape_html(node.name), escape_html(class_name(graph, node.node_class)), verdict);
  if (node.wrong)
    fmt::format_to(std::back_inserter(out), "<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", at.x, at.y,
                   kRing);
  if (node.labelled)
    fmt::format_to(std::back_inserter(out),
                   "<rect class=\"dot\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"/></g>\n", at.x - kDot - 1,
                   at.y - kDot - 1, 2 * kDot + 2, 2 * kDot + 2);
  else
    fmt::format_to(std::back_inserter(out), "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/></g>\n", at.x,
                   at.y, kDot);
}

void append_graph_legend(std::string& out, const GraphPicture& graph) {
  const auto item = [&](const std::string& shape, const std::string& text) {
    fmt::format_to(std::back_inserter(out),
                   "<li><svg width=\"22\" height=\"22\" aria-hidden=\"true\">{}</svg>{}</li>\n", shape,
                   escape_html(text));
  };
  const auto any = [&](auto has) { return std::any_of(graph.nodes.begin(), graph.nodes.end(), has); };
  out += "<ul class=\"legend\">\n";
  for (std::size_t c = 0; c < class_count(graph); ++c)
    item(fmt::format("<g class=\"{}\"><circle class=\"dot\" cx=\"11\" cy=\"11\" r=\"7\"/></g>", kClassStyles[c]),
         class_name(graph, c));
  if (any([](const GraphNode& node) { return node.labelled; }))
    item("<rect class=\"sample\" x=\"4\" y=\"4\" width=\"14\" height=\"14\"/>", "labelled");
  if (any([](const GraphNode& node) { return node.wrong; }))
    item("<circle class=\"ring\" cx=\"11\" cy=\"11\" r=\"9\"/>", "wrong prediction");
  out += "</ul>\n";
}

}  // namespace

void append_graph(std::string& out, const GraphPicture& graph) {
  if (graph.nodes.empty()) return;
  for (const auto& [a, b] : graph.edges)
    if (a >= graph.nodes.size() || b >= graph.nodes.size())
      throw_invalid(fmt::format("report: the edge {} - {} has an end that is not a node", a, b));
  if (class_count(graph) > kMostDrawnClasses)
    throw_invalid(fmt::format("report: a graph of {} classes cannot be drawn; there are {} colours", class_count(graph),
                              kMostDrawnClasses));
  std::vector<Point> at = settle(graph);
  turn(at);
  fit(at);
  append_graph_legend(out, graph);
  fmt::format_to(std::back_inserter(out),
                 "<svg class=\"network\" viewBox=\"0 0 {0:.0f} {1:.0f}\" style=\"max-width:{0:.0f}px\" role=\"img\" "
                 "aria-label=\"Graph of {2} nodes and {3} edges\">\n<g class=\"wire tie\">\n",
                 kGraphWidth, kGraphHeight, graph.nodes.size(), graph.edges.size());
  for (const auto& [a, b] : graph.edges)
    if (a != b)
      fmt::format_to(std::back_inserter(out), "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", at[a].x, at[a].y, at[b].x,
                     at[b].y);
  out += "</g>\n";
  for (std::size_t i = 0; i < at.size(); ++i) append_dot(out, graph, graph.nodes[i], at[i]);
  out += "</svg>\n";
}

}  // namespace gradloom::app
