// A run that was interrupted in any way ends with the bits of one that was not.
#include <signal.h>

#include <memory>
#include <tuple>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

// Long enough to be interrupted, with a state in every corner: half-accumulated gradients, validation, best parameters.
const Words kAdam = {
    "train",  "kan-hello",           "--set", "epochs=150",         "--set", "optimizer.kind=adam",
    "--set",  "train.batch=8",       "--set", "train.accumulate=3", "--set", "data.samples=220",
    "--set",  "data.validation=0.1", "--set", "optimizer.lr=0.01",  "--set", "train.checkpoint_seconds=0.05",
    "--quiet"};
const Words kLbfgs = {"train",  "kan-hello",        "--set", "epochs=60",
                      "--set",  "data.samples=400", "--set", "train.checkpoint_seconds=0.05",
                      "--quiet"};

class Resume : public ProgramTest {
 protected:
  // The end of an uninterrupted run, in the folder "whole".
  void train_whole(const Words& words, const Words& more = {}) const {
    const Ended ended = run(words + Words{"--out", "whole"} + more);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  void expect_same_end(const std::string& folder) const {
    EXPECT_FALSE(checkpoint(folder).empty());
    EXPECT_TRUE(checkpoint(folder) == checkpoint("whole")) << "the checkpoints differ";
    EXPECT_TRUE(log(folder) == log("whole")) << "the logs differ";
  }
  // Runs until `condition` holds, then sends the signal; what it ended with.
  Ended interrupt(const Words& words, int signal, const std::function<bool()>& condition) const {
    Process process(launch(words));
    EXPECT_TRUE(process.wait_until(condition)) << "it ended before it could be interrupted";
    process.send(signal);
    return process.wait();
  }
  // A checkpoint that is not `old`.
  std::function<bool()> newer_checkpoint(const std::string& folder, const std::string& old = "") const {
    return [this, folder, old] { return has_checkpoint(folder) && checkpoint(folder) != old; };
  }
};

TEST_F(Resume, AfterKillsInTheMiddleOfAccumulatedSteps) {
  train_whole(kAdam);
  EXPECT_EQ(interrupt(kAdam + Words{"--out", "cut", "--threads", "1"}, SIGKILL, newer_checkpoint("cut")).signal,
            SIGKILL);
  EXPECT_EQ(interrupt({"resume", "cut", "--threads", "3"}, SIGKILL, newer_checkpoint("cut", checkpoint("cut"))).signal,
            SIGKILL);
  write("cut/checkpoint/.last.safetensors.1.0.tmp", "half a checkpoint");
  const auto r = json_of({"resume", "cut", "--threads", "2"});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_ / "cut"))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  EXPECT_EQ(r["epochs"], 300);
  EXPECT_EQ(r["stages"].size(), 2u) << "also the stage that an earlier process ended";
  expect_same_end("cut");
}

TEST_F(Resume, AfterAKillInASecondStageOfLbfgs) {
  train_whole(kLbfgs);
  std::string at_stage;
  const auto in_second_stage = [&] {
    if (log("cut").find("\"event\":\"stage\"") == std::string::npos) return false;
    if (at_stage.empty()) at_stage = checkpoint("cut");
    return checkpoint("cut") != at_stage;
  };
  EXPECT_EQ(interrupt(kLbfgs + Words{"--out", "cut", "--threads", "2"}, SIGKILL, in_second_stage).signal, SIGKILL);
  EXPECT_EQ(run({"resume", "cut", "--threads", "1"}).code, 0);
  expect_same_end("cut");
}

TEST_F(Resume, AfterAKillBeforeTheFirstCheckpoint) {
  const Words rare = kAdam + Words{"--set", "train.checkpoint_seconds=1000"};
  train_whole(rare);
  EXPECT_EQ(interrupt(rare + Words{"--out", "cut"}, SIGKILL, [&] { return log("cut").size() > 1000; }).signal, SIGKILL);
  expect_error({"eval", "cut"}, 2, "not_found", {"no checkpoint"});
  EXPECT_EQ(run({"resume", "cut"}).code, 0);
  expect_same_end("cut");
}

