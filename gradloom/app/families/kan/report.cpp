#include "gradloom/app/families/kan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "gradloom/app/report/text.h"
#include "gradloom/app/text.h"
#include "gradloom/formula/mathml.h"
#include "gradloom/formula/parse.h"
#include "gradloom/formula/print.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

constexpr std::size_t kMostPlots = 48, kMostScatters = 4, kScatterRows = 1000;

std::vector<json> formulas_in(const json& found) {
  if (!found.contains("targets")) return {found};
  return found.at("targets").get<std::vector<json>>();
}

std::vector<std::string> feature_names(const json& found) {
  std::vector<std::string> names;
  for (const json& i : found.at("inputs")) names.push_back(i.at("name").get<std::string>());
  return names;
}

// What a text of the report stands for; null: it cannot be read.
formula::Expr read_formula(const std::string& text, const std::vector<std::string>& names) {
  const auto e = formula::parse_expression(text, names, formula::Decimals::approximate);
  return e ? *e : nullptr;
}

TypesetFormula typeset(const json& f) {
  const std::vector<std::string> names = feature_names(f);
  const std::string text = f.at("text").get<std::string>(), target = f.at("target").get<std::string>();
  TypesetFormula section{"Formula", f.at("note").get<std::string>(), {}, target + " = " + text, {}};
  if (const formula::Expr e = read_formula(text, formula::printed_names(names, formula::Notation::text))) {
    section.mathml.push_back("<mrow>" + formula::mathml_name(target) + "<mo>=</mo></mrow>");
    for (std::string& term : formula::mathml_terms(e, names)) section.mathml.push_back(std::move(term));
  }
  section.figures.push_back({"status", f.at("status").get<std::string>(), ""});
  for (const auto& [key, name] :
       {std::pair{"rmse_formula", "RMSE of the formula"}, {"rmse_network", "RMSE of the network"}})
    section.figures.push_back({name, f.at(key).is_number() ? Value(f.at(key).get<double>()) : Value("undefined"), ""});
  section.figures.push_back({"complexity", f.at("complexity").get<std::int64_t>(), ""});
  return section;
}

Table inputs_table(const json& f) {
  Table inputs{"Inputs",
               "The share of the output's variance that each contributes, and its standard error.",
               {"input", "share", "error"}};
  inputs.bar_column = 1;
  // Formulas that were stored without them are of tables whose columns nobody told apart from inputs.
  for (const json& i : f.at(f.contains("columns") ? "columns" : "inputs"))
    inputs.rows.push_back({i.at("name").get<std::string>(), i.at("score").get<double>(), i.at("error").get<double>()});
  std::stable_sort(inputs.rows.begin(), inputs.rows.end(),
                   [](const auto& a, const auto& b) { return a[1].number() > b[1].number(); });
  return inputs;
}

using EdgePlace = std::array<std::size_t, 3>;

// The edges that some target's formula needs, as its report has them.
std::map<EdgePlace, json> kept_edges(const json& found) {
  std::map<EdgePlace, json> kept;
  for (const json& f : formulas_in(found))
    for (const json& e : f.at("edges"))
      if (e.at("kept").get<bool>())
        kept.emplace(
            EdgePlace{e.at("layer").get<std::size_t>(), e.at("from").get<std::size_t>(), e.at("to").get<std::size_t>()},
            e);
  return kept;
}

// Hidden nodes that nothing enters or leaves are not drawn; inputs stay, so that it shows which are not used.
void drop_lonely_nodes(SplineNetwork& network) {
  for (std::size_t l = 1; l + 1 < network.widths.size(); ++l) {
    const LayerNodes nodes = network.nodes(l - 1);
    std::vector<bool> used(network.widths[l], false);
    for (const EdgeFunction& e : network.edges) {
      if (e.layer + 1 == l) used[nodes.node_of(e.to)] = true;
      if (e.layer == l) used[e.from] = true;
    }
    std::vector<std::size_t> place(used.size(), 0);
    std::size_t count = 0;
    for (std::size_t n = 0; n < used.size(); ++n)
      if (used[n]) place[n] = count++;
    if (count == 0) return;
    const auto products = static_cast<std::size_t>(
        std::count(used.begin() + static_cast<std::ptrdiff_t>(nodes.plain()), used.end(), true));
    if (nodes.products > 0) network.multiply[l - 1] = products;
    for (EdgeFunction& e : network.edges) {
      if (e.layer + 1 == l) e.to = place[nodes.node_of(e.to)] + (e.to >= nodes.nodes ? products : 0);
      if (e.layer == l) e.from = place[e.from];
    }
    network.widths[l] = count;
  }
}

