#include "gradloom/formula/edges.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gradloom/formula/refine.h"
#include "gradloom/formula/simplify.h"

namespace gradloom::formula {
namespace {

constexpr std::size_t kTogether = 8;    // edges that are compared at a time, whatever the number of threads
constexpr double kUnitsOfFunction = 2;  // what comparing an edge with a function costs
constexpr double kShareOfTrials = 0.5;  // of the work; the rest fits what was chosen
constexpr int kTrialSteps = 12, kSteps = 30;
constexpr int kPasses = 6;                   // over the changes of edges
constexpr double kWeak = 0.1;                // the score of an edge that may be left out
constexpr std::size_t kTried = 3;            // candidates of an edge
constexpr std::size_t kTrialRows = 300;      // that show whether one is better than another
constexpr std::size_t kTrialsAtOnce = 8;     // whatever the number of threads
constexpr std::size_t kMostConstants = 100;  // of a formula that is worth it
constexpr std::size_t kPlacesOfBox = 200;    // where a formula must be defined
constexpr double kNothing = 1e-10;           // of the range of y: what an exact formula may be wrong by
constexpr double kCurved = 1e-3;             // of the deviation of a function: what a line leaves

// Where the candidates of an edge must be defined.
Range range_of_edge(const NetworkSamples& s, std::size_t layer, std::size_t from) {
  if (layer > 0) return wider_range(s.node[layer][from]);
  std::vector<double> raw;
  for (const double v : s.node[0][from]) raw.push_back(v / s.input_scale[from] + s.input_mean[from]);
  const Range r = wider_range(raw);
  const auto node = [&](double x) { return (x - s.input_mean[from]) * s.input_scale[from]; };
  return {std::min(node(r.low), node(r.high)), std::max(node(r.low), node(r.high))};
}

std::vector<EdgeCandidate> candidates_of(const NetworkSamples& s, const ExplainedEdge& e,
                                         std::span<const LibraryFunction> functions, EdgeFitOptions fit) {
  fit.range = range_of_edge(s, e.layer, e.from);
  return fit_edge(s.node[e.layer][e.from], s.edge[e.layer][e.from * s.sums(e.layer) + e.to], functions, fit);
}

// Kept edges, those that matter most first.
std::vector<std::size_t> by_importance(const std::vector<ExplainedEdge>& edges, const Functions& functions) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (edges[i].kept) order.push_back(i);
  const auto fixed = [&](const ExplainedEdge& e) { return functions.fixes(e.layer, e.from, e.to); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ExplainedEdge &x = edges[a], &y = edges[b];
    return fixed(x) != fixed(y) ? fixed(x) : x.score.value > y.score.value;
  });
  return order;
}

Table rows_between(const Table& t, std::size_t first, std::size_t last) {
  Table some{t.names, {}, {}};
  const auto part = [&](const std::vector<double>& v) {
    return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(first),
                               v.begin() + static_cast<std::ptrdiff_t>(last));
  };
  for (const auto& column : t.x) some.x.push_back(part(column));
  some.y = part(t.y);
  return some;
}

// Formulas of a network, by what its edges become.
class EdgeFormulas {
 public:
  EdgeFormulas(const NetworkSamples& network, const Table& table, std::size_t output, const Functions& functions)
      : s_(network), table_(table), output_(output), functions_(functions) {
    Columns box = wider_rows(table.x);
    for (auto& column : box)
      if (column.size() > kPlacesOfBox) column.resize(kPlacesOfBox);
    box_ = std::move(box);
  }

