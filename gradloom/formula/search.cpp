#include "gradloom/formula/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/formula/refine.h"
#include "gradloom/formula/search_state.h"
#include "gradloom/formula/simplify.h"
#include "gradloom/formula/symmetry.h"

namespace gradloom::formula {
namespace {

constexpr double kFirstLook = 1e-7;       // of the range of y, before constants are refined
constexpr double kConfirmed = 1e-9;       // of the range of y
constexpr double kManyConstants = 1e-11;  // the same, for formulas with constants that did not snap
constexpr std::size_t kSeen = 800, kUnseen = 2000;
constexpr std::size_t kSymmetries = 8;
constexpr int kDeepest = 12;
// A surrogate that leaves more than this of y's deviation: the data are probably noisy, and an exact formula that is
// there all the same (a quick oscillation) is found early or not at all.
constexpr double kRough = 3e-3;
constexpr double kFine = 1e-5;    // a surrogate that leaves less shows what there is to separate
constexpr double kClearer = 0.3;  // of the error of a surrogate of all variables: what shows that y is a sum

Vector to_vector(const std::vector<double>& v) {
  return Eigen::Map<const Vector>(v.data(), static_cast<Eigen::Index>(v.size()));
}

bool finite(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double d) { return std::isfinite(d); });
}

double range_of(const std::vector<double>& v) {
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  return *high - *low;
}

void check(const Table& t) {
  if (t.names.size() != t.x.size()) throw_invalid("a table needs a name for each column");
  if (t.rows() < kLeastRows)
    throw_invalid(fmt::format("a formula needs at least {} rows; there are {}", kLeastRows, t.rows()));
  for (std::size_t i = 0; i < t.x.size(); ++i) {
    if (t.x[i].size() != t.rows())
      throw_invalid(fmt::format("column {} has {} rows, y has {}", t.names[i], t.x[i].size(), t.rows()));
    if (!finite(t.x[i])) throw_invalid(fmt::format("column {} has a number that is not finite", t.names[i]));
  }
  if (!finite(t.y)) throw_invalid("y has a number that is not finite");
}

Table some_rows(const Table& t, std::span<const std::uint32_t> rows) {
  Table s;
  s.names = t.names;
  for (const auto& column : t.x) {
    std::vector<double> c;
    for (const std::uint32_t r : rows) c.push_back(column[r]);
    s.x.push_back(std::move(c));
  }
  for (const std::uint32_t r : rows) s.y.push_back(t.y[r]);
  return s;
}

// Columns that vary and are not a copy of an earlier one.
std::vector<Expr> useful_columns(const Table& t) {
  std::vector<Expr> useful;
  for (std::size_t i = 0; i < t.x.size(); ++i) {
    bool copy = range_of(t.x[i]) == 0;
    for (std::size_t j = 0; j < i && !copy; ++j) copy = t.x[i] == t.x[j];
    if (!copy) useful.push_back(variable(i));
  }
  return useful;
}

}  // namespace

SplitRows split_rows(const Table& table, std::uint64_t seed) {
  std::vector<std::uint32_t> order(table.rows());
  random_permutation(RandomStream(seed, RandomUse::split), order);
  const std::size_t seen = std::min(kSeen, table.rows() * 4 / 5);
  const std::size_t unseen = std::min(kUnseen, table.rows() - seen);
  return {some_rows(table, std::span(order).first(seen)), some_rows(table, std::span(order).subspan(seen, unseen))};
}

std::optional<Expr> confirm_exact(const Expr& whole, const SplitRows& rows, const AllowedFormula& allowed) {
  const Table &seen = rows.seen, &unseen = rows.unseen;
  const double range = range_of(seen.y);
  if (!(largest_error(whole, unseen.x, unseen.y) <= kFirstLook * range)) return std::nullopt;
  Expr e = refine_constants(whole, seen.x, seen.y);
  e = snap_constants(e, seen.x, seen.y, kConfirmed * range * 0.1, 1e-7);
  const double most = inexact_constants(e) > 2 ? kManyConstants : kConfirmed;
  if (!(largest_error(e, seen.x, seen.y) <= most * range)) return std::nullopt;
  if (!(largest_error(e, unseen.x, unseen.y) <= most * range)) return std::nullopt;
  if (allowed && !allowed(e)) return std::nullopt;
  return e;
}

