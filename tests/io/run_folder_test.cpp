#include "gradloom/io/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "gradloom/io/file.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(RunFolder, IsMadeWithTheFoldersAboveIt) {
  const test::Scratch scratch;
  const auto folder = RunFolder::create(scratch / "a/b/c").or_throw();
  EXPECT_TRUE(std::filesystem::is_directory(folder.checkpoints()));
  EXPECT_TRUE(write_file_atomic(folder.last_checkpoint(), "x").ok());
  EXPECT_EQ(folder.recipe(), scratch / "a/b/c/recipe.toml");
  EXPECT_EQ(folder.log(), scratch / "a/b/c/log.jsonl");
  EXPECT_EQ(folder.report(), scratch / "a/b/c/report.html");
}

TEST(RunFolder, AcceptsAnEmptyFolderAndOneWithOnlyALock) {
  const test::Scratch scratch;
  EXPECT_TRUE(RunFolder::create(scratch.path()).ok());
  std::filesystem::remove(scratch / "checkpoint");
  EXPECT_EQ(scratch.entries(), 1u);
  EXPECT_TRUE(RunFolder::create(scratch.path()).ok());
}

TEST(RunFolder, AcceptsWhatARunLeavesThatEndedBeforeItsRecipeWasSaved) {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch / "run/checkpoint");
  ASSERT_TRUE(write_file_atomic(scratch / "run/.recipe.toml.7.0.tmp", "half"));
  EXPECT_TRUE(RunFolder::create(scratch / "run"));
  EXPECT_FALSE(fs::exists(scratch / "run/.recipe.toml.7.0.tmp"));
  ASSERT_TRUE(write_file_atomic(scratch / "run/checkpoint/last.safetensors", "something"));
  const auto refused = RunFolder::create(scratch / "run");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("continue"), std::string::npos) << "resume would refuse it too";
}

TEST(RunFolder, AWriterRemovesWhatAKilledOneLeftAndNothingElse) {
  const test::Scratch scratch;
  const fs::path run = scratch / "run";
  {
    const auto folder = RunFolder::create(run).or_throw();
    ASSERT_TRUE(write_file_atomic(folder.recipe(), "x"));
  }
  const std::vector<fs::path> half = {run / ".report.html.7.0.tmp", run / ".circuit.json.7.1.tmp",
                                      run / ".log.jsonl.7.2.tmp", run / "checkpoint/.last.safetensors.7.3.tmp"};
  const std::vector<fs::path> others = {run / ".p.csv.8.0.tmp", run / "report.html.tmp", run / "report.html"};
  for (const auto& paths : {half, others})
    for (const fs::path& path : paths) ASSERT_TRUE(write_file_atomic(path, "half"));
  ASSERT_TRUE(RunFolder::open(run, FolderAccess::read));
  for (const fs::path& path : half) EXPECT_TRUE(fs::exists(path)) << "who only reads changes nothing: " << path;
  ASSERT_TRUE(RunFolder::open(run, FolderAccess::write));
  for (const fs::path& path : half) EXPECT_FALSE(fs::exists(path)) << path;
  for (const fs::path& path : others) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST(RunFolder, RefusesAFolderThatHoldsSomethingAndLeavesItAlone) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "thesis.tex", "x").ok());
  const auto refused = RunFolder::create(scratch.path());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("thesis.tex"));
  EXPECT_EQ(refused.error().message.find("continue"), std::string::npos) << "there is no run in it";
  EXPECT_EQ(scratch.entries(), 1u);
  ASSERT_TRUE(write_file_atomic(scratch / "recipe.toml", "x").ok());
  EXPECT_THAT(RunFolder::create(scratch.path()).error().message, HasSubstr("or continue the run in it"));
  EXPECT_THAT(RunFolder::create(scratch / "thesis.tex").error().message, HasSubstr("not a folder"));
  EXPECT_FALSE(RunFolder::create(scratch / "thesis.tex" / "run").ok());
}

TEST(RunFolder, HasOneWriterAtATime) {
  const test::Scratch scratch;
  {
    const auto writer = RunFolder::create(scratch / "run").or_throw();
    ASSERT_TRUE(write_file_atomic(writer.recipe(), "").ok());
    const auto second = RunFolder::open(scratch / "run", FolderAccess::write);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::busy);
    EXPECT_THAT(second.error().message, HasSubstr("another run uses the folder"));
    EXPECT_TRUE(RunFolder::open(scratch / "run", FolderAccess::read).ok());
  }
  EXPECT_TRUE(RunFolder::open(scratch / "run", FolderAccess::write).ok());
}

