// The report of a run: plain data in, one self-contained HTML page out, made to be read by people.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gradloom/base/layer_nodes.h"

namespace gradloom::app {

// What a figure or a table cell shows: a text as it is, a count with thousands separators, or a number with four
// significant digits.
class Value {
 public:
  Value(std::string text) : value_(std::move(text)) {}
  Value(const char* text) : value_(std::string(text)) {}
  Value(std::floating_point auto number) : value_(static_cast<double>(number)) {}
  Value(std::integral auto count) : value_(static_cast<std::int64_t>(count)) {}

  bool is_number() const { return !std::holds_alternative<std::string>(value_); }
  double number() const;     // NaN for a text
  std::string text() const;  // for people; not escaped

 private:
  std::variant<std::string, double, std::int64_t> value_;
};

struct Figure {
  std::string name;
  Value value;
  std::string unit;  // may be empty
};

enum class Scale { linear, logarithmic };

// The role chooses the colour, so that a split looks the same in every chart.
enum class Role { train, validation, test, other };

struct Point {
  double x = 0;
  double y = 0;
};

// Points in ascending x. Points that are not finite (or not positive on a logarithmic scale) leave a gap and are
// counted below the chart.
struct Series {
  std::string name;
  Role role = Role::other;
  std::vector<Point> points;
};

// A vertical line, for example the start of a stage: "grid 5 → 10".
struct Mark {
  double x = 0;
  std::string label;
};

struct Chart {
  std::string title;
  std::string note;  // a sentence below the title; may be empty
  std::string x_label;
  std::string y_label;
  Scale y_scale = Scale::linear;
  std::vector<Series> series;
  std::vector<Mark> marks;
};

// Rows shorter than `columns` are filled with empty cells, longer ones are cut.
struct Table {
  std::string title;
  std::string note;
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
  std::optional<std::size_t> bar_column;  // its numbers get a bar behind them, relative to the largest
};

// The learned function on the edge from node `from` of layer `layer` to node `to` of the next one.
struct EdgeFunction {
  std::size_t layer = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<double> x;  // ascending
  std::vector<double> y;  // as long as x
  double importance = 1;  // 0..1, drawn as opacity; clamped, NaN counts as 0
  double grid_lo = -1;    // what lies outside is shaded
  double grid_hi = 1;
  std::vector<double> density = {};  // values that arrive, counted in equal bins of the range of x; may be empty
};

// What the page has room for: a map of the importance of a layer's edges up to so many, and so many curves of a network
// that is too large for a picture. Whoever measures a network need not keep more.
inline constexpr std::size_t kLargestMap = 16384, kGalleryCurves = 48;

// A picture of the network when it is small enough; otherwise importance maps and the most important functions.
// Edges that were pruned are simply absent; so may be, of a layer too large for a map, those that matter little.
struct SplineNetwork {
  std::string title;
  std::string note;
  std::vector<std::size_t> widths;  // nodes per layer, inputs first
  std::vector<EdgeFunction> edges;
  std::vector<std::string> input_names;    // missing ones become x1, x2, …
  std::vector<std::string> output_names;   // missing ones become y1, y2, …
  std::size_t functions = 0;               // of the network, when `edges` are not all
  double all_importance = 0;               // of those
  std::vector<std::size_t> multiply = {};  // of each hidden layer, nodes that are products; empty: none

  // What edges of a layer lead to: sums, which become nodes (base/layer_nodes.h).
  LayerNodes nodes(std::size_t layer) const { return layer_nodes(widths, multiply, layer); }
};

// A formula as mathematics, with figures about it below.
struct TypesetFormula {
  std::string title;
  std::string note;
  // Goes into <math> as it is, each part into one of its own: made by formula/mathml.h, which escapes names.
  std::vector<std::string> mathml;
  std::string text;  // the same to copy
  std::vector<Figure> figures;
};

// One function of a network with axes, where the values lie that arrive there, and what it looks like.
struct EdgePlot {
  EdgeFunction function;
  std::vector<double> candidate;  // values of a simpler function at function.x; empty: none
  std::string candidate_mathml;   // as a part of TypesetFormula::mathml
  std::string candidate_note;     // "sin, R² 0.999"
};

struct EdgePlots {
  std::string title;
  std::string note;
  std::vector<EdgePlot> plots;
  SplineNetwork network;  // for the names of nodes alone
};

// Points that should lie on the diagonal. Points that are not finite are counted below.
struct Scatter {
  std::string title;
  std::string note;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
};

// A picture of cells; stays sharp however large it is shown.
struct CellPicture {
  std::string title;
  std::string note;
  std::string png;          // the bytes of a PNG file, animated or not
  std::string description;  // for those who do not see it
  double width = 640;       // in CSS pixels; a narrow page shows it smaller
};

struct GraphNode {
  std::string name;
  std::size_t node_class = 0;  // as predicted; chooses the colour
  bool wrong = false;          // ringed
  bool labelled = false;       // trained on; square
};

// Classes that a picture of a graph has colours for.
inline constexpr std::size_t kMostDrawnClasses = 7;

// A picture of one graph with the classes of its nodes; laid out here. Made for up to a few hundred nodes: the layout
// takes time with their square. More than kMostDrawnClasses are refused.
struct GraphPicture {
  std::string title;
  std::string note;
  std::vector<GraphNode> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::vector<std::string> classes;  // names; missing ones become class 0, class 1, …
};

using Section =
    std::variant<Chart, Table, SplineNetwork, CellPicture, GraphPicture, TypesetFormula, EdgePlots, Scatter>;

// Everything may be empty.
struct Report {
  std::string title;
  std::string subtitle;
  std::vector<Figure> figures;
  std::vector<std::string> warnings;
  std::vector<Section> sections;  // shown in this order
  std::string settings;           // the recipe as TOML, shown as it is
};

// The page needs no network and no other file. Texts may hold anything: they are escaped, invalid UTF-8 is replaced.
// Throws (invalid_input) when an edge names a node that is not there or its x and y differ in length.
std::string report_html(const Report& report);

}  // namespace gradloom::app
