// Functions of a spline network one by one, and what to show of a network that is too large for a picture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "gradloom/app/report/axis.h"
#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"
#include "gradloom/base/error.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kLargestLayer = 160, kLargestNetwork = 320, kWidestLayer = 40;
constexpr std::size_t kCurvePoints = 256;

bool fits_picture(const SplineNetwork& network) {
  std::size_t total = 0;
  for (std::size_t l = 0; l + 1 < network.widths.size(); ++l) {
    const std::size_t in = network.widths[l], out = network.nodes(l).sums();
    if (std::max(in, out) > kWidestLayer || in * out > kLargestLayer) return false;
    total += in * out;
  }
  return total <= kLargestNetwork;
}

void require_valid(const SplineNetwork& network) {
  const auto& widths = network.widths;
  for (const EdgeFunction& e : network.edges) {
    const std::string where = fmt::format("edge {} → {} of layer {}", e.from, e.to, e.layer);
    if (e.layer + 1 >= widths.size() || e.from >= widths[e.layer] || e.to >= network.nodes(e.layer).sums())
      throw_invalid("report: " + where + " is not in the network");
    if (e.x.size() != e.y.size())
      throw_invalid(fmt::format("report: {} has {} values of x and {} of y", where, e.x.size(), e.y.size()));
  }
}

std::string range_text(Range range) {
  return range.empty() ? "–" : fmt::format("{} to {}", format_number(range.lo), format_number(range.hi));
}

Range finite_range(const std::vector<double>& values) {
  Range range;
  for (const double v : values)
    if (std::isfinite(v)) range.take(v);
  return range;
}

// One map per layer: columns are sources, rows are destinations, ink is importance.
void append_map(std::string& out, const SplineNetwork& network, std::size_t layer) {
  const std::size_t in = network.widths[layer], rows = network.nodes(layer).sums();
  const double cell = std::clamp(420.0 / static_cast<double>(std::max(in, rows)), 3.0, 16.0);
  const double width = cell * static_cast<double>(in), height = cell * static_cast<double>(rows);
  auto to = std::back_inserter(out);
  fmt::format_to(
      to,
      "<figure><svg class=\"map\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
      "aria-label=\"Importance of the edges of layer {2}\"><rect class=\"paper\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\"/>\n",
      width, height, layer + 1);
  for (const EdgeFunction& e : network.edges) {
    const double importance = clamped_importance(e);
    if (e.layer != layer || importance < 0.01) continue;
    fmt::format_to(to, "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill-opacity=\"{:.2f}\"/>",
                   cell * static_cast<double>(e.from), cell * static_cast<double>(e.to), cell - 0.4, cell - 0.4,
                   importance);
  }
  fmt::format_to(to, "</svg><figcaption>Layer {}: {} → {}</figcaption></figure>\n", layer + 1, in, rows);
}

}  // namespace

std::string node_name(const SplineNetwork& network, std::size_t layer, std::size_t node) {
  const bool output = layer + 1 == network.widths.size();
  const auto& names = layer == 0 ? network.input_names : network.output_names;
  if ((layer == 0 || output) && node < names.size() && !names[node].empty()) return names[node];
  if (layer == 0) return fmt::format("x{}", node + 1);
  if (!output) return fmt::format("h{}.{}", layer, node + 1);
  return network.widths.back() == 1 ? "y" : fmt::format("y{}", node + 1);
}

std::string destination_name(const SplineNetwork& network, const EdgeFunction& e) {
  const LayerNodes nodes = network.nodes(e.layer);
  const std::size_t node = nodes.node_of(e.to);
  const std::string name = node_name(network, e.layer + 1, node);
  if (!nodes.multiplies(node)) return name;
  return fmt::format("{} factor {}", name, e.to == node ? 1 : 2);
}

double clamped_importance(const EdgeFunction& edge) {
  return edge.importance > 0 ? std::min(edge.importance, 1.0) : 0.0;  // NaN is not above zero
}

