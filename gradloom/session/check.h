// check: are the gradients of a family's model right, and are its bits the same however it is run?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradloom/io/fields.h"
#include "gradloom/session/session.h"
#include "gradloom/train/gradient_check.h"

namespace gradloom {

struct CheckOptions {
  std::size_t max_elements = 2000;  // of each gradient
  std::size_t samples = 16;
};

// A few training steps on a device beside those of the CPU.
struct DeviceComparison {
  std::string device;
  bool device_equal = false;
  double device_difference = 0.0;  // of the largest parameter
  double device_allowed = 0.0;
  std::uint64_t device_steps = 0;
  GRADLOOM_FIELDS(device, device_equal, device_difference, device_allowed, device_steps)
};

struct CheckReport {
  bool passed = false;
  std::string reason;  // empty when it passed
  double max_relative_error = 0.0, dual_error = 0.0;
  std::size_t checked = 0, zero = 0, redrawn = 0;
  std::vector<GradientMismatch> mismatches;
  std::vector<unsigned> threads;     // compared with one thread of the fast kernels
  std::vector<std::string> targets;  // likewise
  bool threads_equal = true, targets_equal = true, reference_equal = true;
  std::vector<std::string> unequal;  // what differs
  std::optional<DeviceComparison> device;
  GRADLOOM_FIELDS(passed, reason, max_relative_error, dual_error, checked, zero, redrawn, mismatches, threads, targets,
                  threads_equal, targets_equal, reference_equal, unequal)
};
// One object: the fields of the report and of the comparison.
nlohmann::json to_json(const CheckReport& report);

}  // namespace gradloom
