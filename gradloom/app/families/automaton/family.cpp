// Logic automata in the application: pictures to grow, and what their report shows.
#include "gradloom/session/families/automaton/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "gradloom/app/families/automaton/automaton.h"
#include "gradloom/app/families/automaton/pictures.h"
#include "gradloom/app/families/circuit_text.h"
#include "gradloom/app/families/entry.h"
#include "gradloom/app/settings.h"
#include "gradloom/circuit/run.h"
#include "gradloom/data/image.h"
#include "gradloom/data/npy.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

using circuit::Grid;
using nlohmann::json;
using Colour = std::array<std::uint8_t, 3>;

constexpr Colour kPaper{255, 255, 255}, kInk{38, 70, 120}, kGap{200, 205, 212};
constexpr std::size_t kStripStates = 8;
constexpr std::size_t kFrames = 96;  // of an animation, at most

Colour cell_colour(const GridTask& task, const Grid& grid, std::size_t y, std::size_t x) {
  if (target_channels(task) == 1) return grid.get(0, y, x) ? kInk : kPaper;
  Colour colour{};
  for (std::uint32_t c = 0; c < 3; ++c) colour[c] = grid.get(c, y, x) ? 255 : 0;
  return colour;
}

void draw_board(Image& image, const GridTask& task, const Grid& grid, std::size_t left, std::size_t scale) {
  for (std::size_t y = 0; y < grid.height() * scale; ++y)
    for (std::size_t x = 0; x < grid.width() * scale; ++x)
      image.set(left + x, y, cell_colour(task, grid, y / scale, x / scale));
}

Grid first_state(const AutomatonSubject& subject) {
  const GridDataset<float> one(subject.task, GridPart::test, subject.seed + 1, 1);
  return start_grid(subject.task, one.all().x.row(0));
}

// States at steps 0, 1, 2, ... spread so that the last is the trained number of steps.
CellPicture strip(const Exec& ex, const AutomatonSubject& subject, std::size_t steps) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < kStripStates; ++i) {
    const std::size_t s = i * steps / (kStripStates - 1);
    if (at.empty() || s > at.back()) at.push_back(s);
  }
  const std::size_t h = subject.task.height, w = subject.task.width;
  const std::size_t scale = std::clamp<std::size_t>(1200 / (w * at.size()), 1, 12), gap = scale;
  Image image(at.size() * (w * scale + gap) - gap, h * scale, kGap);
  circuit::Runner runner(ex, subject.rule, first_state(subject), {.fire = subject.fire, .seed = subject.seed});
  std::string names;
  for (std::size_t i = 0; i < at.size(); ++i) {
    runner.step(at[i] - runner.steps());
    draw_board(image, subject.task, runner.grid(), i * (w * scale + gap), scale);
    names += fmt::format("{}{}", i == 0 ? "" : ", ", at[i]);
  }
  CellPicture picture;
  picture.title = "The hard circuit at work";
  picture.note = fmt::format("From the start to step {}, cells of the first {}: steps {}.", steps,
                             target_channels(subject.task) == 1 ? "channel" : "three channels", names);
  picture.description = fmt::format("The grid after {} steps", names);
  picture.width = static_cast<double>(image.width);
  picture.png = encode_png(image);
  return picture;
}

