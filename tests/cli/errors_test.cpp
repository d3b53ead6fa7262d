// What goes wrong is named, with the exit code of its kind, and leaves nothing half-made behind.
#include <signal.h>
#include <sys/stat.h>

#include <memory>
#include <set>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

using Errors = ProgramTest;

TEST_F(Errors, WrongWordsNameTheNearestOne) {
  expect_error({"trian", "kan-hello"}, 2, "invalid_input", {"trian", "'train'"});
  expect_error({"recipes", "shwo"}, 2, "invalid_input", {"shwo", "'show'"});
  expect_error({"train", "kan-hello", "--thread", "2"}, 2, "invalid_input", {"--thread", "--threads"});
  expect_error({"train", "kan-helo"}, 2, "not_found", {"kan-helo", "kan-hello"});
  expect_error({"train", "kan-hello", "--set", "optimizer.lrr=1"}, 2, "invalid_input",
               {"optimizer.lrr", "optimizer.lr"});
  expect_error({"train", "kan-hello", "--set", "data.batch=1"}, 2, "invalid_input", {"data.batch", "'train.batch'"});
  expect_error({"recipes", "kan-hello"}, 2, "invalid_input", {"`gradloom recipes show kan-hello`"});
  expect_error({"train", "kan-hello", "--epoch", "3"}, 2, "invalid_input", {"--epoch", "--set epochs="});
  expect_error({"bench", "graph", "--device", "gpu"}, 2, "invalid_input", {"'gradloom bench graph'", "on the CPU"});
  expect_error({"recipes", "show", "nope"}, 2, "not_found", {"'nope'; `gradloom recipes` lists all"});
}

TEST_F(Errors, MissingAndMalformedArguments) {
  expect_error({"train"}, 2, "invalid_input", {"'gradloom train' needs RECIPE", "gradloom recipes"});
  expect_error({"ged"}, 2, "invalid_input", {"'gradloom ged' needs GRAPHS", "--all-pairs"});
  expect_error({"train", "kan-hello", "--seeds", "0"}, 2, "invalid_input", {"--seeds", "whole number from 1 to"});
  expect_error({}, 2, "invalid_input", {});
  expect_error({"train"}, 2, "invalid_input", {"RECIPE"});
  expect_error({"bench"}, 2, "invalid_input", {"kan"});
  expect_error({"train", "kan-hello", "--threads", "many"}, 2, "invalid_input", {"--threads", "many"});
  expect_error({"train", "kan-hello", "--exec", "slow"}, 2, "invalid_input", {"--exec", "slow"});
  expect_error({"bench", "kan", "--widths", "3"}, 2, "invalid_input", {"--widths"});
  expect_error({"bench", "kan", "--degree", "9"}, 2, "invalid_input", {"--degree", "9"});
}

TEST_F(Errors, NumbersThatDoNotFitAreRefusedRatherThanBent) {
  expect_error({"train", "kan-hello", "--seed", "18446744073709551615"}, 2, "invalid_input",
               {"--seed", "whole number"});
  expect_error({"train", "kan-hello", "--seed", "-1"}, 2, "invalid_input", {"--seed", "whole number"});
  expect_error({"train", "kan-hello", "--seed", "9223372036854775807", "--seeds", "3"}, 2, "invalid_input",
               {"largest seed"});
  expect_error({"run-circuit", "c.json", "--width", "-5"}, 2, "invalid_input", {"--width", "whole number"});
  expect_error({"check", "kan-hello", "--max-elements", "0"}, 2, "invalid_input", {"--max-elements", "whole number"});
  expect_error({"train", "kan-hello", "--threads", "1025"}, 2, "invalid_input", {"--threads", "from 0 to 1024"});
  expect_error({"ged", "a", "b", "--time", "nan"}, 2, "invalid_input", {"--time", "nan"});
}

TEST_F(Errors, ARunMayNotTakeTheNameOfItsData) {
  expect_error({"train", "kan-hello", "--out", ""}, 2, "invalid_input", {"--out", "empty"});
  for (const char* option : {"--data", "--predictions"})
    expect_error({"eval", "run", option, ""}, 2, "invalid_input", {option, "empty"});
  expect_error({"train", "cora", "--out", "./cora/"}, 2, "invalid_input", {"./cora/", "data.path"});
}

