#include "gradloom/formula/noisy.h"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <set>

#include "gradloom/base/error.h"
#include "gradloom/formula/library.h"
#include "gradloom/formula/refine.h"
#include "gradloom/formula/simplify.h"
#include "gradloom/formula/symmetry.h"

namespace gradloom::formula {
namespace {

constexpr std::size_t kMostTerms = 4;
constexpr std::size_t kReductions = 5;
constexpr double kAllowed = 1.1;  // times the noise

using NoisyWrap = std::function<Expr(const Expr&)>;

struct Guess {
  Expr formula;
  double unseen = 0;  // error
  std::size_t complexity = 0;
  std::string how;
};

Vector as_vector(const std::vector<double>& v) {
  return Eigen::Map<const Vector>(v.data(), static_cast<Eigen::Index>(v.size()));
}

class NoisySearch {
 public:
  NoisySearch(Work& work, const Table& seen, const Table& unseen, const AllowedFormula& allowed)
      : work_(work), seen_(seen), unseen_(unseen), allowed_(allowed) {
    for (const LibraryFunction& f : library())
      if (!allowed || allowed(f.text)) functions_.push_back(f);
  }

  void solve(const std::vector<Expr>& variables, const Vector& y, const NoisyWrap& wrap, const std::string& how,
             int depth) {
    if (work_.exhausted() || !y.allFinite()) return;
    Problem p;
    p.y = y;
    for (const Expr& v : variables) {
      Vector values = as_vector(evaluate(v, seen_.x, seen_.y.size()));
      if (!values.allFinite()) return;
      p.variables.push_back({std::move(values), v});
    }
    propose(wrap(approximate(y.mean())), how);
    if (p.variables.empty()) return;
    products_of_powers(p, wrap, how);
    sums(p, wrap, how);
    std::unique_ptr<Surrogate> surrogate;
    if (depth == 0) {
      surrogate = fit_surrogate(p, work_);
      noise_ = surrogate->error() * std::sqrt((y.array() - y.mean()).square().mean());
    }
    if (p.variables.size() == 1) {
      const Vector& x = p.variables[0].values;
      for (const EdgeCandidate& c : fit_edge({x.begin(), x.end()}, {y.begin(), y.end()}, functions_, {.most = 3})) {
        const std::vector<Expr> argument{p.variables[0].text};
        propose(wrap(substitute(c.text, argument)), how + "function; ");
      }
      work_.spend(60);
      return;
    }
    if (depth == 3) return;
    if (!surrogate) surrogate = fit_surrogate(p, work_);
    std::set<std::string> tried;
    for (const Symmetry& s : find_symmetries(p, *surrogate, work_)) {
      if (tried.size() == kReductions) break;
      const auto r = reduce(s, p);
      if (!r) continue;
      std::string key = r->factor->key;
      for (const Expr& v : r->variables) key += ";" + v->key;
      if (!tried.insert(key).second) continue;
      const Vector m = as_vector(evaluate(r->factor, seen_.x, seen_.y.size()));
      solve(
          r->variables, y.cwiseQuotient(m), [&](const Expr& e) { return wrap(r->factor * e); }, how + "symmetry; ",
          depth + 1);
    }
  }

  double noise() const { return noise_; }

  // The simplest of those that cannot be told from the best.
  std::optional<Guess> best() const {
    double least = 1e300;
    for (const Guess& g : guesses_) least = std::min(least, g.unseen);
    const double limit = is_noise(least) ? std::min(1.03 * least, largest_noise()) : 1.03 * least;
    const Guess* chosen = nullptr;
    for (const Guess& g : guesses_)
      if (g.unseen <= limit && (!chosen || g.complexity < chosen->complexity)) chosen = &g;
    return chosen ? std::optional<Guess>(*chosen) : std::nullopt;
  }

  // Whether an error on unseen rows can be noise.
  bool is_noise(double unseen) const { return unseen <= largest_noise(); }

 private:
  // The error of few rows differs from the standard deviation by chance: here two of its own standard errors.
  double largest_noise() const {
    const double chance = 2 / std::sqrt(2 * static_cast<double>(unseen_.y.size()));
    return noise_ > 0 ? kAllowed * (1 + chance) * noise_ : 1e300;
  }