SearchState::SearchState(const Exec& ex, const SplitRows& rows, const SearchOptions& options)
    : rows_(rows),
      seen_(rows.seen),
      allowed_(options.allowed),
      work_(ex, options.effort, options.progress, options.deal, options.stop) {}

std::optional<Expr> SearchState::step(const std::string& name, const std::vector<Expr>& variables,
                                      const std::vector<double>& y, const Wrap& wrap, int depth) {
  if (work_.exhausted() || depth > kDeepest) return std::nullopt;
  steps_.push_back(name);
  auto found = solve(variables, y, wrap, depth);
  if (!found) steps_.pop_back();
  return found;
}

std::optional<Expr> SearchState::solve(const std::vector<Expr>& variables, const std::vector<double>& y,
                                       const Wrap& wrap, int depth) {
  if (work_.exhausted() || !finite(y)) return std::nullopt;
  std::string key = fmt::format("{:a},{:a};", y.front(), y.back());
  for (const Expr& v : variables) key += v->key + ";";
  if (!tried_.insert(key).second) return std::nullopt;
  const Accept accept = [&](const Expr& e) { return confirm(wrap(e)); };
  Problem p;
  p.y = to_vector(y);
  for (const Expr& v : variables) {
    const std::vector<double> values = evaluate(v, seen_.x, seen_.rows());
    if (!finite(values)) return std::nullopt;
    if (range_of(values) > 0) p.variables.push_back({to_vector(values), v});
  }
  const double deviation = std::sqrt((p.y.array() - p.y.mean()).square().mean());
  if (p.variables.empty() || deviation <= 1e-12 * std::abs(p.y.mean())) return accept(number(snap(p.y.mean())));
  const auto found = [&](std::optional<Expr> e, const char* how) {
    if (e) steps_.push_back(how);
    return e;
  };
  if (auto e = found(find_direct(p, accept, work_), "relation")) return e;
  if (p.variables.size() == 1) {
    if (auto e = found(find_powers(p, accept, work_), "two powers")) return e;
    if (auto e = found(find_scaled(p, accept, work_), "inner scale")) return e;
    return found(find_pseudo(p, accept, work_), "pseudo variable");
  }
  if (work_.exhausted()) return std::nullopt;
  std::unique_ptr<Surrogate> surrogate = fit_surrogate(p, work_);
  const bool rough = surrogate->error() > kRough, may_be_sum = depth == 0 || is_sum_;
  const double before = work_.used();
  if (rough && may_be_sum)
    if (auto e = by_sum(p, surrogate->error(), wrap, depth)) return e;
  // What looking for sums took is not taken from the rest.
  if (depth == 0 && rough) work_.lower_limit(work_.limit() / 6 + work_.used() - before);
  if (!rough)
    if (auto e = without_idle(p, *surrogate, wrap, depth)) return e;
  if (auto e = by_symmetry(p, *surrogate, wrap, depth)) return e;
  if (auto e = by_single_index(p, wrap, depth)) return e;
  if (auto e = found(find_pseudo(p, accept, work_), "pseudo variable")) return e;
  if (auto e = separate(p, *surrogate, wrap, depth)) return e;
  return !rough && may_be_sum && surrogate->error() > kFine ? by_sum(p, surrogate->error(), wrap, depth) : std::nullopt;
}

std::optional<Expr> SearchState::by_sum(const Problem& p, double error, const Wrap& wrap, int depth) {
  constexpr std::size_t kMostParts = 12;  // each has matrices of its own, as large as the surrogate's
  if (work_.exhausted() || p.variables.size() > kMostParts) return std::nullopt;
  const std::unique_ptr<Surrogate> sum = fit_sum(p, work_);
  if (!(sum->error() < kClearer * error)) return std::nullopt;
  const bool before = std::exchange(is_sum_, true);
  auto found = separate(p, *sum, wrap, depth);
  is_sum_ = before;
  return found;
}