void append_function(std::string& out, const SplineNetwork& network, const EdgeFunction& e, Box box) {
  const Range x = finite_range(e.x), y = finite_range(e.y);
  const double ink = 0.16 + 0.84 * clamped_importance(e);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<g class=\"function\"><title>{} → {}\ninput {}\noutput {}\ngrid {} to {}\nimportance {}</title>",
                 escape_html(node_name(network, e.layer, e.from)), escape_html(destination_name(network, e)),
                 range_text(x), range_text(y), format_number(e.grid_lo), format_number(e.grid_hi),
                 format_number(e.importance));
  const double radius = std::min(5.0, box.height / 8), inset = std::min(6.0, box.height / 7);
  fmt::format_to(to,
                 "<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\"/>",
                 box.x, box.y, box.width, box.height, radius);
  if (x.empty() || y.empty()) {
    out += "</g>\n";
    return;
  }
  const Axis across = make_axis(Scale::linear, x.lo, x.hi, 2, Fit::exact);
  const Axis up = make_axis(Scale::linear, y.lo, y.hi, 2, Fit::exact);
  const auto at_x = [&](double v) { return box.x + inset + across.position(v) * (box.width - 2 * inset); };
  const auto at_y = [&](double v) { return box.y + box.height - inset - up.position(v) * (box.height - 2 * inset); };
  const auto shade = [&](double from, double until) {
    if (until - from > 0.3)
      fmt::format_to(to, "<rect class=\"outside\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>", from,
                     box.y + 1, until - from, box.height - 2);
  };
  if (std::isfinite(e.grid_lo) && std::isfinite(e.grid_hi)) {
    shade(box.x + 1, at_x(e.grid_lo) > box.x + inset ? at_x(e.grid_lo) : box.x + 1);
    shade(at_x(e.grid_hi) < box.x + box.width - inset ? at_x(e.grid_hi) : box.x + box.width - 1, box.x + box.width - 1);
  }
  if (up.lo < 0 && up.hi > 0)
    fmt::format_to(to, "<line class=\"zero\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", box.x + inset,
                   box.x + box.width - inset, at_y(0), at_y(0));

  std::vector<Point> points;
  for (std::size_t i = 0; i < e.x.size(); ++i) points.push_back({e.x[i], e.y[i]});
  std::string path;
  for (const Stroke& stroke : thin_points(points, Scale::linear, kCurvePoints)) {
    char command = 'M';
    for (const Point p : stroke.line)
      fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", std::exchange(command, 'L'), at_x(p.x), at_y(p.y));
    if (stroke.line.size() == 1) path += "h0";
  }
  fmt::format_to(to, "<path class=\"curve\" stroke-opacity=\"{:.2f}\" stroke-width=\"{:.2f}\" d=\"{}\"/></g>\n", ink,
                 std::clamp(box.height / 26, 1.2, 2.2), path);
}

void append_network_gallery(std::string& out, const SplineNetwork& network) {
  std::vector<const EdgeFunction*> edges;
  double total = 0, shown_importance = 0;
  for (const EdgeFunction& e : network.edges) {
    edges.push_back(&e);
    total += clamped_importance(e);
  }
  const std::size_t functions = std::max(network.functions, network.edges.size());
  total = std::max(total, network.all_importance);
  std::stable_sort(edges.begin(), edges.end(), [](const EdgeFunction* a, const EdgeFunction* b) {
    return clamped_importance(*a) > clamped_importance(*b);
  });
  const std::size_t shown = std::min(edges.size(), kGalleryCurves);
  for (std::size_t i = 0; i < shown; ++i) shown_importance += clamped_importance(*edges[i]);

  out += "<div class=\"maps\">\n";
  for (std::size_t l = 0; l + 1 < network.widths.size(); ++l)
    if (network.widths[l] * network.nodes(l).sums() <= kLargestMap) append_map(out, network, l);
  out += "</div>\n<p class=\"quiet\">Importance of every edge: columns are sources, rows are destinations.</p>\n";
  fmt::format_to(std::back_inserter(out),
                 "<p>The {} most important of {} functions{}. {} are not drawn.</p>\n<div class=\"gallery\">\n", shown,
                 format_count(static_cast<std::int64_t>(functions)),
                 total > 0 ? fmt::format(", {} % of all importance",
                                         format_number(std::round(1000 * shown_importance / total) / 10))
                           : "",
                 format_count(static_cast<std::int64_t>(functions - shown)));
  for (std::size_t i = 0; i < shown; ++i) {
    const EdgeFunction& e = *edges[i];
    out += "<figure><svg viewBox=\"0 0 120 84\" role=\"img\">";
    append_function(out, network, e, {1, 1, 118, 82});
    fmt::format_to(std::back_inserter(out), "</svg><figcaption>{} → {} <span>{}</span></figcaption></figure>\n",
                   escape_html(shorten(node_name(network, e.layer, e.from), 12)),
                   escape_html(shorten(destination_name(network, e), 12)), format_fixed(clamped_importance(e), 2));
  }
  out += "</div>\n";
}

void append_network(std::string& out, const SplineNetwork& network) {
  require_valid(network);
  const auto& widths = network.widths;
  if (widths.size() < 2 || std::find(widths.begin(), widths.end(), 0u) != widths.end() || network.edges.empty()) {
    out += "<p class=\"quiet\">Nothing to draw: the network has no edges.</p>\n";
  } else if (fits_picture(network)) {
    append_network_picture(out, network);
  } else {
    append_network_gallery(out, network);
  }
}

}  // namespace gradloom::app
