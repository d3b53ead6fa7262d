// Learning-rate schedules: a pure function of the step, so that a resumed run needs no state for it.
#pragma once

#include <cstdint>

#include "gradloom/base/choice.h"

namespace gradloom {

enum class ScheduleKind { constant, step, cosine };
inline constexpr Choice<ScheduleKind> kSchedules[] = {
    {ScheduleKind::constant, "constant", "the learning rate does not change"},
    {ScheduleKind::step, "step", "the learning rate falls in steps"},
    {ScheduleKind::cosine, "cosine", "the learning rate falls along half a cosine"},
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  double warmup = 0.0;        // fraction of all steps over which the rate rises linearly from 0; 0 <= warmup < 1
  double final_factor = 0.0;  // cosine: the last rate as a fraction of the first
  double every = 0.3;         // step: the rate is multiplied by `factor` after each such fraction of all steps
  double factor = 0.1;
};

// The factor of the learning rate at step 0 <= step < total.
double schedule_factor(const ScheduleOptions& options, std::uint64_t step, std::uint64_t total);

}  // namespace gradloom
