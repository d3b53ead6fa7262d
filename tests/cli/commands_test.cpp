// Every command does what it says, for people and for programs.
#include <fmt/format.h>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Commands = ProgramTest;

TEST_F(Commands, TrainTellsTheResultAndWhereItIs) {
  const Ended ended = run(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const char* word : {"Done", "test", "rmse", "parameters", "run/report.html", "gradloom eval run"})
    EXPECT_THAT(ended.out, HasSubstr(word));
  EXPECT_THAT(ended.err, HasSubstr("epoch 2/2"));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("\x1b"))) << "no control sequences outside of a terminal";
  for (const char* file : {"recipe.toml", "log.jsonl", "report.html", "checkpoint/last.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(scratch_ / "run" / file)) << file;
}

TEST_F(Commands, TrainPrintsOneJsonObject) {
  const auto r = json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  for (const char* key : {"run", "epochs", "seconds", "loss", "validation", "test"})
    EXPECT_TRUE(r.contains(key)) << key;
  EXPECT_EQ(r["run"], "run");
  EXPECT_EQ(r["epochs"], 4) << "two stages of two epochs";
  EXPECT_TRUE(r["validation"].is_null());
  EXPECT_GT(r["test"]["rmse"].get<double>(), 0.0);
}

TEST_F(Commands, QuietSaysNothingButTheResult) {
  const Ended people = run(Words{"train", "kan-hello", "--out", "a", "--quiet"} + kTiny);
  EXPECT_EQ(people.err, "");
  EXPECT_THAT(people.out, HasSubstr("rmse"));
  const Ended machine = run(Words{"train", "kan-hello", "--out", "b", "--quiet", "--json"} + kTiny);
  EXPECT_EQ(machine.err, "");
  EXPECT_EQ(parsed(machine)["run"], "b");
}

TEST_F(Commands, TrainChoosesAFolderThatIsFree) {
  EXPECT_EQ(json_of(Words{"train", "kan-hello", "--seed", "3"} + kTiny)["run"], "runs/kan-hello-3");
  EXPECT_EQ(json_of(Words{"train", "kan-hello", "--seed", "3"} + kTiny)["run"], "runs/kan-hello-3-2");
  EXPECT_EQ(json_of(Words{"train", "kan-hello", "--set", "seed=3"} + kTiny)["run"], "runs/kan-hello-3-3");
  EXPECT_EQ(checkpoint("runs/kan-hello-3"), checkpoint("runs/kan-hello-3-3")) << "--seed is --set seed";
}

TEST_F(Commands, TrainTakesAFileAndNamesTheRunAfterIt) {
  write("mine.toml", "epochs = 1\n[data]\nformula = \"x1\"\nsamples = 80\n");
  const auto r = json_of({"train", "mine.toml"});
  EXPECT_EQ(r["run"], "runs/mine-0");
  EXPECT_TRUE(r["validation"].is_object());
}

TEST_F(Commands, ReportsAreTitledByTheRecipe) {
  json_of(Words{"train", "kan-hello", "--out", "a"} + kTiny);
  json_of(Words{"train", "kan-hello", "--out", "kan-hello-9/"} + kTiny);
  json_of(Words{"train", "kan-hello", "--out", "b", "--set", "name=mine"} + kTiny);
  EXPECT_THAT(bytes_of(scratch_ / "a/report.html"), HasSubstr("<title>kan-hello: a ·"));
  EXPECT_THAT(bytes_of(scratch_ / "kan-hello-9/report.html"), HasSubstr("<title>kan-hello-9 ·"));
  EXPECT_THAT(bytes_of(scratch_ / "b/report.html"), HasSubstr("<title>mine: b ·"));
}

TEST_F(Commands, AShownRecipeHasNoNameButItsOwn) {
  const std::string shown = run({"recipes", "show", "kan-hello"}).out;
  EXPECT_THAT(shown, Not(HasSubstr("name = \"")));
  write("mine.toml", shown);
  json_of(Words{"train", "mine.toml", "--out", "a"} + kTiny);
  EXPECT_THAT(bytes_of(scratch_ / "a/report.html"), HasSubstr("<title>mine: a ·"));
  write("named.toml", "name = \"ours\"\n[data]\nformula = \"x1\"\n");
  EXPECT_THAT(run({"recipes", "show", "named.toml"}).out, HasSubstr("name = \"ours\""));
}

TEST_F(Commands, ARecipeWhoseFileHasNoReadableNameCanBeResumed) {
  for (const std::string name : {"r\xe9"
                                 "c.toml",
                                 "a\nb.toml", "it's.toml"}) {
    write(name, "epochs = 1\n[data]\nformula = \"x1\"\nsamples = 80\n");
    EXPECT_EQ(run({"train", name, "--out", "run", "--quiet"}).code, 0) << name;
    EXPECT_EQ(run({"resume", "run", "--quiet"}).code, 0) << name;
    EXPECT_THAT(bytes_of(scratch_ / "run/report.html"), HasSubstr("<title>run ·"));
    std::filesystem::remove_all(scratch_ / "run");
  }
  expect_error(Words{"train", "kan-hello", "--out", "run", "--set", "name=\xe9"} + kTiny, 2, "invalid_input",
               {"not UTF-8"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
}

TEST_F(Commands, HelpShowsDefaults) {
  const std::string train = run({"train", "--help"}).out;
  for (const char* text : {"[fast]", "[cpu]", "--set KEY=VALUE "}) EXPECT_THAT(train, HasSubstr(text));
  EXPECT_THAT(train, Not(HasSubstr("[]")));
  EXPECT_THAT(run({"bench", "kan", "--help"}).out, HasSubstr("[21,64,64,24]"));
}

TEST_F(Commands, EvalPredictsATableWithoutTargets) {
  std::string table = "a,b,y\n", rest = "a,b\n";
  for (int i = 0; i < 40; ++i) {
    const std::string features = std::to_string(i) + "," + std::to_string(i * i % 7);
    table += features + "," + std::to_string(2 * i) + "\n";
    rest += features + "\n";
  }
  write("table.csv", table);
  write("new.csv", rest);
  json_of({"train", "kan-tabular", "--out", "run", "--set", "data.path=table.csv", "--set", "epochs=2", "--set",
           "train.batch=0"});
  const auto known = json_of({"eval", "run", "--data", "table.csv", "--predictions", "known.csv"});
  EXPECT_TRUE(known["data"]["rmse"].is_number());
  const auto unknown = json_of({"eval", "run", "--data", "new.csv", "--predictions", "unknown.csv"});
  EXPECT_TRUE(unknown["data"].is_null());
  EXPECT_EQ(unknown["rows"], 40);
  EXPECT_TRUE(unknown["test"].is_object()) << "the parts of the run are measured as always";
  EXPECT_EQ(std::ranges::count(bytes_of(scratch_ / "unknown.csv"), '\n'), 41);
  EXPECT_EQ(bytes_of(scratch_ / "unknown.csv"), bytes_of(scratch_ / "known.csv"));
  EXPECT_THAT(run({"eval", "run", "--data", "new.csv"}).out, HasSubstr("has no target column"));
  expect_error({"eval", "run", "--data", "new.csv", "--predictions", "new.csv"}, 2, "invalid_input", {"overwritten"});
  expect_error({"eval", "run", "--data", "none.csv"}, 2, "not_found", {"none.csv"});
  json_of({"train", "karate", "--out", "karate", "--set", "epochs=1"});
  expect_error({"eval", "karate", "--data", "new.csv"}, 2, "invalid_input", {"new.csv"});
  // What is wrong with the call is told before the run is looked at.
  for (const char* name : {"last", "previous"}) write("run/checkpoint/" + std::string(name) + ".safetensors", "broken");
  write("narrow.csv", "a\n1\n");
  expect_error({"eval", "run", "--data", "none.csv"}, 2, "not_found", {"none.csv"});
  expect_error({"eval", "run", "--data", "narrow.csv"}, 2, "invalid_input", {"no column 'b'"});
  expect_error({"eval", "run", "--predictions", "table.csv"}, 2, "invalid_input", {"overwritten"});
}

TEST_F(Commands, EvalTellsWhichRowsHavePredictions) {
  std::string table = "a,b,y\n";
  for (int i = 0; i < 40; ++i)
    table += std::to_string(i) + "," + std::to_string(i % 7) + "," + std::to_string(i) + "\n";
  write("table.csv", table);
  write("new.csv", "a,b\n1,2\n,3\n4,5\n");
  json_of({"train", "kan-tabular", "--out", "run", "--set", "data.path=table.csv", "--set", "epochs=1", "--set",
           "train.batch=0", "--set", "data.missing=drop"});
  EXPECT_EQ(json_of({"eval", "run", "--data", "new.csv", "--predictions", "out.csv"})["rows"], 2);
  const std::string out = bytes_of(scratch_ / "out.csv");
  EXPECT_THAT(out, StartsWith("row,y\n1,"));
  EXPECT_THAT(out, HasSubstr("\n3,"));
  EXPECT_EQ(std::ranges::count(out, '\n'), 3);
}

TEST_F(Commands, ProfileAddsPhases) {
  const auto r = json_of(Words{"train", "kan-hello", "--out", "run", "--profile"} + kTiny);
  for (const char* phase : {"data", "forward", "loss", "backward", "optimizer"})
    EXPECT_TRUE(r["phases"].contains(phase)) << phase;
  const Ended people = run(Words{"train", "kan-hello", "--out", "again", "--profile"} + kTiny);
  EXPECT_THAT(people.out, HasSubstr("backward"));
  EXPECT_THAT(people.out, HasSubstr("Time by phase (by the clock"));
}

TEST_F(Commands, SeedsAreTrainedOneAfterAnotherAndSummarised) {
  const auto r = json_of(Words{"train", "kan-hello", "--seed", "5", "--seeds", "3", "--out", "all"} + kTiny);
  ASSERT_EQ(r["runs"].size(), 3u);
  std::vector<double> rmse;
  for (const auto& one : r["runs"]) rmse.push_back(one["test"]["rmse"]);
  std::sort(rmse.begin(), rmse.end());
  EXPECT_EQ(r["median"]["rmse"], rmse[1]);
  EXPECT_EQ(r["worst"]["rmse"], rmse[2]);
  EXPECT_LE(r["worst"]["r2"], r["median"]["r2"]);
  EXPECT_EQ(r["failed"], 0);
  EXPECT_EQ(r["success_rate"], 1.0);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "all/seed-7/report.html"));
  json_of(Words{"train", "kan-hello", "--seed", "6", "--out", "one"} + kTiny);
  EXPECT_EQ(checkpoint("one"), checkpoint("all/seed-6"));
}

TEST_F(Commands, SeedsThatDivergeAreCountedAndFailTheSeries) {
  const auto r =
      json_of(Words{"train", "kan-hello", "--seeds", "2", "--out", "all", "--set", "optimizer.kind=sgd", "--set",
                    "optimizer.lr=1e300", "--set", "epochs=9", "--set", "train.batch=10", "--set", "data.samples=50"},
              1);
  EXPECT_EQ(r["failed"], 2);
  EXPECT_EQ(r["success_rate"], 0.0);
  EXPECT_EQ(r["runs"][1]["error"]["code"], "numeric");
}

TEST_F(Commands, ResumeOfAFinishedRunChangesNothing) {
  const auto first = json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  const std::string bytes = checkpoint("run"), lines = log("run");
  const auto again = json_of({"resume", "run", "--threads", "2"});
  for (const char* key : {"run", "epochs", "loss", "validation", "test", "stages"})
    EXPECT_EQ(again[key], first[key]) << key;
  EXPECT_EQ(checkpoint("run"), bytes);
  EXPECT_EQ(log("run"), lines);
}

TEST_F(Commands, EvalAgreesWithTrainAndWritesPredictions) {
  const auto trained = json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  const auto r = json_of({"eval", "run", "--predictions", "p.csv"});
  EXPECT_EQ(r["test"], trained["test"]);
  EXPECT_EQ(r["epochs"], trained["epochs"]);
  const std::string text = bytes_of(scratch_ / "p.csv");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21) << "a line of names and 20 samples";
  EXPECT_THAT(run({"eval", "run"}).out, HasSubstr("rmse"));
}

