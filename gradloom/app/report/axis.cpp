#include "gradloom/app/report/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradloom/app/report/text.h"

namespace gradloom::app {
namespace {

// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
double round_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string linear_label(double value, double step, double largest) {
  const bool extreme = largest >= 1e7 || largest < 1e-3;
  if (value == 0 || extreme) return format_number(value);
  return format_fixed(value, std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))));
}

std::vector<Tick> linear_ticks(double lo, double hi, double step) {
  std::vector<Tick> ticks;
  const double largest = std::max(std::abs(lo), std::abs(hi)), slack = 1e-6 * step;
  const double first = std::ceil(lo / step - 1e-6);
  for (int i = 0; i < 64; ++i) {
    const double value = (first + i) * step;
    if (value - hi > slack) break;
    const double inside = std::clamp(value, lo, hi);
    ticks.push_back({inside, linear_label(std::abs(value) < slack ? 0 : value, step, largest)});
  }
  return ticks;
}

double linear_step(double lo, double hi, int ticks) { return round_step(hi / ticks - lo / ticks); }

void fit_linear(Axis& axis, int ticks, Fit fit) {
  double step = linear_step(axis.lo, axis.hi, ticks);
  // Below the spacing of doubles there are no ticks to be had.
  const double largest = std::max(std::abs(axis.lo), std::abs(axis.hi));
  step = std::max(step, largest * 1e-14);
  if (fit == Fit::round) {
    const double lo = std::floor(axis.lo / step + 1e-9) * step, hi = std::ceil(axis.hi / step - 1e-9) * step;
    if (std::isfinite(lo) && std::isfinite(hi)) {
      axis.lo = std::min(axis.lo, lo);
      axis.hi = std::max(axis.hi, hi);
    }
  }
  axis.ticks = linear_ticks(axis.lo, axis.hi, step);
}

std::string decade_label(int exponent, bool plain) {
  if (!plain) return power_of_ten(exponent);
  return format_fixed(std::pow(10.0, exponent), std::max(0, -exponent));
}

void fit_logarithmic(Axis& axis, int ticks, Fit fit) {
  if (fit == Fit::round) {
    const double air = std::pow(10.0, 0.04 * (std::log10(axis.hi) - std::log10(axis.lo)));
    axis.lo = std::max(axis.lo / air, 1e-307);
    axis.hi = std::min(axis.hi * air, std::numeric_limits<double>::max());
  }
  const int first = static_cast<int>(std::ceil(std::log10(axis.lo) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(axis.hi) + 1e-9));
  const bool plain = first >= -3 && last <= 4;
  if (last - first >= 2) {
    const int stride = std::max(1, static_cast<int>(std::ceil((last - first) / static_cast<double>(ticks))));
    for (int e = last; e >= first; e -= stride)
      axis.ticks.push_back({std::clamp(std::pow(10.0, e), axis.lo, axis.hi), decade_label(e, plain)});
    std::reverse(axis.ticks.begin(), axis.ticks.end());
    return;
  }
  for (int e = first - 1; e <= last; ++e)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, e);
      if (value >= axis.lo * (1 - 1e-9) && value <= axis.hi * (1 + 1e-9))
        axis.ticks.push_back({std::clamp(value, axis.lo, axis.hi), format_number(value)});
    }
  if (axis.ticks.size() < 3) axis.ticks = linear_ticks(axis.lo, axis.hi, linear_step(axis.lo, axis.hi, ticks));
}

}  // namespace

double Axis::position(double value) const {
  const double at = scale == Scale::logarithmic
                        ? (std::log10(value) - std::log10(lo)) / (std::log10(hi) - std::log10(lo))
                        : (value / 2 - lo / 2) / (hi / 2 - lo / 2);
  return at >= 0 ? std::min(at, 1.0) : 0.0;  // NaN lands at 0
}

Axis make_axis(Scale scale, double lo, double hi, int ticks, Fit fit) {
  const bool logarithmic = scale == Scale::logarithmic;
  if (!std::isfinite(lo) || !std::isfinite(hi) || hi < lo || (logarithmic && lo <= 0)) {
    lo = logarithmic ? 0.1 : 0;
    hi = 1;
  }
  if (logarithmic) {
    lo = std::max(lo, 1e-300);
    hi = std::max(hi, 1e-300);
    if (hi / lo < 1 + 1e-9) {
      const double middle = std::min(lo, 1e300);
      lo = middle / 2;
      hi = middle * 2;
    }
  } else if (hi / 2 - lo / 2 <= std::max(std::abs(lo), std::abs(hi)) * 1e-12 || hi - lo < 1e-300) {
    const double spread = std::max(std::abs(lo) * 0.1, lo == 0 ? 1.0 : 1e-299);
    lo -= spread;
    hi += spread;
    if (!std::isfinite(lo)) lo = -1.7e308;
    if (!std::isfinite(hi)) hi = 1.7e308;
  }
  Axis axis{scale, lo, hi, {}};
  if (logarithmic)
    fit_logarithmic(axis, ticks, fit);
  else
    fit_linear(axis, ticks, fit);
  return axis;
}

}  // namespace gradloom::app
