// Every call by which a run changes files fails once, or is the last that happens: nothing that was saved is lost.
#include <set>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

class FileFaults : public ProgramTest {
 protected:
  void SetUp() override { write("two.toml", kTwoStages); }
  // Checkpoints are replaced and kept several times.
  Words train(const std::string& out) const { return {"train", "two.toml", "--out", out, "--threads", "1", "-q"}; }

  Ended run_with(const std::string& fault, const Words& words) const {
    Launch l = launch(words);
    l.environment["LD_PRELOAD"] = GRADLOOM_FILE_FAULTS;
    l.environment["FILE_FAULT"] = fault;
    l.environment["FILE_FAULT_COUNT"] = (scratch_ / "count").string();
    return Process(l).wait();
  }

  // Calls of a command that nothing disturbs.
  unsigned long calls_of(const std::string& fault, const Words& words) const {
    const Ended ended = run_with(fault, words);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return std::strtoul(bytes_of(scratch_ / "count").c_str(), nullptr, 10);
  }

  void expect_whole(const std::string& folder, const std::string& when) const {
    EXPECT_TRUE(checkpoint(folder) == checkpoint("whole")) << when;
    EXPECT_EQ(log(folder), log("whole")) << when;
    EXPECT_EQ(bytes_of(scratch_ / folder / "recipe.toml"), bytes_of(scratch_ / "whole/recipe.toml")) << when;
    EXPECT_TRUE(std::filesystem::exists(scratch_ / folder / "report.html")) << when;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_ / folder))
      EXPECT_NE(entry.path().extension(), ".tmp") << when;
  }

  // Trains with the fault, then goes on without it, and wants the result of a run that nothing disturbed.
  void expect_recovery(const std::string& fault, unsigned long n) {
    const std::string when = fault + "=" + std::to_string(n), folder = "run-" + std::to_string(n);
    const Ended ended = run_with(when, train(folder));
    const bool saved =
        has_checkpoint(folder) || std::filesystem::exists(scratch_ / folder / "checkpoint/previous.safetensors");
    if (ended.code == 0) {  // a folder that could not be synced is no reason to stop where nobody promised to
      expect_whole(folder, when);
    } else if (!std::filesystem::exists(scratch_ / folder / "recipe.toml")) {
      EXPECT_FALSE(saved) << when;
      const Ended again = run(train(folder));  // the folder counts as empty
      EXPECT_EQ(again.code, 0) << when << again.err;
      expect_whole(folder, when);
    } else {
      if (saved) {
        const Ended looked = run({"eval", folder});
        EXPECT_EQ(looked.code, 0) << when << looked.err;
      }
      const Ended resumed = run({"resume", folder, "--threads", "1", "-q"});
      EXPECT_EQ(resumed.code, 0) << when << resumed.err;
      EXPECT_THAT(resumed.err, testing::Not(testing::HasSubstr("damaged"))) << when;
      expect_whole(folder, when);
    }
    std::filesystem::remove_all(scratch_ / folder);
  }
};

TEST_F(FileFaults, AnyCallThatFailsLosesNothing) {
  const unsigned long calls = calls_of("", train("whole"));
  ASSERT_GT(calls, 30u) << "the library was not loaded";
  for (unsigned long n = 1; n <= calls; ++n) expect_recovery("fail", n);
}

TEST_F(FileFaults, AnEndAtAnyCallLosesNothing) {
  const unsigned long calls = calls_of("", train("whole"));
  ASSERT_GT(calls, 30u) << "the library was not loaded";
  for (unsigned long n = 1; n <= calls; ++n) expect_recovery("stop", n);
}

TEST_F(FileFaults, NorOnAFileSystemThatCannotExchangeFiles) {
  const unsigned long calls = calls_of("no-exchange", train("whole"));
  ASSERT_GT(calls, 30u) << "the library was not loaded";
  for (unsigned long n = 1; n <= calls; ++n) expect_recovery("no-exchange,stop", n);
}

}  // namespace
}  // namespace gradloom::test