// Files that the program opens must not take the numbers of streams it was started without.
TEST_F(Errors, ClosedStreamsDoNotGetIntoTheFilesOfARun) {
  Launch shell = launch(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  const std::string program = shell.program.string();
  std::string line = "exec '" + program + "'";
  for (const std::string& word : shell.arguments) line += " '" + word + "'";
  shell.program = "/bin/sh";
  shell.arguments = {"-c", line + " <&- 2>&-"};
  Process process(shell);
  process.wait();
  EXPECT_EQ(bytes_of(scratch_ / "run/.lock"), "");
  for (std::istringstream lines(log("run")); std::getline(lines, line);)
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_FALSE(log("run").empty());
  EXPECT_EQ(run({"resume", "run"}).code, 0);
}

TEST_F(Errors, WhatIsReadIsNeverOverwritten) {
  write("graphs.txt", "t # 0\nv 0 A\nv 1 B\ne 0 1 x\nt # 1\nv 0 A\n");
  const std::string before = bytes_of(scratch_ / "graphs.txt");
  expect_error({"ged", "graphs.txt", "--all-pairs", "--out", "./graphs.txt"}, 2, "invalid_input", {"overwritten"});
  EXPECT_EQ(bytes_of(scratch_ / "graphs.txt"), before);
  json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  const std::string recipe = bytes_of(scratch_ / "run/recipe.toml");
  expect_error({"eval", "run", "--predictions", "run/recipe.toml"}, 2, "invalid_input", {"overwritten"});
  EXPECT_EQ(bytes_of(scratch_ / "run/recipe.toml"), recipe);
  std::string table = "a,b\n";
  for (int i = 0; i < 40; ++i) table += std::to_string(i) + "," + std::to_string(i % 7) + "\n";
  write("table.csv", table);
  json_of({"train", "kan-tabular", "--out", "tabular", "--set", "data.path=table.csv", "--set", "epochs=1", "--set",
           "train.batch=0"});
  expect_error({"eval", "tabular", "--predictions", "./table.csv"}, 2, "invalid_input", {"table.csv", "overwritten"});
  write("new.csv", table);
  for (const Words& command : {Words{"predict", "tabular", "--data", "new.csv", "--out", "table.csv"},
                               Words{"export", "tabular", "--format", "c", "--out", "table.csv"},
                               Words{"prune", "tabular", "--out", "table.csv"},
                               Words{"prune", "tabular", "--data", "new.csv", "--out", "./new.csv"}})
    expect_error(command, 2, "invalid_input", {"overwritten"});
  expect_error({"prune", "tabular", "--out", "other.csv"}, 2, "invalid_input", {"other.csv", ".safetensors"});
  EXPECT_EQ(bytes_of(scratch_ / "table.csv"), table);
  EXPECT_EQ(bytes_of(scratch_ / "new.csv"), table);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "other.csv"));
}

TEST_F(Errors, WidthsThatNoMachineHoldsAreRefusedAtOnce) {
  expect_error({"train", "karate", "--set", "model.hidden=[4294967296]"}, 2, "invalid_input", {"model.hidden"});
}

TEST_F(Errors, SquaresMustFitTheGrid) {
  expect_error({"train", "checkerboard-small", "--set", "data.square=500"}, 2, "invalid_input",
               {"squares of 500", "data.square"});
}

TEST_F(Errors, OptionsOfOtherCommandsAreKnown) {
  expect_error({"train", "kan-hello", "--predictions", "p.csv"}, 2, "invalid_input",
               {"'gradloom train' has no option --predictions; it is an option of gradloom eval"});
  expect_error({"train", "kan-hello", "--theads", "2"}, 2, "invalid_input", {"the nearest is --threads"});
  const Ended far = run({"eval", "run", "--completely-unknown"});
  EXPECT_EQ(far.code, 2);
  EXPECT_THAT(far.err, testing::Not(HasSubstr("nearest")));
}

TEST_F(Errors, ARecipeIsNotARun) {
  expect_error({"eval", "kan-hello"}, 2, "not_found", {"there is no folder 'kan-hello'", "gradloom train kan-hello"});
  expect_error({"resume", "karate"}, 2, "not_found", {"gradloom train karate"});
}

