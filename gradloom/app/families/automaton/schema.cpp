// The keys of recipes of logic automata.
#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/options/bind.h"
#include "gradloom/session/families/automaton/options.h"

namespace gradloom::app {
namespace {

void bind_grid_data(const OptionPart<AutomatonDataOptions>& data) {
  using D = AutomatonDataOptions;
  const auto task = data.part("", &D::task);
  data.key("root", &D::root,
           "Folder of data.image and data.rule_table; empty: the current folder, then $GRADLOOM_DATA.");
  task.choice("task", &GridTask::kind, kGridTasks, "What the cells learn: one step of a rule, or a pattern to reach.");
  task.key("height", &GridTask::height, "Rows of the grid; a picture has its own size.")
      .at_least(1)
      .at_most(1 << 16)
      .not_with("data.task", {"picture"});
  task.key("width", &GridTask::width, "Columns of the grid; a picture has its own size.")
      .at_least(1)
      .at_most(1 << 16)
      .not_with("data.task", {"picture"});
  task.key("square", &GridTask::square, "Checkerboard: cells along the side of a square.")
      .at_least(1)
      .at_most(1 << 16)
      .only_with("data.task", {"checkerboard"});
  data.key("rule", &D::rule,
           "Life: numbers of neighbours with which a cell is born and survives: B3/S23 is the game of life, B36/S23 "
           "HighLife.")
      .only_with("data.task", {"life"})
      .effect([](const ConfigValues& values) {
        const auto* table = std::get_if<std::string>(&values("data.rule_table"));
        return table && !table->empty() ? "has no effect with data.rule_table, which is the rule" : "";
      });
  data.key("rule_table", &D::rule_table,
           "Life: a CSV file with the rule instead: 512 rows of a 3 x 3 patch, row by row, and the next state.")
      .only_with("data.task", {"life"});
  data.key("image", &D::image, "Picture: the name of a shipped picture (lizard, letter), or a PNG file.")
      .only_with("data.task", {"picture"});
  task.choice("start", &GridTask::start, kGridStarts,
              "State before the first step: random bits, one cell of ones in the centre, zeros.");
  task.key("damage", &GridTask::damage,
           "Share of the training samples in which a block of cells is dead and does not count.")
      .at_least(0)
      .at_most(1);
  data.key("samples", &D::samples, "Samples drawn anew for each epoch.").at_least(1);
  data.key("test_samples", &D::test_samples, "Samples for the final test, never trained on when starts are random.")
      .at_least(1);
  data.key("test_steps", &D::test_steps, "Steps of the hard circuit before it is tested; 0: as many as model.steps.")
      .at_least(0)
      .at_most(100000);
}

void bind_automaton_model(const OptionPart<logic::AutomatonOptions>& model) {
  using M = logic::AutomatonOptions;
  model.key("channels", &M::channels, "Bits per cell.").at_least(1).at_most(1024);
  model.key("kernels", &M::kernels, "Perception kernels; each runs on every channel.").at_least(1).at_most(1024);
  model.key("perception", &M::perception, "Gates of the perception layers; the first reads the 3 x 3 patch.")
      .count(1)
      .at_least(1);
  model.key("update", &M::update, "Gates of the update layers; the last is the new state.").count(1).at_least(1);
  model.choice("wires", &M::wires, logic::kWires, "How the gates of a layer choose their two inputs.");
  model.choice("boundary", &M::boundary, circuit::kBoundaries, "What lies beyond the edge of the grid.");
  model.key("steps", &M::steps, "Steps before the state is compared with the target.").at_least(1).at_most(100000);
  model
      .key("gate_noise", &M::gate_noise,
           "Gumbel noise on the logits in training: makes each gate settle on one function; 0: none.")
      .at_least(0)
      .computed();
  model.key("noise_ramp", &M::noise_ramp, "Epochs over which model.gate_noise grows from 0.")
      .at_least(0)
      .at_most(1 << 24)
      .needs("model.gate_noise");
  model.key("fire", &M::fire_probability, "Probability that a cell is updated in a step; below 1: asynchronous.")
      .above(0)
      .at_most(1);
}

void bind_goal(const OptionPart<AutomatonGoalOptions>& goal) {
  using G = AutomatonGoalOptions;
  goal.key("goal_every", &G::every,
           "Epochs between two tests of the hard circuit; training ends when it reaches the goal; 0: never.")
      .at_least(0)
      .effect([](const ConfigValues& values) {
        const std::int64_t epochs = std::get<std::int64_t>(values("epochs"));
        return std::get<std::int64_t>(values("train.goal_every")) > epochs
                   ? fmt::format("has no effect: the stage ends after {} epochs, before the first test", epochs)
                   : "";
      });
  goal.key("start_over", &G::start_over,
           "Epochs after which the first stage starts again with other wires, if the goal is not reached; 0: never.")
      .at_least(0)
      .needs("train.goal_every");
  goal.key("search", &G::search,
           "Circuits near the hard circuit that each test tries in search of one that reaches the goal; 0: none.")
      .at_least(0)
      .at_most(100000000)
      .needs("train.goal_every");
  goal.key("search_last", &G::search_last, "The same for the last test of a start; 0: as many as any other.")
      .at_least(0)
      .at_most(100000000)
      .needs("train.start_over");
}

}  // namespace

void bind_options(const OptionPart<AutomatonOptions>& o) {
  bind_head(o.as<FamilyOptions>(), "Epochs of each stage; every epoch draws data.samples new samples.");
  bind_grid_data(o.part("data", &AutomatonOptions::data));
  bind_automaton_model(o.part("model", &AutomatonOptions::model));
  bind_training(o.part("", &AutomatonOptions::train), needs_validation(""));
  bind_goal(o.part("train", &AutomatonOptions::goal));
  o.stage("steps", "model.steps", "Steps in this stage; unset: model.steps.");
  o.stage("fire", "model.fire", "Probability that a cell is updated in this stage; unset: model.fire.");
}

}  // namespace gradloom::app
