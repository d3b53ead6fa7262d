// The keys of recipes of classifiers made of gates.
#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/gates/options.h"

namespace gradloom::app {
void bind_options(const OptionPart<GatesOptions>& o) {
  bind_head(o.as<FamilyOptions>(), "Epochs of each stage.");
  o.choice("task", &GatesOptions::task, without(kTasks, Task::regression), "What is learned.");
  bind_row_data(o.part("data", &GatesOptions::data));
  o.key("data.thresholds", &GatesOptions::thresholds,
        "Bits of a numeric column with more than two values: one for each quantile.")
      .at_least(1)
      .at_most(255);
  const auto model = o.part("model", &GatesOptions::model);
  model.choice(
      "size", &GatesModelOptions::size, kSizePolicies,
      "Who chooses model.gates, model.temperature, train.batch, epochs, train.restarts and train.restart_epochs.");
  model
      .key("gates", &GatesModelOptions::gates,
           "Gates of each layer; the last is divided among the classes, rounded up to a multiple.")
      .count(1)
      .at_least(1);
  model.choice_or_auto(
      "wires", &GatesModelOptions::wires, logic::kWires,
      "How the gates of a layer choose their two inputs; auto: unique where the widths allow it, else random.");
  model
      .key("temperature", &GatesModelOptions::temperature,
           "The sum of a class's gates is divided by this before the softmax.")
      .above(0)
      .computed();
  bind_training(o.part("", &GatesOptions::train), needs_validation("data.validation"));
}

}  // namespace gradloom::app