  // Fits the constants of a whole formula, snaps those that the data leave free to be, and keeps it.
  void propose(const Expr& whole, const std::string& how) {
    if (inexact_constants(whole) > 8 || !(rms_error(whole, seen_.x, seen_.y) < 1e300)) return;
    Expr e = refine_constants(whole, seen_.x, seen_.y, {.iterations = 10});
    work_.spend(1e-4 * static_cast<double>(seen_.y.size() * complexity(e) * (1 + inexact_constants(e))));
    const double fitted = rms_error(e, seen_.x, seen_.y);
    if (!std::isfinite(fitted)) return;
    // A constant may move as long as the squared error rises by less than one of its own variances.
    const double allowed = fitted * std::sqrt(1 + 2.0 / static_cast<double>(seen_.y.size()));
    for (std::size_t i = 0; i < inexact_constants(e);) {
      const std::vector<double> values = constants_of(e);
      std::vector<Constant> c;
      for (const double v : values) c.push_back(Constant::approximate(v));
      c[i] =
          snap(values[i], {.denominator = 4, .tolerance = 0.03, .pi_powers = 0, .root_two = false, .decimals = false});
      const Expr snapped = c[i].exact ? refine_constants(with_constants(e, c), seen_.x, seen_.y, {.iterations = 4}) : e;
      if (c[i].exact && inexact_constants(snapped) < values.size() && rms_error(snapped, seen_.x, seen_.y) <= allowed)
        e = snapped;
      else
        ++i;
    }
    const double error = rms_error(e, unseen_.x, unseen_.y);
    if (std::isfinite(error) && (!allowed_ || allowed_(e))) guesses_.push_back({e, error, complexity(e), how});
  }

  // c x1^p1 x2^p2 ..., powers of k/2.
  void products_of_powers(const Problem& p, const NoisyWrap& wrap, const std::string& how) {
    const bool one_sign = p.y.minCoeff() > 0 || p.y.maxCoeff() < 0;
    for (const Variable& v : p.variables)
      if (!(v.values.minCoeff() > 0)) return;
    if (!one_sign) return;
    const auto n = static_cast<Eigen::Index>(p.variables.size());
    Matrix a(p.rows(), n + 1);
    a.col(n).setOnes();
    for (Eigen::Index i = 0; i < n; ++i) a.col(i) = p.variables[static_cast<std::size_t>(i)].values.array().log();
    const Vector c = a.colPivHouseholderQr().solve(Vector(p.y.cwiseAbs().array().log()));
    std::vector<Expr> factors;
    for (Eigen::Index i = 0; i < n; ++i) {
      const std::int64_t twice = std::llround(2 * c[i]);
      if (std::abs(c[i] - 0.5 * static_cast<double>(twice)) > 0.1 || std::abs(twice) > 16) return;
      factors.push_back(power(p.variables[static_cast<std::size_t>(i)].text, Rational::of(twice, 2)));
    }
    factors.push_back(approximate((p.negative() ? -1 : 1) * std::exp(c[n])));
    propose(wrap(multiply(std::move(factors))), how + "powers; ");
  }

  // Sums of at most four products of simple functions, chosen one by one, for y, 1/y and y^2.
  void sums(const Problem& p, const NoisyWrap& wrap, const std::string& how) {
    const std::size_t n = p.variables.size();
    if (n > 4) return;
    for (const Alphabet letters : {Alphabet::poly, Alphabet::trig, Alphabet::exp, Alphabet::log})
      for (std::size_t special = 0; special < (letters == Alphabet::poly ? 1 : n); ++special) {
        if (work_.exhausted() || !fits(letters, p.variables[special].values)) continue;
        std::vector<std::vector<Atom>> lists;
        for (std::size_t i = 0; i < n; ++i)
          lists.push_back(atoms(p.variables[i], i == special ? letters : Alphabet::poly, 2));
        const std::vector<Product> terms = products(lists, n == 4 ? 3 : 4);
        for (const int outer : {0, 1, 2}) {
          const bool one_sign = p.y.minCoeff() > 0 || p.y.maxCoeff() < 0;
          if (outer > 0 && !one_sign) continue;
          // Errors of y become errors of g(y); rows are weighted by what that makes of them.
          Vector g = p.y, weight = Vector::Ones(p.rows());
          if (outer == 1) g = p.y.cwiseInverse(), weight = p.y.cwiseProduct(p.y);
          if (outer == 2) g = p.y.cwiseProduct(p.y), weight = p.y.cwiseAbs().cwiseInverse() / 2;
          select(
              terms, g, weight,
              [&](const Expr& e) {
                if (outer == 0) return wrap(e);
                if (outer == 1) return wrap(power(e, {-1, 1}));
                return wrap(p.negative() ? -sqrt(e) : sqrt(e));
              },
              how + "sum; ");
        }
      }
  }

