// What the end of a run says about its settings: that the model is too large for its data, or was trained too briefly.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/session/session.h"

namespace gradloom::app {

// The metrics of validation data, or else of test data; null: there are none.
const PartMetrics* held_out(const Metrics& metrics);

// At most one sentence, and none where held-out data are predicted almost perfectly. Overfit: on held-out data the RMSE
// is more than twice that on training data, or the accuracy (that of the hard circuit, where there is one) more than
// 0.1 and two standard errors below; `cure` ends the sentence, and an empty one leaves it out. Undertrained: the
// training loss of the last stage fell by more than a tenth in the last tenth of its epochs (of ten or more), when the
// validation loss was lowest too, and not all of the training data are right already. `log` are the lines of the run's
// log.
std::vector<std::string> training_advice(const Metrics& metrics, const std::vector<nlohmann::json>& log,
                                         std::string_view cure);

// Where the loss on validation data was not finite after some epochs, though it is at the end: a sentence, else empty.
std::string validation_overflow(const Metrics& metrics, const std::vector<nlohmann::json>& log);

// Where stages did no better on validation data than one before, whose function they kept: a sentence, else empty.
std::string stages_in_vain(const std::vector<nlohmann::json>& log);

// After ten epochs or more: a sentence where numbers of the training data are predicted worse than by their mean (other
// losses than `loss` mae and huber, which do not ask for means), or classes no better than by the most frequent one,
// whose share is `largest_class` (as Session has it); else empty.
std::string learned_nothing(const Metrics& metrics, LossKind loss, std::optional<double> largest_class,
                            const std::vector<nlohmann::json>& log);

}  // namespace gradloom::app
