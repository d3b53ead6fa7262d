// Thinning of long series, so that a chart of a million steps stays small and loses no spike.
#include <algorithm>
#include <cmath>

#include "gradloom/app/report/parts.h"

namespace gradloom::app {
namespace {

// The mean as the eye sees it: of logarithms on a logarithmic scale.
Stroke thin_run(std::span<const Point> run, Scale y_scale, std::size_t limit) {
  if (run.size() <= std::max<std::size_t>(limit, 3)) return {{run.begin(), run.end()}, {}, {}};
  Stroke stroke;
  const bool logarithmic = y_scale == Scale::logarithmic;
  const std::size_t buckets = std::max<std::size_t>(limit / 2, 1);
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::size_t first = b * run.size() / buckets, last = (b + 1) * run.size() / buckets;
    const double share = 1.0 / static_cast<double>(last - first);
    Range y;
    Point mean;
    for (const Point p : run.subspan(first, last - first)) {
      y.take(p.y);
      mean.x += share * p.x;
      mean.y += share * (logarithmic ? std::log(p.y) : p.y);
    }
    stroke.line.push_back({mean.x, logarithmic ? std::exp(mean.y) : mean.y});
    stroke.low.push_back(y.lo);
    stroke.high.push_back(y.hi);
  }
  return stroke;
}

}  // namespace

bool drawable(Point point, Scale y_scale) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (y_scale == Scale::linear || point.y > 0);
}

std::vector<Stroke> thin_points(std::span<const Point> points, Scale y_scale, std::size_t limit) {
  std::vector<Stroke> strokes;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    while (end < points.size() && drawable(points[end], y_scale)) ++end;
    if (end > begin) {
      const bool many = points.size() > limit;
      const std::size_t share = many ? limit * (end - begin) / points.size() : end - begin;
      strokes.push_back(thin_run(points.subspan(begin, end - begin), y_scale, share));
    }
    begin = std::max(end, begin + 1);
  }
  return strokes;
}

}  // namespace gradloom::app
