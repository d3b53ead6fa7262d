// One recipe, several seeds: what the single runs say together.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace gradloom::cli {

// `runs` are the JSON objects of single runs; one that failed has "error" instead of metrics. The result has
//   runs          the list itself
//   median, worst of each test metric over the runs that did not fail (the worst is the smallest or the largest, as
//                 train/metrics.h says; null for a metric that it does not know); null for a metric that is null in
//                 any of them
//   failed        how many failed
//   success_rate  the share that did not fail and, where a run says so ("success"), reached its goal
nlohmann::json summarise_seeds(const std::vector<nlohmann::json>& runs);

}  // namespace gradloom::cli
