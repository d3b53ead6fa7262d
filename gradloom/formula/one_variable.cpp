#include "gradloom/formula/one_variable.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace gradloom::formula {
namespace {

double atom_value(ScaledAtom::Kind kind, double x, double b) {
  switch (kind) {
    case ScaledAtom::exp:
      return std::exp(b * x);
    case ScaledAtom::trig:
      return std::cos(b * x);
    case ScaledAtom::exp_square:
      return std::exp(b * x * x);
    case ScaledAtom::exp_inverse:
      return std::exp(b / x);
    case ScaledAtom::log:
      return std::log(1 + b * x);
    case ScaledAtom::root_square:
      return std::sqrt(1 + b * x * x);
    case ScaledAtom::root:
      return std::sqrt(1 + b * x);
    case ScaledAtom::atan:
      return std::atan(b * x);
    case ScaledAtom::cos_square:
      return std::cos(b * x * x);
    case ScaledAtom::sin_square:
      return std::sin(b * x * x);
    case ScaledAtom::cos_cube:
      return std::cos(b * x * x * x);
    case ScaledAtom::tanh:
      return std::tanh(b * x);
  }
  return 0;
}

Expr atom_text(ScaledAtom::Kind kind, const Expr& x, const Constant& b) {
  const Expr s = number(b);
  switch (kind) {
    case ScaledAtom::exp:
      return call(Function::exp, s * x);
    case ScaledAtom::trig:
      return call(Function::cos, s * x);
    case ScaledAtom::exp_square:
      return call(Function::exp, s * x * x);
    case ScaledAtom::exp_inverse:
      return call(Function::exp, s / x);
    case ScaledAtom::log:
      return call(Function::log, number(1) + s * x);
    case ScaledAtom::root_square:
      return sqrt(number(1) + s * x * x);
    case ScaledAtom::root:
      return sqrt(number(1) + s * x);
    case ScaledAtom::atan:
      return call(Function::atan, s * x);
    case ScaledAtom::cos_square:
      return call(Function::cos, s * x * x);
    case ScaledAtom::sin_square:
      return call(Function::sin, s * x * x);
    case ScaledAtom::cos_cube:
      return call(Function::cos, s * x * x * x);
    case ScaledAtom::tanh:
      return call(Function::tanh, s * x);
  }
  return s;
}

// The columns of a family over one, x, 1/x and the atoms E; the same for numbers and for texts. put(complexity, with_y,
// value) gets each.
template <class V, class Put>
void lay_out(int family, const V& one, const V& x, const V& inverse, const std::vector<V>& E, bool trig,
             const Put& put) {
  const auto with_all = [&](int c, bool with_y) {
    for (const V& e : E) put(c, with_y, e);
  };
  put(0, false, one);
  switch (family) {
    case 0:  // c0 + c1 E
      with_all(1, false), put(0, true, one);
      break;
    case 1:  // (1, x) x (1, E)
      put(1, false, x), with_all(1, false);
      for (const V& e : E) put(2, false, V(e * x));
      put(0, true, one);
      break;
    case 2:  // (1, x, E) / (1, E)
      put(1, false, x), with_all(1, false);
      if (!trig) put(2, false, V(x * x));
      put(0, true, one), with_all(1, true);
      break;
    case 3:  // 1, E and their powers of x
      put(1, false, x), put(1, false, inverse), put(2, false, V(x * x)), with_all(1, false);
      for (const V& e : E) put(2, false, V(e * x)), put(2, false, V(e * inverse));
      put(0, true, one);
      break;
    case 4:  // squares
      with_all(1, false), put(2, false, V(E.front() * E.front()));
      if (trig) put(2, false, V(E.front() * E.back()));
      put(0, true, one);
      break;
    default:  // a polynomial over (1, E)
      put(1, false, x), put(2, false, V(x * x)), put(3, false, V(x * x * x));
      put(0, true, one), with_all(1, true);
      break;
  }
}

constexpr int kFamilyOrder[] = {0, 1, 2, 4, 3, 5};
using Array = Eigen::ArrayXd;

Matrix to_matrix(const std::vector<Column>& columns) {
  Matrix a(columns.front().values.size(), static_cast<Eigen::Index>(columns.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) a.col(static_cast<Eigen::Index>(i)) = columns[i].values;
  return a;
}

// Rows spread evenly over x.
std::pair<Vector, Vector> thin(const Vector& x, const Vector& g, Eigen::Index count) {
  std::vector<Eigen::Index> order(static_cast<std::size_t>(x.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) { return x[a] < x[b]; });
  count = std::min(count, x.size());
  Vector tx(count), tg(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Eigen::Index from = order[static_cast<std::size_t>(count > 1 ? i * (x.size() - 1) / (count - 1) : 0)];
    tx[i] = x[from], tg[i] = g[from];
  }
  return {tx, tg};
}

// The minimum of f in [low, high] by golden sections; f has one there.
double golden(double low, double high, const std::function<double(double)>& f) {
  constexpr double kRatio = 0.61803398874989485;
  double a = high - kRatio * (high - low), b = low + kRatio * (high - low);
  double fa = f(a), fb = f(b);
  for (int step = 0; step < 75 && std::abs(high - low) > 1e-15 * (std::abs(low) + std::abs(high)); ++step) {
    if (fa < fb) {
      high = b, b = a, fb = fa, a = high - kRatio * (high - low), fa = f(a);
    } else {
      low = a, a = b, fa = fb, b = low + kRatio * (high - low), fb = f(b);
    }
  }
  return fa < fb ? a : b;
}

std::optional<Expr> try_scale(const Problem& p, Outer::Kind outer, const Vector& g, const ScaledAtom& atom, int family,
                              const Constant& b, const RelationOptions& options, std::size_t max_inexact,
                              const Accept& accept, double& work) {
  const std::vector<Column> columns = scaled_columns(p.variables[0].values, g, atom, b.value, family);
  const auto relation = find_relation(columns, options, work);
  if (!relation) return std::nullopt;
  const std::vector<Expr> texts = scaled_texts(p.variables[0].text, atom, b, family);
  const auto value = relation_text(
      *relation, columns, [&](std::size_t i) { return texts[i]; }, {}, max_inexact);
  if (!value) return std::nullopt;
  return accept(outer_inverse(outer, *value, p.negative()));
}

struct ScaledTask {
  Outer::Kind outer;
  int family;
  const ScaledAtom* atom;
  double sign;
};

// `outers` of them, in the order in which they are tried.
std::vector<ScaledTask> scaled_tasks(const Problem& p, std::span<const Outer::Kind> outers) {
  const double nearest = p.variables[0].values.cwiseAbs().minCoeff();
  std::vector<ScaledTask> tasks;
  for (const Outer::Kind outer : outers) {
    if (outer_values(outer, p.y).size() == 0) continue;
    for (const int family : kFamilyOrder) {
      if (outer != Outer::identity && outer != Outer::square && family > 1) continue;
      for (const ScaledAtom& atom : kScaledAtoms) {
        if (needs_nonzero(atom, family) && nearest < 1e-3) continue;
        tasks.push_back({outer, family, &atom, 1});
        if (atom.both_signs) tasks.push_back({outer, family, &atom, -1});
      }
    }
  }
  return tasks;
}

}  // namespace

bool needs_nonzero(const ScaledAtom& atom, int family) { return family == 3 || atom.kind == ScaledAtom::exp_inverse; }

std::vector<Column> scaled_columns(const Vector& x, const Vector& g, const ScaledAtom& atom, double b, int family) {
  std::vector<Array> E{x.unaryExpr([&](double v) { return atom_value(atom.kind, v, b); }).array()};
  if (atom.kind == ScaledAtom::trig) E.push_back(x.unaryExpr([&](double v) { return std::sin(b * v); }).array());
  std::vector<Column> columns;
  const Array one = Array::Ones(x.size());
  lay_out(family, one, Array(x.array()), Array(x.array().inverse()), E, atom.kind == ScaledAtom::trig,
          [&](int c, bool with_y, const Array& v) {
            columns.push_back({static_cast<double>(c), with_y, with_y ? Vector(v * g.array()) : Vector(v)});
          });
  return columns;
}

std::vector<Expr> scaled_texts(const Expr& x, const ScaledAtom& atom, const Constant& b, int family) {
  std::vector<Expr> E{atom_text(atom.kind, x, b)};
  if (atom.kind == ScaledAtom::trig) E.push_back(call(Function::sin, number(b) * x));
  std::vector<Expr> texts;
  lay_out(family, number(1), x, power(x, {-1, 1}), E, atom.kind == ScaledAtom::trig,
          [&](int, bool, const Expr& e) { texts.push_back(e); });
  return texts;
}

std::vector<ScaledMinimum> scan_scale(const Vector& x, const Vector& g, const ScaledAtom& atom, double sign, int family,
                                      std::size_t most, double& work) {
  const auto [tx, tg] = thin(x, g, 120);
  const double unit = std::pow(x.cwiseAbs().maxCoeff(), atom.power);
  std::vector<double> scan;
  if (atom.oscillates)
    for (double b = 0.15; b < 60; b += 0.35) scan.push_back(sign * b / unit);
  else
    for (int i = 0; i < 100; ++i) scan.push_back(sign * 0.05 * std::pow(800.0, i / 99.0) / unit);
  const auto gap = [&, &tx = tx, &tg = tg](double b) {  // not every compiler captures parts of a pair
    return std::log(relation_gap(to_matrix(scaled_columns(tx, tg, atom, b, family)), work) + 1e-17);
  };
  std::vector<double> depth;
  for (const double b : scan) depth.push_back(gap(b));
  std::vector<std::size_t> minima;
  for (std::size_t i = 1; i + 1 < depth.size(); ++i)
    if (depth[i] <= depth[i - 1] && depth[i] <= depth[i + 1]) minima.push_back(i);
  std::stable_sort(minima.begin(), minima.end(), [&](std::size_t a, std::size_t b) { return depth[a] < depth[b]; });
  if (minima.size() > most) minima.resize(most);
  std::vector<ScaledMinimum> found;
  for (const std::size_t i : minima) {
    const double b = golden(std::min(scan[i - 1], scan[i + 1]), std::max(scan[i - 1], scan[i + 1]), gap);
    found.push_back({b, std::exp(gap(b))});
  }
  return found;
}

std::optional<Expr> find_powers(const Problem& p, const Accept& accept, Work& work) {
  const Vector& x = p.variables[0].values;
  if (!(x.minCoeff() > 0)) return std::nullopt;
  std::vector<Rational> exponents;
  for (int k = -24; k <= 24; ++k) exponents.push_back(Rational::of(k, 2));
  for (int k = -8; k <= 8; ++k)
    if (k % 3) exponents.push_back(Rational::of(k, 3));
  // In units of a middle value, so that powers stay of moderate size.
  Vector sorted = x;
  std::sort(sorted.begin(), sorted.end());
  const double unit = sorted[sorted.size() / 2];
  const Vector logs = (x / unit).array().log();
  const auto count = static_cast<Eigen::Index>(exponents.size());
  Matrix basis(x.size(), count);
  for (Eigen::Index i = 0; i < count; ++i)
    basis.col(i) = (logs * exponents[static_cast<std::size_t>(i)].value()).array().exp();
  const Vector norms = basis.colwise().norm();
  if (!norms.allFinite()) return std::nullopt;
  const Matrix unit_basis = basis * norms.cwiseInverse().asDiagonal();
  const Matrix gram = unit_basis.transpose() * unit_basis;
  work.spend(1e-6 * static_cast<double>(x.size() * count * count));
  for (const Outer::Kind outer : {Outer::identity, Outer::square, Outer::log}) {
    const Vector g = outer_values(outer, p.y);
    if (g.size() == 0) continue;
    const Vector c = unit_basis.transpose() * g;
    const double total = g.squaredNorm();
    for (Eigen::Index i = 0; i < count; ++i)
      for (Eigen::Index j = 0; j < i; ++j) {
        const double d = 1 - gram(i, j) * gram(i, j);
        if (d < 1e-9) continue;
        const double a = (c[i] - gram(i, j) * c[j]) / d, b = (c[j] - gram(i, j) * c[i]) / d;
        if (!(total - a * c[i] - b * c[j] < 1e-7 * total)) continue;
        Matrix two(x.size(), 2);
        two << basis.col(i), basis.col(j);
        const Vector k = two.colPivHouseholderQr().solve(g);
        if (!((two * k - g).cwiseAbs().maxCoeff() <= 1e-9 * g.cwiseAbs().maxCoeff())) continue;
        const Rational ei = exponents[static_cast<std::size_t>(i)], ej = exponents[static_cast<std::size_t>(j)];
        const Expr& t = p.variables[0].text;
        const Expr sum = number(snap(k[0] / std::pow(unit, ei.value()))) * power(t, ei) +
                         number(snap(k[1] / std::pow(unit, ej.value()))) * power(t, ej);
        if (auto found = accept(outer_inverse(outer, sum, p.negative()))) return found;
      }
  }
  return std::nullopt;
}

std::optional<Expr> find_scaled(const Problem& p, const Accept& accept, Work& work) {
  using std::numbers::pi;
  const Constant kScales[] = {
      Constant::of(1),         Constant::of(2),         Constant::of(3),          Constant::of(4),
      Constant::of({1, 2}),    Constant::of({1, 3}),    Constant::of({1, 4}),     Constant::of({1, 1}, 1),
      Constant::of({2, 1}, 1), Constant::of({1, 2}, 1), Constant::of({1, 1}, -1), Constant::of({1, 2}, -1),
      Constant::of({3, 2}),
  };
  constexpr Outer::Kind kFirst[] = {Outer::identity, Outer::square, Outer::log, Outer::exp};
  constexpr Outer::Kind kSecond[] = {Outer::identity, Outer::square, Outer::log, Outer::exp, Outer::sin};
  const Vector& x = p.variables[0].values;
  const std::vector<ScaledTask> known = scaled_tasks(p, kFirst);
  if (auto e = work.first_of<Expr>(known.size(), [&](std::size_t t, double& units) -> std::optional<Expr> {
        const ScaledTask& task = known[t];
        const Vector g = outer_values(task.outer, p.y);
        for (const Constant& scale : kScales) {
          const Constant b = task.sign < 0 ? scale * Constant::of(-1) : scale;
          if (auto found = try_scale(p, task.outer, g, *task.atom, task.family, b, {}, 2, accept, units)) return found;
        }
        return std::nullopt;
      }))
    return e;
  const std::vector<ScaledTask> scanned = scaled_tasks(p, kSecond);
  return work.first_of<Expr>(scanned.size(), [&](std::size_t t, double& units) -> std::optional<Expr> {
    const ScaledTask& task = scanned[t];
    const Vector g = outer_values(task.outer, p.y);
    for (const ScaledMinimum& m : scan_scale(x, g, *task.atom, task.sign, task.family, 2, units)) {
      if (m.gap > 1e-6) continue;
      const Constant loose = snap(m.b, {.denominator = 12, .tolerance = 1e-5, .root_two = false, .decimals = false});
      std::vector<Constant> scales{Constant::approximate(m.b)};
      if (loose.exact) scales.insert(scales.begin(), loose);
      for (const Constant& b : scales)
        if (auto found = try_scale(p, task.outer, g, *task.atom, task.family, b, {.dependent = 1e-7, .residual = 2e-8},
                                   3, accept, units))
          return found;
    }
    return std::nullopt;
  });
}

}  // namespace gradloom::formula
