// The picture of a spline network: layers of dots, and on every edge a box with the function it learned.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"
#include "gradloom/base/rounding.h"

namespace gradloom::app {
namespace {

constexpr double kMaxWidth = 1120, kMinWidth = 420, kSide = 12;
constexpr double kRoomyBox = 62, kRoomyPitch = 82, kSmallestPitch = 54, kOneRowPitch = 34;
constexpr double kRowGap = 7, kNode = 5, kFan = 58, kLabel = 30;
constexpr double kFactor = 3.5, kFactorDrop = 26, kTimes = 9;  // dots of factors, and how far they are below × signs

// Where the boxes below one layer of destination nodes stand. Each destination has a block of columns x rows boxes
// under it.
struct BoxGrid {
  std::size_t columns = 1, rows = 1;
  double pitch = kRoomyPitch;  // from column to column
  double width = kRoomyBox, box_height = kRoomyBox;
  double height() const { return static_cast<double>(rows) * (box_height + kRowGap) - kRowGap; }
};

BoxGrid fit_boxes(std::size_t in, std::size_t out, double width) {
  BoxGrid grid;
  const double block = width / static_cast<double>(out);
  const auto fits = [&](double pitch) { return std::max<std::size_t>(1, static_cast<std::size_t>(block / pitch)); };
  const std::size_t columns = fits(kOneRowPitch) >= in ? in : fits(kSmallestPitch);
  grid.rows = divide_up(in, columns);
  grid.columns = divide_up(in, grid.rows);
  grid.pitch = std::min(kRoomyPitch, block / static_cast<double>(grid.columns));
  grid.width = std::min(kRoomyBox, grid.pitch - std::clamp(grid.pitch * 0.24, 6.0, 20.0));
  grid.box_height = grid.rows > 1 ? grid.width * 0.7 : grid.width;
  return grid;
}

struct Layout {
  const SplineNetwork& network;
  double width = 0, height = 0;
  std::vector<BoxGrid> grids;   // one per layer of edges
  std::vector<double> node_y;   // one per layer of nodes; inputs at the bottom
  std::vector<double> boxes_y;  // top of the boxes

  // Of a node among those of its layer, inputs being layer 0. A product is above the middle of its factors.
  double node_x(std::size_t layer, std::size_t node) const {
    if (layer == 0) return place_x(static_cast<double>(node), network.widths[0]);
    const LayerNodes nodes = network.nodes(layer - 1);
    return place_x(place_of(nodes, node) + (nodes.multiplies(node) ? 0.5 : 0.0), nodes.sums());
  }
  // Where edges of a layer end.
  double sum_x(std::size_t layer, std::size_t sum) const {
    const LayerNodes nodes = network.nodes(layer);
    return place_x(place_of(nodes, nodes.node_of(sum)) + (sum >= nodes.nodes ? 1.0 : 0.0), nodes.sums());
  }
  double sum_y(std::size_t layer, std::size_t sum) const {
    const LayerNodes nodes = network.nodes(layer);
    return node_y[layer + 1] + (nodes.multiplies(nodes.node_of(sum)) ? kFactorDrop : 0.0);
  }
  Box box(const EdgeFunction& e) const {
    const BoxGrid& g = grids[e.layer];
    const std::size_t column = e.from / g.rows, row = e.from % g.rows;
    const double middle = (static_cast<double>(g.columns) - 1) / 2;
    const double x = sum_x(e.layer, e.to) + (static_cast<double>(column) - middle) * g.pitch;
    const double y = boxes_y[e.layer] + static_cast<double>(g.rows - 1 - row) * (g.box_height + kRowGap);
    return {x - g.width / 2, y, g.width, g.box_height};
  }

 private:
  double place_x(double place, std::size_t places) const {
    return kSide + (place + 0.5) * (width - 2 * kSide) / static_cast<double>(places);
  }
  // Factors of a product stand side by side.
  static double place_of(const LayerNodes& nodes, std::size_t node) {
    return static_cast<double>(nodes.multiplies(node) ? 2 * node - nodes.plain() : node);
  }
};

Layout lay_out(const SplineNetwork& network) {
  Layout layout{network};
  const auto& widths = network.widths;
  double wanted = kMinWidth;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l)
    wanted = std::max(wanted, static_cast<double>(widths[l] * network.nodes(l).sums()) * kRoomyPitch);
  layout.width = std::min(wanted, kMaxWidth - 2 * kSide) + 2 * kSide;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l)
    layout.grids.push_back(fit_boxes(widths[l], network.nodes(l).sums(), layout.width - 2 * kSide));

  layout.node_y.resize(widths.size());
  layout.boxes_y.resize(layout.grids.size());
  double y = kLabel + kNode;
  for (std::size_t l = layout.grids.size(); l-- > 0;) {
    layout.node_y[l + 1] = y;
    layout.boxes_y[l] = y + kFan * 0.8 + (network.nodes(l).products > 0 ? kFactorDrop : 0.0);
    y = layout.boxes_y[l] + layout.grids[l].height() + kFan * std::clamp(layout.width / 600, 1.0, 1.7);
  }
  layout.node_y[0] = y;
  layout.height = y + kNode + kLabel;
  return layout;
}