EdgePlot plot_of(const EdgeFunction& function, const json& edge) {
  EdgePlot plot{function, {}, "", ""};
  plot.function.importance = edge.at("score").get<double>();
  if (edge.at("candidates").empty()) return plot;
  const json& best = edge.at("candidates").front();
  const std::vector<std::string> x{"x"};
  const formula::Expr e = read_formula(best.at("text").get<std::string>(), x);
  if (!e) return plot;
  plot.candidate = formula::evaluate(e, {function.x}, function.x.size());
  // The text has more digits than a caption can show.
  std::vector<formula::Constant> digits;
  for (const double c : formula::constants_of(e)) digits.push_back(formula::Constant::approximate(with_digits(c, 3)));
  plot.candidate_mathml = formula::mathml(formula::with_constants(e, digits), x);
  plot.candidate_note =
      fmt::format("{}, R² {:.4f}", best.at("function").get<std::string>(), std::max(0.0, best.value("r2", 0.0)));
  return plot;
}

// The functions on these edges, the most important of them where there are many.
EdgePlots edge_plots(const std::map<EdgePlace, json>& edges, const SplineNetwork& picture) {
  const bool compared =
      std::any_of(edges.begin(), edges.end(), [](const auto& e) { return !e.second.at("candidates").empty(); });
  EdgePlots plots{
      "Edges",
      fmt::format("The function on each edge over its input values, whose density is the grey bars{}. Beside "
                  "the name, the share of the output's variance that the edge contributes.",
                  compared ? ", and the most similar function of the library, dashed" : ""),
      {},
      {}};
  plots.network.widths = picture.widths, plots.network.input_names = picture.input_names;
  plots.network.output_names = picture.output_names, plots.network.multiply = picture.multiply;
  for (const EdgeFunction& e : picture.edges)
    if (const auto known = edges.find(EdgePlace{e.layer, e.from, e.to}); known != edges.end() && !e.x.empty())
      plots.plots.push_back(plot_of(e, known->second));
  if (plots.plots.size() <= kMostPlots) return plots;
  std::stable_sort(plots.plots.begin(), plots.plots.end(),
                   [](const EdgePlot& a, const EdgePlot& b) { return a.function.importance > b.function.importance; });
  plots.note += fmt::format(" The {} with the largest share of {}.", kMostPlots, plots.plots.size());
  plots.plots.resize(kMostPlots);
  return plots;
}

}  // namespace

void add_formula_sections(const json& found, SplineNetwork picture, Report& report) {
  const std::vector<json> formulas = formulas_in(found);
  for (const json& f : formulas) report.sections.push_back(typeset(f));
  for (const json& f : formulas) {
    report.sections.push_back(inputs_table(f));
    if (formulas.size() > 1) std::get<Table>(report.sections.back()).title += ": " + f.at("target").get<std::string>();
  }
  const std::map<EdgePlace, json> kept = kept_edges(found);
  const std::size_t before = picture.edges.size();
  EdgePlots plots = edge_plots(kept, picture);
  std::erase_if(picture.edges, [&](const EdgeFunction& e) { return !kept.contains(EdgePlace{e.layer, e.from, e.to}); });
  picture.title = "The pruned network";
  picture.note += fmt::format(" {} of {} functions are drawn; the others contribute too little for a formula.",
                              picture.edges.size(), std::max(before, picture.functions));
  drop_lonely_nodes(picture);
  report.sections.push_back(std::move(picture));
  if (!plots.plots.empty()) report.sections.push_back(std::move(plots));
}

void add_score_sections(const json& scores, SplineNetwork picture, Report& report) {
  report.sections.push_back(inputs_table(scores));
  EdgePlots plots = edge_plots(kept_edges(scores), picture);
  report.sections.push_back(std::move(picture));
  if (!plots.plots.empty()) report.sections.push_back(std::move(plots));
}

