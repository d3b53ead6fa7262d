#include "gradloom/formula/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "gradloom/base/error.h"
#include "gradloom/formula/parse.h"
#include "gradloom/formula/refine.h"

namespace gradloom::formula {
namespace {

constexpr double kWidest = 10, kQuickest = 40;  // radians, of an oscillation
constexpr std::size_t kPlaces = 9;              // of a range, where a candidate must be defined

std::vector<LibraryFunction> make_library() {
  const Expr x = variable(0);
  std::vector<LibraryFunction> all;
  const auto put = [&](const char* name, const Expr& text, int complexity, bool scale, bool shift) {
    const bool quick = text->op == Op::call && (text->function == Function::sin || text->function == Function::cos);
    all.push_back({name, text, complexity, scale, shift, !(scale && shift), quick ? kQuickest : kWidest});
  };
  const auto raised = [&](const char* name, std::int64_t p, std::int64_t q, int complexity) {
    put(name, power(x, Rational::of(p, q)), complexity, false, complexity > 1);
  };
  const auto called = [&](Function f, int complexity, bool scale = true, bool shift = true) {
    put(std::string(name_of<Function>(kFunctions, f)).c_str(), call(f, x), complexity, scale, shift);
  };
  put("0", number(0), 0, false, false);
  raised("x", 1, 1, 1), raised("x^2", 2, 1, 2), raised("x^3", 3, 1, 3);
  raised("sqrt", 1, 2, 3), raised("1/x", -1, 1, 3);
  called(Function::exp, 3, true, false), called(Function::log, 3, false, true), called(Function::sin, 3);
  called(Function::abs, 3, false, true);
  raised("x^4", 4, 1, 4), raised("x^5", 5, 1, 5), raised("1/x^2", -2, 1, 4), raised("1/x^3", -3, 1, 5);
  raised("x^(3/2)", 3, 2, 4), raised("1/sqrt", -1, 2, 4);
  called(Function::cos, 3, true, false), called(Function::tanh, 4), called(Function::atan, 4);
  put("gaussian", call(Function::exp, -(x * x)), 4, true, true);
  put("sigmoid", number(1) / (number(1) + call(Function::exp, -x)), 4, true, true);
  for (const Function f : {Function::tan, Function::sinh, Function::cosh, Function::asin, Function::acos}) called(f, 4);
  for (const Function f : {Function::atanh, Function::asinh, Function::erf}) called(f, 5);
  put("lorentz", number(1) / (number(1) + x * x), 5, true, true);
  return all;
}

const std::vector<LibraryFunction>& kept_library() {
  static const std::vector<LibraryFunction> all = make_library();
  return all;
}

// f(inside).
Expr function_of(const LibraryFunction& f, const Expr& inside) {
  const std::vector<Expr> argument{inside};
  return substitute(f.text, argument);
}

struct Line {
  double slope = 0, offset = 0, error = 1e300;  // error: mean square
};

// The best a f + d.
Line fit_line(const std::vector<double>& f, const std::vector<double>& y) {
  const auto n = static_cast<double>(y.size());
  double mf = 0, my = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!(std::abs(f[i]) < 1e8)) return {};
    mf += f[i] / n, my += y[i] / n;
  }
  double ff = 0, fy = 0, yy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    ff += (f[i] - mf) * (f[i] - mf), fy += (f[i] - mf) * (y[i] - my), yy += (y[i] - my) * (y[i] - my);
  }
  if (!(ff > 1e-20 * n)) return {0, my, yy / n};
  const double slope = fy / ff;
  return {slope, my - slope * mf, std::max(0.0, yy - slope * fy) / n};
}

// b and c, in units in which x is in [-1, 1], where a line in f(b x + c) fits best among those that are defined at all
// of `places`; none: there is no such line.
std::optional<std::pair<double, double>> best_place(const LibraryFunction& f, const std::vector<double>& u,
                                                    const std::vector<double>& y, const std::vector<double>& places) {
  std::vector<double> scales{1}, shifts{0};
  if (f.scale) {
    scales.clear();
    for (int i = 0; i < 24; ++i) scales.push_back(0.1 * std::pow(100.0, i / 23.0));
    // The ends of an oscillation are less than half a radian from those of the next one.
    for (double b = kWidest + 1; b <= f.widest; b += 1) scales.push_back(b);
  }
  if (f.shift) {
    shifts.clear();
    for (int i = -20; i <= 20; ++i) shifts.push_back(0.2 * i * (f.scale ? 1 : 0.55));
    if (!f.scale)
      for (const double far : {3.0, 4.5, 7.0, 12.0}) shifts.push_back(far), shifts.push_back(-far);
  }
  std::optional<std::pair<double, double>> best;
  double least = 1e299;
  const std::vector<int> signs = f.sign ? std::vector<int>{1, -1} : std::vector<int>{1};
  Columns argument(1, std::vector<double>(u.size())), asked(1, places);
  const auto is_defined = [&](double b, double c) {
    for (std::size_t i = 0; i < places.size(); ++i) asked[0][i] = b * places[i] + c;
    return defined_on(f.text, asked, places.size());
  };
  for (const int sign : signs)
    for (const double b : scales)
      for (const double c : shifts) {
        for (std::size_t i = 0; i < u.size(); ++i) argument[0][i] = sign * b * u[i] + c;
        const double error = fit_line(evaluate(f.text, argument, u.size()), y).error;
        if (error < least && is_defined(sign * b, c)) least = error, best = {sign * b, c};
      }
  return best;
}

}  // namespace