TEST_F(Commands, CheckPassesOnAShippedRecipe) {
  const Words few = {"--samples", "4", "--max-elements", "50", "--threads", "2", "--set", "data.samples=40"};
  const auto r = json_of(Words{"check", "kan-hello"} + few);
  EXPECT_EQ(r["passed"], true) << r;
  for (const char* key : {"threads_equal", "targets_equal", "reference_equal"}) EXPECT_EQ(r[key], true) << key;
  EXPECT_GT(r["checked"], 0);
  EXPECT_THAT(run(Words{"check", "kan-hello"} + few).out, HasSubstr("kan-hello: passed"));
  // Fine grids bend strongly, and inputs of the range lie on the edges of a grid.
  for (const Words& setting :
       {Words{"--set", "model.grid=100"}, Words{"--set", "model.outside=clamp", "--set", "model.normalise=range"}})
    EXPECT_TRUE(json_of(Words{"check", "kan-hello", "--set", "stage=[]"} + setting)["passed"].get<bool>());
}

TEST_F(Commands, CheckTakesSamplesWithoutWeight) {
  std::string rows = "x,w,y\n";
  for (int i = 0; i < 20; ++i) rows += fmt::format("{},{},{}\n", 0.1 * i, i < 19 ? 0 : 1, i % 3);
  write("weights.csv", rows);
  const auto r =
      json_of({"check", "kan-tabular", "--samples", "1", "--set", "data.path=weights.csv", "--set", "data.weight=w",
               "--set", "data.validation=0", "--set", "data.test=0", "--set", "train.batch=1"});
  EXPECT_EQ(r["passed"], true) << r;
}

