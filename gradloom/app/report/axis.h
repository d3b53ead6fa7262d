// Axes of charts: a range that is never empty, ticks at round numbers, and where a value lies between the ends.
#pragma once

#include <string>
#include <vector>

#include "gradloom/app/report/report.h"

namespace gradloom::app {

struct Tick {
  double value = 0;
  std::string label;
};

struct Axis {
  Scale scale = Scale::linear;
  double lo = 0;  // lo < hi, both finite; positive on a logarithmic scale
  double hi = 1;
  std::vector<Tick> ticks;  // ascending, within [lo, hi]

  double position(double value) const;  // 0 at lo, 1 at hi; clamped
};

enum class Fit {
  exact,  // the axis ends where the data ends
  round,  // the axis ends at ticks (linear) or has a little air (logarithmic)
};

// An axis for data in [lo, hi] with about `ticks` ticks. Equal ends are spread; ends that make no range (not finite,
// swapped, not positive on a logarithmic scale) become [0, 1], or [0.1, 1].
Axis make_axis(Scale scale, double lo, double hi, int ticks, Fit fit);

}  // namespace gradloom::app
