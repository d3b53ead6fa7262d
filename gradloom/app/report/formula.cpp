// What a report shows of a formula: typeset, edge by edge, and predictions against the truth.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "gradloom/app/report/axis.h"
#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kScatterPoints = 2000;  // of a series
constexpr double kDensityShare = 0.22;        // of the height of a plot

// A plot with both axes.
struct PlotFrame {
  Axis x, y;
  double left = 0, right = 0, top = 0, bottom = 0;
  double at_x(double v) const { return left + x.position(v) * (right - left); }
  double at_y(double v) const { return bottom - y.position(v) * (bottom - top); }
};

void append_plot_axes(std::string& out, const PlotFrame& f) {
  auto to = std::back_inserter(out);
  for (const Tick& t : f.y.ticks)
    fmt::format_to(to,
                   "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"tick\" "
                   "x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                   f.left, f.right, f.at_y(t.value), f.at_y(t.value), f.left - 6, f.at_y(t.value) + 4, t.label);
  for (const Tick& t : f.x.ticks)
    fmt::format_to(to,
                   "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"tick\" "
                   "x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                   f.at_x(t.value), f.at_x(t.value), f.bottom, f.bottom + 4, f.at_x(t.value), f.bottom + 17, t.label);
  fmt::format_to(to, "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", f.left,
                 f.right, f.bottom, f.bottom);
}

std::string curve_path(const PlotFrame& f, const std::vector<double>& x, const std::vector<double>& y) {
  std::string path;
  bool pen = false;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const bool shown = std::isfinite(x[i]) && std::isfinite(y[i]) && y[i] >= f.y.lo && y[i] <= f.y.hi;
    if (shown) fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", pen ? 'L' : 'M', f.at_x(x[i]), f.at_y(y[i]));
    pen = shown;
  }
  return path;
}

void append_density(std::string& out, const PlotFrame& f, const std::vector<double>& density) {
  const double most = density.empty() ? 0 : *std::max_element(density.begin(), density.end());
  if (!(most > 0)) return;
  const double width = (f.right - f.left) / static_cast<double>(density.size());
  for (std::size_t b = 0; b < density.size(); ++b) {
    const double height = kDensityShare * (f.bottom - f.top) * density[b] / most;
    if (height > 0)
      fmt::format_to(std::back_inserter(out),
                     "<rect class=\"density\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                     f.left + static_cast<double>(b) * width, f.bottom - height, width - 0.6, height);
  }
  out += '\n';
}

void append_edge_plot(std::string& out, const SplineNetwork& network, const EdgePlot& plot) {
  const EdgeFunction& e = plot.function;
  Range x, y;
  for (std::size_t i = 0; i < std::min(e.x.size(), e.y.size()); ++i)
    if (std::isfinite(e.x[i]) && std::isfinite(e.y[i])) x.take(e.x[i]), y.take(e.y[i]);
  const std::string from = node_name(network, e.layer, e.from), to_name = destination_name(network, e);
  fmt::format_to(std::back_inserter(out), "<figure><svg viewBox=\"0 0 270 178\" role=\"img\" aria-label=\"{} → {}\">\n",
                 escape_html(from), escape_html(to_name));
  if (!x.empty()) {
    const PlotFrame f{make_axis(Scale::linear, x.lo, x.hi, 4, Fit::exact),
                      make_axis(Scale::linear, y.lo, y.hi, 3, Fit::round),
                      44,
                      254,
                      8,
                      152};
    append_density(out, f, e.density);
    append_plot_axes(out, f);
    fmt::format_to(std::back_inserter(out), "<path class=\"curve\" d=\"{}\"/>\n", curve_path(f, e.x, e.y));
    if (!plot.candidate.empty())
      fmt::format_to(std::back_inserter(out), "<path class=\"candidate\" d=\"{}\"/>\n",
                     curve_path(f, e.x, plot.candidate));
  }
  fmt::format_to(std::back_inserter(out), "</svg><figcaption><p>{} → {} <span>{} %</span></p>", escape_html(from),
                 escape_html(to_name), format_number(std::round(1000 * clamped_importance(e)) / 10));
  if (!plot.candidate_note.empty())
    fmt::format_to(std::back_inserter(out), "<p class=\"like\"><math>{}</math></p><p><span>{}</span></p>",
                   plot.candidate_mathml, escape_html(plot.candidate_note));
  out += "</figcaption></figure>\n";
}

}  // namespace

void append_formula(std::string& out, const TypesetFormula& formula) {
  out += "<div class=\"formula\">";
  for (const std::string& part : formula.mathml) fmt::format_to(std::back_inserter(out), "<math>{}</math>", part);
  out += "</div>\n";
  if (!formula.text.empty()) fmt::format_to(std::back_inserter(out), "<pre>{}</pre>\n", escape_html(formula.text));
  append_figures(out, formula.figures);
}

void append_edge_plots(std::string& out, const EdgePlots& plots) {
  out += "<div class=\"plots\">\n";
  for (const EdgePlot& plot : plots.plots) append_edge_plot(out, plots.network, plot);
  out += "</div>\n";
}

void append_scatter(std::string& out, const Scatter& scatter) {
  Range both;
  std::size_t left_out = 0;
  for (const Series& s : scatter.series)
    for (const Point p : s.points) {
      if (!drawable(p, Scale::linear)) {
        ++left_out;
        continue;
      }
      both.take(p.x), both.take(p.y);
    }
  if (both.empty()) {
    out += "<p class=\"quiet\">Nothing to draw: no finite points.</p>\n";
    return;
  }
  std::size_t others = 0;
  if (scatter.series.size() > 1) {
    out += "<ul class=\"legend\">";
    for (const Series& s : scatter.series)
      fmt::format_to(
          std::back_inserter(out),
          "<li><svg width=\"10\" height=\"10\" aria-hidden=\"true\"><circle class=\"dot {}\" cx=\"5\" cy=\"5\" "
          "r=\"4\"/></svg>{}</li>",
          role_class(s.role, others), escape_html(s.name));
    out += "</ul>\n";
  }
  const Axis axis = make_axis(Scale::linear, both.lo, both.hi, 6, Fit::round);
  const PlotFrame f{axis, axis, 74, 604, 12, 492};
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<svg class=\"scatter\" viewBox=\"0 0 620 544\" role=\"img\" aria-label=\"{}\">\n",
                 escape_html(scatter.title));
  append_plot_axes(out, f);
  fmt::format_to(to, "<line class=\"mark\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", f.left,
                 f.bottom, f.right, f.top);
  others = 0;
  for (const Series& s : scatter.series) {
    fmt::format_to(to, "<g class=\"{}\">", role_class(s.role, others));
    const std::size_t step = std::max<std::size_t>(1, s.points.size() / kScatterPoints);
    for (std::size_t i = 0; i < s.points.size(); i += step)
      if (drawable(s.points[i], Scale::linear))
        fmt::format_to(to, "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", f.at_x(s.points[i].x),
                       f.at_y(s.points[i].y));
    out += "</g>\n";
  }
  fmt::format_to(to, "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                 (f.left + f.right) / 2, f.bottom + 40, escape_html(scatter.x_label));
  fmt::format_to(
      to,
      "<text class=\"label\" transform=\"translate(16 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n</svg>\n",
      (f.top + f.bottom) / 2, escape_html(scatter.y_label));
  if (left_out > 0)
    fmt::format_to(to, "<p class=\"quiet\">{} {} not drawn: not finite.</p>\n",
                   format_count(static_cast<std::int64_t>(left_out)), left_out == 1 ? "point is" : "points are");
}

}  // namespace gradloom::app
