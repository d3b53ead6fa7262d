// The parts of the report's page. Each appends well-formed HTML to `out`; nothing here fails on odd numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "gradloom/app/report/report.h"

namespace gradloom::app {

// The style sheet of the page, in light, dark and print.
const char* report_style();

void append_chart(std::string& out, const Chart& chart);
void append_table(std::string& out, const Table& table);

// Throws (invalid_input) when an edge names a node that is not there.
void append_graph(std::string& out, const GraphPicture& graph);
void append_cell_picture(std::string& out, const CellPicture& picture);

void append_formula(std::string& out, const TypesetFormula& formula);
void append_edge_plots(std::string& out, const EdgePlots& plots);
void append_scatter(std::string& out, const Scatter& scatter);
void append_figures(std::string& out, const std::vector<Figure>& figures);

// The class of a series' colours; `others` counts those without a role.
const char* role_class(Role role, std::size_t& others);

// Chooses between picture and gallery.
void append_network(std::string& out, const SplineNetwork& network);
// Nodes in layers, inputs at the bottom, each edge led through a box with its function.
void append_network_picture(std::string& out, const SplineNetwork& network);
// For networks too large for a picture: importance by layer, and the functions that matter most.
void append_network_gallery(std::string& out, const SplineNetwork& network);

// "x1", "h2.5" (fifth node of the second layer after the inputs), "y1", or the names that the network brings.
std::string node_name(const SplineNetwork& network, std::size_t layer, std::size_t node);
// That of the node that an edge enters; of a product also which factor: "h1.3 factor 2".
std::string destination_name(const SplineNetwork& network, const EdgeFunction& edge);
double clamped_importance(const EdgeFunction& edge);  // 0..1

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};
// The function's curve in a box, scaled to its own range; shaded outside its grid; a title tells the ranges.
void append_function(std::string& out, const SplineNetwork& network, const EdgeFunction& edge, Box box);

bool drawable(Point point, Scale y_scale);  // finite, and above zero on a logarithmic scale

// A stretch of a series without gaps. Many points are thinned to buckets: the line then runs through their means, and
// low and high hold the smallest and the largest y of each bucket. Otherwise the line is the points, and low and high
// are empty.
struct Stroke {
  std::vector<Point> line;
  std::vector<double> low, high;
};

// The strokes of a series, thinned to at most about `limit` points over all of them.
std::vector<Stroke> thin_points(std::span<const Point> points, Scale y_scale, std::size_t limit);

// The smallest and the largest of some values; empty at first.
struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();
  bool empty() const { return !(lo <= hi); }
  void take(double value) {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
};

}  // namespace gradloom::app