// A larger grid from a random start; a part of it is destroyed on the way.
CellPicture animation(const Exec& ex, const AutomatonSubject& subject) {
  AutomatonSubject large = subject;
  const bool scales = subject.task.kind != GridTaskKind::picture;
  if (scales) large.task.height = large.task.width = 64;
  const std::size_t trained = std::max(subject.task.height, subject.task.width);
  const std::size_t steps =
      scales ? std::min<std::size_t>(kFrames / 2, subject.steps * (64 + trained - 1) / trained) : subject.steps;
  const std::size_t side = std::max(large.task.height, large.task.width);
  const std::size_t scale = std::max<std::size_t>(1, 384 / side);
  std::vector<Image> frames;
  const auto take = [&](const Grid& grid) {
    Image frame(grid.width() * scale, grid.height() * scale, kPaper);
    draw_board(frame, large.task, grid, 0, scale);
    frames.push_back(std::move(frame));
  };
  circuit::Runner runner(ex, large.rule, first_state(large), {.fire = subject.fire, .seed = subject.seed});
  const bool damage = subject.task.kind == GridTaskKind::checkerboard;
  take(runner.grid());
  for (std::size_t s = 0; s < (damage ? 2 : 1) * steps && frames.size() < kFrames; ++s) {
    if (damage && s == steps) {
      Grid grid = runner.grid().copy();
      for (std::uint32_t c = 0; c < grid.channels(); ++c)
        for (std::size_t y = side / 4; y < side / 2; ++y)
          for (std::size_t x = side / 4; x < side / 2; ++x) grid.set(c, y, x, false);
      runner.set_grid(std::move(grid));
      take(runner.grid());
    }
    runner.step();
    take(runner.grid());
  }
  for (int i = 0; i < 8; ++i) take(runner.grid());  // rests before it starts again
  CellPicture picture;
  picture.title = "In motion";
  picture.note = fmt::format("{} x {} cells, one frame a step{}.", large.task.height, large.task.width,
                             damage ? fmt::format("; after step {} a quarter of the side is set to zero", steps) : "");
  picture.description = "An animation of the grid";
  picture.width = static_cast<double>(frames[0].width);
  picture.png = encode_apng(frames, 90);
  return picture;
}

Series curve(const std::string& name, Role role, const json& values) {
  Series series{name, role, {}};
  for (std::size_t i = 0; i < values.size(); ++i)
    series.points.push_back({static_cast<double>(i + 1), 100 * values[i].get<double>()});
  return series;
}