  void select(const std::vector<Product>& terms, const Vector& g, const Vector& weight, const NoisyWrap& wrap,
              const std::string& how) {
    const auto count = static_cast<Eigen::Index>(terms.size());
    Matrix a(g.size(), count);
    for (Eigen::Index i = 0; i < count; ++i)
      a.col(i) = values_of(terms[static_cast<std::size_t>(i)], g.size()).cwiseProduct(weight);
    if (!a.allFinite()) return;
    const Vector target = g.cwiseProduct(weight);
    std::vector<Eigen::Index> chosen;
    Matrix basis(g.size(), 0);  // orthonormal, of the chosen columns
    Vector residual = target;
    double last = residual.squaredNorm();
    for (std::size_t k = 0; k < kMostTerms; ++k) {
      Eigen::Index best = -1;
      double gain = 0;
      for (Eigen::Index i = 0; i < count; ++i) {
        Vector v = a.col(i) - basis * (basis.transpose() * a.col(i));
        const double size = v.squaredNorm();
        if (size < 1e-10 * a.col(i).squaredNorm()) continue;
        const double won = std::pow(v.dot(residual), 2) / size;
        if (won > gain) gain = won, best = i;
      }
      work_.spend(1e-6 * static_cast<double>(g.size() * count) * static_cast<double>(2 * k + 2));
      if (best < 0) return;
      Vector v = a.col(best) - basis * (basis.transpose() * a.col(best));
      v.normalize();
      basis.conservativeResize(Eigen::NoChange, basis.cols() + 1);
      basis.col(basis.cols() - 1) = v;
      residual -= v * v.dot(residual);
      chosen.push_back(best);
      const double now = residual.squaredNorm();
      // The terms so far are a formula when the rest looks like noise, or when they explain most of it.
      if (now < 0.02 * target.squaredNorm()) {
        Matrix part(g.size(), static_cast<Eigen::Index>(chosen.size()));
        for (std::size_t i = 0; i < chosen.size(); ++i) part.col(static_cast<Eigen::Index>(i)) = a.col(chosen[i]);
        const Vector c = part.colPivHouseholderQr().solve(target);
        std::vector<Expr> sum;
        for (std::size_t i = 0; i < chosen.size(); ++i)
          sum.push_back(approximate(c[static_cast<Eigen::Index>(i)]) *
                        text_of(terms[static_cast<std::size_t>(chosen[i])]));
        propose(wrap(add(std::move(sum))), how);
      }
      if (now > 0.95 * last) return;
      last = now;
    }
  }

  Work& work_;
  const Table& seen_;
  const Table& unseen_;
  const AllowedFormula& allowed_;
  std::vector<LibraryFunction> functions_;  // of the library, that are allowed
  double noise_ = 0;
  std::vector<Guess> guesses_;
};

}  // namespace

NoisyResult search_noisy(const Exec& ex, const Table& table, const SearchOptions& options) {
  if (table.rows() < kLeastRows)
    throw_invalid(fmt::format("a formula needs at least {} rows; there are {}", kLeastRows, table.rows()));
  const SplitRows rows = split_rows(table, options.seed);
  std::vector<Expr> variables;
  std::vector<bool> positive;
  for (std::size_t i = 0; i < table.x.size(); ++i) {
    const auto [low, high] = std::minmax_element(table.x[i].begin(), table.x[i].end());
    positive.push_back(*low > 0);
    if (*low < *high) variables.push_back(variable(i));
  }
  Work work(ex, options.effort, options.progress, options.deal, options.stop);
  NoisySearch search(work, rows.seen, rows.unseen, options.allowed);
  search.solve(
      variables, as_vector(rows.seen.y), [](const Expr& e) { return e; }, "", 0);
  NoisyResult result;
  result.noise = search.noise();
  result.work = work.used();
  if (const auto best = search.best(); best && search.is_noise(best->unseen)) {
    const Expr shorter = simplify(best->formula, positive);
    result.formula = !options.allowed || options.allowed(shorter) ? shorter : best->formula;
    result.rmse = best->unseen;
    result.steps = {best->how};
  }
  return result;
}

}  // namespace gradloom::formula
