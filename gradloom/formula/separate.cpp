// Separation by one variable: f = A(x_i) g(rest) or A(x_i) + g(rest), seen on the surrogate, tried on the data.
#include <algorithm>
#include <cmath>
#include <set>

#include "gradloom/formula/one_variable.h"
#include "gradloom/formula/search_state.h"

namespace gradloom::formula {
namespace {

constexpr std::size_t kCandidates = 12;

// Constants of a slice of a surrogate are known to some digits only.
Constant snap_loosely(double c) {
  for (const int k : {0, 1, -1}) {
    const double v = c / Constant::of({1, 1}, k).value;
    if (!(std::abs(v) > 1e-3 && std::abs(v) < 1e3)) continue;
    for (std::int64_t q = 1; q <= 20; ++q) {
      const Rational r = Rational::of(std::llround(v * static_cast<double>(q)), q);
      const double tolerance = 9e-5 * std::abs(v) * (k == 0 ? 1 : 0.3) / std::sqrt(static_cast<double>(q));
      if (r.p != 0 && std::abs(r.value() - v) < tolerance) return Constant::of(r, k);
    }
  }
  return Constant::approximate(c);
}

struct SliceFit {
  double cost;
  Expr text;
};

// relation_text() with looser constants.
std::optional<SliceFit> loose_text(const Relation& relation, const std::vector<Column>& columns,
                                   const std::function<Expr(std::size_t)>& text) {
  double unit = 0;
  for (const auto& [i, k] : relation.terms)
    if (columns[i].with_y && unit == 0) unit = k;
  std::vector<Expr> above, below;
  double cost = static_cast<double>(relation.terms.size());
  for (const auto& [i, k] : relation.terms) {
    const Constant c = snap_loosely((columns[i].with_y ? k : -k) / unit);
    if (!c.exact) cost += 0.3;
    (columns[i].with_y ? below : above).push_back(multiply({number(c), text(i)}));
  }
  return SliceFit{cost, add(std::move(above)) / add(std::move(below))};
}

// Simple functions of x that agree with z about as well as the surrogate does, simplest first.
std::vector<Expr> simple_functions(const Variable& x, Vector z, double accuracy, bool factor, Work& work) {
  if (factor) z /= z.cwiseAbs().maxCoeff();
  RelationOptions loose;
  loose.dependent = std::max(30 * accuracy, 1e-8), loose.residual = std::max(300 * accuracy, 1e-7);
  loose.prune = std::max(100 * accuracy, 1e-4), loose.max_terms = 4;
  struct Task {
    Outer::Kind outer;
    int letters;  // of kLetters, and behind them of kPowers; -1: the scaled atom
    const ScaledAtom* atom;
    double sign;
  };
  struct Choice {
    Alphabet alphabet;
    int degree;
  };
  static constexpr Choice kLetters[] = {
      {Alphabet::poly, 3}, {Alphabet::root, 3}, {Alphabet::trig, 2}, {Alphabet::exp, 2}, {Alphabet::log, 2}};
  static constexpr int kPowers[] = {4, 5, 6};  // each alone
  std::vector<Task> tasks;
  for (const Outer::Kind outer : {Outer::identity, Outer::square, Outer::log}) {
    if ((!factor && outer != Outer::identity) || outer_values(outer, z).size() == 0) continue;
    for (int l = 0; l < 5; ++l)
      if (fits(kLetters[l].alphabet, x.values)) tasks.push_back({outer, l, nullptr, 0});
    for (int k = 0; k < 3 && outer == Outer::identity; ++k) tasks.push_back({outer, 5 + k, nullptr, 0});
    for (const ScaledAtom& atom : kScaledAtoms) {
      if (needs_nonzero(atom, 0) && x.values.cwiseAbs().minCoeff() < 1e-3) continue;
      if (outer != Outer::identity && atom.kind != ScaledAtom::trig && atom.kind != ScaledAtom::exp) continue;
      tasks.push_back({outer, -1, &atom, 1});
      if (atom.both_signs) tasks.push_back({outer, -1, &atom, -1});
    }
  }
  const auto lists = work.all_of<std::vector<SliceFit>>(tasks.size(), [&](std::size_t t, double& units) {
    const Task& task = tasks[t];
    const Vector g = outer_values(task.outer, z);
    const double extra = task.outer == Outer::identity ? 0 : 1;
    std::vector<SliceFit> found;
    if (task.letters >= 0) {
      const bool power = task.letters >= 5;
      const int degree = power ? kPowers[task.letters - 5] : kLetters[task.letters].degree;
      std::vector<Atom> list = atoms(x, power ? Alphabet::poly : kLetters[task.letters].alphabet, degree);
      if (power) std::erase_if(list, [&](const Atom& a) { return a.complexity > 0 && a.complexity < degree; });
      for (const bool rational : {false, true}) {
        std::vector<Column> columns;
        std::vector<Expr> texts;
        for (const Atom& a : list) {
          columns.push_back({double(a.complexity), false, a.values.size() ? a.values : Vector(Vector::Ones(g.size()))});
          texts.push_back(a.text);
        }
        for (const Atom& a : list) {
          if (!rational && a.values.size()) break;
          columns.push_back({double(a.complexity), true, a.values.size() ? Vector(a.values.cwiseProduct(g)) : g});
          texts.push_back(a.text);
        }
        if (const auto r = find_relation(columns, loose, units))
          if (auto c = loose_text(*r, columns, [&](std::size_t i) { return texts[i]; }))
            found.push_back({c->cost + extra, outer_inverse(task.outer, c->text, false)});
      }
      return found;
    }
    for (const ScaledMinimum& m : scan_scale(x.values, g, *task.atom, task.sign, 0, 2, units)) {
      if (m.gap > 1e-3) continue;
      const Constant b = snap_loosely(m.b);
      const std::vector<Column> columns = scaled_columns(x.values, g, *task.atom, b.value, 0);
      const std::vector<Expr> texts = scaled_texts(x.text, *task.atom, b, 0);
      if (const auto r = find_relation(columns, loose, units))
        if (auto c = loose_text(*r, columns, [&](std::size_t i) { return texts[i]; }))
          found.push_back({c->cost + 1 + extra + (b.exact ? 0 : 0.8), outer_inverse(task.outer, c->text, false)});
    }
    return found;
  });
  std::vector<SliceFit> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(), [](const SliceFit& a, const SliceFit& b) { return a.cost < b.cost; });
  std::vector<Expr> result;
  std::set<std::string> seen;
  for (const SliceFit& c : all)
    if (seen.insert(c.text->key).second && result.size() < kCandidates) result.push_back(c.text);
  return result;
}

// The terms of the other variables, whose numbers move up.
std::vector<std::vector<std::size_t>> terms_without(std::vector<std::vector<std::size_t>> terms, std::size_t variable) {
  for (auto& t : terms) {
    std::erase(t, variable);
    for (std::size_t& v : t) v -= v > variable ? 1 : 0;
  }
  std::erase_if(terms, [](const auto& t) { return t.empty(); });
  return terms;
}

// A slice has what the other variables are there added to it: a number that is not simple is theirs.
Expr without_offset(const Expr& e) {
  const bool offset = e->op == Op::add && e->args[0]->op == Op::number && !e->args[0]->number.exact;
  return offset ? add({e->args.begin() + 1, e->args.end()}) : e;
}

struct Split {
  double error;
  bool product;
  std::size_t variable;
};

}  // namespace