TEST_F(Commands, BenchMeasuresWithoutAllocating) {
  const Words small = {"bench",    "kan", "--widths", "4,8,2", "--grid",    "4",
                       "--degree", "2",   "--batch",  "8",     "--seconds", "0.01"};
  const auto r = json_of(small + Words{"--base", "on", "--precision", "float64", "--profile", "--threads", "2"});
  for (const char* key : {"forward_us", "train_step_us", "single_us", "peak_gflops", "speedup", "serial_fraction"})
    EXPECT_TRUE(r[key].is_number()) << key;
  EXPECT_EQ(r["widths"], nlohmann::json({4, 8, 2}));
  EXPECT_EQ(r["precision"], "float64");
  EXPECT_EQ(r["bytes_allocated_per_step"], 0);
  EXPECT_TRUE(r["phases"].is_object());
  EXPECT_FALSE(r.contains("sparsity_cost"));
  const Ended people = run(small + Words{"--sparsity"});
  EXPECT_THAT(people.out, HasSubstr("kan 4-8-2"));
  EXPECT_THAT(people.out, HasSubstr("train step (Adam)"));
  EXPECT_THAT(people.out, HasSubstr("with sparsity"));
  EXPECT_TRUE(json_of(small + Words{"--sparsity", "--threads", "1"})["sparsity_cost"].is_number());
}

