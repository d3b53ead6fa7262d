// Several processes, started by the mpirun of the build's MPI, end with the bits of one.
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/cli/program.h"
#include "tests/support/small_data.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

const Words kSplines = {"train", "kan-hello",           "--set", "data.samples=2600", "--set", "optimizer.kind=adam",
                        "--set", "train.batch=2048",    "--set", "optimizer.lr=0.01", "--set", "data.validation=0.1",
                        "--set", "data.test_samples=50"};

Words with_settings(const Words& settings) {
  Words words;
  for (const std::string& setting : settings) words = words + Words{"--set", setting};
  return words;
}

class RanksOfMpi : public ProgramTest {
 protected:
  void SetUp() override {
    if (const std::string& reason = why_no_ranks(); !reason.empty()) GTEST_SKIP() << reason;
  }
  // Why ranks cannot be started as the tests do, or an empty text.
  static const std::string& why_no_ranks() {
    static const std::string reason = [] {
      if (std::string(GRADLOOM_MPIRUN).empty()) return "this build has no MPI";
      Launch l;
      l.program = GRADLOOM_MPIRUN;
      l.arguments = {"--version"};
      l.folder = "/";
      // "mpirun (Open MPI) 4.1.4", "mpiexec (OpenRTE) 4.1.4"
      const std::string version = Process(l).wait().out;
      const bool open = version.find("Open MPI") != std::string::npos || version.find("OpenRTE") != std::string::npos;
      return open ? "" : "this build's mpirun is not that of Open MPI";
    }();
    return reason;
  }
  Launch on_ranks(unsigned ranks, const Words& words) const {
    return mpirun(Words{"-n", std::to_string(ranks), GRADLOOM_PROGRAM} + words);
  }
  // On this machine alone, also where it has fewer processors.
  Launch mpirun(const Words& words) const {
    Launch l = launch(words);
    l.program = GRADLOOM_MPIRUN;
    std::ifstream variables(GRADLOOM_MPI_ENVIRONMENT);
    EXPECT_TRUE(variables.is_open()) << GRADLOOM_MPI_ENVIRONMENT;
    for (std::string line; std::getline(variables, line);)
      if (const std::size_t equals = line.find('='); !line.starts_with('#') && equals != std::string::npos)
        l.environment[line.substr(0, equals)] = line.substr(equals + 1);
    return l;
  }
  Ended run_on(unsigned ranks, const Words& words) const { return Process(on_ranks(ranks, words)).wait(); }

  // The process of a rank that runs in our folder; 0: there is none.
  pid_t process_of(unsigned rank) const {
    const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code ignored;
      const std::string name = entry.path().filename().string();
      if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
      if (std::filesystem::read_symlink(entry.path() / "cwd", ignored) != scratch_.path()) continue;
      const std::string environment = bytes_of(entry.path() / "environ");
      if (environment.find(std::string(1, '\0') + wanted + '\0') != std::string::npos) return std::stoi(name);
    }
    return 0;
  }
  bool signal_rank(unsigned rank, int signal) const {
    const pid_t process = process_of(rank);
    return process > 0 && kill(process, signal) == 0;
  }
  // Processor time that a rank has used, in seconds.
  double processor_seconds(unsigned rank) const {
    const std::string stat = bytes_of("/proc/" + std::to_string(process_of(rank)) + "/stat");
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    double user = 0.0, system = 0.0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  void expect_same_end(const std::string& folder, const std::string& whole) const {
    ASSERT_FALSE(checkpoint(whole).empty());
    EXPECT_TRUE(checkpoint(folder) == checkpoint(whole)) << "the checkpoints differ";
    EXPECT_TRUE(log(folder) == log(whole)) << "the logs differ";
  }
};

