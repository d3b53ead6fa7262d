#include "gradloom/session/check.h"

namespace gradloom {

nlohmann::json to_json(const CheckReport& report) {
  nlohmann::json object = to_json<CheckReport>(report);
  if (report.device) object.update(to_json(*report.device));
  return object;
}

}  // namespace gradloom
