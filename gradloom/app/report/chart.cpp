// Line charts: axes, series with gaps, stage marks, legend.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "gradloom/app/report/axis.h"
#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"

namespace gradloom::app {
namespace {

constexpr double kWidth = 1000, kLeft = 74, kRight = 984, kMarkRow = 17;
constexpr double kPlotHeight = 300, kBottomSpace = 52;
constexpr std::size_t kPointLimit = 500;

struct Frame {
  Axis x, y;
  double top = 0, bottom = 0;
  double at_x(double v) const { return kLeft + x.position(v) * (kRight - kLeft); }
  double at_y(double v) const { return bottom - y.position(v) * (bottom - top); }
};

struct PlacedMark {
  const Mark* mark;
  int row;  // -1: no room for its label
};

// Labels start at their line; a label that would run into its neighbour moves up a row, as far as three rows go.
std::vector<PlacedMark> place_marks(const std::vector<Mark>& marks, const Axis& x) {
  std::vector<PlacedMark> placed;
  for (const Mark& mark : marks)
    if (std::isfinite(mark.x) && mark.x >= x.lo && mark.x <= x.hi) placed.push_back({&mark, -1});
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedMark& a, const PlacedMark& b) { return a.mark->x < b.mark->x; });
  std::array<double, 3> row_end = {0, 0, 0};
  for (PlacedMark& p : placed) {
    const double start = kLeft + x.position(p.mark->x) * (kRight - kLeft);
    const double end = start + 7.0 * static_cast<double>(shorten(p.mark->label, 24).size()) + 10;
    for (int row = 0; row < 3 && p.row < 0; ++row)
      if (start >= row_end[row]) {
        p.row = row;
        row_end[row] = end;
      }
  }
  return placed;
}