// Every rank has a share of every batch.
class FamiliesOnMpi : public RanksOfMpi {
 protected:
  Words gates(const std::string& epochs) const {
    write("table.csv", small_table(1100));
    return Words{"train", "logic-classify"} +
           with_settings({"epochs=" + epochs, "model.gates=[64,32]", "data.validation=0", "data.path=table.csv",
                          "data.test_path=", "data.test=0.1", "data.header=no", "data.target=-1", "data.drop=[]",
                          "data.categorical=['0','1']", "train.batch=896"});
  }
  static Words automata(const std::string& epochs) {
    return Words{"train", "checkerboard-small"} + with_settings({"epochs=" + epochs, "data.height=8", "data.width=8",
                                                                 "model.steps=3", "data.samples=28", "train.batch=14"});
  }
  Words graphs(const std::string& epochs) const {
    write("rings.json", rings_and_paths());
    return Words{"train", "tu"} + with_settings({"epochs=" + epochs, "data.path=rings.json", "data.folds=4",
                                                 "data.fold=0", "data.features=degrees", "train.batch=14",
                                                 "model.hidden=[4]", "model.norm=none", "model.layer=gin"});
  }

  void expect_same(const Words& words) const {
    ASSERT_EQ(run(words + Words{"--out", "whole", "--threads", "1", "--quiet"}).code, 0);
    for (const unsigned ranks : {1u, 2u, 3u, 4u, 7u})
      for (const unsigned threads : {1u, 2u}) {
        const std::string folder = "ranks-" + std::to_string(ranks) + "-" + std::to_string(threads);
        const Ended ended =
            run_on(ranks, words + Words{"--out", folder, "--json", "--threads", std::to_string(threads)});
        ASSERT_EQ(ended.code, 0) << ended.err;
        const nlohmann::json summary = parsed(ended);
        if (ranks > 1) {
          EXPECT_EQ(summary["ranks"], ranks) << "one rank speaks, and all have trained";
          EXPECT_EQ(summary["idle_ranks"], nlohmann::json::array());
          EXPECT_GT(summary["bytes_sent"], 1000);
        }
        expect_same_end(folder, "whole");
      }
  }
};

TEST_F(FamiliesOnMpi, SplinesEndWithTheCheckpointOfOneProcess) {
  expect_same(kSplines + Words{"--set", "epochs=4", "--set", "data.samples=4200", "--set", "train.batch=3584"});
}

TEST_F(FamiliesOnMpi, GateClassifiersEndWithTheCheckpointOfOneProcess) { expect_same(gates("2")); }

TEST_F(FamiliesOnMpi, AutomataEndWithTheCheckpointOfOneProcess) { expect_same(automata("2")); }

TEST_F(FamiliesOnMpi, GraphTasksEndWithTheCheckpointOfOneProcess) { expect_same(graphs("2")); }

