#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/app/formula/formula.h"
#include "gradloom/app/text.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/formula/noisy.h"
#include "gradloom/formula/print.h"
#include "gradloom/formula/refine.h"

namespace gradloom::app {
namespace {

using formula::Notation;

constexpr std::size_t kMostEdges = 4096;  // of a network that is explained
constexpr double kNoDifference = 1e-12;   // of the target's range: what rounding may change
// Of the effort: what comparing edges has, what fitting them together has, and what the search through noise has at
// least.
constexpr double kShareOfPart = 1.0 / 6;
constexpr double kLeastOfEdges = 6000;  // units: a hundred edges
constexpr double kClearly = 1.5;        // times a smaller error, on rows that were not learned
constexpr double kAlike = 0.97;         // of an error: no better

double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return a.empty() ? 0 : std::sqrt(sum / static_cast<double>(a.size()));
}

// Digits that do not matter: as few as leave the error where it is, to a thousandth of it or to what is nothing beside
// the target's range, and what is allowed.
formula::Expr rounded(const formula::Expr& given, const formula::Table& rows, const formula::AllowedFormula& accepted) {
  const auto error = [&](const formula::Expr& e) { return formula::rms_error(e, rows.x, rows.y); };
  const auto [low, high] = std::minmax_element(rows.y.begin(), rows.y.end());
  const double nothing = rows.y.empty() ? 0 : kNoDifference * (*high - *low);
  const double allowed = std::max(1.001 * error(given), nothing);
  const auto with = [&](const formula::Expr& e, const auto& shorter) {
    std::vector<formula::Constant> c;
    for (const double v : formula::constants_of(e)) c.push_back(shorter(v));
    return formula::with_constants(e, c);
  };
  const auto good = [&](const formula::Expr& e) { return error(e) <= allowed && accepted(e); };
  const formula::Expr few = with(given, [&](double v) {
    return std::abs(v) <= nothing ? formula::Constant::of(0) : formula::Constant::approximate(v);
  });
  const formula::Expr e = good(few) ? few : given;
  for (int digits = 3; digits < 15; ++digits) {
    const formula::Expr shorter =
        with(e, [&](double v) { return formula::Constant::approximate(with_digits(v, digits)); });
    if (good(shorter)) return shorter;
  }
  return e;
}

FormulaEdge edge_report(const formula::ExplainedEdge& e) {
  FormulaEdge r{e.layer, e.from, e.to, e.score.value, e.score.error, e.kept, {}};
  const std::vector<std::string> name{"x"};
  for (const formula::EdgeCandidate& c : e.candidates)
    r.candidates.push_back({c.function, print(c.text, name, Notation::text), c.r2, c.rmse, c.complexity});
  return r;
}

// Ranks must be about to search the same.
formula::Deal deal_of(Comm* comm, const formula::Table& table, double effort) {
  if (!comm) return {};
  Fingerprint f;
  for (const auto& column : table.x) f.take(std::span<const double>(column));
  f.take(std::span<const double>(table.y));
  f.take(std::span<const double>(&effort, 1));
  require_same(*comm, {{"other rows to search on", f.value()}});
  const auto exchange = [comm](std::span<formula::Outcome> batch) {
    std::vector<formula::Outcome> all(batch.size() * comm->size());
    comm->allgather(std::as_bytes(batch), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = all[i % comm->size() * batch.size() + i];
  };
  return {comm->rank(), comm->size(), exchange};
}

// The formula of one target.
class TargetSearch {
 public:
  TargetSearch(const Exec& ex, const FormulaData& data, std::size_t target, const FormulaSearchOptions& options,
               const formula::Functions& functions, const std::function<void(double, double)>& progress)
      : ex_(ex),
        data_(data),
        target_(target),
        o_(options),
        functions_(functions),
        table_{data.features, data.x, data.y[target]},
        allowed_([&functions](const formula::Expr& e) { return functions.allows(e); }),
        stop_(options.comm && options.comm->size() > 1 ? nullptr : options.stop) {
    if (progress) shown_ = [this, progress](double units, double) { progress(r_.work + units, o_.effort); };
    enough_ = table_.rows() >= formula::kLeastRows;
    rows_ = enough_ ? formula::split_rows(table_, 0) : formula::SplitRows{table_, {}};
  }

  FormulaReport report() {
    const formula::Scores scores = formula::score(data_.network, data_.column_of, target_);
    r_.target = data_.targets[target_];
    r_.inputs = named_scores(data_.features, scores.nodes[0]), r_.columns = named_scores(data_.columns, scores.columns);
    r_.rmse_network = rms(data_.predicted[target_], data_.test_y[target_]);
    formula::EdgeFormulaOptions edge_options;
    edge_options.threshold = o_.threshold, edge_options.output = target_;
    edge_options.functions = functions_;
    // Without data, edges are all there is to look at.
    const double comparable = std::max(o_.effort * kShareOfPart, data_.data ? 0.0 : kLeastOfEdges);
    formula::Work comparing(ex_, comparable, shown_, {}, stop_);
    edges_ = formula::explain_edges(comparing, data_.network, scores, edge_options);
    r_.work += comparing.used();
    formula::Expr chosen = data_.data && enough_ && !functions_.by_edge() ? search() : nullptr;
    if (!chosen) chosen = by_edges();
    for (const formula::ExplainedEdge& e : edges_) r_.edges.push_back(edge_report(e));
    write_texts(functions_.spelled(chosen), data_.features, r_);
    r_.rmse_formula = error_measured(chosen);
    add_notes();
    return std::move(r_);
  }

 private:
  bool stopped() const { return stop_ && *stop_; }
  double error_measured(const formula::Expr& e) const {
    return formula::rms_error(e, data_.test_x, data_.test_y[target_]);
  }
  void note(const std::string& text) { r_.note += (r_.note.empty() ? "" : "; ") + text; }

  // The formula behind the rows, exact or down to their noise; null: none, and `mean_` may be a better one than edges.
  formula::Expr search() {
    formula::SearchOptions how{.effort = o_.effort,
                               .progress = shown_,
                               .allowed = allowed_,
                               .deal = deal_of(o_.comm, table_, o_.effort),
                               .stop = stop_};
    const formula::SearchResult found = formula::search_formula(ex_, table_, how);
    r_.steps = found.steps, r_.work += found.work, r_.exhausted = found.exhausted;
    if (found.formula) {
      r_.status = "exact";
      return *found.formula;
    }
    how.effort = what_is_left();
    const formula::NoisyResult noisy = formula::search_noisy(ex_, table_, how);
    r_.work += noisy.work;
    if (!noisy.formula || stopped()) return nullptr;
    const formula::Expr e = rounded(*noisy.formula, table_, allowed_);
    // The surrogate takes a quick oscillation for noise. A network that comes closer knows better.
    const bool seen_through = data_.unseen && kClearly * r_.rmse_network < error_measured(e);
    if (e->op == formula::Op::number) mean_ = e;
    if (mean_ || seen_through) return nullptr;
    r_.steps = noisy.steps;
    r_.status = "consistent";
    note(fmt::format("the data are consistent with it; their noise is about {:.2g}", noisy.noise));
    return e;
  }

  formula::Expr by_edges() {
    const bool was_stopped = stopped();
    formula::Work fitting(ex_, o_.effort * kShareOfPart, shown_, {}, stop_);
    const formula::Expr fitted = formula::edge_formula(fitting, data_.network, edges_, rows_.seen, target_, functions_);
    r_.work += fitting.used();
    r_.status = "approximate";
    if (data_.data && enough_ && !functions_.by_edge()) {
      if (const auto exact = formula::confirm_edges(fitted, rows_, allowed_)) {
        r_.status = "exact", r_.steps = {"edge by edge"}, r_.exhausted = false;
        return *exact;
      }
    }
    const auto unseen = [&](const formula::Expr& e) { return formula::rms_error(e, rows_.unseen.x, rows_.unseen.y); };
    if (mean_ && !(unseen(fitted) < kAlike * unseen(mean_))) {
      // Noise alone, or a function that nothing smooth comes close to: a mean does not tell which.
      note(r_.rmse_network < kAlike * error_measured(mean_)
               ? "no formula was found that explains the target better than its mean; the network does"
               : "nothing was found that explains the target better than its mean");
      return mean_;
    }
    note(functions_.by_edge() ? "made edge by edge, because functions of edges were set"
         : !data_.data        ? "there are no data: the formula approximates the network"
         : !enough_
             ? fmt::format("no search: it needs at least {} rows, and there are {}", formula::kLeastRows, table_.rows())
         : was_stopped  ? "the search was stopped"
         : r_.exhausted ? fmt::format("no exact formula within an effort of {}; --effort allows more", o_.effort)
                        : "no exact formula was found, nor one that noise explains; numbers rounded to few digits "
                          "hide a formula");
    return rounded(fitted, rows_.seen, allowed_);
  }

  // Each part of a search has something to try what it finds with.
  double what_is_left() const { return std::max(o_.effort - r_.work, o_.effort * kShareOfPart); }

  void add_notes() {
    const auto lines = std::count_if(edges_.begin(), edges_.end(), [](const auto& e) { return e.kept && !e.compared; });
    if (lines > 0 && r_.steps.empty() && !stopped())
      note(
          fmt::format("the effort was used up before {} of {} edges, those that matter least, could be compared with "
                      "functions; they became straight lines",
                      lines, std::count_if(edges_.begin(), edges_.end(), [](const auto& e) { return e.kept; })));
    for (const formula::ExplainedEdge& e : edges_)
      if (functions_.fixes(e.layer, e.from, e.to) && e.kept && e.candidates.empty())
        note(fmt::format(
            "edge {}.{}.{} became its mean, because its function is not defined on its values or makes one that is "
            "forbidden",
            e.layer, e.from, e.to));
    if (!std::isfinite(r_.rmse_formula)) note("it is not defined on all rows that it is measured on");
  }

  const Exec& ex_;
  const FormulaData& data_;
  std::size_t target_;
  const FormulaSearchOptions& o_;
  const formula::Functions& functions_;
  formula::Table table_;
  formula::SplitRows rows_;
  bool enough_ = false;
  formula::AllowedFormula allowed_;
  const std::atomic<bool>* stop_;
  std::function<void(double, double)> shown_;
  std::vector<formula::ExplainedEdge> edges_;
  formula::Expr mean_;
  FormulaReport r_;
};

}  // namespace

void write_texts(const formula::Expr& e, const std::vector<std::string>& names, FormulaReport& r) {
  r.text = print(e, names, Notation::text), r.latex = print(e, names, Notation::latex);
  r.sympy = print(e, names, Notation::sympy), r.python = print(e, names, Notation::python);
  r.c = print(e, names, Notation::c);
  r.variables = formula::printed_names(names, Notation::python);
  r.complexity = complexity(e);
}

std::vector<FormulaScore> named_scores(const std::vector<std::string>& names,
                                       const std::vector<formula::Score>& scores) {
  std::vector<FormulaScore> list;
  for (std::size_t i = 0; i < names.size(); ++i) list.push_back({names[i], scores[i].value, scores[i].error});
  return list;
}

Result<void> can_have_formula(const FormulaData& data) {
  if (!data.classes.empty())
    return Error{ErrorCode::unsupported, "formulas need a network that predicts numbers; this one predicts classes"};
  std::size_t edges = 0;
  for (const auto& layer : data.network.edge) edges += layer.size();
  if (edges > kMostEdges)
    return Error{
        ErrorCode::unsupported,
        fmt::format("the network has {} edges; formulas are made of at most {}; prune it first", edges, kMostEdges)};
  return {};
}

std::vector<FormulaReport> find_formulas(const Exec& ex, const FormulaData& data, const FormulaSearchOptions& options,
                                         const std::function<void(double, double)>& progress) {
  const formula::Functions functions(options);
  std::vector<FormulaReport> reports;
  for (std::size_t t = 0; t < data.targets.size(); ++t)
    reports.push_back(TargetSearch(ex, data, t, options, functions, progress).report());
  return reports;
}

}  // namespace gradloom::app