// What an evaluation says beyond the metrics: a line for each finding.
std::vector<TextRow> automaton_rows(const json& study) {
  std::vector<TextRow> rows;
  if (study.contains("neighbourhoods"))
    rows.emplace_back("neighbourhoods", fmt::format("{} of 512 right", study["neighbourhoods"].get<int>()));
  if (study.contains("sizes")) {
    std::string text;
    for (const auto& s : study["sizes"])
      text += fmt::format("{}{}x{} {}", text.empty() ? "" : ", ", s["height"].get<int>(), s["width"].get<int>(),
                          percent(s["accuracy"].get<double>()));
    rows.emplace_back("grids", text);
    const bool cut = std::any_of(study["sizes"].begin(), study["sizes"].end(), [](const json& s) {
      return s.value("cut", false) && s["accuracy"].get<double>() < 1;
    });
    if (cut)
      rows.emplace_back("", "(less is expected where the sides are not a multiple of the squares: docs/logic.md)");
  }
  if (study.contains("asynchronous"))
    rows.emplace_back("asynchronous", fmt::format("{} with cells updated with probability {}",
                                                  percent(study["asynchronous"]["accuracy"].get<double>()),
                                                  study["asynchronous"]["fire"].get<double>()));
  if (study.contains("damage")) {
    const auto& healed = study["damage"]["repaired"]["healed_after"];
    rows.emplace_back("dead block", fmt::format("{} of the other cells right",
                                                percent(study["damage"]["dead"]["accuracy"].get<double>())));
    rows.emplace_back(
        "after repair",
        fmt::format(
            "{}{}", percent(study["damage"]["repaired"]["accuracy"].get<double>()),
            healed.is_null() ? "" : fmt::format(", healed after {}", counted(healed.get<std::uint64_t>(), "step"))));
  }
  if (study.contains("endurance")) {
    const auto& e = study["endurance"];
    rows.emplace_back("endurance", fmt::format("healed {} of {} in {}", e["healed"].get<int>(),
                                               counted(e["damages"].get<std::uint64_t>(), "damage"),
                                               counted(e["steps"].get<std::uint64_t>(), "step")));
  }
  if (study.contains("stability")) {
    const auto& s = study["stability"];
    rows.emplace_back("picture",
                      fmt::format("{} after {}, at least {} up to step {}", percent(s["grown"].get<double>()),
                                  counted(s["trained_steps"].get<std::uint64_t>(), "step"),
                                  percent(s["accuracy"].get<double>()), s["steps"].get<std::uint64_t>()));
  }
  for (TextRow& row : circuit_rows(study)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

void describe_automaton(const Exec& ex, const AutomatonSubject& subject, const json& study, Report& report) {
  const bool life = subject.task.kind == GridTaskKind::life;
  if (!life) report.sections.push_back(strip(ex, subject, subject.steps));
  report.sections.push_back(animation(ex, subject));
  if (study.contains("damage")) {
    Chart chart{
        "Damage and healing",
        "A block of a quarter of the side is dead (held at zero), then it is updated again. While it is dead, only "
        "the other cells count.",
        "step",
        "right cells, %",
        Scale::linear,
        {},
        {}};
    chart.series.push_back(curve("block dead", Role::other, study["damage"]["dead"]["curve"]));
    chart.series.push_back(curve("block repaired", Role::test, study["damage"]["repaired"]["curve"]));
    report.sections.push_back(std::move(chart));
  }
  if (study.contains("stability")) {
    Chart chart{"After the picture is finished",
                "Right cells at each step, beyond those it was trained for.",
                "step",
                "right cells, %",
                Scale::linear,
                {},
                {}};
    chart.series.push_back(curve("accuracy", Role::test, study["stability"]["curve"]));
    chart.marks.push_back({static_cast<double>(subject.steps), "trained"});
    report.sections.push_back(std::move(chart));
  }
  if (study.contains("sizes")) {
    Table sizes{"Other grids", "The worst of the starts.", {"cells", "starts", "steps", "right,\u00a0%"}};
    const bool phases = subject.task.kind == GridTaskKind::checkerboard;
    if (phases)
      sizes.columns.insert(sizes.columns.end(), {"colours as trained,\u00a0%", "swapped,\u00a0%", "shifted,\u00a0%"});
    for (const json& s : study["sizes"]) {
      std::vector<Value> row{fmt::format("{}\u00a0x\u00a0{}", s["height"].get<int>(), s["width"].get<int>()),
                             s["starts"].get<std::size_t>(), s["steps"].get<std::size_t>(),
                             100 * s["accuracy"].get<double>()};
      if (phases)
        for (const char* key : {"same", "swapped", "shifted"}) row.push_back(100 * s[key].get<double>());
      sizes.rows.push_back(std::move(row));
    }
    report.sections.push_back(std::move(sizes));
  }
}

namespace {

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

namespace {

// Starts of an array of bits: (C, H, W), or (N, C, H, W).
struct Starts {
  std::size_t count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> bits;
};

Result<Starts> read_starts(const std::filesystem::path& file, std::size_t channels) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30, kMostCells = std::size_t{1} << 24;
  if (file.extension() != ".npy")
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: starts of an automaton are bits in a .npy file, of shape ({}, height, width) or "
                             "(starts, {}, height, width)",
                             file.string(), channels, channels)};
  auto array = read_npy(file, kMostBytes);
  if (!array) return array.error();
  const std::vector<std::size_t>& shape = array->shape;
  const std::size_t d = shape.size() == 4 ? 1 : 0;
  if ((shape.size() != 3 && shape.size() != 4) || shape[d] != channels || array->size() == 0)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: the shape is ({}); starts are ({}, height, width) or (starts, {}, height, width)",
                             file.string(), fmt::join(shape, ", "), channels, channels)};
  Starts starts{d == 0 ? 1 : shape[0], shape[d + 1], shape[d + 2], {}};
  if (starts.count * starts.height * starts.width > kMostCells)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: there are more than {} cells; `gradloom run-circuit` runs large grids", file.string(),
                             kMostCells)};
  for (const double v : array->to_doubles()) {
    if (v != 0.0 && v != 1.0)
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: a cell has the value {}; it must be 0 or 1", file.string(), v)};
    starts.bits.push_back(v == 1.0);
  }
  return starts;
}