void append_axes(std::string& out, const Frame& frame, const Chart& chart) {
  auto to = std::back_inserter(out);
  for (const Tick& t : frame.y.ticks) {
    const double y = frame.at_y(t.value);
    fmt::format_to(to, "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft, kRight,
                   y, y);
    fmt::format_to(to, "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 10,
                   y + 4, t.label);
  }
  for (const Tick& t : frame.x.ticks) {
    const double x = frame.at_x(t.value);
    fmt::format_to(to, "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", x, x,
                   frame.bottom, frame.bottom + 5);
    fmt::format_to(to, "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
                   frame.bottom + 20, t.label);
  }
  fmt::format_to(to, "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft, kRight,
                 frame.bottom, frame.bottom);
  fmt::format_to(to, "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                 (kLeft + kRight) / 2, frame.bottom + 44, escape_html(chart.x_label));
  fmt::format_to(
      to, "<text class=\"label\" transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (frame.top + frame.bottom) / 2, escape_html(chart.y_label));
}

void append_marks(std::string& out, const Frame& frame, const std::vector<PlacedMark>& marks) {
  for (const PlacedMark& p : marks) {
    const double x = frame.at_x(p.mark->x), label_y = frame.top - 8 - kMarkRow * std::max(p.row, 0);
    fmt::format_to(std::back_inserter(out),
                   "<g><title>{}</title><line class=\"mark\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                   escape_html(p.mark->label), x, x, p.row < 0 ? frame.top : label_y - 10, frame.bottom);
    if (p.row >= 0)
      fmt::format_to(std::back_inserter(out), "<text class=\"marktext\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 5,
                     label_y, escape_html(shorten(p.mark->label, 24)));
    out += "</g>\n";
  }
}

void append_step(std::string& path, char command, const Frame& frame, double x, double y) {
  fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", command, frame.at_x(x), frame.at_y(y));
}

// A stroke of one point still shows: a line of no length has round caps.
void append_series(std::string& out, const Frame& frame, const Series& series, const char* css, Scale y_scale) {
  std::string lines, envelope;
  for (const Stroke& stroke : thin_points(series.points, y_scale, kPointLimit)) {
    const auto& line = stroke.line;
    for (std::size_t i = 0; i < line.size(); ++i) append_step(lines, i == 0 ? 'M' : 'L', frame, line[i].x, line[i].y);
    if (line.size() == 1) lines += "h0";
    const std::size_t buckets = stroke.low.size();
    for (std::size_t i = 0; i < buckets; ++i)
      append_step(envelope, i == 0 ? 'M' : 'L', frame, line[i].x, stroke.high[i]);
    for (std::size_t i = buckets; i-- > 0;) append_step(envelope, 'L', frame, line[i].x, stroke.low[i]);
    if (buckets > 0) envelope += 'Z';
  }
  auto to = std::back_inserter(out);
  if (!envelope.empty()) fmt::format_to(to, "<path class=\"envelope {}\" d=\"{}\"/>\n", css, envelope);
  if (!lines.empty())
    fmt::format_to(to, "<path class=\"series {}\" d=\"{}\"><title>{}</title></path>\n", css, lines,
                   escape_html(series.name));
}

void append_legend(std::string& out, const Chart& chart) {
  out += "<ul class=\"legend\">";
  std::size_t others = 0;
  for (const Series& series : chart.series) {
    fmt::format_to(
        std::back_inserter(out),
        "<li><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path class=\"series {}\" d=\"M2 5H24\"/></svg>{}",
        role_class(series.role, others), escape_html(series.name));
    const auto last =
        std::find_if(series.points.rbegin(), series.points.rend(), [&](Point p) { return drawable(p, chart.y_scale); });
    if (last != series.points.rend())
      fmt::format_to(std::back_inserter(out), " <span class=\"last\">{}</span>", format_number(last->y));
    out += "</li>";
  }
  out += "</ul>\n";
}

}  // namespace

const char* role_class(Role role, std::size_t& others) {
  static constexpr std::array kOthers = {"s-a", "s-b", "s-c", "s-d"};
  switch (role) {
    case Role::train:
      return "s-train";
    case Role::validation:
      return "s-validation";
    case Role::test:
      return "s-test";
    case Role::other:
      break;
  }
  return kOthers[others++ % kOthers.size()];
}

void append_chart(std::string& out, const Chart& chart) {
  Range x, y;
  std::size_t left_out = 0;
  for (const Series& series : chart.series)
    for (const Point p : series.points) {
      if (!drawable(p, chart.y_scale)) {
        ++left_out;
        continue;
      }
      x.take(p.x);
      y.take(p.y);
    }
  append_legend(out, chart);
  if (x.empty()) {
    out += "<p class=\"quiet\">Nothing to draw: no finite points.</p>\n";
    return;
  }
  Frame frame{make_axis(Scale::linear, x.lo, x.hi, 8, Fit::exact), make_axis(chart.y_scale, y.lo, y.hi, 6, Fit::round)};
  const std::vector<PlacedMark> marks = place_marks(chart.marks, frame.x);
  int rows = 0;
  for (const PlacedMark& p : marks) rows = std::max(rows, p.row + 1);
  frame.top = 12 + kMarkRow * rows;
  frame.bottom = frame.top + kPlotHeight;

  fmt::format_to(std::back_inserter(out),
                 "<svg class=\"chart\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                 frame.bottom + kBottomSpace, escape_html(chart.title));
  append_axes(out, frame, chart);
  append_marks(out, frame, marks);
  std::size_t others = 0;
  for (const Series& series : chart.series)
    append_series(out, frame, series, role_class(series.role, others), chart.y_scale);
  out += "</svg>\n";
  if (left_out > 0)
    fmt::format_to(std::back_inserter(out), "<p class=\"quiet\">{} {} not drawn: not finite{}.</p>\n",
                   format_count(static_cast<std::int64_t>(left_out)), left_out == 1 ? "point is" : "points are",
                   chart.y_scale == Scale::logarithmic ? ", or not above zero on a logarithmic axis" : "");
}

}  // namespace gradloom::app
