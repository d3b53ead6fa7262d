// What a report shows of an automaton, and what an evaluation says of it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gradloom/app/families/automaton/automaton.h"
#include "gradloom/app/families/circuit_text.h"
#include "gradloom/circuit/run.h"
#include "gradloom/data/image.h"
#include "gradloom/session/families/automaton/family.h"

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

}  // namespace

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

}  // namespace gradloom::app