std::optional<Expr> SearchState::separate(const Problem& p, const Surrogate& surrogate, const Wrap& wrap, int depth) {
  const std::size_t n = p.variables.size();
  const auto rows = p.rows();
  // Points well inside, and among the innermost one with a large value to compare with.
  Vector far = Vector::Zero(rows);
  for (const Variable& v : p.variables) {
    Vector sorted = v.values;
    std::sort(sorted.begin(), sorted.end());
    far = far.cwiseMax(((v.values.array() - sorted[rows / 2]) / (sorted[rows - 1] - sorted[0])).abs().matrix());
  }
  std::vector<Eigen::Index> core, inner;
  Vector sorted_far = far;
  std::sort(sorted_far.begin(), sorted_far.end());
  for (Eigen::Index i = 0; i < rows; ++i) {
    if (far[i] < 0.47 && core.size() < 300) core.push_back(i);
    if (far[i] < sorted_far[rows / 4]) inner.push_back(i);
  }
  if (core.size() < 20 || inner.empty()) return std::nullopt;
  std::stable_sort(inner.begin(), inner.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return std::abs(p.y[a]) < std::abs(p.y[b]); });
  const Eigen::Index centre = inner[inner.size() * 4 / 5];
  const auto points_with = [&](const auto& value, Eigen::Index count) {
    Matrix m(count, static_cast<Eigen::Index>(n));
    for (Eigen::Index r = 0; r < count; ++r)
      for (std::size_t i = 0; i < n; ++i) m(r, static_cast<Eigen::Index>(i)) = value(r, i);
    return m;
  };
  const auto at = [&](Eigen::Index row, std::size_t i) { return p.variables[i].values[row]; };
  const auto count = static_cast<Eigen::Index>(core.size());
  const auto core_row = [&](Eigen::Index r) { return core[static_cast<std::size_t>(r)]; };
  const Vector f =
      surrogate.predict(points_with([&](Eigen::Index r, std::size_t i) { return at(core_row(r), i); }, count));
  const double f0 = surrogate.predict(points_with([&](Eigen::Index, std::size_t i) { return at(centre, i); }, 1))[0];
  const double deviation = std::sqrt((p.y.array() - p.y.mean()).square().mean());
  std::vector<Split> splits;
  for (std::size_t v = 0; v < n; ++v) {
    const Vector fa = surrogate.predict(
        points_with([&](Eigen::Index r, std::size_t i) { return at(i == v ? core_row(r) : centre, i); }, count));
    const Vector fb = surrogate.predict(
        points_with([&](Eigen::Index r, std::size_t i) { return at(i == v ? centre : core_row(r), i); }, count));
    const double root = std::sqrt(static_cast<double>(count));
    splits.push_back({(f * f0 - fa.cwiseProduct(fb)).norm() / root / (std::abs(f0) * deviation + 1e-300), true, v});
    splits.push_back({((f - fa - fb).array() + f0).matrix().norm() / root / deviation, false, v});
  }
  work_.spend(2e-6 * static_cast<double>(n) * static_cast<double>(count * rows));
  std::stable_sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) { return a.error < b.error; });
  const double tolerance = std::max(1e-4, 30 * surrogate.error());
  for (const Split& s : splits) {
    if (!(s.error <= tolerance)) break;
    const Variable& x = p.variables[s.variable];
    Vector sorted = x.values;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[rows / 100], high = sorted[rows - 1 - rows / 100];
    const Vector line = Vector::LinSpaced(400, low, high);
    const Vector z = surrogate.predict(
        points_with([&](Eigen::Index r, std::size_t i) { return i == s.variable ? line[r] : at(centre, i); }, 400));
    if (!z.allFinite() || !(z.cwiseAbs().maxCoeff() > 0)) continue;
    for (const Expr& found : simple_functions({line, x.text}, z, surrogate.error(), s.product, work_)) {
      if (work_.exhausted()) return std::nullopt;
      const Expr a = s.product ? found : without_offset(found);
      if (a->op == Op::number) continue;
      const std::vector<double> values = evaluate(a, seen_.x, seen_.rows());
      std::vector<double> rest(p.y.begin(), p.y.end());
      double largest = 0;
      bool finite = true;
      for (std::size_t i = 0; i < rest.size(); ++i) {
        rest[i] = s.product ? rest[i] / values[i] : rest[i] - values[i];
        largest = std::max(largest, std::abs(values[i]));
        finite = finite && std::isfinite(rest[i]);
      }
      if (!finite) continue;
      // What is left must not depend on x: a surrogate of the other variables alone explains it.
      std::vector<Eigen::Index> kept;
      for (std::size_t i = 0; i < rest.size(); ++i)
        if (!s.product || std::abs(values[i]) > 0.05 * largest) kept.push_back(static_cast<Eigen::Index>(i));
      std::vector<Vector> others;
      std::vector<Expr> variables;
      Vector left(static_cast<Eigen::Index>(kept.size()));
      for (std::size_t i = 0; i < kept.size(); ++i)
        left[static_cast<Eigen::Index>(i)] = rest[static_cast<std::size_t>(kept[i])];
      for (std::size_t i = 0; i < n; ++i) {
        if (i == s.variable) continue;
        Vector v(left.size());
        for (std::size_t k = 0; k < kept.size(); ++k) v[static_cast<Eigen::Index>(k)] = at(kept[k], i);
        others.push_back(std::move(v));
        variables.push_back(p.variables[i].text);
      }
      double units = 0;
      const bool sum = !surrogate.terms().empty();
      const auto check = fit_process(others, left,
                                     {.terms = terms_without(surrogate.terms(), s.variable),
                                      .length = sum ? 0.4 : 2.0,
                                      .rows_for_lengths = 160,
                                      .iterations = 25},
                                     units);
      work_.spend(units);
      if (check->error() > std::max(30 * surrogate.error(), 1e-4)) continue;
      const Wrap inner_wrap = [&](const Expr& e) { return wrap(s.product ? a * e : a + e); };
      if (auto e = step(s.product ? "factor of one variable" : "term of one variable", variables, rest, inner_wrap,
                        depth + 1))
        return e;
    }
  }
  return std::nullopt;
}

}  // namespace gradloom::formula