  // Each edge as its first candidate that may be there. Those before it are removed.
  Expr of(std::vector<ExplainedEdge>& edges) const {
    std::vector<Expr> nodes;
    for (std::size_t i = 0; i < s_.widths[0]; ++i)
      nodes.push_back(s_.input_mean[i] == 0 && s_.input_scale[i] == 1
                          ? variable(i)
                          : (variable(i) - approximate(s_.input_mean[i])) * approximate(s_.input_scale[i]));
    std::size_t at = 0;
    for (std::size_t l = 0; l < s_.edge.size(); ++l) {
      const LayerNodes shape = s_.nodes(l);
      const std::size_t in = s_.widths[l], out = shape.sums();
      std::vector<std::vector<Expr>> terms(out);
      std::vector<double> constant = s_.bias[l];
      for (std::size_t i = 0; i < in; ++i)
        for (std::size_t j = 0; j < out; ++j, ++at) {
          ExplainedEdge& e = edges[at];
          if (e.kept && !e.candidates.empty()) drop_candidates(nodes[i], e);
          if (e.kept && !e.candidates.empty()) {
            terms[j].push_back(composed(e.candidates.front(), nodes[i]));
          } else {
            // What is left out is replaced by its mean.
            const std::vector<double>& v = s_.edge[l][i * out + j];
            for (const double x : v) constant[j] += x / static_cast<double>(v.size());
          }
        }
      nodes.clear();
      for (std::size_t j = 0; j < out; ++j) {
        if (constant[j] != 0) terms[j].push_back(approximate(constant[j]));
        nodes.push_back(add(std::move(terms[j])));
      }
      for (std::size_t j = shape.plain(); j < shape.nodes; ++j) nodes[j] = nodes[j] * nodes[shape.second_factor(j)];
      nodes.resize(shape.nodes);
    }
    return approximate(s_.output_scale[output_]) * nodes[output_] + approximate(s_.output_mean[output_]);
  }

  struct Trial {
    std::vector<ExplainedEdge> edges;
    Expr formula;
    double cost = 0;
  };

  // With its constants fitted to three quarters of some rows, and its error on the others, where each constant has to
  // pay for itself too.
  Trial trial(Work& work, std::vector<ExplainedEdge> edges) const {
    return trial_on(work, std::move(edges), std::min(table_.rows(), kTrialRows), kTrialSteps);
  }
  Trial long_trial(Work& work, std::vector<ExplainedEdge> edges) const {
    return trial_on(work, std::move(edges), table_.rows(), kSteps);
  }
  // With its constants fitted to all rows.
  Expr fitted(Work& work, const Expr& start) const { return fitted_to(work, start, table_, kSteps); }

 private:
  static Expr composed(const EdgeCandidate& c, const Expr& inside) {
    const std::vector<Expr> argument{inside};
    return substitute(c.text, argument);
  }

  // Leaves the candidates from the first on that is allowed and defined as a function of `inside`.
  void drop_candidates(const Expr& inside, ExplainedEdge& e) const {
    const std::size_t places = box_.empty() ? 0 : box_.front().size();
    const auto possible = [&](const EdgeCandidate& c) {
      const Expr f = composed(c, inside);
      return functions_.allows(f) && defined_on(f, box_, places);
    };
    const auto keep = [&](std::vector<EdgeCandidate> all) {
      all.erase(all.begin(), std::find_if(all.begin(), all.end(), possible));
      e.candidates = std::move(all);
    };
    keep(std::move(e.candidates));
    if (!e.candidates.empty()) return;
    // None of the best: of all.
    EdgeFitOptions every;
    every.most = library().size();
    keep(candidates_of(s_, e, functions_.of_edge(e.layer, e.from, e.to), every));
  }

  Trial trial_on(Work& work, std::vector<ExplainedEdge> edges, std::size_t rows, int steps) const {
    const std::size_t fitted = rows - rows / 4;
    Trial t{std::move(edges), nullptr, 0};
    t.formula = fitted_to(work, of(t.edges), rows_between(table_, 0, fitted), steps);
    const Table judged = rows_between(table_, fitted, rows);
    if (judged.rows() == 0) return t;
    const auto [low, high] = std::minmax_element(judged.y.begin(), judged.y.end());
    const double error = rms_error(t.formula, judged.x, judged.y), least = 1e-14 * (*high - *low) + 1e-300;
    t.cost = static_cast<double>(rows) * std::log(error + least) + static_cast<double>(inexact_constants(t.formula));
    return t;
  }