TEST_F(Resume, AfterInterruptAndTerminate) {
  train_whole(kAdam);
  const Ended cut = interrupt(kAdam + Words{"--out", "cut"}, SIGINT, [&] { return log("cut").size() > 1000; });
  EXPECT_EQ(cut.code, 130) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("gradloom resume cut"));
  const Ended again = interrupt({"resume", "cut", "--json"}, SIGTERM, newer_checkpoint("cut", checkpoint("cut")));
  EXPECT_EQ(again.code, 143) << again.err;
  EXPECT_EQ(parsed(again)["interrupted"], true);
  EXPECT_EQ(parsed(again)["resume"], "gradloom resume cut");
  EXPECT_EQ(run({"eval", "cut"}).code, 0);
  EXPECT_EQ(run({"resume", "cut"}).code, 0);
  expect_same_end("cut");
}

// The signal comes when the first run has nothing left to train: its study and its report are under way.
TEST_F(Resume, ASeriesOfSeedsEndsAfterTheRunThatWasInterruptedAndGoesOnInItsFolder) {
  const Words series = {"train", "checkerboard-small", "--set", "epochs=1", "--out", "all", "--json"};
  const Ended cut = interrupt(series + Words{"--seeds", "3"}, SIGINT,
                              [&] { return log("all/seed-0").find("\"stage\",") != std::string::npos; });
  EXPECT_EQ(cut.code, 130) << cut.err;
  EXPECT_EQ(parsed(cut)["interrupted"], true);
  EXPECT_EQ(parsed(cut)["runs"].size(), 1u);
  EXPECT_THAT(cut.err, HasSubstr("2 seeds were not started; the same command with --seed 1 --seeds 2 --out all"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "all/seed-1"));
  EXPECT_EQ(run(series + Words{"--seeds", "2"}).code, 2) << "seed 0 is there";
  EXPECT_EQ(run(series + Words{"--seed", "1", "--seeds", "2"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "all/seed-2/report.html"));
}

TEST_F(Resume, OfAFinishedRunTellsSo) {
  const auto r = json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny);
  EXPECT_FALSE(r.contains("finished_before"));
  const Ended again = run({"resume", "run"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, testing::StartsWith("Finished before (4 epochs): there was nothing left to train\n"));
  EXPECT_THAT(again.out, HasSubstr("rmse"));
  const auto figures = json_of({"resume", "run"});
  EXPECT_EQ(figures["finished_before"], true);
  EXPECT_EQ(figures["test"], r["test"]);
  EXPECT_THAT(bytes_of(scratch_ / "run/report.html"), testing::Not(HasSubstr("<dt>time</dt>")));
}

TEST_F(Resume, AfterATerminationBetweenStages) {
  std::string recipe =
      "family = \"kan\"\nepochs = 0\n[data]\nformula = \"x1*x2\"\nsamples = 100\n[model]\nhidden = [1]\n";
  for (int i = 0; i < 400; ++i) recipe += "[[stage]]\n";
  write("stages.toml", recipe);
  const Words words = {"train", "stages.toml", "--quiet"};
  train_whole(words);
  const Ended cut = interrupt(words + Words{"--out", "cut"}, SIGTERM, [&] { return log("cut").size() > 1000; });
  EXPECT_EQ(cut.code, 143) << cut.err;
  EXPECT_EQ(run({"resume", "cut"}).code, 0);
  expect_same_end("cut");
}

// Pruning between stages: edges that were removed stay removed, and refits and grids follow it.
const char* const kPrunedStages = R"(family = "kan"
task = "regression"
precision = "float64"
epochs = 400
[data]
formula = "sin(3*x1) + 0*x2 + x3^2"
samples = 600
test_samples = 100
validation = 0.2
[model]
hidden = [4]
sparsity = 1e-3
[optimizer]
kind = "adam"
lr = 0.01
[train]
batch = 8
accumulate = 3
checkpoint_seconds = 0.02
[[stage]]
[[stage]]
sparsity = 0.0
refit = [0, 5]
PRUNE
[[stage]]
grid = 8
sparsity = 0.0
)";

class ResumePruned : public Resume {
 protected:
  void write_recipe(const std::string& prune) const {
    std::string recipe = kPrunedStages;
    write("pruned.toml", recipe.replace(recipe.find("PRUNE"), 5, prune));
  }
  std::size_t ended_stages() const {
    std::size_t count = 0;
    const std::string text = log("cut"), event = "\"event\":\"stage\"";
    for (std::size_t at = text.find(event); at != std::string::npos; at = text.find(event, at + 1)) ++count;
    return count;
  }
  // A checkpoint that was written after so many stages had ended.
  std::function<bool()> in_stage(std::size_t stage) const {
    auto first = std::make_shared<std::string>();
    return [this, stage, first] {
      if (ended_stages() < stage || !has_checkpoint("cut")) return false;
      if (first->empty()) *first = checkpoint("cut");
      return checkpoint("cut") != *first;
    };
  }
  void expect_interrupted(const Words& words, int signal, const std::function<bool()>& condition) const {
    const Ended ended = interrupt(words, signal, condition);
    if (signal == SIGKILL)
      EXPECT_EQ(ended.signal, SIGKILL);
    else
      EXPECT_EQ(ended.code, 143) << ended.err;
  }
};