TEST(RunFolder, KnowsWhenItsPlaceWasTaken) {
  const test::Scratch scratch;
  const RunFolder first = RunFolder::create(scratch / "run").or_throw();
  EXPECT_TRUE(first.check_own().ok());
  std::filesystem::remove_all(scratch / "run");
  ASSERT_FALSE(first.check_own().ok());
  EXPECT_EQ(first.check_own().error().code, ErrorCode::io);
  const RunFolder second = RunFolder::create(scratch / "run").or_throw();
  EXPECT_FALSE(first.check_own().ok());
  EXPECT_TRUE(second.check_own().ok());
}

TEST(RunFolder, KeepsItsLockWhenMoved) {
  const test::Scratch scratch;
  auto first = RunFolder::create(scratch / "run");
  ASSERT_TRUE(first.ok());
  const RunFolder moved = std::move(first).or_throw();
  EXPECT_EQ(RunFolder::create(scratch / "run").error().code, ErrorCode::busy);
  ASSERT_TRUE(write_file_atomic(moved.recipe(), "").ok());
  EXPECT_EQ(RunFolder::open(scratch / "run", FolderAccess::write).error().code, ErrorCode::busy);
}

TEST(RunFolder, NeedsARecipeToBeOpened) {
  const test::Scratch scratch;
  EXPECT_EQ(RunFolder::open(scratch / "none", FolderAccess::read).error().code, ErrorCode::not_found);
  EXPECT_THAT(RunFolder::open(scratch.path(), FolderAccess::write).error().message, HasSubstr("recipe.toml"));
  EXPECT_EQ(scratch.entries(), 0u);
}

TEST(RunFolder, AWriterRefusesFilesThatAreLinksOrPipes) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "outside", "precious"));
  for (const char* name : {"log.jsonl", "report.html", "circuit.json", ".lock", "recipe.toml",
                           "checkpoint/last.safetensors", "checkpoint/previous.safetensors", "checkpoint"}) {
    const auto run = scratch / "run";
    std::filesystem::create_directories(run / "checkpoint");
    ASSERT_TRUE(write_file_atomic(run / "recipe.toml", "seed = 1"));
    std::filesystem::remove_all(run / name);
    std::filesystem::create_symlink(std::string(name) == "checkpoint" ? scratch.path() : scratch / "outside",
                                    run / name);
    const auto refused = RunFolder::open(run, FolderAccess::write);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_THAT(refused.error().message, HasSubstr("symbolic link")) << name;
    std::filesystem::remove(run / name);
    if (std::string(name) != "checkpoint") {
      ASSERT_EQ(::mkfifo((run / name).c_str(), 0600), 0);
      EXPECT_THAT(RunFolder::open(run, FolderAccess::write).error().message, HasSubstr("not a regular file")) << name;
    }
    std::filesystem::remove_all(run);
  }
  EXPECT_EQ(read_file(scratch / "outside", 100).value(), "precious");
}

TEST(RunFolder, KeepsTwoCheckpointsAndSetsADamagedOneAside) {
  const test::Scratch scratch;
  const auto folder = RunFolder::create(scratch / "run").or_throw();
  EXPECT_FALSE(folder.has_checkpoint());
  for (const char* content : {"1", "2", "3"}) ASSERT_TRUE(write_file_atomic(folder.last_checkpoint(), content));
  EXPECT_EQ(read_file(folder.last_checkpoint(), 9).value(), "3");
  EXPECT_EQ(read_file(folder.previous_checkpoint(), 9).value(), "2");
  ASSERT_TRUE(folder.set_last_checkpoint_aside());
  EXPECT_TRUE(folder.has_checkpoint());
  ASSERT_TRUE(write_file_atomic(folder.last_checkpoint(), "4"));
  EXPECT_EQ(read_file(folder.last_checkpoint(), 9).value(), "4");
  EXPECT_EQ(read_file(folder.previous_checkpoint(), 9).value(), "2") << "the good one";
  EXPECT_EQ(read_file(folder.file("checkpoint/damaged.safetensors"), 9).value(), "3");
}

}  // namespace
}  // namespace gradloom