TEST_F(FamiliesOnMpi, EndAsOneProcessAfterARankWasKilledAndAnotherNumberResumed) {
  int n = 0;
  for (const Words& family : {gates("150"), automata("150"), graphs("1500")}) {
    const std::string whole = "whole-" + std::to_string(n), cut = "cut-" + std::to_string(n++);
    const Words words = family + Words{"--set", "train.checkpoint_seconds=0.05", "--quiet"};
    ASSERT_EQ(run(words + Words{"--out", whole}).code, 0);
    {
      Process process(on_ranks(2, words + Words{"--out", cut}));
      ASSERT_TRUE(process.wait_until([&] { return has_checkpoint(cut); }));
      ASSERT_TRUE(signal_rank(1, SIGKILL));
      EXPECT_NE(process.wait().code, 0);
    }
    const Ended resumed = run_on(3, {"resume", cut, "--quiet"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    expect_same_end(cut, whole);
  }
}

TEST_F(RanksOfMpi, AModelThatCannotBeSharedIsTrainedByRankZeroWhichSaysWhy) {
  const Words words = Words{"train", "karate"} + with_settings({"epochs=3"});
  ASSERT_EQ(run(words + Words{"--out", "whole", "--quiet"}).code, 0);
  const Ended ended = run_on(3, words + Words{"--out", "ranks"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("rank 0 trains alone, the other ranks are idle: the nodes of a graph are computed together"));
  expect_same_end("ranks", "whole");
}

TEST_F(RanksOfMpi, WithoutAShareAreNamed) {
  const Words words = kSplines + Words{"--set", "epochs=2", "--set", "train.batch=300"};  // 2 leaves
  ASSERT_EQ(run(words + Words{"--out", "whole", "--quiet"}).code, 0);
  const Ended ended = run_on(3, words + Words{"--out", "ranks"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("rank 0 will be idle"));
  expect_same_end("ranks", "whole");
}

TEST_F(RanksOfMpi, ARankThatIsKilledEndsTheRunAndAnotherNumberResumesIt) {
  const Words words = kSplines + Words{"--set", "epochs=2000", "--set", "train.checkpoint_seconds=0.05", "--quiet"};
  ASSERT_EQ(run(words + Words{"--out", "whole"}).code, 0);
  {
    Process process(on_ranks(3, words + Words{"--out", "cut"}));
    ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("cut"); }));
    ASSERT_TRUE(signal_rank(1, SIGKILL));
    const Ended ended = process.wait();
    EXPECT_FALSE(ended.timed_out);
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr("rank 1"));
  }
  const Ended resumed = run_on(2, {"resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_same_end("cut", "whole");
}

// A launcher that lets the others live, as those of several machines do when a machine is lost.
TEST_F(RanksOfMpi, ARankThatIsKilledIsNoticedByTheOthersThemselves) {
  const Words words = kSplines + Words{"--set", "epochs=100000", "--set", "train.checkpoint_seconds=0.05", "--quiet"};
  Launch l = on_ranks(2, words + Words{"--out", "cut"});
  l.environment["OMPI_MCA_orte_abort_on_non_zero_status"] = "0";
  l.environment["OMPI_MCA_orte_enable_recovery"] = "1";
  Process process(l);
  ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("cut"); }));
  ASSERT_TRUE(signal_rank(1, SIGKILL));
  const Ended ended = process.wait(std::chrono::seconds(240));
  EXPECT_FALSE(ended.timed_out);  // its code is the launcher's, which was told that failures are none
  EXPECT_THAT(ended.err, HasSubstr("rank 1 (process "));
  EXPECT_THAT(ended.err, HasSubstr("has died"));
  EXPECT_THAT(ended.err, HasSubstr("the last checkpoint is intact; `gradloom resume cut` continues from it"));
  EXPECT_EQ(run({"eval", "cut", "--json"}).code, 0);
}

TEST_F(RanksOfMpi, ARankThatDoesNotAnswerIsWaitedForAsleepAndNamedAfterTheStatedTime) {
  const Words words = kSplines + Words{"--set", "epochs=100000", "--set", "train.checkpoint_seconds=0.05", "--quiet"};
  Launch l = on_ranks(2, words + Words{"--out", "cut"});
  l.environment["GRADLOOM_MPI_SECONDS"] = "15";
  Process process(l);
  ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("cut"); }));
  ASSERT_TRUE(signal_rank(1, SIGSTOP));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // what it was doing is done
  const double before = processor_seconds(0);
  std::this_thread::sleep_for(std::chrono::seconds(4));
  EXPECT_GT(before, 0.0);
  EXPECT_LT(processor_seconds(0) - before, 1.0) << "a rank that spins would have used 4 s";
  const Ended ended = process.wait(std::chrono::seconds(240));
  signal_rank(1, SIGKILL);
  EXPECT_FALSE(ended.timed_out);
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("rank 1 did not answer for 15 s"));
}

TEST_F(RanksOfMpi, APeerThatNeverComesEndsTheStartAfterTheStatedTime) {
  Launch l = mpirun(
      Words{"-n", "1", GRADLOOM_PROGRAM, "train", "kan-hello", "--out", "never", ":", "-n", "1", "sleep", "1000"});
  l.environment["GRADLOOM_MPI_SECONDS"] = "3";
  const Ended ended = Process(l).wait(std::chrono::seconds(240));
  EXPECT_FALSE(ended.timed_out);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("not all of the 2 ranks started within 3 s"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "never"));
}