TEST_F(Errors, ErrorsForPeopleAreOneLineAndAHint) {
  const Ended ended = run({"train", "kan-hello", "--set", "epochs=soon"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, testing::StartsWith("gradloom: "));
  EXPECT_THAT(ended.err, HasSubstr("\nhint: "));
}

TEST_F(Errors, ValuesOfTheRecipe) {
  const auto with = [](const std::string& setting) {
    return Words{"train", "kan-hello", "--out", "run", "--set", setting} + kTiny;
  };
  expect_error(with("precision=3"), 2, "invalid_input", {"precision"});
  expect_error({"train", "kan-hello", "--set", "epochs=soon"}, 2, "invalid_input", {"epochs", "integer"});
  expect_error({"train", "kan-hello", "--set", "epochs=4611686018427387904"}, 2, "invalid_input",
               {"epochs", "1000000000"});
  expect_error(with("train.accumulate=4611686018427387904"), 2, "invalid_input", {"train.accumulate", "1000000"});
  expect_error(with("optimizer.lr=-1"), 2, "invalid_input", {"optimizer.lr", "-1"});
  expect_error(with("model.grid=50"), 2, "invalid_input", {"model.grid=50", "no effect", "stage.0.grid", "stage=[]"});
  expect_error({"check", "checkerboard-async", "--set", "model.fire = 0.5"}, 2, "invalid_input", {"stage.0.fire"});
  expect_error(with("model.degree=9"), 2, "invalid_input", {"model.degree", "9"});
  expect_error(with("train.freeze=[\"nothing\"]"), 2, "invalid_input", {"nothing"});
  expect_error(with("optimizer.kind=adam") + Words{"--set", "train.batch=51"}, 2, "invalid_input", {"51", "50"});
  expect_error(with("model.lo=1") + Words{"--set", "model.hi=1"}, 2, "invalid_input", {"1"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run")) << "a mistake leaves no folder behind";
}

TEST_F(Errors, Files) {
  expect_error({"train", "missing.toml"}, 2, "not_found", {"missing.toml"});
  expect_error({"train", "kan-tabular", "--set", "data.path=missing.csv"}, 2, "not_found", {"missing.csv"});
  expect_error({"resume", "missing"}, 2, "not_found", {"missing"});
  expect_error({"eval", "missing"}, 2, "not_found", {"missing"});
  std::filesystem::create_directory(scratch_ / "empty");
  expect_error({"resume", "empty"}, 2, "not_found", {"recipe.toml"});
  write("broken.toml", "epochs = = 3\n");
  expect_error({"train", "broken.toml"}, 2, "invalid_input", {"broken.toml"});
}

TEST_F(Errors, FoldersOfRunsAreNoRecipes) {
  json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  for (const char* command : {"train", "check"})
    for (const char* folder : {"run", "./run"})
      expect_error({command, folder}, 2, "invalid_input",
                   {"run folder", std::string("gradloom resume ") + folder, "gradloom eval", "recipe.toml"});
  for (const Words& words : {Words{"run-circuit", "run"}, Words{"bench", "circuit", "--circuit", "run"}})
    expect_error(words, 2, "invalid_input", {"family \"kan\"", "\"automaton\"", "gradloom eval run"});
  expect_error({"export", "run", "--format", "verilog"}, 2, "invalid_input", {"for circuits", "onnx"});
}

TEST_F(Errors, FilesThatHoldNoCircuit) {
  write("life.c", "int main(void) { return 0; }\n");
  write("empty.json", "");
  for (const char* file : {"life.c", "empty.json"})
    expect_error({"run-circuit", file}, 2, "invalid_input", {file, "not a circuit", "--format json"});
  write("open.json", "{\n");
  expect_error({"run-circuit", "open.json"}, 2, "invalid_input", {"open.json", "not JSON"});
}

TEST_F(Errors, MissingDataSayWhereTheyWereLookedFor) {
  const Words places = {"nowhere.csv", "current folder", "$GRADLOOM_DATA", "data.root"};
  for (const char* command : {"train", "check"})
    expect_error({command, "kan-tabular", "--set", "data.path=nowhere.csv"}, 2, "not_found", places);
  const auto with_root =
      json_of({"train", "kan-tabular", "--set", "data.path=nowhere.csv", "--set", "data.root=there"}, 2);
  EXPECT_THAT(with_root["error"]["message"].get<std::string>(),
              testing::AllOf(HasSubstr("there/nowhere.csv"), testing::Not(HasSubstr("GRADLOOM_DATA"))));
  Launch elsewhere = launch({"train", "kan-tabular", "--set", "data.path=nowhere.csv", "--json"});
  elsewhere.environment["GRADLOOM_DATA"] = "/no/such/folder";
  EXPECT_THAT(parsed(Process(elsewhere).wait())["error"]["message"].get<std::string>(),
              HasSubstr("/no/such/folder/nowhere.csv"));
}

TEST_F(Errors, TablesNameRowAndColumn) {
  std::string csv = "width,height,price\n";
  for (int i = 0; i < 30; ++i) csv += "1,2,3\n";
  write("hole.csv", csv + "4,nan,6\n" + "1,2,3\n");
  const Words train = {"train", "kan-tabular", "--out", "run", "--set", "data.missing=error", "--set"};
  expect_error(train + Words{"data.path=hole.csv"}, 2, "invalid_input", {"hole.csv", "32", "height"});
  write("table.csv", csv);
  expect_error(train + Words{"data.path=table.csv", "--set", "data.target=prize"}, 2, "invalid_input",
               {"prize", "price"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
}

TEST_F(Errors, ColumnsAreNamedWithTheKeyThatAskedForThem) {
  write("words.csv", "a,b,kind\n1,2,red\n2,3,blue\n3,4,red\n");
  expect_error({"train", "kan-tabular", "--set", "data.path=words.csv"}, 2, "invalid_input",
               {"'kind'", "'red'", "task = \"classification\""});
  const Words classify = {"train", "monks", "--set", "data.path=words.csv", "--set", "data.test_path="};
  expect_error(classify, 2, "invalid_input", {"data.categorical names column 3", "data.categorical = []"});
  expect_error(classify + Words{"--set", "data.target=kind", "--set", "data.categorical=[]"}, 2, "invalid_input",
               {"data.target and data.drop both name the column 'kind'"});
  expect_error(classify + Words{"--set", "data.drop=[king]", "--set", "data.categorical=[]"}, 2, "invalid_input",
               {"data.drop names the column 'king'", "the nearest is 'kind'"});
}

TEST_F(Errors, TablesThatOnlyLookRight) {
  write("big.csv", "a,b\n1,2\n1e39,3\n");
  expect_error({"train", "kan-tabular", "--set", "data.path=big.csv", "--set", "train.batch=0"}, 2, "invalid_input",
               {"row 1", "'a'", "1e+39", "float64"});
  write("twice.csv", "a,b,a\n1,2,3\n4,5,6\n");
  expect_error({"train", "kan-tabular", "--set", "data.path=twice.csv"}, 2, "invalid_input",
               {"twice.csv", "'a'", "columns 1 and 3"});
  write("mac.csv", "a,b\r1,2\r3,4\r");
  expect_error({"train", "kan-tabular", "--set", "data.path=mac.csv"}, 2, "invalid_input",
               {"mac.csv", "carriage return"});
}

TEST_F(Errors, ColumnsMayBeNumbers) {
  write("t.csv", "1,2,3\n2,3,4\n5,6,7\n8,9,1\n4,4,2\n");
  const Words words = {"train", "kan-tabular",         "--set", "data.path=t.csv", "--set", "train.batch=0",
                       "--set", "data.validation=0.0", "--set", "data.test=0.2",   "--set", "epochs=1",
                       "--set", "data.target=0",       "--set", "data.drop=[-1]"};
  json_of(words + Words{"--out", "run"});
}

TEST_F(Errors, OutputFolders) {
  EXPECT_EQ(run(Words{"train", "kan-hello", "--out", "run"} + kTiny).code, 0);
  expect_error(Words{"train", "kan-hello", "--out", "run"} + kTiny, 2, "invalid_input",
               {"not empty", "gradloom resume run"});
  expect_error(Words{"train", "kan-hello", "--seeds", "2", "--out", "run"} + kTiny, 2, "invalid_input", {"not empty"});
  write("file", "");
  expect_error(Words{"train", "kan-hello", "--out", "file"} + kTiny, 2, "invalid_input", {"file"});
  expect_error(Words{"train", "kan-hello", "--out", "file/run"} + kTiny, 1, "io", {"file/run"});
  expect_error(Words{"train", "kan-hello", "--out", "/proc/run"} + kTiny, 2, "not_found", {"/proc/run"});
  expect_error({"eval", "run", "--predictions", "nowhere/p.csv"}, 2, "not_found", {"nowhere/p.csv"});
}

TEST_F(Errors, DevicesThatAreNotThere) {
  for (const char* device : {"99", "no-such-device"})
    expect_error({"train", "kan-hello", "--device", device}, 3, "missing_device", {device});
  if (json_of({"devices"})["devices"].size() > 1)
    expect_error({"train", "checkerboard-small", "--device", "gpu"}, 2, "unsupported", {"automaton", "CPU only"});
  EXPECT_EQ(run(Words{"train", "kan-hello", "--device", "cpu", "--out", "run"} + kTiny).code, 0);
}

TEST_F(Errors, TrainingThatDivergesFailsTheRun) {
  expect_error({"train", "kan-hello", "--out", "run", "--set", "optimizer.kind=sgd", "--set", "optimizer.lr=1e300",
                "--set", "train.batch=10", "--set", "data.samples=50"},
               1, "numeric", {"diverged"});
}

TEST_F(Errors, OneFolderHasOneRunAtATime) {
  Process first(launch({"train", "kan-hello", "--out", "run", "--set", "epochs=1000000", "--set", "optimizer.kind=adam",
                        "--set", "train.checkpoint_seconds=0.02"}));
  ASSERT_TRUE(first.wait_until([&] { return has_checkpoint("run"); }));
  expect_error({"resume", "run"}, 2, "busy", {"run"});
  expect_error(Words{"train", "kan-hello", "--out", "run"} + kTiny, 2, "busy", {"run"});
  EXPECT_EQ(run({"eval", "run"}).code, 0) << "who only reads is welcome";
  first.send(SIGTERM);
  const Ended ended = first.wait();
  EXPECT_EQ(ended.code, 143) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("gradloom resume run"));
}

TEST_F(Errors, ADamagedCheckpointIsNamed) {
  EXPECT_EQ(run(Words{"train", "kan-hello", "--out", "run"} + kTiny).code, 0);
  const std::string bytes = checkpoint("run");
  write("run/checkpoint/last.safetensors", bytes.substr(0, bytes.size() / 2));
  std::filesystem::remove(scratch_ / "run/checkpoint/previous.safetensors");
  expect_error({"eval", "run"}, 2, "invalid_input", {"last.safetensors"});
  expect_error({"resume", "run"}, 2, "invalid_input", {"last.safetensors"});
  write("run/checkpoint/previous.safetensors", "nonsense");
  expect_error({"resume", "run"}, 2, "invalid_input", {"last.safetensors", "previous.safetensors"});
}

TEST_F(Errors, ADamagedCheckpointGivesWayToTheOneBefore) {
  write("two.toml", kTwoStages);
  ASSERT_EQ(run({"train", "two.toml", "--out", "run"}).code, 0);
  ASSERT_TRUE(std::filesystem::exists(scratch_ / "run/checkpoint/previous.safetensors"));
  const std::string good = checkpoint("run"), good_log = log("run");
  std::string bad = good;
  bad[bad.size() - 3] = static_cast<char>(bad[bad.size() - 3] ^ 16);
  write("run/checkpoint/last.safetensors", bad);
  const Ended looked = run({"eval", "run"});
  EXPECT_EQ(looked.code, 0) << looked.err;
  EXPECT_THAT(looked.err, testing::AllOf(HasSubstr("checksum"), HasSubstr("previous.safetensors")));
  EXPECT_THAT(looked.out, testing::Not(HasSubstr("checksum"))) << "a warning is shown once";
  EXPECT_EQ(checkpoint("run"), bad) << "who only reads changes nothing";
  const Ended ended = run({"resume", "run", "--json"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, testing::AllOf(HasSubstr("checksum"), HasSubstr("previous.safetensors")));
  EXPECT_THAT(parsed(ended)["warnings"].dump(), HasSubstr("previous.safetensors"));
  EXPECT_EQ(checkpoint("run"), good);
  EXPECT_EQ(log("run"), good_log);
  EXPECT_EQ(bytes_of(scratch_ / "run/checkpoint/damaged.safetensors"), bad);
}

TEST_F(Errors, APipeInPlaceOfACheckpointIsNamed) {
  EXPECT_EQ(run(Words{"train", "kan-hello", "--out", "run"} + kTiny).code, 0);
  std::filesystem::remove(scratch_ / "run/checkpoint/last.safetensors");
  ASSERT_EQ(::mkfifo((scratch_ / "run/checkpoint/last.safetensors").c_str(), 0600), 0);
  for (const char* command : {"eval", "resume"})
    expect_error({command, "run"}, 2, "invalid_input", {"last.safetensors", "not a regular file"});
}

TEST_F(Errors, LinksInTheFolderOfARunAreNotFollowed) {
  EXPECT_EQ(run(Words{"train", "kan-hello", "--out", "run"} + kTiny).code, 0);
  for (const char* name : {"log.jsonl", "report.html", "circuit.json", ".lock", "checkpoint/last.safetensors"}) {
    write("outside", "precious");
    const bool was_there = std::filesystem::exists(scratch_ / "run" / name);
    if (was_there) std::filesystem::rename(scratch_ / "run" / name, scratch_ / "moved");
    std::filesystem::create_symlink(scratch_ / "outside", scratch_ / "run" / name);
    expect_error({"resume", "run"}, 2, "invalid_input", {name, "symbolic link"});
    EXPECT_EQ(bytes_of(scratch_ / "outside"), "precious") << name;
    std::filesystem::remove(scratch_ / "run" / name);
    if (was_there) std::filesystem::rename(scratch_ / "moved", scratch_ / "run" / name);
  }
  EXPECT_EQ(run({"resume", "run"}).code, 0);
}

TEST_F(Errors, ClosedStandardOutputIsAnErrorBeforeAnyWork) {
  for (const std::string words : {"devices", "train kan-hello --out run", "train kan-hello --out run --json"}) {
    Launch l = launch({"-c", std::string(GRADLOOM_PROGRAM) + " " + words + " >&-"});
    l.program = "/bin/sh";
    const Ended ended = Process(l).wait();
    EXPECT_EQ(ended.code, 1) << words;
    EXPECT_THAT(ended.err, HasSubstr("standard output is closed")) << words;
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
}

TEST_F(Errors, AnOptionDoesNotSwallowTheNextOne) {
  expect_error({"train", "kan-hello", "--out"}, 2, "invalid_input", {"--out needs a value", "--json"});
  expect_error({"train", "kan-hello", "--out", "--seed=3"}, 2, "invalid_input", {"--out needs a value", "--seed=3"});
  expect_error({"eval", "run", "--predictions", "--threads"}, 2, "invalid_input", {"--predictions", "--threads"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "--json"));
  EXPECT_EQ(run(Words{"train", "kan-hello", "--out=--json"} + kTiny).code, 0);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "--json/recipe.toml"));
}

TEST_F(Errors, ParallelRunsWithoutANameGetAFolderEach) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 8; ++i)
    processes.push_back(std::make_unique<Process>(launch(Words{"train", "kan-hello", "--json"} + kTiny)));
  std::set<std::string> folders;
  for (const auto& process : processes) {
    const Ended ended = process->wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    folders.insert(parsed(ended).value("run", ""));
  }
  EXPECT_EQ(folders.size(), 8u);
  for (const std::string& folder : folders) EXPECT_EQ(checkpoint(folder), checkpoint(*folders.begin())) << folder;
  expect_error({"train", "kan-hello", "--set", "epochs=-1"}, 2, "invalid_input", {"epochs"});
  expect_error({"train", "kan-tabular", "--set", "data.path=none.csv"}, 2, "not_found", {"none.csv"});
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch_ / "runs")) ++left;
  EXPECT_EQ(left, 8u) << "a mistake in the recipe leaves nothing";
}

TEST_F(Errors, ControlCharactersOfFilesDoNotReachTheTerminal) {
  write("graphs.txt", "t # \x1b[2Ja\x07\nv 0 A\nv 1 B\ne 0 1 x\nt # \xc2\x9b[mb\nv 0 A\n");
  const Ended ended = run({"ged", "graphs.txt", "--all-pairs"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const std::string& text : {ended.out, ended.err})
    for (const char* power : {"\x1b", "\x07", "\xc2\x9b"}) EXPECT_THAT(text, testing::Not(HasSubstr(power)));
  EXPECT_THAT(ended.out, HasSubstr("\\x1b[2Ja\\x07"));
  write("table.csv", "a,\x1b]0;title\x07\n1,2\n3,4\n");
  const Ended unknown = run({"train", "kan-tabular", "--set", "data.path=table.csv", "--set", "data.target=title"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, testing::AllOf(HasSubstr("title"), testing::Not(HasSubstr("\x1b]"))));
}

}  // namespace
}  // namespace gradloom::test