// One row of boxes: straight up through the box. Several rows: in from the gutter on the left, out by the one on the
// right, so that no wire hides behind another function.
void append_wire(std::string& out, const Layout& layout, const EdgeFunction& e) {
  const Box box = layout.box(e);
  const BoxGrid& grid = layout.grids[e.layer];
  const double x0 = layout.node_x(e.layer, e.from), y0 = layout.node_y[e.layer];
  const double x1 = layout.sum_x(e.layer, e.to), y1 = layout.sum_y(e.layer, e.to);
  const double middle_x = box.x + box.width / 2, middle_y = box.y + box.height / 2;
  const double top = layout.boxes_y[e.layer], bottom = top + grid.height();
  const double importance = clamped_importance(e), boldness = layout.network.edges.size() > 60 ? 0.7 : 1;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<path stroke-opacity=\"{:.2f}\" stroke-width=\"{:.2f}\" d=\"M{:.1f} {:.1f}",
                 boldness * (0.07 + 0.78 * importance), boldness * (0.8 + 0.9 * importance), x0, y0);
  if (grid.rows == 1) {
    const double below = (y0 + bottom) / 2, above = (top + y1) / 2;
    fmt::format_to(to, "C{0:.1f} {1:.1f} {2:.1f} {1:.1f} {2:.1f} {3:.1f}", x0, below, middle_x, bottom);
    fmt::format_to(to, "M{0:.1f} {1:.1f}C{0:.1f} {2:.1f} {3:.1f} {2:.1f} {3:.1f} {4:.1f}", middle_x, top, above, x1,
                   y1);
  } else {
    const double in_x = box.x - 3, out_x = box.x + box.width + 3, below = (y0 + bottom) / 2, above = (top + y1) / 2;
    fmt::format_to(to, "C{0:.1f} {1:.1f} {2:.1f} {1:.1f} {2:.1f} {3:.1f}V{4:.1f}H{5:.1f}", x0, below, in_x, bottom,
                   middle_y, box.x);
    fmt::format_to(to, "M{0:.1f} {1:.1f}H{2:.1f}V{3:.1f}C{2:.1f} {4:.1f} {5:.1f} {4:.1f} {5:.1f} {6:.1f}",
                   box.x + box.width, middle_y, out_x, top, above, x1, y1);
  }
  out += "\"/>\n";
}

void append_node(std::string& out, const Layout& layout, std::size_t layer, std::size_t node) {
  const auto& widths = layout.network.widths;
  const double x = layout.node_x(layer, node), y = layout.node_y[layer];
  const std::string name = node_name(layout.network, layer, node);
  fmt::format_to(std::back_inserter(out),
                 "<g><title>{}</title><circle class=\"node\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>",
                 escape_html(name), x, y, kNode);
  const bool first = layer == 0, last = layer + 1 == widths.size();
  if (first || last) {
    const double room = (layout.width - 2 * kSide) / static_cast<double>(widths[layer]);
    const auto characters = std::max<std::size_t>(3, static_cast<std::size_t>(room / 8.5));
    fmt::format_to(std::back_inserter(out),
                   "<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", x,
                   first ? y + kNode + 22 : y - kNode - 10, escape_html(shorten(name, characters)));
  }
  out += "</g>\n";
}

// A circle with a multiplication sign, and below it the two sums that it multiplies.
void append_product(std::string& out, const Layout& layout, std::size_t layer, std::size_t node) {
  const LayerNodes nodes = layout.network.nodes(layer - 1);
  const double x = layout.node_x(layer, node), y = layout.node_y[layer], arm = kTimes * 0.42;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<g><title>{}, a product</title>", escape_html(node_name(layout.network, layer, node)));
  for (const std::size_t sum : {node, nodes.second_factor(node)}) {
    const double sum_x = layout.sum_x(layer - 1, sum), sum_y = layout.sum_y(layer - 1, sum);
    fmt::format_to(to, "<path class=\"factor\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", sum_x, sum_y, x, y);
    fmt::format_to(to, "<circle class=\"node\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", sum_x, sum_y, kFactor);
  }
  fmt::format_to(to, "<circle class=\"times\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:.1f}\"/>", x, y, kTimes);
  fmt::format_to(to,
                 "<path class=\"times\" d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}M{0:.1f} {3:.1f}L{2:.1f} {1:.1f}\"/></g>\n",
                 x - arm, y - arm, x + arm, y + arm);
}

}  // namespace

void append_network_picture(std::string& out, const SplineNetwork& network) {
  const Layout layout = lay_out(network);
  fmt::format_to(std::back_inserter(out),
                 "<div class=\"wide\"><svg class=\"network\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                 "style=\"max-width:{0:.0f}px\" role=\"img\" "
                 "aria-label=\"Network of {2} layers\">\n",
                 layout.width, layout.height, layout.grids.size());
  out += "<g class=\"wire\">\n";
  for (const EdgeFunction& e : network.edges) append_wire(out, layout, e);
  out += "</g>\n";
  for (const EdgeFunction& e : network.edges) append_function(out, network, e, layout.box(e));
  for (std::size_t l = 0; l < network.widths.size(); ++l)
    for (std::size_t n = 0; n < network.widths[l]; ++n)
      if (l > 0 && network.nodes(l - 1).multiplies(n))
        append_product(out, layout, l, n);
      else
        append_node(out, layout, l, n);
  out += "</svg></div>\n";
  if (std::any_of(layout.grids.begin(), layout.grids.end(), [](const BoxGrid& g) { return g.rows > 1; }))
    out +=
        "<p class=\"quiet\">Stacked boxes follow the nodes below from left to right: bottom to top, then the next "
        "column.</p>\n";
}

}  // namespace gradloom::app