TEST_F(RanksOfMpi, OtherDataOnARankAreNamedBeforeAnythingIsWritten) {
  std::filesystem::create_directories(scratch_ / "here");
  std::filesystem::create_directories(scratch_ / "there");
  write("here/table.csv", "1,2\n3,4\n5,6\n");
  write("there/table.csv", "1,2\n3,4\n5,7\n");
  const auto rank_in = [&](const std::string& data) {
    return Words{"-n",       "1",     "env",  "GRADLOOM_DATA=" + (scratch_ / data).string(), GRADLOOM_PROGRAM, "train",
                 "kan-rows", "--out", "never"} +
           with_settings(
               {"data.path=table.csv", "data.header=no", "data.target=-1", "data.test=0", "epochs=1", "train.batch=0"});
  };
  const Ended ended = Process(mpirun(rank_in("here") + Words{":"} + rank_in("there"))).wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("rank 1 has other training data than rank 0"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "never"));
}

TEST_F(RanksOfMpi, AFolderThatRankZeroCannotWriteIsToldOnce) {
  write("file", "");
  const Ended ended = run_on(3, kSplines + Words{"--out", "file/run"});
  EXPECT_NE(ended.code, 0);
  EXPECT_FALSE(ended.timed_out);
  const std::size_t first = ended.err.find("gradloom: ");
  ASSERT_NE(first, std::string::npos) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("file/run"));
  EXPECT_EQ(ended.err.find("gradloom: ", first + 1), std::string::npos) << ended.err;
}

