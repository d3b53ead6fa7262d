#include "gradloom/session/check.h"

namespace gradloom {

nlohmann::json to_json(const CheckReport& r) {
  nlohmann::json mismatches = nlohmann::json::array();
  for (const GradientMismatch& m : r.mismatches)
    mismatches.push_back({{"where", m.where}, {"analytic", m.analytic}, {"numeric", m.numeric}});
  nlohmann::json result{{"passed", r.passed},
                        {"reason", r.reason},
                        {"max_relative_error", r.max_relative_error},
                        {"dual_error", r.dual_error},
                        {"checked", r.checked},
                        {"zero", r.zero},
                        {"redrawn", r.redrawn},
                        {"mismatches", mismatches},
                        {"threads", r.threads},
                        {"targets", r.targets},
                        {"threads_equal", r.threads_equal},
                        {"targets_equal", r.targets_equal},
                        {"reference_equal", r.reference_equal},
                        {"unequal", r.unequal}};
  if (r.device) {
    result["device"] = r.device->device;
    result["device_equal"] = r.device->equal;
    result["device_difference"] = r.device->difference;
    result["device_allowed"] = r.device->allowed;
    result["device_steps"] = r.device->steps;
  }
  return result;
}

}  // namespace gradloom
