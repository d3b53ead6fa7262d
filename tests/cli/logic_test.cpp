// Logic automata and gate classifiers from the command line.
#include "gradloom/app/report/report.h"
#include "gradloom/data/image.h"
#include "gradloom/io/file.h"
#include "gradloom/io/run_log.h"
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

const Words kSmallLife = {"--set", "model.update=[16,8,4,2,1]", "--set", "model.kernels=8", "--set", "epochs=20"};

class Logic : public ProgramTest {};

TEST_F(Logic, TrainingLeavesACircuitThatIsExportedWithAProof) {
  const auto r = json_of(Words{"train", "game-of-life-small", "--out", "run"} + kSmallLife);
  for (const char* key : {"accuracy", "hard_accuracy", "hard_loss", "loss"})
    EXPECT_TRUE(r["test"][key].is_number()) << key;
  EXPECT_TRUE(r["success"].is_boolean());
  EXPECT_TRUE(r["circuit"]["active_gates"].is_number());
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "run/report.html"));
  const auto e = json_of({"export", "run", "--format", "c", "--out", "rule.c", "--minimise", "own", "--verify"});
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "rule.c"));
  const auto study = json_of({"eval", "run"})["study"];
  EXPECT_TRUE(study["neighbourhoods"].is_number());
  EXPECT_THAT(run({"eval", "run"}).out, HasSubstr("of 512 right"));
}

TEST_F(Logic, NoCommandOverwritesTheRunThatItReads) {
  json_of(Words{"train", "game-of-life-small", "--out", "run"} + kSmallLife);
  const Words grid = {"--random", "0.5", "--width", "8", "--height", "8"};
  for (const char* file : {"run/recipe.toml", "run/log.jsonl", "run/.lock", "run/checkpoint/last.safetensors"}) {
    const std::string before = bytes_of(scratch_ / file);
    expect_error({"export", "run", "--format", "json", "--out", file}, 2, "invalid_input", {file, "another name"});
    expect_error(Words{"run-circuit", "run", "--out", file} + grid, 2, "invalid_input", {file, "another name"});
    expect_error({"eval", "run", "--predictions", file}, 2, "invalid_input", {file, "another name"});
    EXPECT_EQ(bytes_of(scratch_ / file), before);
  }
  // The test bench has a name of its own.
  std::filesystem::copy_file(scratch_ / "run/circuit.json", scratch_ / "rule_test.v");
  expect_error({"export", "rule_test.v", "--format", "verilog", "--out", "rule.v"}, 2, "invalid_input",
               {"rule_test.v", "another name"});
}

TEST_F(Logic, ARunThatReachesItsGoalEndsEarlyAndIsASuccess) {
  // With the target that every cell has already, the first look is the last.
  Image white(3, 2, {255, 255, 255});
  ASSERT_TRUE(write_file_atomic(scratch_ / "white.png", encode_png(white)));
  const Words words = {"train", "picture",           "--set", "data.image=white.png",     "--set", "data.start=zeros",
                       "--set", "model.channels=4",  "--set", "model.update=[20,12,8,4]", "--set", "epochs=500",
                       "--set", "train.goal_every=5"};
  const auto r = json_of(words + Words{"--out", "run"});
  EXPECT_EQ(r["success"], true);
  EXPECT_EQ(r["epochs"], 5);
  EXPECT_EQ(r["test"]["hard_loss"], 0.0);
  EXPECT_THAT(run(words + Words{"--out", "people"}).out, HasSubstr("Done, goal reached (5 epochs"));
}

