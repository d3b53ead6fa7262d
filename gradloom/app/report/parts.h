// The parts of the report's page. Each appends well-formed HTML to `out`; nothing here fails on odd numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gradloom/app/report.h"

namespace gradloom::app {

// The style sheet of the page, in light, dark and print.
const char* report_style();

void append_chart(std::string& out, const Chart& chart);
void append_table(std::string& out, const Table& table);

// Chooses between picture and gallery.
void append_network(std::string& out, const SplineNetwork& network);
// Nodes in layers, inputs at the bottom, each edge led through a box with its function.
void append_network_picture(std::string& out, const SplineNetwork& network);
// For networks too large for a picture: importance by layer, and the functions that matter most.
void append_network_gallery(std::string& out, const SplineNetwork& network);

// "x1", "h2.5" (fifth node of the second layer after the inputs), "y1", or the names that the network brings.
std::string node_name(const SplineNetwork& network, std::size_t layer, std::size_t node);
double clamped_importance(const EdgeFunction& edge);  // 0..1

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};
// The function's curve in a box, scaled to its own range; shaded outside its grid; a title tells the ranges.
void append_function(std::string& out, const SplineNetwork& network, const EdgeFunction& edge, Box box);

// Splits the points where one cannot be drawn on this scale, and thins each part to about `limit` points over all
// parts, keeping the first, the last, and the smallest and largest y of each stretch.
std::vector<std::vector<Point>> thin_points(std::span<const Point> points, Scale y_scale, std::size_t limit);

}  // namespace gradloom::app