std::optional<Expr> SearchState::without_idle(const Problem& p, const Surrogate& surrogate, const Wrap& wrap,
                                              int depth) {
  const auto n = static_cast<Eigen::Index>(p.variables.size());
  const Eigen::Index rows = std::min<Eigen::Index>(p.rows(), 300);
  Matrix points(rows, n);
  for (Eigen::Index v = 0; v < n; ++v) points.col(v) = p.variables[static_cast<std::size_t>(v)].values.head(rows);
  const Vector f = surrogate.predict(points);
  const double deviation = std::sqrt((p.y.array() - p.y.mean()).square().mean());
  std::vector<Expr> kept;
  for (Eigen::Index v = 0; v < n; ++v) {
    const Vector column = points.col(v);
    Vector sorted = column;
    std::nth_element(sorted.begin(), sorted.begin() + rows / 2, sorted.end());
    points.col(v).setConstant(sorted[rows / 2]);
    const double effect = std::sqrt((surrogate.predict(points) - f).squaredNorm() / static_cast<double>(rows));
    points.col(v) = column;
    if (!(effect <= surrogate.error() * deviation)) kept.push_back(p.variables[static_cast<std::size_t>(v)].text);
  }
  work_.spend(1e-6 * static_cast<double>(n + 1) * static_cast<double>(rows * p.rows()));
  if (kept.empty() || kept.size() == p.variables.size()) return std::nullopt;
  return step("columns without effect", kept, {p.y.begin(), p.y.end()}, wrap, depth + 1);
}

std::optional<Expr> SearchState::by_symmetry(const Problem& p, const Surrogate& surrogate, const Wrap& wrap,
                                             int depth) {
  static constexpr const char* kNames[] = {"scaling", "shift", "squares"};
  const std::vector<double> y(p.y.begin(), p.y.end());
  std::vector<Symmetry> symmetries = find_symmetries(p, surrogate, work_);
  if (symmetries.size() > kSymmetries) symmetries.resize(kSymmetries);
  std::set<std::string> seen;
  for (const Symmetry& s : symmetries) {
    const auto r = reduce(s, p);
    if (!r) continue;
    std::string key = r->factor->key;
    for (const Expr& v : r->variables) key += ";" + v->key;
    if (!seen.insert(key).second) continue;
    // One variable is left: its powers may be part of the factor as well.
    const std::vector<int> powers =
        r->variables.size() == 1 && s.kind == Symmetry::scale ? std::vector<int>{0, 1, -1, 2, -2} : std::vector<int>{0};
    for (const int k : powers) {
      const Expr factor = k == 0 ? r->factor : r->factor * power(r->variables[0], {k, 1});
      const std::vector<double> m = evaluate(factor, seen_.x, seen_.rows());
      std::vector<double> rest = y;
      for (std::size_t i = 0; i < rest.size(); ++i) rest[i] /= m[i];
      if (!finite(rest)) continue;
      const Wrap inner = [&](const Expr& e) { return wrap(factor * e); };
      if (k == 0) {
        if (auto e = step(kNames[s.kind], r->variables, rest, inner, depth + 1)) return e;
        continue;
      }
      Problem one;
      one.y = to_vector(rest);
      one.variables.push_back({to_vector(evaluate(r->variables[0], seen_.x, seen_.rows())), r->variables[0]});
      if (auto e = find_direct(
              one, [&](const Expr& g) { return confirm(inner(g)); }, work_)) {
        steps_.insert(steps_.end(), {kNames[s.kind], "relation"});
        return e;
      }
    }
  }
  return std::nullopt;
}