TEST_F(Logic, ARunThatMissesItsGoalStartsOver) {
  const Words words = Words{"train", "checkerboard-small", "--set", "epochs=5",          "--set", "data.height=8",
                            "--set", "data.width=8",       "--set", "model.steps=3",     "--set", "train.goal_every=1",
                            "--set", "train.search=0",     "--set", "train.start_over=2"};
  json_of(words + Words{"--out", "run"});
  json_of(words + Words{"--out", "once", "--set", "train.start_over=0"});
  std::vector<double> losses[2];
  std::vector<int> starts;
  for (int n = 0; n < 2; ++n)
    for (const auto& line : read_run_log(scratch_ / (n == 0 ? "run/log.jsonl" : "once/log.jsonl")).or_throw().lines) {
      if (line["event"] == "epoch") losses[n].push_back(line["loss"]);
      if (line["event"] == "start_over") starts.push_back(line["epoch"]);
    }
  EXPECT_EQ(starts, (std::vector<int>{2, 4}));
  ASSERT_EQ(losses[0].size(), 5u);
  ASSERT_EQ(losses[1].size(), 5u);
  EXPECT_EQ(losses[0][1], losses[1][1]);
  EXPECT_NE(losses[0][2], losses[1][2]);
  EXPECT_THAT(bytes_of(scratch_ / "run/report.html"), HasSubstr("new start"));
  // What early stopping has counted and kept belongs to one start.
  const auto patient = json_of(words + Words{"--out", "patient", "--set", "train.patience=2", "--set", "epochs=6"});
  EXPECT_EQ(patient["epochs"], 6);
  EXPECT_EQ(json_of({"eval", "patient"})["test"], patient["test"]);
  for (const char* look : {"train.goal_every=0", "train.goal_every=3"})
    expect_error(words + Words{"--set", look, "--out", "never"}, 2, "invalid_input",
                 {"train.start_over", "train.goal_every"});
}

TEST_F(Logic, TheLastTestOfAStartSearchesLongerForARightCircuit) {
  const Words words = {"train", "game-of-life-small",    "--seed", "1",
                       "--set", "epochs=1500",           "--set",  "train.goal_every=1500",
                       "--set", "train.start_over=1500", "--set",  "train.search=0"};
  EXPECT_EQ(json_of(words + Words{"--out", "short"})["success"], false);
  EXPECT_EQ(json_of(words + Words{"--set", "train.search_last=200000", "--out", "long"})["success"], true);
}

TEST_F(Logic, TheHeadlineOfTheReportIsWhatTheHardCircuitGetsRight) {
  const Ended ended = run(Words{"train", "game-of-life-small", "--out", "run"} + kSmallLife);
  EXPECT_THAT(ended.out, HasSubstr("Done, goal not reached (20 epochs"));
  EXPECT_THAT(ended.out, HasSubstr("hard accuracy "));
  EXPECT_THAT(ended.out, HasSubstr("soft accuracy "));
  const double right = 100 * json_of({"eval", "run"})["test"]["hard_accuracy"].get<double>();
  EXPECT_THAT(bytes_of(scratch_ / "run/report.html"),
              HasSubstr("<dl class=\"figures\">\n<div><dt>test accuracy, hard circuit</dt><dd>" +
                        app::Value(right).text() + " <span>%</span>"));
}

TEST_F(Logic, SeedsThatMissTheirGoalLowerTheRateButDoNotFail) {
  const auto r = json_of(Words{"train", "game-of-life-small", "--seeds", "2", "--out", "all"} + kSmallLife);
  EXPECT_EQ(r["failed"], 0);
  EXPECT_EQ(r["success_rate"], 0.0);
  EXPECT_LE(r["worst"]["hard_accuracy"], r["median"]["hard_accuracy"]);
}

TEST_F(Logic, ThreadsAndTheReferenceGiveTheSameWeights) {
  const Words words = Words{"train", "checkerboard-small", "--set", "epochs=5",      "--set", "data.height=9",
                            "--set", "data.width=8",       "--set", "model.steps=4", "--set", "data.damage=0.5"};
  json_of(words + Words{"--out", "one", "--threads", "1"});
  json_of(words + Words{"--out", "three", "--threads", "3"});
  json_of(words + Words{"--out", "plain", "--exec", "reference"});
  EXPECT_EQ(checkpoint("one"), checkpoint("three"));
  EXPECT_EQ(checkpoint("one"), checkpoint("plain"));
  EXPECT_EQ(log("one"), log("three"));
}

