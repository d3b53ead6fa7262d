#include "gradloom/app/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"

namespace gradloom::app {
namespace {

void append_warnings(std::string& out, const std::vector<std::string>& warnings) {
  if (warnings.empty()) return;
  out += "<ul class=\"warnings\">\n";
  for (const std::string& w : warnings) fmt::format_to(std::back_inserter(out), "<li>{}</li>\n", escape_html(w));
  out += "</ul>\n";
}

double largest_in_column(const Table& table, std::size_t column) {
  double largest = 0;
  for (const auto& row : table.rows)
    if (column < row.size() && std::isfinite(row[column].number())) largest = std::max(largest, row[column].number());
  return largest;
}

void append_cell(std::string& out, const Value& value, double bar_scale) {
  const std::string text = escape_html(value.text());
  auto to = std::back_inserter(out);
  if (!value.is_number()) {
    fmt::format_to(to, "<td>{}</td>", text);
  } else if (bar_scale > 0) {
    const double share = value.number() > 0 ? std::min(value.number() / bar_scale, 1.0) : 0;
    fmt::format_to(to, "<td class=\"number bar\"><div><i style=\"--share:{:.1f}%\"></i><b>{}</b></div></td>",
                   100 * share, text);
  } else {
    fmt::format_to(to, "<td class=\"number\">{}</td>", text);
  }
}

// Whether half a page is too narrow for it: many columns, or long texts.
bool is_broad(const Section& section) {
  constexpr std::size_t kColumns = 5, kLetters = 28;
  const auto* table = std::get_if<Table>(&section);
  if (!table) return false;
  const auto is_long = [](const Value& value) { return value.text().size() > kLetters; };
  return table->columns.size() > kColumns ||
         (table->columns.size() > 2 && std::any_of(table->rows.begin(), table->rows.end(), [&](const auto& row) {
            return std::any_of(row.begin(), row.end(), is_long);
          }));
}

void append_section(std::string& out, const Section& section) {
  out += is_broad(section) ? "<section class=\"broad\">\n" : "<section>\n";
  std::visit(
      [&](const auto& s) {
        if (!s.title.empty()) fmt::format_to(std::back_inserter(out), "<h2>{}</h2>\n", escape_html(s.title));
        if (!s.note.empty()) fmt::format_to(std::back_inserter(out), "<p class=\"note\">{}</p>\n", escape_html(s.note));
      },
      section);
  if (const auto* chart = std::get_if<Chart>(&section)) append_chart(out, *chart);
  if (const auto* table = std::get_if<Table>(&section)) append_table(out, *table);
  if (const auto* network = std::get_if<SplineNetwork>(&section)) append_network(out, *network);
  if (const auto* graph = std::get_if<GraphPicture>(&section)) append_graph(out, *graph);
  if (const auto* picture = std::get_if<CellPicture>(&section)) append_cell_picture(out, *picture);
  if (const auto* formula = std::get_if<TypesetFormula>(&section)) append_formula(out, *formula);
  if (const auto* plots = std::get_if<EdgePlots>(&section)) append_edge_plots(out, *plots);
  if (const auto* scatter = std::get_if<Scatter>(&section)) append_scatter(out, *scatter);
  out += "</section>\n";
}

// Tables that follow each other share a row when the page is wide enough.
void append_sections(std::string& out, const std::vector<Section>& sections) {
  bool among_tables = false;
  for (const Section& section : sections) {
    const bool is_table = std::holds_alternative<Table>(section);
    if (is_table != among_tables) out += is_table ? "<div class=\"tables\">\n" : "</div>\n";
    among_tables = is_table;
    append_section(out, section);
  }
  if (among_tables) out += "</div>\n";
}

}  // namespace

double Value::number() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  if (const auto* count = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*count);
  return std::numeric_limits<double>::quiet_NaN();
}

std::string Value::text() const {
  if (const auto* number = std::get_if<double>(&value_)) return format_number(*number);
  if (const auto* count = std::get_if<std::int64_t>(&value_)) return format_count(*count);
  return std::get<std::string>(value_);
}

void append_figures(std::string& out, const std::vector<Figure>& figures) {
  if (figures.empty()) return;
  out += "<dl class=\"figures\">\n";
  for (const Figure& f : figures) {
    const std::string text = f.value.text();
    const bool long_text = !f.value.is_number() && text.size() > 12;
    fmt::format_to(std::back_inserter(out), "<div><dt>{}</dt><dd{}>{}", escape_html(f.name),
                   long_text ? " class=\"long\"" : "", escape_html(text));
    if (!f.unit.empty()) fmt::format_to(std::back_inserter(out), " <span>{}</span>", escape_html(f.unit));
    out += "</dd></div>\n";
  }
  out += "</dl>\n";
}

void append_table(std::string& out, const Table& table) {
  const auto numeric = [&](std::size_t c) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const auto& r) { return c < r.size() && r[c].is_number(); });
  };
  const double scale = table.bar_column ? largest_in_column(table, *table.bar_column) : 0;
  out += "<div class=\"scroll\"><table>\n<thead><tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    fmt::format_to(std::back_inserter(out), "<th{}>{}</th>", numeric(c) ? " class=\"number\"" : "",
                   escape_html(table.columns[c]));
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      append_cell(out, c < row.size() ? row[c] : Value(""), table.bar_column == c ? scale : 0);
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
}

std::string report_html(const Report& report) {
  const std::string title = escape_html(report.title.empty() ? "Training run" : report.title);
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  fmt::format_to(std::back_inserter(out), "<title>{} · gradloom</title>\n<style>{}</style>\n</head>\n<body>\n", title,
                 report_style());
  fmt::format_to(std::back_inserter(out), "<header>\n<p class=\"eyebrow\">gradloom</p>\n<h1>{}</h1>\n", title);
  if (!report.subtitle.empty())
    fmt::format_to(std::back_inserter(out), "<p class=\"subtitle\">{}</p>\n", escape_html(report.subtitle));
  out += "</header>\n<main>\n";
  append_figures(out, report.figures);
  append_warnings(out, report.warnings);
  append_sections(out, report.sections);
  if (!report.settings.empty())
    fmt::format_to(std::back_inserter(out), "<details><summary>Options</summary><pre>{}</pre></details>\n",
                   escape_html(report.settings));
  out += "</main>\n</body>\n</html>\n";
  return out;
}

}  // namespace gradloom::app
