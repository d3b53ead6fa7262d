#include "gradloom/train/gradient_check.h"

#include <fmt/format.h>

namespace gradloom {

namespace {
constexpr std::size_t kWorst = 5;
}

void GradientCheckReport::add(const GradientCheckReport& more) {
  max_relative_error = std::max(max_relative_error, more.max_relative_error);
  checked += more.checked;
  zero += more.zero;
  redrawn += more.redrawn;
  mismatches.insert(mismatches.end(), more.mismatches.begin(), more.mismatches.end());
  if (passed) reason = more.reason;
  passed = passed && more.passed;
}

void GradientJudge::compare(const std::string& where, double analytic, double numeric, double noise) {
  const double error = std::abs(analytic - numeric);
  const bool finite = std::isfinite(error);
  if (std::abs(numeric) > noise)
    ++report_.checked;
  else
    ++report_.zero;
  if (finite && largest_ > 0) report_.max_relative_error = std::max(report_.max_relative_error, error / largest_);
  if (finite && error <= allowed(noise)) return;
  auto& list = report_.mismatches;
  list.push_back({where, analytic, numeric});
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const auto size = [](const GradientMismatch& m) {
      const double e = std::abs(m.analytic - m.numeric);
      return std::isfinite(e) ? e : std::numeric_limits<double>::infinity();
    };
    return size(a) > size(b);
  });
  if (list.size() > kWorst) list.resize(kWorst);
}

GradientCheckReport GradientJudge::finish() {
  if (!report_.mismatches.empty()) {
    const GradientMismatch& worst = report_.mismatches.front();
    report_.reason = fmt::format("{}: the backward pass gives {:.10g}, central differences give {:.10g}", worst.where,
                                 worst.analytic, worst.numeric);
  } else if (largest_ == 0.0) {
    report_.reason = fmt::format("the whole gradient of {} is zero: none of it was checked", what_);
  } else if (report_.checked == 0) {
    report_.reason = fmt::format(
        "no derivative of {} is above the noise of the arithmetic: none was checked (check more elements)", what_);
  }
  report_.passed = report_.reason.empty();
  return report_;
}

}  // namespace gradloom
