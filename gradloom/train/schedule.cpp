#include "gradloom/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gradloom {

double schedule_factor(const ScheduleOptions& o, std::uint64_t step, std::uint64_t total) {
  const double n = static_cast<double>(std::max<std::uint64_t>(total, 1));
  const double warm_steps = o.warmup * n, at = static_cast<double>(step);
  if (at < warm_steps) return (at + 1.0) / (warm_steps + 1.0);
  const double progress = std::min(1.0, (at - warm_steps) / std::max(1.0, n - warm_steps));
  switch (o.kind) {
    case ScheduleKind::constant:
      return 1.0;
    case ScheduleKind::step:
      return std::pow(o.factor, std::floor(progress / o.every + 1e-12));
    case ScheduleKind::cosine:
      return o.final_factor + (1.0 - o.final_factor) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return 1.0;
}

}  // namespace gradloom