TEST_F(Logic, CheckProvesAutomatonAndClassifier) {
  std::string table;
  for (int i = 0; i < 40; ++i)
    table += std::to_string(i % 3) + "," + std::to_string(i % 5) + "," + std::to_string(i % 2) + "\n";
  write("table.csv", table);
  for (const Words& words : {Words{"check", "checkerboard-small"},
                             Words{"check", "logic-classify", "--set", "data.path=table.csv", "--set", "data.header=no",
                                   "--set", "data.test_path=", "--set", "data.target=-1", "--set", "data.drop=[]",
                                   "--set", "data.categorical=['0','1']"}}) {
    const auto r = json_of(words);
    EXPECT_EQ(r["passed"], true) << r;
    EXPECT_EQ(r["threads_equal"], true);
    EXPECT_EQ(r["targets_equal"], true);
    EXPECT_EQ(r["reference_equal"], true);
    EXPECT_GT(r["checked"], 100);
  }
}

TEST_F(Logic, TheCheckerboardTrainsAndTellsTheTimeOfItsPhases) {
  const auto r = json_of({"train", "checkerboard", "--set", "epochs=50", "--profile", "--out", "run"});
  EXPECT_EQ(r["epochs"], 50);
  EXPECT_LT(r["loss"].get<double>(), 2 * 256.0);  // every cell wrong
  for (const char* phase : {"forward", "backward", "optimizer"})
    EXPECT_GT(r["phases"].value(phase, 0.0), 0.0) << r["phases"];
}

TEST_F(Logic, BenchChecksAndMeasures) {
  const auto r = json_of({"bench", "logic", "--recipe", "checkerboard-small", "--threads", "1", "--seconds", "0.05",
                          "--set", "data.height=4", "--set", "data.width=4", "--set", "model.steps=2"});
  for (const char* key : {"update_ms", "ns_per_gate_cell", "gflops", "peak_gflops", "sequential_update_ms",
                          "tape_bytes", "scratch_bytes_per_thread", "parallel_tasks", "speedup_threads"})
    EXPECT_GT(r[key], 0) << key;
  EXPECT_GE(r["serial_fraction"], 0);
  EXPECT_LE(r["serial_fraction"], 1);
  EXPECT_LE(r["scratch_bytes_per_thread"], 4 << 20);
}

TEST_F(Logic, MistakesAreNamed) {
  const std::string invalid = "invalid_input";
  expect_error({"train", "checkerboard", "--set", "model.update=[100,8]"}, 2, invalid, {"unique"});
  expect_error({"train", "checkerboard", "--set", "model.channels=4"}, 2, invalid, {"update"});
  write("text.png", "this is no picture");
  expect_error({"train", "picture", "--set", "data.image=text.png"}, 2, invalid, {"not a PNG", "text.png"});
  ASSERT_TRUE(write_file_atomic(scratch_ / "wide.png", encode_png(Image(65, 3, {0, 0, 0}))));
  expect_error({"train", "picture", "--set", "data.image=wide.png"}, 2, invalid, {"65 x 3"});
  ASSERT_TRUE(write_file_atomic(scratch_ / "red.png", encode_png(Image(3, 3, {255, 0, 0}))));
  expect_error(
      {"train", "picture", "--set", "data.image=red.png", "--set", "model.channels=2", "--set", "model.update=[8,4,2]"},
      2, invalid, {"3 channels"});
  expect_error({"train", "game-of-life", "--set", "model.kernel=3"}, 2, invalid, {"model.kernels"});
  expect_error({"bench", "logic", "--recipe", "kan-hello"}, 2, invalid, {"automaton"});
}

}  // namespace
}  // namespace gradloom::test