  Expr fitted_to(Work& work, const Expr& start, const Table& rows, int iterations) const {
    const Expr refined =
        refine_constants(start, rows.x, rows.y, {.iterations = iterations, .defined = &box_, .work = &work});
    return rms_error(refined, rows.x, rows.y) <= rms_error(start, rows.x, rows.y) && functions_.allows(refined)
               ? refined
               : start;
  }

  const NetworkSamples& s_;
  const Table& table_;
  Columns box_;
  std::size_t output_;
  const Functions& functions_;
};

// Another candidate of an edge, or none: its mean.
struct EdgeChange {
  std::size_t edge, candidate;
};

bool make_change(const EdgeChange& change, std::vector<ExplainedEdge>& edges) {
  ExplainedEdge& e = edges[change.edge];
  if (!e.kept || e.candidates.size() <= change.candidate) return false;
  const auto chosen = e.candidates.begin() + static_cast<std::ptrdiff_t>(change.candidate);
  if (change.candidate == 0)
    e.kept = false, e.candidates.clear();
  else
    std::rotate(e.candidates.begin(), chosen, chosen + 1);
  return true;
}

// Other candidates of one edge after the other, the one that matters most first, and then leaving out edges, the one
// that matters least first: as long as the formula gets better.
void choose_candidates(Work& work, const EdgeFormulas& formulas, const Functions& functions,
                       std::vector<ExplainedEdge>& edges) {
  const std::vector<std::size_t> order = by_importance(edges, functions);
  std::vector<EdgeChange> changes;
  for (const std::size_t e : order)
    for (std::size_t c = 1; c < std::min(kTried, edges[e].candidates.size()); ++c) changes.push_back({e, c});
  for (std::size_t i = order.size(); i-- > 0;)
    if (const ExplainedEdge& e = edges[order[i]]; e.score.value < kWeak && !functions.fixes(e.layer, e.from, e.to))
      changes.push_back({order[i], 0});
  const double most = kShareOfTrials * work.limit();
  const auto goes_on = [&] { return !work.exhausted() && work.used() < most; };
  EdgeFormulas::Trial best = formulas.trial(work, edges);
  if (inexact_constants(best.formula) > kMostConstants) return;
  bool better = true;
  for (int pass = 0; better && pass < kPasses; ++pass) {
    better = false;
    for (std::size_t from = 0; from < changes.size() && goes_on(); from += kTrialsAtOnce) {
      auto trials = work.all_of<EdgeFormulas::Trial>(std::min(kTrialsAtOnce, changes.size() - from),
                                                     [&](std::size_t i, double& units) {
                                                       std::vector<ExplainedEdge> other = best.edges;
                                                       if (!make_change(changes[from + i], other)) return best;
                                                       Work part = work.part();
                                                       EdgeFormulas::Trial t = formulas.trial(part, std::move(other));
                                                       units += part.used();
                                                       return t;
                                                     });
      for (EdgeFormulas::Trial& t : trials)
        if (t.cost < best.cost && inexact_constants(t.formula) <= kMostConstants) best = std::move(t), better = true;
    }
  }
  // Few steps leave more of the error to a formula of many constants.
  const double before = formulas.long_trial(work, edges).cost, after = formulas.long_trial(work, best.edges).cost;
  if (!(after < before)) return;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    edges[i].candidates = std::move(best.edges[i].candidates);
    edges[i].kept = best.edges[i].kept;
  }
}

// Without constants that do not matter to this error, and what they are factors of.
Expr without_constants(const Expr& e, const Table& rows, double allowed) {
  Expr best = e;
  for (std::size_t i = 0; i < inexact_constants(best);) {
    std::vector<Constant> c;
    for (const double v : constants_of(best)) c.push_back(Constant::approximate(v));
    c[i] = Constant::of(0);
    const Expr shorter = refine_constants(with_constants(best, c), rows.x, rows.y, {.iterations = 4});
    if (largest_error(shorter, rows.x, rows.y) <= allowed)
      best = shorter;
    else
      ++i;
  }
  return best;
}