TEST_F(Commands, RecipesAreListedAndShown) {
  const auto list = json_of({"recipes"});
  std::vector<std::string> names;
  for (const auto& recipe : list["recipes"]) names.push_back(recipe["name"]);
  EXPECT_THAT(names, testing::Contains("kan-hello"));
  EXPECT_THAT(run({"recipes"}).out, testing::StartsWith("family kan\n"));
  EXPECT_EQ(list["recipes"][0]["family"], "kan");

  const Ended shown = run({"recipes", "show", "kan-hello", "--set", "epochs=7"});
  EXPECT_THAT(shown.out, HasSubstr("epochs = 7"));
  EXPECT_EQ(json_of({"recipes", "show", "kan-hello", "--set", "epochs=7"})["toml"], shown.out);
  write("copy.toml", shown.out);
  EXPECT_EQ(run({"recipes", "show", "copy.toml"}).out, shown.out) << "what is shown is a recipe";
}

TEST_F(Commands, DevicesSaysWhatThereIs) {
  const auto r = json_of({"devices"});
  EXPECT_EQ(r["devices"][0]["name"], "cpu");
  EXPECT_GE(r["devices"][0]["threads"], 1);
  EXPECT_FALSE(r["devices"][0]["simd"].empty());
  for (std::size_t d = 1; d < r["devices"].size(); ++d) {
    EXPECT_EQ(r["gpu_backend"], "vulkan");
    EXPECT_EQ(r["devices"][d]["number"], d - 1);
    EXPECT_TRUE(r["devices"][d]["float32_controls"]["round_to_nearest"].is_boolean());
  }
}

TEST_F(Commands, HelpAndVersion) {
  const Ended help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"train", "resume", "eval", "check", "bench", "recipes", "devices", "Examples"})
    EXPECT_THAT(help.out, HasSubstr(word));
  EXPECT_EQ(run({"help"}).out, help.out);
  EXPECT_EQ(run({"help", "train"}).out, run({"train", "--help"}).out);
  EXPECT_THAT(run({"train", "--help"}).out, HasSubstr("--seeds"));
  EXPECT_THAT(run({"--version"}).out, StartsWith("gradloom "));
}

TEST_F(Commands, DataComesFromTheEnvironmentUnlessTheRecipeNamesARoot) {
  std::filesystem::create_directory(scratch_ / "tables");
  std::string csv = "a,b\n";
  for (int i = 0; i < 60; ++i) csv += std::to_string(i) + "," + std::to_string(2 * i) + "\n";
  write("tables/line.csv", csv);
  const Words words = {"train", "kan-tabular",    "--set", "data.path=line.csv", "--set", "epochs=1",
                       "--set", "train.batch=16", "-q"};
  Launch l = launch(words);
  l.environment["GRADLOOM_DATA"] = "tables";
  EXPECT_EQ(Process(l).wait().code, 0);
  EXPECT_EQ(run(words + Words{"--set", "data.root=tables"}).code, 0);
  expect_error(words, 2, "not_found", {"line.csv"});
}

TEST_F(Commands, AResultThatCannotBeWrittenIsAnError) {
  // A full device behind standard output.
  for (const char* words : {"devices", "--help", "train --help", "--version"}) {
    Launch l = launch({"-c", std::string(GRADLOOM_PROGRAM) + " " + words + " > /dev/full"});
    l.program = "/bin/sh";
    const Ended ended = Process(l).wait();
    EXPECT_EQ(ended.code, 1) << words;
    EXPECT_THAT(ended.err, HasSubstr("standard output")) << words;
  }
}

}  // namespace
}  // namespace gradloom::test