TEST_F(ResumePruned, AfterSignalsBeforeDuringAndAfterThePruning) {
  for (const auto& [prune, first, second] :
       {std::tuple{"prune = 0.01", SIGKILL, SIGTERM}, {"prune_worse = 0.2", SIGTERM, SIGKILL}}) {
    std::filesystem::remove_all(scratch_ / "whole"), std::filesystem::remove_all(scratch_ / "cut");
    write_recipe(prune);
    const Words train = {"train", "pruned.toml", "--quiet"}, resume = {"resume", "cut", "--quiet", "--threads", "2"};
    train_whole(train);
    expect_interrupted(train + Words{"--out", "cut", "--threads", "1"}, first, in_stage(0));
    EXPECT_EQ(ended_stages(), 0u);
    // The log has the end of the first stage; the network is being pruned, or has just been.
    expect_interrupted(resume, second, [&] { return ended_stages() == 1; });
    expect_interrupted(resume, first, in_stage(1));
    expect_interrupted(resume, second, in_stage(2));
    EXPECT_EQ(run(resume).code, 0);
    EXPECT_EQ(ended_stages(), 3u);
    expect_same_end("cut");
    const auto file = [&](const std::string& folder) { return bytes_of(scratch_ / folder / "model.safetensors"); };
    EXPECT_TRUE(file("cut") == file("whole")) << "the model files differ";
    EXPECT_EQ(json_of({"resume", "cut"})["pruned"], json_of({"resume", "whole"})["pruned"]);
  }
}

// A folder that was removed belongs to whoever makes it anew.
TEST_F(Resume, ARunDoesNotWriteIntoTheFolderOfAnother) {
  Process first(launch(Words{"train", "kan-hello", "--set", "epochs=100000", "--set", "stage=[]", "--out", "run"}));
  ASSERT_TRUE(first.wait_until([&] { return log("run").size() > 1000; }));
  std::filesystem::remove_all(scratch_ / "run");
  ASSERT_EQ(run({"train", "kan-hello", "--set", "epochs=2", "--set", "stage=[]", "--out", "run"}).code, 0);
  const std::string theirs = checkpoint("run");
  first.send(SIGTERM);
  const Ended ended = first.wait();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("removed or replaced"));
  EXPECT_TRUE(checkpoint("run") == theirs);
  EXPECT_EQ(run({"eval", "run"}).code, 0);
}

TEST_F(Resume, AfterAnInterruptAmongRestarts) {
  const Words restarts =
      Words{"train", "kan-hello", "--set", "epochs=3", "--set", "train.restarts=8", "--set", "train.restart_epochs=12"};
  train_whole(restarts);
  Launch l = launch(restarts + Words{"--out", "cut"});
  Process process(l);
  ASSERT_TRUE(process.wait_until([&] { return std::filesystem::exists(scratch_ / "cut/recipe.toml"); }));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_EQ(run({"resume", "cut"}).code, 0);
  expect_same_end("cut");
}

TEST_F(Resume, AfterTheDiskWasFull) {
  train_whole(kAdam);
  EXPECT_EQ(interrupt(kAdam + Words{"--out", "cut"}, SIGINT, newer_checkpoint("cut")).code, 130);
  const std::string before = checkpoint("cut");
  Launch full = launch({"resume", "cut", "--json"});
  full.file_size_limit = before.size() / 2;
  const Ended ended = Process(full).wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(parsed(ended)["error"]["code"], "io");
  EXPECT_THAT(ended.err, HasSubstr("gradloom resume cut"));
  EXPECT_TRUE(checkpoint("cut") == before) << "the last good checkpoint stays";
  EXPECT_EQ(run({"eval", "cut"}).code, 0);
  EXPECT_EQ(run({"resume", "cut"}).code, 0);
  expect_same_end("cut");
}

TEST_F(Resume, ARunWhoseReaderWentAwayGoesOn) {
  // The shell's pipe closes after the first line of progress, as a pager does.
  Launch l =
      launch({"-c", std::string(GRADLOOM_PROGRAM) +
                        " train kan-hello --set epochs=200 --set data.samples=2000 --out gone 2>&1 | head -c 1"});
  l.program = "/bin/sh";
  Process(l).wait();
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "gone/report.html"));
}

