#include "gradloom/data/ranges.h"

#include <algorithm>

namespace gradloom {
namespace {

// Rows where a feature lies further outside of its range than `widths` times its width.
template <class T>
FarRows find_beyond(const ColumnRanges<T>& ranges, View<const T, 2> x, T widths) {
  FarRows found;
  for (std::size_t r = 0; r < x.extent(0) && !ranges.low.empty(); ++r)
    for (std::size_t c = 0; c < x.extent(1); ++c) {
      const T margin = widths * (ranges.high[c] - ranges.low[c]);
      if (x(r, c) >= ranges.low[c] - margin && x(r, c) <= ranges.high[c] + margin) continue;
      if (found.count++ == 0) found.row = r, found.column = c;
      break;
    }
  return found;
}

}  // namespace

template <class T>
ColumnRanges<T> column_ranges(View<const T, 2> x) {
  if (x.extent(0) == 0 || x.extent(1) == 0) return {};
  ColumnRanges<T> ranges;
  for (std::size_t c = 0; c < x.extent(1); ++c) {
    T low = x(0, c), high = low;
    for (std::size_t r = 1; r < x.extent(0); ++r) low = std::min(low, x(r, c)), high = std::max(high, x(r, c));
    ranges.low.push_back(low);
    ranges.high.push_back(high);
  }
  return ranges;
}

template <class T>
std::size_t count_outside(const ColumnRanges<T>& ranges, View<const T, 2> x) {
  return find_beyond(ranges, x, T(0)).count;
}

template <class T>
FarRows find_far_rows(const ColumnRanges<T>& ranges, View<const T, 2> x) {
  return find_beyond(ranges, x, T(3));
}

template ColumnRanges<float> column_ranges(View<const float, 2>);
template ColumnRanges<double> column_ranges(View<const double, 2>);
template std::size_t count_outside(const ColumnRanges<float>&, View<const float, 2>);
template std::size_t count_outside(const ColumnRanges<double>&, View<const double, 2>);
template FarRows find_far_rows(const ColumnRanges<float>&, View<const float, 2>);
template FarRows find_far_rows(const ColumnRanges<double>&, View<const double, 2>);

}  // namespace gradloom