namespace {

template <class T>
void add_confusion(const RowDataset<T>& rows, const PredictedRows& y, const char* name, Report& report) {
  const std::vector<std::string>& classes = rows.class_names();
  if (classes.size() > kMostConfused) return;
  std::vector<std::vector<std::size_t>> counts(classes.size(), std::vector<std::size_t>(classes.size(), 0));
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const auto row = y.values.begin() + static_cast<std::ptrdiff_t>(s * y.width);
    const auto end = row + static_cast<std::ptrdiff_t>(y.width);
    const auto best = y.width == 1 ? std::ptrdiff_t{*row > 0} : std::max_element(row, end) - row;
    ++counts[rows.parts().label[s]][static_cast<std::size_t>(best)];
  }
  Table table{
      "Confusion",
      fmt::format("{} {} rows: how many of each class (down) the network takes for which (across).", rows.size(), name),
      {"class"},
      {},
      {}};
  table.columns.insert(table.columns.end(), classes.begin(), classes.end());
  for (std::size_t c = 0; c < classes.size(); ++c) {
    table.rows.push_back({classes[c]});
    table.rows.back().insert(table.rows.back().end(), counts[c].begin(), counts[c].end());
  }
  report.sections.push_back(std::move(table));
}

}  // namespace

template <class T>
void add_predictions(const TypedSession<KanFamily<T>>& session, const json& found, Report& report) {
  const KanFamily<T>& family = session.family();
  if (family.train().is_classification()) {
    const RowDataset<T>* held = family.test() ? family.test() : family.validation();
    const char* name = family.test() ? "test" : held ? "validation" : "training";
    const RowDataset<T>& rows = held ? *held : family.train();
    return add_confusion(rows, session.predict_on(rows), name, report);
  }
  const RowDataset<T>& rows = family.test() ? *family.test() : family.train();
  const auto& parts = rows.parts();
  const PredictedRows predicted = session.predict_on(rows);
  const std::size_t count = std::min(parts.size, kScatterRows);
  const std::vector<json> formulas = found.is_null() ? std::vector<json>() : formulas_in(found);
  formula::Columns x(parts.features, std::vector<double>(count));
  for (std::size_t s = 0; s < count; ++s)
    for (std::size_t i = 0; i < parts.features; ++i)
      x[i][s] =
          static_cast<double>(parts.x[s * parts.features + i]) + (parts.centre.x.empty() ? 0.0 : parts.centre.x[i]);
  for (std::size_t j = 0; j < std::min(parts.targets, kMostScatters); ++j) {
    Scatter scatter{"Predicted against true",
                    fmt::format("{} {} rows; a prediction on the dashed line is exact.", count,
                                family.test() ? "test" : "training"),
                    "true",
                    "predicted",
                    {}};
    if (parts.targets > 1 && j < predicted.names.size()) scatter.title += ": " + predicted.names[j];
    Series network{"network", Role::train, {}}, formula{"formula", Role::validation, {}};
    std::vector<double> values;
    if (j < formulas.size())
      if (const formula::Expr e =
              read_formula(formulas[j].at("text").get<std::string>(),
                           formula::printed_names(feature_names(formulas[j]), formula::Notation::text)))
        values = formula::evaluate(e, x, count);
    for (std::size_t s = 0; s < count; ++s) {
      const double truth = static_cast<double>(parts.target[s * parts.targets + j]) +
                           (parts.centre.target.empty() ? 0.0 : parts.centre.target[j]);
      network.points.push_back({truth, predicted.values[s * predicted.width + j]});
      if (!values.empty()) formula.points.push_back({truth, values[s]});
    }
    scatter.series.push_back(std::move(network));
    if (!values.empty()) scatter.series.push_back(std::move(formula));
    report.sections.push_back(std::move(scatter));
  }
}

template void add_predictions(const TypedSession<KanFamily<float>>&, const json&, Report&);
template void add_predictions(const TypedSession<KanFamily<double>>&, const json&, Report&);

}  // namespace gradloom::app