std::span<const LibraryFunction> library() { return kept_library(); }

LibraryFunction define_function(std::string_view definition) {
  const std::size_t equals = definition.find('=');
  const auto refuse = [&](const std::string& why) {
    throw_invalid(fmt::format("the function '{}' {}; write \"name = expression in x\"", definition, why));
  };
  if (equals == std::string_view::npos) refuse("has no '='");
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string name(definition.substr(0, equals));
  name.erase(name.find_last_not_of(' ') + 1), name.erase(0, name.find_first_not_of(' '));
  if (name.empty() || !std::all_of(name.begin(), name.end(), letter) ||
      std::isdigit(static_cast<unsigned char>(name[0])))
    refuse("has a name that is not an identifier");
  for (const LibraryFunction& f : library())
    if (f.name == name) refuse("has the name of a function of the library");
  const std::vector<std::string> names{"x"};
  const auto text = parse_expression(definition.substr(equals + 1), names);
  if (!text) refuse("cannot be read: " + text.error().message);
  if (!variables_used(*text, 1)[0]) refuse("does not depend on x");
  return {name, *text, std::clamp(static_cast<int>(complexity(*text)), 2, 6), true, true, true, kWidest};
}

std::vector<EdgeCandidate> fit_edge(const std::vector<double>& x, const std::vector<double>& y,
                                    std::span<const LibraryFunction> functions, const EdgeFitOptions& options) {
  if (x.empty()) return {};
  // Few points show the shape; all of them fit the constants.
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  const std::size_t few = std::min<std::size_t>(60, x.size()), many = std::min<std::size_t>(300, x.size());
  const double low = x[order.front()], high = x[order.back()];
  const double middle = (low + high) / 2, half = high > low ? (high - low) / 2 : 1;
  const auto thin = [&](std::size_t count) {
    std::pair<std::vector<double>, std::vector<double>> t;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = order[count > 1 ? i * (order.size() - 1) / (count - 1) : 0];
      t.first.push_back(x[at]), t.second.push_back(y[at]);
    }
    return t;
  };
  const auto [fx, fy] = thin(few);
  const auto [mx, my] = thin(many);
  std::vector<double> u, places;
  for (const double v : fx) u.push_back((v - middle) / half);
  const Range range = options.range.value_or(wider_range(x));
  Columns asked(1);
  for (std::size_t i = 0; i < kPlaces; ++i) {
    asked[0].push_back(range.low + (range.high - range.low) * static_cast<double>(i) / (kPlaces - 1));
    places.push_back((asked[0].back() - middle) / half);
  }
  const Columns all{mx}, whole{x};
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  double variance = 0;
  for (const double v : y) variance += (v - mean) * (v - mean) / static_cast<double>(y.size());
  std::vector<EdgeCandidate> found;
  for (const LibraryFunction& f : functions) {
    EdgeCandidate c;
    c.function = f.name, c.complexity = f.complexity;
    if (f.complexity == 0) {
      c.text = approximate(mean);
    } else {
      const auto place = best_place(f, u, fy, places);
      if (!place) continue;
      const auto [b, shift] = *place;
      // In x itself: b (x - middle)/half + c.
      Expr inside = approximate(b / half) * variable(0) + approximate(shift - b * middle / half);
      if (f.complexity == 1) inside = variable(0);
      const Expr bare = function_of(f, inside);
      const Line line = fit_line(evaluate(bare, all, many), my);
      if (!(line.error < 1e299) || line.slope == 0) continue;
      const Expr start = approximate(line.slope) * bare + approximate(line.offset);
      c.text = refine_constants(start, all, my, {.iterations = f.complexity == 1 ? 2 : 12, .defined = &asked});
    }
    c.rmse = rms_error(c.text, whole, y);
    if (!std::isfinite(c.rmse) || !defined_on(c.text, asked, kPlaces)) continue;
    c.r2 = variance > 0 ? 1 - c.rmse * c.rmse / variance : (c.rmse == 0 ? 1 : 0);
    found.push_back(std::move(c));
  }
  const double unit = std::sqrt(variance) > 0 ? std::sqrt(variance) : 1;
  const auto cost = [&](const EdgeCandidate& c) {
    return std::log10(c.rmse / unit + 1e-6) + options.penalty * c.complexity;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const EdgeCandidate& a, const EdgeCandidate& b) { return cost(a) < cost(b); });
  if (found.size() > options.most) found.resize(options.most);
  return found;
}

}  // namespace gradloom::formula