// Names and truths of all cells, and what the hard circuit makes of them.
PredictedTable run_starts(const Exec& ex, const AutomatonSubject& subject, const Starts& starts) {
  GridTask task = subject.task;
  const bool judged =
      task.kind != GridTaskKind::picture || (task.height == starts.height && task.width == starts.width);
  task.height = starts.height, task.width = starts.width;
  const std::size_t cells = task.height * task.width, channels = task.channels;
  const std::size_t targets = judged ? target_channels(task) : 0;
  PredictedTable table;
  table.rows = starts.count * cells;
  table.shape = {starts.count, channels, task.height, task.width};
  table.precision = Precision::float32;
  std::vector<std::string> row, at_y, at_x;
  std::vector<std::vector<std::string>> truth(targets), found(channels);
  double right = 0.0;
  for (std::size_t s = 0; s < starts.count; ++s) {
    const std::span<const std::uint8_t> start(starts.bits.data() + s * channels * cells, channels * cells);
    std::vector<float> x(start.begin(), start.end());
    circuit::Runner runner(ex, subject.rule, start_grid(task, x.data()),
                           {.fire = subject.fire, .seed = subject.seed + s});
    runner.step(subject.steps);
    const Grid& end = runner.grid();
    const std::vector<std::uint8_t> target = judged ? grid_target(task, start) : std::vector<std::uint8_t>();
    if (judged) right += phase_accuracy(task, target, end).best();
    for (std::size_t i = 0; i < cells; ++i) {
      row.push_back(fmt::format("{}", s + 1));
      at_y.push_back(fmt::format("{}", i / task.width));
      at_x.push_back(fmt::format("{}", i % task.width));
      for (std::size_t c = 0; c < targets; ++c) truth[c].emplace_back(target[c * cells + i] ? "1" : "0");
      for (std::uint32_t c = 0; c < channels; ++c)
        found[c].emplace_back(end.get(c, i / task.width, i % task.width) ? "1" : "0");
    }
    for (std::uint32_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < cells; ++i) table.values.push_back(end.get(c, i / task.width, i % task.width));
  }
  table.add("row", std::move(row));
  table.add("y", std::move(at_y));
  table.add("x", std::move(at_x));
  for (std::size_t c = 0; c < targets; ++c) table.add(fmt::format("c{}", c + 1), std::move(truth[c]));
  for (std::size_t c = 0; c < channels; ++c) table.add(fmt::format("c{}_predicted", c + 1), std::move(found[c]));
  if (judged)  // there is no loss: that is of soft states
    table.metrics = PartMetrics{std::numeric_limits<double>::quiet_NaN(),
                                {{"hard_accuracy", right / static_cast<double>(starts.count)}}};
  return table;
}

}  // namespace

template <class T>
Result<PredictedTable> predict_new(const TypedSession<AutomatonFamily<T>>& session, const NewData& data) {
  if (!data.distances.empty())
    return Error{ErrorCode::invalid_input,
                 "distances are for models of family \"graph-pairs\"; this model reads grids"};
  const AutomatonSubject subject = session.family().subject(session.model(), session.result_arrays());
  auto starts = read_starts(data.file, subject.task.channels);
  if (!starts) return starts.error();
  return run_starts(session.exec(), subject, *starts);
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
  entry.predict = predict_with<AutomatonFamily>;
  entry.progress = automaton_progress;
  entry.has_goal = automaton_has_goal;
  return entry;
}

}  // namespace gradloom::app