std::optional<Expr> SearchState::by_single_index(const Problem& p, const Wrap& wrap, int depth) {
  const std::size_t n = p.variables.size();
  if (n > 5) return std::nullopt;
  struct Candidate {
    double roughness;
    bool monomial;
    std::vector<int> e;
  };
  std::size_t count = 1;
  for (std::size_t i = 0; i < n; ++i) count *= 5;
  bool positive = true;
  for (const Variable& v : p.variables) positive = positive && v.values.minCoeff() > 0;
  std::vector<Candidate> candidates;
  const double variance = (p.y.array() - p.y.mean()).square().mean();
  for (const bool monomial : {true, false}) {
    if (monomial && !positive) continue;
    for (std::size_t code = 0; code < count; ++code) {
      std::vector<int> e;
      for (std::size_t i = 0, rest = code; i < n; ++i, rest /= 5) e.push_back(static_cast<int>(rest % 5) - 2);
      const auto first = std::find_if(e.begin(), e.end(), [](int v) { return v != 0; });
      const auto used = std::count_if(e.begin(), e.end(), [](int v) { return v != 0; });
      const bool odd = std::any_of(e.begin(), e.end(), [](int v) { return v == 1 || v == -1; });
      if (used < 2 || *first < 0 || !odd) continue;
      candidates.push_back({0, monomial, std::move(e)});
    }
  }
  std::vector<Vector> logs;
  for (const Variable& v : p.variables) logs.push_back(positive ? Vector(v.values.array().log()) : Vector());
  const std::vector<double> rough = work_.all_of<double>(candidates.size(), [&](std::size_t c, double& units) {
    Vector s = Vector::Zero(p.rows());
    for (std::size_t i = 0; i < n; ++i)
      s += candidates[c].e[i] * (candidates[c].monomial ? logs[i] : p.variables[i].values);
    std::vector<Eigen::Index> order(static_cast<std::size_t>(p.rows()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) { return s[a] < s[b]; });
    double sum = 0;
    for (std::size_t i = 1; i < order.size(); ++i) sum += std::pow(p.y[order[i]] - p.y[order[i - 1]], 2);
    units += 2e-5 * static_cast<double>(p.rows());
    return sum / static_cast<double>(order.size() - 1) / (2 * variance);
  });
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].roughness = rough[i];
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.roughness < b.roughness; });
  if (candidates.empty() || candidates[0].roughness > 0.02) return std::nullopt;
  if (candidates.size() > 1 && candidates[0].roughness > 0.3 * candidates[1].roughness) return std::nullopt;
  std::vector<Expr> parts;
  for (std::size_t i = 0; i < n; ++i) {
    const int e = candidates[0].e[i];
    if (e != 0 && candidates[0].monomial) parts.push_back(power(p.variables[i].text, {e, 1}));
    if (e != 0 && !candidates[0].monomial) parts.push_back(number(e) * p.variables[i].text);
  }
  const Expr index = candidates[0].monomial ? multiply(std::move(parts)) : add(std::move(parts));
  return step("single index", {index}, {p.y.begin(), p.y.end()}, wrap, depth + 1);
}

SearchResult search_formula(const Exec& ex, const Table& table, const SearchOptions& options) {
  check(table);
  const SplitRows rows = split_rows(table, options.seed);
  SearchResult result;
  const double range = range_of(table.y);
  SearchState state(ex, rows, options);
  if (range == 0) {
    result.formula = number(snap(table.y.front()));
    result.steps = {"constant"};
  } else {
    result.formula = state.solve(
        useful_columns(table), rows.seen.y, [](const Expr& e) { return e; }, 0);
    result.steps = state.steps();
  }
  result.work = state.work().used();
  result.exhausted = !result.formula && state.work().exhausted();
  if (!result.formula) {
    result.steps.clear();
    return result;
  }
  std::vector<bool> positive;
  for (const auto& column : table.x)
    positive.push_back(std::all_of(column.begin(), column.end(), [](double v) { return v > 0; }));
  const Expr shorter = simplify(*result.formula, positive);
  const bool allowed = !options.allowed || options.allowed(shorter);
  if (allowed && largest_error(shorter, table.x, table.y) <= kConfirmed * range) result.formula = shorter;
  result.error = range > 0 ? largest_error(*result.formula, table.x, table.y) / range : 0;
  return result;
}

}  // namespace gradloom::formula
