// What is said about a hard automaton, and the pictures it may grow.
#include "gradloom/app/families/automaton/automaton.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "gradloom/app/circuit/shipped.h"
#include "gradloom/app/families/automaton/pictures.h"
#include "gradloom/base/error.h"
#include "gradloom/circuit/json.h"
#include "gradloom/data/image.h"
#include "gradloom/io/file.h"
#include "gradloom/session/families/automaton/study.h"
#include "gradloom/session/families/automaton/trials.h"
#include "tests/support/scratch.h"

namespace gradloom::app {
namespace {

using circuit::Grid;
using circuit::Op;
using testing::HasSubstr;

GridTask board(std::size_t height, std::size_t width) {
  return {
      .kind = GridTaskKind::checkerboard, .height = height, .width = width, .channels = 1, .square = 2, .image = {}};
}

Grid painted(const GridTask& task, std::size_t dy, std::size_t dx) {
  Grid grid(1, task.height, task.width);
  for (std::size_t y = 0; y < task.height; ++y)
    for (std::size_t x = 0; x < task.width; ++x)
      grid.set(0, y, x, (((y + dy) / task.square + (x + dx) / task.square) & 1u) != 0);
  return grid;
}

TEST(PhaseAccuracy, TellsTheSameTheSwappedAndTheShiftedBoard) {
  const GridTask task = board(8, 8);
  const auto target = grid_target(task, std::vector<std::uint8_t>(64));
  const PhaseAccuracy same = phase_accuracy(task, target, painted(task, 0, 0));
  EXPECT_EQ(same.same, 1.0);
  EXPECT_EQ(same.swapped, 0.0);
  const PhaseAccuracy swapped = phase_accuracy(task, target, painted(task, 2, 0));
  EXPECT_EQ(swapped.swapped, 1.0);
  EXPECT_EQ(swapped.best(), 1.0);
  const PhaseAccuracy shifted = phase_accuracy(task, target, painted(task, 1, 0));
  EXPECT_EQ(shifted.same, 0.5);
  EXPECT_EQ(shifted_accuracy(task, painted(task, 1, 0)), 1.0);
}

TEST(ShiftedAccuracy, IsTheBestOfAllShiftsCountedCellByCell) {
  for (const std::size_t square : {1u, 2u, 3u}) {
    GridTask task = board(7, 11);
    task.square = square;
    circuit::Grid grid(1, 7, 11);
    circuit::fill_random(grid, 0.4, square);
    std::size_t best = 0;
    for (std::size_t dy = 0; dy < 2 * square; ++dy)
      for (std::size_t dx = 0; dx < 2 * square; ++dx) {
        std::size_t right = 0;
        for (std::size_t y = 0; y < 7; ++y)
          for (std::size_t x = 0; x < 11; ++x)
            right += grid.get(0, y, x) == ((((y + dy) / square + (x + dx) / square) & 1u) != 0);
        best = std::max(best, right);
      }
    EXPECT_EQ(shifted_accuracy(task, grid), static_cast<double>(best) / 77) << square;
  }
}

TEST(AutomatonStudy, ARuleThatKeepsItsStateIsNotTheGameOfLife) {
  AutomatonSubject keeps;
  keeps.rule = {1, circuit::Boundary::periodic, {9, {{Op::a, 4, 4}}, {9}}};
  keeps.task = {.kind = GridTaskKind::life, .height = 3, .width = 3, .channels = 1, .image = {}};
  keeps.steps = 1;
  const Exec ex({.threads = 1});
  const nlohmann::json study = study_automaton(ex, keeps);
  // Right where nothing changes: dead cells without three neighbours, living ones with two or three.
  EXPECT_EQ(study["neighbourhoods"], 256 - 56 + 28 + 56);
  for (const auto& size : study["sizes"]) EXPECT_LT(size["accuracy"], 1.0);
}

// A wide grid stays wide, and what would take longer than training is left out.
TEST(AutomatonStudy, LargerGridsKeepTheirShapeAndABound) {
  using Sizes = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(studied_sizes(4, 12, 8), (Sizes{{4, 12}, {5, 13}, {8, 24}, {9, 25}, {16, 48}, {17, 49}}));
  EXPECT_EQ(studied_sizes(6, 900, 65), (Sizes{{6, 900}, {7, 901}, {12, 1800}, {13, 1801}}));
  EXPECT_EQ(studied_sizes(1024, 1024, 8).size(), 2u);
}

TEST(AutomatonStudy, ABoardThatIsPaintedByNobodyDoesNotHeal) {
  AutomatonSubject keeps;
  keeps.rule = {1, circuit::Boundary::zero, {9, {{Op::a, 4, 4}}, {9}}};
  keeps.task = board(8, 8);
  const Exec ex({.threads = 1});
  const nlohmann::json study = study_automaton(ex, keeps);
  EXPECT_TRUE(study["damage"]["repaired"]["healed_after"].is_null());
  EXPECT_EQ(study["endurance"]["healed"], 0);
  Report report;
  describe_automaton(ex, keeps, study, report);
  EXPECT_THAT(report_html(report), HasSubstr("data:image/png;base64,"));
}

// One cell, black; the rule keeps it, or turns it over in every step.
nlohmann::json stability_of(Op op, std::size_t steps) {
  AutomatonSubject subject;
  subject.rule = {1, circuit::Boundary::zero, {9, {{op, 4, 4}}, {9}}};
  subject.task = {.kind = GridTaskKind::picture, .height = 1, .width = 1, .channels = 1, .image = {1}};
  subject.task.start = GridStart::centre;
  subject.steps = steps;
  return study_automaton(Exec({.threads = 1}), subject)["stability"];
}

TEST(AutomatonStudy, APictureThatDissolvesIsNotStable) {
  const nlohmann::json keeps = stability_of(Op::a, 2), turns = stability_of(Op::not_a, 2);
  EXPECT_EQ(keeps["grown"], 1.0);
  EXPECT_EQ(keeps["accuracy"], 1.0);
  EXPECT_EQ(keeps["kept"], 100);
  EXPECT_EQ(keeps["steps"], 102);
  EXPECT_EQ(turns["grown"], 1.0) << "right when it is judged";
  EXPECT_EQ(turns["accuracy"], 0.0) << "and wrong one step later";
  EXPECT_EQ(turns["kept"], 0);
  EXPECT_EQ(stability_of(Op::a, 50)["steps"], 200);
}

AutomatonSubject shipped(std::string_view name, GridTask task, std::size_t steps) {
  for (const ShippedCircuit& circuit : shipped_circuits())
    if (circuit.name == name) {
      AutomatonSubject subject;
      subject.rule = std::get<circuit::CellRule>(circuit::parse_circuit_json(circuit.json).or_throw());
      subject.task = std::move(task);
      subject.task.channels = subject.rule.channels;
      subject.steps = steps;
      return subject;
    }
  throw Exception(ErrorCode::not_found, "there is no such circuit");
}

std::uint64_t wrong_on_trials(const AutomatonSubject& subject) {
  logic::TrialCompiler compiler;
  const logic::TrialProgram& program = compiler.compile(subject.rule.circuit);
  std::uint64_t wrong = 0;
  for (logic::Trial& trial : make_trials(subject, GridPart::test, 3, 1))
    wrong += logic::TrialRunner(std::move(trial)).wrong(program, ~std::uint64_t{0});
  return wrong;
}

TEST(ShippedCircuits, TheCheckerboardDoesAllThatIsAsked) {
  const AutomatonSubject subject = shipped("checkerboard", board(16, 16), 40);
  EXPECT_EQ(wrong_on_trials(subject), 0u);
  EXPECT_TRUE(holds_on_larger_grids(Exec({.threads = 1}), subject, GridPart::test, 3));
}

TEST(ShippedCircuits, TheGameOfLifeIsExact) {
  const AutomatonSubject subject =
      shipped("game-of-life", {.kind = GridTaskKind::life, .height = 3, .width = 3, .channels = 1, .image = {}}, 1);
  EXPECT_EQ(study_automaton(Exec({.threads = 1}), subject)["neighbourhoods"], 512);
}

TEST(AutomatonTrials, AskMoreThanThePlainBoard) {
  // Painted once, kept for ever: nothing is wrong without damage, and nothing heals.
  AutomatonSubject keeps;
  keeps.rule = {1, circuit::Boundary::zero, {9, {{Op::a, 4, 4}}, {9}}};
  keeps.task = board(16, 16);
  auto trials = make_trials(keeps, GridPart::validation, 1, 1);
  ASSERT_EQ(trials.size(), 1u);
  logic::Trial& trial = trials[0];
  trial.start = trial.target;
  logic::TrialCompiler compiler;
  const logic::TrialProgram& program = compiler.compile(keeps.rule.circuit);
  const std::uint64_t wrong = logic::TrialRunner(trial).wrong(program, ~std::uint64_t{0});
  // Half of the 16 cells of each dead block should be 1; they are judged after their repair, in 32 starts.
  EXPECT_EQ(wrong, 32u * 8u);
  trial.dead.clear();
  EXPECT_EQ(logic::TrialRunner(trial).wrong(program, ~std::uint64_t{0}), 0u);
}

TEST(AutomatonTrials, OfALargeBoardAreSmallAndOfTheSameParity) {
  AutomatonSubject subject;
  subject.rule = {1, circuit::Boundary::zero, {9, {{Op::a, 4, 4}}, {9}}};
  subject.task = board(1023, 40);
  const auto trials = make_trials(subject, GridPart::train, 1, 1);
  EXPECT_EQ(trials[0].height, 67u);
  EXPECT_EQ(trials[0].width, 40u);
}

TEST(AutomatonTrials, DrawOtherStartsInEveryPartAndEpoch) {
  AutomatonSubject subject;
  subject.rule = {1, circuit::Boundary::zero, {9, {{Op::a, 4, 4}}, {9}}};
  subject.task = board(16, 16);
  const auto first = make_trials(subject, GridPart::train, 1, 1)[0].start;
  EXPECT_EQ(first, make_trials(subject, GridPart::train, 1, 1)[0].start);
  EXPECT_NE(first, make_trials(subject, GridPart::train, 2, 1)[0].start);
  EXPECT_NE(first, make_trials(subject, GridPart::validation, 1, 1)[0].start);
  EXPECT_NE(first, make_trials(subject, GridPart::test, 1, 1)[0].start);
}

TEST(Pictures, ShippedOnesHaveTheSizeOfTheirRecipe) {
  const Picture lizard = load_picture("lizard", ".").or_throw(), letter = load_picture("letter", ".").or_throw();
  EXPECT_EQ(lizard.bits.size(), 20u * 20u);
  EXPECT_EQ(letter.bits.size(), 3u * 16u * 16u);
}

TEST(Pictures, GreyIsCutAtHalfAndColoursBecomeThreePlanes) {
  const test::Scratch folder;
  Image grey(2, 1, {200, 200, 200}), colour(1, 1, {255, 0, 130});
  grey.set(1, 0, {90, 90, 90});
  ASSERT_TRUE(write_file_atomic(folder / "grey.png", encode_png(grey)));
  ASSERT_TRUE(write_file_atomic(folder / "colour.png", encode_png(colour)));
  EXPECT_EQ(load_picture("grey.png", folder / "grey.png").or_throw().bits, (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(load_picture("colour.png", folder / "colour.png").or_throw().bits, (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST(Pictures, WrongNamesAreToldTheNearest) {
  const auto missing = load_picture("lizzard", ".");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("lizard"));
  EXPECT_EQ(load_picture("none.png", "none.png").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gradloom::app