TEST_F(Resume, ASignalEndsTheProgramAtOnceWhileDataAreRead) {
  // A million expressions take long to make.
  const Words slow = {"train", "rewrite", "--set", "data.samples=1000000"};
  for (const Words& words : {slow, slow + Words{"--out", "cut"}}) {
    Process process(launch(words));
    process.wait_until([] { return false; }, std::chrono::seconds(2));
    ASSERT_TRUE(process.running());
    process.send(SIGTERM);
    EXPECT_EQ(process.wait(std::chrono::seconds(10)).signal, SIGTERM);
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "runs"));
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "cut"));
  }
}

TEST_F(Resume, AKilledRunIsPredictedWithByItsNewerCheckpoint) {
  std::string rows = "a,b\n";
  for (int i = 0; i < 100; ++i) rows += std::to_string(i) + "," + std::to_string(i * 7 % 10) + "\n";
  write("t.csv", rows);
  const Words words = {"train",   "kan-rows",
                       "--set",   "data.path=t.csv",
                       "--set",   "model.hidden=[4]",
                       "--set",   "epochs=90000",
                       "--set",   "train.checkpoint_seconds=0.05",
                       "--quiet", "--out",
                       "cut"};
  EXPECT_EQ(interrupt(words, SIGINT, [&] { return log("cut").size() > 1000; }).code, 130);
  const Words ask = {"predict", "cut", "--data", "t.csv", "--out", "p.csv"};
  const auto stopped = json_of(ask);
  const std::size_t lines = log("cut").size();
  const std::string before = checkpoint("cut");
  const auto further = [&] { return log("cut").size() > lines + 2000 && checkpoint("cut") != before; };
  EXPECT_EQ(interrupt({"resume", "cut"}, SIGKILL, further).signal, SIGKILL);
  const auto killed = json_of(ask);
  EXPECT_GT(killed["epochs"], stopped["epochs"]);
  EXPECT_EQ(killed["epochs"], json_of({"eval", "cut"})["epochs"]);
  std::filesystem::rename(scratch_ / "t.csv", scratch_ / "new.csv");
  const auto alone = json_of({"predict", "cut", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(alone["epochs"], stopped["epochs"]);
  EXPECT_THAT(alone["warnings"].dump(), HasSubstr("the checkpoint is newer"));
}

TEST_F(Resume, ASecondSignalEndsTheProgramAtOnce) {
  for (const int first : {SIGINT, SIGTERM}) {
    // One step that takes long: the first signal cannot be answered before it ends.
    const std::string folder = "cut" + std::to_string(first);
    const Words slow = {"train",  "kan-hello",
                        "--out",  folder,
                        "--exec", "reference",
                        "--set",  "data.samples=100000",
                        "--set",  "model.hidden=[64,64]",
                        "--set",  "model.refit=[]"};
    Process process(launch(slow));
    ASSERT_TRUE(process.wait_until([&] { return std::filesystem::exists(scratch_ / folder / "log.jsonl"); }));
    process.send(first);
    process.wait_until([] { return false; }, std::chrono::seconds(1));
    ASSERT_TRUE(process.running());
    process.send(SIGINT);
    EXPECT_EQ(process.wait(std::chrono::seconds(5)).signal, SIGINT);
  }
}

TEST_F(Resume, TheResultDoesNotDependOnThreadsOrVariant) {
  train_whole(kAdam, {"--threads", "1"});
  int n = 0;
  for (const Words& how : {Words{"--threads", "2"}, Words{"--threads", "3"}, Words{"--exec", "reference"}}) {
    const std::string folder = "other" + std::to_string(n++);
    EXPECT_EQ(run(kAdam + Words{"--out", folder} + how).code, 0);
    expect_same_end(folder);
  }
}

TEST_F(Resume, TheResultOfLbfgsDoesNotDependOnThreadsOrVariant) {
  const Words few = kLbfgs + Words{"--set", "epochs=8"};
  train_whole(few, {"--threads", "1"});
  EXPECT_EQ(run(few + Words{"--out", "threads", "--threads", "3"}).code, 0);
  expect_same_end("threads");
  EXPECT_EQ(run(few + Words{"--out", "reference", "--exec", "reference"}).code, 0);
  expect_same_end("reference");
}

}  // namespace
}  // namespace gradloom::test
