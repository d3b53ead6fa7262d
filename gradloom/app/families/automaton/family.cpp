// Logic automata in the application: pictures to grow, and what their report shows.
#include "gradloom/session/families/automaton/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gradloom/app/families/automaton/automaton.h"
#include "gradloom/app/families/automaton/pictures.h"
#include "gradloom/app/families/circuit_text.h"
#include "gradloom/app/families/entry.h"
#include "gradloom/app/settings.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

Result<PatchTable> load_rule(const AutomatonDataOptions& data, const std::filesystem::path& data_root) {
  constexpr std::size_t kMostBytes = 1 << 20;
  if (data.rule_table) {
    const std::filesystem::path path = data_path(data.root, *data.rule_table, data_root);
    auto text = read_file(path, kMostBytes);
    if (!text) return text.error();
    return parse_patch_table(std::move(*text), path.string());
  }
  const auto rule = parse_life_rule(data.rule);
  if (!rule)
    return Error{ErrorCode::invalid_input,
                 fmt::format("data.rule is '{}'; a rule is B and S with numbers of neighbours from 0 to 8, such as "
                             "B36/S23; any other rule can be given by data.rule_table",
                             data.rule)};
  return patch_table(*rule);
}

// Cells that the start cannot reach are all alike in the end: a picture in which they differ cannot be grown.
Result<void> check_reach(const GridTask& task, std::size_t steps) {
  if (task.start != GridStart::centre) return {};
  const auto away = [](std::size_t at, std::size_t side) { return at > side / 2 ? at - side / 2 : side / 2 - at; };
  const std::size_t cells = task.height * task.width;
  std::size_t farthest = 0;
  std::optional<std::size_t> beyond;
  bool alike = true;
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t distance = std::max(away(i / task.width, task.height), away(i % task.width, task.width));
    farthest = std::max(farthest, distance);
    if (distance <= steps) continue;
    if (!beyond) beyond = i;
    for (std::size_t at = 0; at < task.image.size(); at += cells)
      alike = alike && task.image[at + i] == task.image[at + *beyond];
  }
  if (alike) return {};
  return Error{
      ErrorCode::invalid_input,
      fmt::format("the picture has {} x {} cells; its corners are {} steps away from the cell it grows from, "
                  "but model.steps is {}: too few for the corners to be reached; set model.steps to {} or more",
                  task.height, task.width, farthest, steps, farthest)};
}

}  // namespace

Result<GridTask> load_automaton(const AutomatonOptions& o, const std::filesystem::path& data_root) {
  GridTask task = o.data.task;
  task.channels = o.model.channels;
  if (task.kind == GridTaskKind::life) {
    auto rule = load_rule(o.data, data_root);
    if (!rule) return rule.error();
    task.rule = *rule;
  }
  if (task.kind == GridTaskKind::picture) {
    auto picture = load_picture(o.data.image.text, data_path(o.data.root, o.data.image, data_root));
    if (!picture) return picture.error();
    task.height = picture->height;
    task.width = picture->width;
    task.image = std::move(picture->bits);
    if (auto r = check_reach(task, stage_of(o, stage_count(o) - 1).model.steps); !r) return r.error();
  }
  return task;
}

template <class T>
void describe(const TypedSession<AutomatonFamily<T>>& session, const RunResult& result, Report& report) {
  const AutomatonSubject subject = session.family().subject(session.model(), session.result_arrays());
  describe_automaton(session.exec(), subject, result.found["study"], report);
  report.sections.push_back(
      circuit_table(result.found, {{"gates", "with weights of their own"},
                                   {"active_gates", "that do more than pass one input on"},
                                   {"gate_evaluations", "per cell, with kernels on every channel"},
                                   {"simplified_gates", "per cell, simplified"},
                                   {"depth", "on the longest path, simplified"}}));
}

template <class T>
Result<PredictedTable> predict_new(const TypedSession<AutomatonFamily<T>>& session, const NewData& data) {
  const AutomatonSubject subject = session.family().subject(session.model(), session.result_arrays());
  return run_automaton(session.exec(), subject, data.file);
}

namespace {

std::string automaton_progress(const json& metrics) {
  const json shown = metrics.value("shown", json::object());
  const json hard = shown.value("hard_accuracy", json());
  return hard.is_number() ? fmt::format("hard {}", percent(hard.get<double>())) : "";
}

bool automaton_has_goal(const FamilyOptions& options) {
  return static_cast<const AutomatonOptions&>(options).goal.every > 0;
}

}  // namespace

AppFamily automaton_family() {
  AppFamily entry = make_entry<AutomatonFamily, load_automaton>("automaton");
  entry.headlines = {kHardAccuracy};
  entry.study_rows = automaton_rows;
  entry.load = load_model<AutomatonFamily>;
  entry.reads = NewDataKind::grids;
  entry.predict = predict_with<AutomatonFamily>;
  entry.progress = automaton_progress;
  entry.has_goal = automaton_has_goal;
  return entry;
}

}  // namespace gradloom::app
