// Several processes, started by the mpirun of the build's MPI, end with the bits of one.
#include <signal.h>

#include <cctype>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

const Words kSplines = {"train", "kan-hello",           "--set", "data.samples=2600", "--set", "optimizer.kind=adam",
                        "--set", "train.batch=2048",    "--set", "optimizer.lr=0.01", "--set", "data.validation=0.1",
                        "--set", "data.test_samples=50"};

class RanksOfMpi : public ProgramTest {
 protected:
  void SetUp() override {
    if (std::string(GRADLOOM_MPIRUN).empty()) GTEST_SKIP() << "this build has no MPI";
  }
  // On this machine alone, also where it has fewer processors.
  Launch on_ranks(unsigned ranks, const Words& words) const {
    Launch l = launch(Words{"-n", std::to_string(ranks), GRADLOOM_PROGRAM} + words);
    l.program = GRADLOOM_MPIRUN;
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                            {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                            {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                            {"OMPI_MCA_btl", "self,vader,tcp"},
                                            {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                            {"OMPI_MCA_btl_tcp_if_include", "lo"},
                                            {"OMPI_MCA_oob_tcp_if_include", "lo"},
                                            {"OMPI_MCA_plm_rsh_agent", "false"}})
      l.environment[name] = value;
    return l;
  }
  Ended run_on(unsigned ranks, const Words& words) const { return Process(on_ranks(ranks, words)).wait(); }

  // Ends the process of a rank that runs in our folder, as a failing machine would. False: there is none.
  bool kill_rank(unsigned rank) const {
    const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code ignored;
      const std::string name = entry.path().filename().string();
      if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
      if (std::filesystem::read_symlink(entry.path() / "cwd", ignored) != scratch_.path()) continue;
      const std::string environment = bytes_of(entry.path() / "environ");
      if (environment.find(std::string(1, '\0') + wanted + '\0') == std::string::npos) continue;
      return kill(std::stoi(name), SIGKILL) == 0;
    }
    return false;
  }

  void expect_same_end(const std::string& folder, const std::string& whole) const {
    ASSERT_FALSE(checkpoint(whole).empty());
    EXPECT_TRUE(checkpoint(folder) == checkpoint(whole)) << "the checkpoints differ";
    EXPECT_TRUE(log(folder) == log(whole)) << "the logs differ";
  }
};

TEST_F(RanksOfMpi, EndWithTheCheckpointOfOneProcess) {
  const Words words = kSplines + Words{"--set", "epochs=6"};
  ASSERT_EQ(run(words + Words{"--out", "whole", "--quiet"}).code, 0);
  for (const unsigned ranks : {2u, 3u}) {
    const std::string folder = "ranks-" + std::to_string(ranks);
    const Ended ended = run_on(ranks, words + Words{"--out", folder, "--json"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(parsed(ended)["ranks"], ranks) << "one rank speaks, and all have trained";
    expect_same_end(folder, "whole");
  }
}

TEST_F(RanksOfMpi, ARankThatIsKilledEndsTheRunAndAnotherNumberResumesIt) {
  const Words words = kSplines + Words{"--set", "epochs=400", "--set", "train.checkpoint_seconds=0.05", "--quiet"};
  ASSERT_EQ(run(words + Words{"--out", "whole"}).code, 0);
  {
    Process process(on_ranks(3, words + Words{"--out", "cut"}));
    ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("cut"); }));
    ASSERT_TRUE(kill_rank(1));
    const Ended ended = process.wait();
    EXPECT_FALSE(ended.timed_out);
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr("rank 1"));
  }
  const Ended resumed = run_on(2, {"resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_same_end("cut", "whole");
}

TEST_F(RanksOfMpi, ASignalFinishesTheStepAndSavesOnAllRanks) {
  const Words words = kSplines + Words{"--set", "epochs=400", "--set", "train.checkpoint_seconds=0.05", "--quiet"};
  ASSERT_EQ(run(words + Words{"--out", "whole"}).code, 0);
  {
    Process process(on_ranks(2, words + Words{"--out", "cut"}));
    ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("cut"); }));
    process.send(SIGUSR1);  // mpirun hands it on
    const Ended ended = process.wait();
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr("gradloom resume cut"));
  }
  const Ended resumed = run({"resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_same_end("cut", "whole");
}

TEST_F(RanksOfMpi, AMistakeIsToldOnce) {
  const Ended ended = run_on(3, {"train", "kan-hello", "--set", "epochs=nine"});
  EXPECT_NE(ended.code, 0);
  const std::size_t first = ended.err.find("gradloom: ");
  ASSERT_NE(first, std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("gradloom: ", first + 1), std::string::npos) << ended.err;
}

TEST_F(RanksOfMpi, WithoutThePlugInOneSentenceSaysWhatToDo) {
  Launch l = on_ranks(2, {"train", "kan-hello"});
  l.environment["GRADLOOM_MPI"] = "/nowhere/libgradloom_mpi.so";
  const Ended ended = Process(l).wait();
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("libgradloom_mpi.so was not loaded"));
}

TEST_F(ProgramTest, RanksOfAnotherMpiAreRefused) {
  if (std::string(GRADLOOM_MPIRUN).empty()) GTEST_SKIP() << "this build has no MPI";
  Launch l = launch({"train", "kan-hello"});
  l.environment["PMI_RANK"] = "0", l.environment["PMI_SIZE"] = "4";
  const Ended ended = Process(l).wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("start it with the mpirun of that MPI"));
}

}  // namespace
}  // namespace gradloom::test