TEST_F(RanksOfMpi, TrainSeedsAndSweepsSideBySide) {
  const Words words = Words{"train", "kan-hello"} + kTiny + Words{"--quiet"};
  const nlohmann::json alone = json_of(words + Words{"--seeds", "5", "--out", "seeds"});
  Ended ended = run_on(3, words + Words{"--seeds", "5", "--out", "seeds-3", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const nlohmann::json shared = parsed(ended);
  EXPECT_EQ(shared["ranks"], 3);
  EXPECT_EQ(shared["median"], alone["median"]);
  ASSERT_EQ(shared["runs"].size(), 5u);
  for (unsigned seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(shared["runs"][seed]["seed"], seed);
    expect_same_end("seeds-3/seed-" + std::to_string(seed), "seeds/seed-" + std::to_string(seed));
  }
  const Words sweep = {"--sweep", "optimizer.lr=0.5,0.1,0.05", "--sweep", "model.hidden=[2],[3]"};
  const nlohmann::json table = json_of(words + sweep + Words{"--out", "sweep"});
  ended = run_on(4, words + sweep + Words{"--out", "sweep-4", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const nlohmann::json dealt = parsed(ended);
  EXPECT_EQ(dealt["ranks"], 4);
  ASSERT_EQ(dealt["runs"].size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(dealt["runs"][i]["set"], table["runs"][i]["set"]);
    EXPECT_EQ(dealt["runs"][i]["test"], table["runs"][i]["test"]);
    EXPECT_EQ(dealt["runs"][i]["run"].get<std::string>().rfind("sweep-4/", 0), 0u);
  }
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "sweep-4/report.html"));
}

TEST_F(RanksOfMpi, SendWhatTheFormulaSays) {
  const auto expect_bytes = [&](unsigned ranks, const char* widths, double sections) {
    const Ended ended = run_on(
        ranks, {"bench", "kan", "--widths", widths, "--batch", "4096", "--threads", "1", "--seconds", "0.1", "--json"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const nlohmann::json r = parsed(ended);
    EXPECT_EQ(r["ranks"], ranks);
    EXPECT_EQ(r["messages_per_step"], (sections + 1) * (ranks - 1));
    const double sent = r["bytes_sent_per_step"], formula = r["bytes_by_formula"];
    EXPECT_LE(sent, 1.1 * formula + 1024);
    EXPECT_GE(sent, 0.9 * formula);
    EXPECT_GT(r["communication_ms"], 0.0);
    EXPECT_LT(r["overlap"], 1.0);
    if (sections == 1) {
      EXPECT_EQ(r["overlap"], 0.0);
    } else {
      EXPECT_GT(r["overlap"], 0.0);
    }
  };
  for (const unsigned ranks : {2u, 3u, 4u}) expect_bytes(ranks, "16,32,8", 1);
  for (const unsigned ranks : {2u, 3u}) expect_bytes(ranks, "21,64,64,24", 4);
}

TEST_F(RanksOfMpi, MeasureSharedStepsOfAutomataAndGraphs) {
  for (const Words& words :
       {Words{"bench", "logic", "--recipe", "checkerboard-small", "--set", "train.batch=4", "--set", "data.samples=8"},
        Words{"bench", "graph", "--graphs", "8", "--nodes", "20", "--features", "8"}}) {
    const Ended ended = run_on(2, words + Words{"--threads", "1", "--seconds", "0.1", "--json"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const nlohmann::json r = parsed(ended);
    EXPECT_EQ(r["ranks"], 2);
    EXPECT_EQ(r["messages_per_step"], 2.0);
    EXPECT_GT(r["bytes_sent_per_step"], 100.0);
    EXPECT_GT(r["communication_ms"], 0.0);
    EXPECT_EQ(r["overlap"], 0.0);
  }
  const Ended alone = run_on(2, {"bench", "graph", "--nodes", "50", "--threads", "1", "--seconds", "0.1", "--json"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("ranks do not share the steps of this model"));
  EXPECT_GT(parsed(alone)["train_step_ms"], 0.0);
}

TEST_F(RanksOfMpi, PredictWithTheBytesOfOneProcess) {
  write("table.csv", small_table(300));
  ASSERT_EQ(run(Words{"train", "kan-rows", "--out", "run", "--quiet"} +
                with_settings({"data.path=table.csv", "data.header=no", "data.target=-1", "epochs=2"}))
                .code,
            0);
  const Words words = {"predict", "run", "--data", "table.csv", "--json", "--out"};
  const Ended one = run(words + Words{"one.csv"}), many = run_on(3, words + Words{"many.csv"});
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_EQ(parsed(many)["data"], parsed(one)["data"]);
  ASSERT_FALSE(bytes_of(scratch_ / "one.csv").empty());
  EXPECT_EQ(bytes_of(scratch_ / "many.csv"), bytes_of(scratch_ / "one.csv"));
}

TEST_F(RanksOfMpi, ASignalFinishesTheStepAndSavesOnAllRanks) {
  const Words words = kSplines + Words{"--set", "epochs=2000", "--set", "train.checkpoint_seconds=0.05", "--quiet"};
  ASSERT_EQ(run(words + Words{"--out", "whole"}).code, 0);
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
    const std::string cut = "cut-" + std::to_string(signal);
    {
      Process process(on_ranks(2, words + Words{"--out", cut}));
      ASSERT_TRUE(process.wait_until([&] { return has_checkpoint(cut); }));
      process.send(signal);  // mpirun hands it on
      const Ended ended = process.wait();
      EXPECT_NE(ended.code, 0);
      EXPECT_THAT(ended.err, HasSubstr("gradloom resume " + cut)) << signal;
    }
    const Ended resumed = run({"resume", cut, "--quiet"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    expect_same_end(cut, "whole");
  }
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
  const std::size_t first = ended.err.find("libgradloom_mpi.so was not loaded");
  ASSERT_NE(first, std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("libgradloom_mpi.so was not loaded", first + 1), std::string::npos) << ended.err;
}

TEST_F(RanksOfMpi, ARankThatAloneHasNoPlugInSaysSo) {
  const Words words = {GRADLOOM_PROGRAM, "train", "kan-hello", "--out", "never"};
  const Ended ended =
      Process(mpirun(Words{"-n", "1"} + words + Words{":", "-n", "1", "env", "GRADLOOM_MPI=/nowhere.so"} + words))
          .wait();
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("rank 1: "));
  EXPECT_THAT(ended.err, HasSubstr("/nowhere.so"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "never"));
}

TEST_F(RanksOfMpi, OfAnotherMpiAreRefused) {
  Launch l = launch({"train", "kan-hello"});
  l.environment["PMI_RANK"] = "0", l.environment["PMI_SIZE"] = "4";
  const Ended ended = Process(l).wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("start it with the mpirun of that MPI"));
}

}  // namespace
}  // namespace gradloom::test
