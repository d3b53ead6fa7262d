#include "cli/seeds.h"

#include <algorithm>
#include <map>
#include <string>

#include "gradloom/app/sweep/sweep.h"
#include "gradloom/train/metrics.h"

namespace gradloom::cli {
namespace {

nlohmann::json worst_of(const std::string& metric, const std::vector<double>& values) {
  const MetricKind* kind = find_metric(metric);
  if (!kind) return nullptr;
  return kind->better == Better::larger ? *std::min_element(values.begin(), values.end())
                                        : *std::max_element(values.begin(), values.end());
}

}  // namespace

nlohmann::json summarise_seeds(const std::vector<nlohmann::json>& runs) {
  std::map<std::string, std::vector<double>> finite;
  std::map<std::string, bool> broken;
  std::size_t failed = 0, missed = 0, unfinished = 0;
  for (const nlohmann::json& run : runs) {
    if (run.contains("error")) {
      ++failed;
      continue;
    }
    if (run.value("interrupted", false)) {
      ++unfinished;
      continue;
    }
    if (!run.value("success", true)) ++missed;
    if (!run.contains("test") || !run["test"].is_object()) continue;
    for (const auto& [metric, value] : run["test"].items())
      if (value.is_number())
        finite[metric].push_back(value.get<double>());
      else
        broken[metric] = true;
  }
  nlohmann::json median = nlohmann::json::object(), worst = nlohmann::json::object();
  for (const auto& [metric, values] : finite) {
    median[metric] = app::median_of(values);
    worst[metric] = worst_of(metric, values);
  }
  for (const auto& [metric, is_broken] : broken)
    if (is_broken) median[metric] = worst[metric] = nullptr;
  const std::size_t ended = runs.size() - unfinished;
  const double share = ended == 0 ? 0.0 : static_cast<double>(ended - failed - missed) / static_cast<double>(ended);
  return {{"runs", runs}, {"median", median}, {"worst", worst}, {"failed", failed}, {"success_rate", share}};
}

}  // namespace gradloom::cli
