#include "gradloom/formula/domain.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

namespace gradloom::formula {
namespace {

constexpr double kWider = 0.05;  // of the range, on each side

bool one_sign(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double d) { return d > 0; }) ||
         std::all_of(v.begin(), v.end(), [](double d) { return d < 0; });
}

// Between two poles of the tangent.
bool one_branch(const std::vector<double>& v) {
  const auto branch = [](double d) { return std::floor(d / std::numbers::pi + 0.5); };
  return std::all_of(v.begin(), v.end(), [&](double d) { return branch(d) == branch(v.front()); });
}

// Values; none where the expression is not defined.
std::optional<std::vector<double>> defined_values(const Expr& e, const Columns& points, std::size_t rows) {
  if (e->op == Op::number) return std::vector<double>(rows, e->number.value);
  if (e->op == Op::variable) return points.at(e->variable);
  auto first = defined_values(e->args[0], points, rows);
  if (!first) return std::nullopt;
  std::vector<double>& v = *first;
  if (e->op == Op::power) {
    if (e->exponent.p < 0 && !one_sign(v)) return std::nullopt;
    for (double& d : v) d = raise(d, e->exponent);
  } else if (e->op == Op::call) {
    if (e->function == Function::tan && !one_branch(v)) return std::nullopt;
    for (double& d : v) d = apply(e->function, d);
  } else {
    for (std::size_t a = 1; a < e->args.size(); ++a) {
      const auto other = defined_values(e->args[a], points, rows);
      if (!other) return std::nullopt;
      for (std::size_t r = 0; r < rows; ++r) e->op == Op::add ? v[r] += (*other)[r] : v[r] *= (*other)[r];
    }
  }
  if (!std::all_of(v.begin(), v.end(), [](double d) { return std::isfinite(d); })) return std::nullopt;
  return first;
}

}  // namespace

Range wider_range(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double more = kWider * (*high - *low);
  Range r{*low - more, *high + more};
  if (*low >= 0 && r.low <= 0) r.low = *low / 2;
  if (*high <= 0 && r.high >= 0) r.high = *high / 2;
  return r;
}

Columns wider_rows(const Columns& x) {
  Columns wide = x;
  for (auto& column : wide) {
    if (column.empty()) continue;
    const auto [least, most] = std::minmax_element(column.begin(), column.end());
    const double low = *least, high = *most;
    const Range to = wider_range(column);
    if (!(high > low)) continue;
    for (double& v : column) v = to.low + (v - low) / (high - low) * (to.high - to.low);
  }
  return wide;
}

bool defined_on(const Expr& e, const Columns& points, std::size_t rows) {
  return rows == 0 || defined_values(e, points, rows).has_value();
}

}  // namespace gradloom::formula
