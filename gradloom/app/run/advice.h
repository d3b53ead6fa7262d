// What the end of a run says about its settings: that the model is too large for its data, or was trained too briefly.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/session/session.h"

namespace gradloom::app {

// For networks that learn from rows. Overfit: on held-out data (validation, else test) the RMSE is more than twice that
// on training data, or the accuracy more than 0.1 below; not where the held-out data are predicted almost perfectly.
// Undertrained: the training loss of the last stage fell by more than a tenth in the last tenth of its epochs (of ten
// or more), and there is something left to learn. `log` are the lines of the run's log.
std::vector<std::string> training_advice(const Metrics& metrics, const std::vector<nlohmann::json>& log);

// For all that learn classes: a sentence where the accuracy on training data is no better than the share of the most
// frequent class (`largest_class`, as Session has it) after ten epochs or more; else empty.
std::string learned_nothing(const Metrics& metrics, std::optional<double> largest_class,
                            const std::vector<nlohmann::json>& log);

}  // namespace gradloom::app