// Whether a function or a power somewhere in it is a line on the rows, but for kCurved of its values.
bool has_a_line(const Expr& e, const Table& rows) {
  for (const Expr& a : e->args)
    if (has_a_line(a, rows)) return true;
  if (e->op != Op::power && e->op != Op::call) return false;
  const auto count = static_cast<double>(rows.rows());
  const std::vector<double> x = evaluate(e->args[0], rows.x, rows.rows()), y = evaluate(e, rows.x, rows.rows());
  double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mx += x[i] / count, my += y[i] / count;
  for (std::size_t i = 0; i < x.size(); ++i)
    xx += (x[i] - mx) * (x[i] - mx), xy += (x[i] - mx) * (y[i] - my), yy += (y[i] - my) * (y[i] - my);
  return !(xx > 0) || yy - xy * xy / xx <= kCurved * kCurved * yy;
}

}  // namespace

std::vector<ExplainedEdge> explain_edges(Work& work, const NetworkSamples& s, const Scores& scores,
                                         const EdgeFormulaOptions& o) {
  o.functions.require_edges(s.widths, s.multiply);
  std::vector<ExplainedEdge> edges;
  for (std::size_t l = 0; l < s.edge.size(); ++l)
    for (std::size_t e = 0; e < s.edge[l].size(); ++e) {
      ExplainedEdge edge{l, e / s.sums(l), e % s.sums(l), scores.edges[l][e], true, true, {}};
      const bool matters = edge.score.value >= o.threshold || o.functions.fixes(l, edge.from, edge.to);
      edge.kept = matters && (l + 1 < s.edge.size() || edge.to == o.output);
      edges.push_back(std::move(edge));
    }
  const std::vector<std::size_t> order = by_importance(edges, o.functions);
  for (std::size_t from = 0; from < order.size(); from += kTogether) {
    const std::size_t count = std::min(kTogether, order.size() - from);
    const bool in_full = !work.exhausted();
    auto found = work.all_of<std::vector<EdgeCandidate>>(count, [&](std::size_t i, double& units) {
      const ExplainedEdge& e = edges[order[from + i]];
      std::vector<LibraryFunction> functions = o.functions.of_edge(e.layer, e.from, e.to);
      if (!in_full && !o.functions.fixes(e.layer, e.from, e.to))
        std::erase_if(functions, [](const LibraryFunction& f) { return f.complexity > 1; });
      units += kUnitsOfFunction * static_cast<double>(functions.size());
      return candidates_of(s, e, functions, o.fit);
    });
    for (std::size_t i = 0; i < count; ++i) {
      edges[order[from + i]].candidates = std::move(found[i]);
      edges[order[from + i]].compared = in_full;
    }
  }
  return edges;
}

Expr edge_formula(Work& work, const NetworkSamples& s, std::vector<ExplainedEdge>& edges, const Table& table,
                  std::size_t output, const Functions& functions) {
  const EdgeFormulas formulas(s, table, output, functions);
  if (table.rows() >= kLeastRows) choose_candidates(work, formulas, functions, edges);
  return formulas.fitted(work, formulas.of(edges));
}

std::optional<Expr> confirm_edges(const Expr& e, const SplitRows& rows, const AllowedFormula& allowed) {
  const Table& seen = rows.seen;
  const auto [low, high] = std::minmax_element(seen.y.begin(), seen.y.end());
  const double nothing = kNothing * (*high - *low);
  if (!(largest_error(e, seen.x, seen.y) <= nothing)) return std::nullopt;
  const auto exact = confirm_exact(without_constants(e, seen, nothing), rows, allowed);
  if (!exact || inexact_constants(*exact) > 2 || has_a_line(*exact, seen)) return std::nullopt;
  const Expr shorter = simplify(*exact, std::vector<bool>(seen.x.size(), false));
  const bool good = (!allowed || allowed(shorter)) && largest_error(shorter, seen.x, seen.y) <= nothing &&
                    largest_error(shorter, rows.unseen.x, rows.unseen.y) <= nothing;
  return good ? shorter : exact;
}

}  // namespace gradloom::formula
