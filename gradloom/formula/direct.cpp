// Direct relations, and those with a pseudo variable.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gradloom/formula/problem.h"

namespace gradloom::formula {
namespace {

constexpr Alphabet kPlain[] = {Alphabet::poly, Alphabet::trig, Alphabet::exp, Alphabet::log, Alphabet::root};

enum class Mix { poly, one, roots, mixed };

struct Letters {
  Mix mix;
  std::vector<Alphabet> of;  // one for each variable
};

bool fit(const Problem& p, const std::vector<Alphabet>& letters) {
  for (std::size_t i = 0; i < letters.size(); ++i)
    if (!fits(letters[i], p.variables[i].values)) return false;
  return true;
}

std::vector<Letters> all_letters(const Problem& p) {
  const std::size_t n = p.variables.size();
  std::vector<Letters> all{{Mix::poly, std::vector<Alphabet>(n, Alphabet::poly)}};
  const auto put = [&](Mix mix, std::vector<Alphabet> letters) {
    if (fit(p, letters)) all.push_back({mix, std::move(letters)});
  };
  if (n <= 4)
    for (const Alphabet a : kPlain)
      for (std::size_t i = 0; i < n && a != Alphabet::poly; ++i) {
        if (n == 4 && a != Alphabet::trig) continue;
        std::vector<Alphabet> letters(n, Alphabet::poly);
        letters[i] = a;
        put(Mix::one, std::move(letters));
      }
  if (n == 2 || n == 3) {
    put(Mix::roots, std::vector<Alphabet>(n, Alphabet::root));
    const std::size_t count = n == 2 ? 25 : 125;
    for (std::size_t code = 0; code < count; ++code) {
      std::vector<Alphabet> letters;
      for (std::size_t i = 0, rest = code; i < n; ++i, rest /= 5) letters.push_back(kPlain[rest % 5]);
      const auto polys = static_cast<std::size_t>(std::count(letters.begin(), letters.end(), Alphabet::poly));
      const bool same = std::set<Alphabet>(letters.begin(), letters.end()).size() == 1;
      if (polys + 1 >= n || (n == 3 && polys == 0 && !same) || (same && letters[0] == Alphabet::root)) continue;
      put(Mix::mixed, std::move(letters));
    }
  }
  return all;
}

struct Sizes {
  int degree, above, below;
};

Sizes sizes_for(Mix mix, std::size_t n) {
  Sizes s;
  s.degree = n == 1 ? 4 : (mix == Mix::poly && n == 2 ? 3 : 2);
  s.above = n <= 3 || mix == Mix::poly ? 4 : 3;
  if (mix == Mix::mixed && n == 3) s.above = 3;
  s.below = mix == Mix::mixed ? (n == 3 ? 1 : 2) : std::min(s.above, 3);
  return s;
}

// The columns of P and g(y) Q over these products.
std::vector<Column> make_columns(const std::vector<Product>& above, const std::vector<Product>& below,
                                 const Vector& g) {
  std::vector<Column> columns;
  for (const Product& p : above) columns.push_back({static_cast<double>(p.complexity), false, values_of(p, g.size())});
  for (const Product& q : below)
    columns.push_back({static_cast<double>(q.complexity), true, values_of(q, g.size()).cwiseProduct(g)});
  return columns;
}

std::optional<Expr> try_products(const std::vector<Product>& above, const std::vector<Product>& below, const Vector& g,
                                 std::size_t max_inexact, double& work) {
  const std::vector<Column> columns = make_columns(above, below, g);
  const auto relation = find_relation(columns, {}, work);
  if (!relation) return std::nullopt;
  return relation_text(
      *relation, columns, [&](std::size_t i) { return text_of(i < above.size() ? above[i] : below[i - above.size()]); },
      {}, max_inexact);
}

struct DirectTask {
  Outer::Kind outer;
  std::size_t letters;
};

}  // namespace

std::optional<Expr> relation_text(const Relation& relation, const std::vector<Column>& columns,
                                  const std::function<Expr(std::size_t)>& text, const SnapOptions& options,
                                  std::size_t max_inexact) {
  double unit = 0;  // the coefficient of the simplest term with y
  for (const auto& [i, k] : relation.terms)
    if (columns[i].with_y && unit == 0) unit = k;
  std::vector<Expr> above, below;
  std::size_t inexact = 0;
  for (const auto& [i, k] : relation.terms) {
    const Constant c = snap((columns[i].with_y ? k : -k) / unit, options);
    if (!c.exact) ++inexact;
    (columns[i].with_y ? below : above).push_back(multiply({number(c), text(i)}));
  }
  if (inexact > max_inexact) return std::nullopt;
  return add(std::move(above)) / add(std::move(below));
}

std::optional<Expr> find_direct(const Problem& p, const Accept& accept, Work& work) {
  const std::size_t n = p.variables.size();
  const std::vector<Letters> letters = all_letters(p);
  std::map<Outer::Kind, Vector> outers;
  std::vector<DirectTask> tasks;
  for (const Outer::Kind outer : kOuters) {
    Vector g = outer_values(outer, p.y);
    if (g.size() == 0) continue;
    outers[outer] = std::move(g);
    for (std::size_t l = 0; l < letters.size(); ++l) {
      const Mix mix = letters[l].mix;
      const bool common = outer == Outer::identity || outer == Outer::square || outer == Outer::log;
      if (mix != Mix::poly && !common && outer != Outer::sin) continue;
      if (mix == Mix::mixed && !common) continue;
      tasks.push_back({outer, l});
    }
  }
  return work.first_of<Expr>(tasks.size(), [&](std::size_t t, double& units) -> std::optional<Expr> {
    const DirectTask& task = tasks[t];
    const Letters& l = letters[task.letters];
    const Sizes s = sizes_for(l.mix, n);
    std::vector<std::vector<Atom>> lists;
    for (std::size_t i = 0; i < n; ++i) lists.push_back(atoms(p.variables[i], l.of[i], s.degree));
    const std::vector<Product> above = products(lists, s.above);
    std::vector<Product> below = products(lists, s.below);
    if (above.size() + below.size() > static_cast<std::size_t>(p.rows()) / 2) below = products(lists, 2);
    const auto g = try_products(above, below, outers.at(task.outer), l.mix == Mix::poly ? 6 : 2, units);
    if (!g) return std::nullopt;
    return accept(outer_inverse(task.outer, *g, p.negative()));
  });
}

std::optional<Expr> find_pseudo(const Problem& p, const Accept& accept, Work& work) {
  const std::size_t n = p.variables.size();
  if (n > 3) return std::nullopt;
  std::vector<Variable> pseudo;
  const auto put = [&](Vector values, Expr text) {
    if (values.allFinite() && values.cwiseAbs().maxCoeff() <= 50)
      pseudo.push_back({std::move(values), std::move(text)});
  };
  for (const Variable& v : p.variables) put(v.values.cwiseProduct(v.values), v.text * v.text);
  if (n == 1) {
    const Vector& x = p.variables[0].values;
    const Expr& t = p.variables[0].text;
    put(x.cwiseInverse(), number(1) / t);
    put(1 - x.array(), number(1) - t);
    put(1 + x.array(), number(1) + t);
    put(1 + x.array() * x.array(), number(1) + t * t);
    put(2 * x, number(2) * t);
  } else {
    for (const Variable& v : p.variables) put(1 + v.values.array(), number(1) + v.text);
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const auto a = p.variables[i].values.array(), b = p.variables[j].values.array();
      const Expr &s = p.variables[i].text, &t = p.variables[j].text;
      put(a * b, s * t), put(a / b, s / t), put(b / a, t / s), put(a - b, s - t), put(a + b, s + t);
      put(a * a + b * b, s * s + t * t), put(a * a - b * b, s * s - t * t);
    }
  // x^y and (1 + x)^y are exponentials of these.
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const Vector& base = p.variables[i].values;
      const Expr& t = p.variables[i].text;
      if (i == j || !(base.minCoeff() > 0)) continue;
      const auto up = p.variables[j].values.array();
      put(up * base.array().log(), p.variables[j].text * call(Function::log, t));
      put(up * (1 + base.array()).log(), p.variables[j].text * call(Function::log, number(1) + t));
    }
  struct PseudoTask {
    Outer::Kind outer;
    std::size_t pseudo;
    Alphabet inner, other;
  };
  std::map<Outer::Kind, Vector> outers;
  std::vector<PseudoTask> tasks;
  for (const Outer::Kind outer : {Outer::identity, Outer::square, Outer::log}) {
    Vector g = outer_values(outer, p.y);
    if (g.size() == 0) continue;
    outers[outer] = std::move(g);
    for (std::size_t v = 0; v < pseudo.size(); ++v)
      for (const Alphabet inner : {Alphabet::trig_only, Alphabet::exp_only, Alphabet::log_only, Alphabet::root_only})
        for (const Alphabet other : {Alphabet::poly, Alphabet::trig, Alphabet::exp, Alphabet::log}) {
          if (!fits(inner, pseudo[v].values) || !fit(p, std::vector<Alphabet>(n, other))) continue;
          tasks.push_back({outer, v, inner, other});
        }
  }
  return work.first_of<Expr>(tasks.size(), [&](std::size_t t, double& units) -> std::optional<Expr> {
    const PseudoTask& task = tasks[t];
    std::vector<std::vector<Atom>> lists;
    for (const Variable& v : p.variables) lists.push_back(atoms(v, task.other, 2));
    lists.push_back(atoms(pseudo[task.pseudo], task.inner, 2));
    for (const auto& [above, below] : {std::pair{2, 0}, {3, 0}, {3, n < 3 ? 2 : 1}}) {
      const auto g = try_products(products(lists, above), products(lists, below), outers.at(task.outer), 1, units);
      if (!g) continue;
      return accept(outer_inverse(task.outer, *g, p.negative()));
    }
    return std::nullopt;
  });
}

}  // namespace gradloom::formula
