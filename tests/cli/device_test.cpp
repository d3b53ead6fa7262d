// The command on a Vulkan device: the same files as on the CPU.
#include <signal.h>

#include "gradloom/exec/vulkan/info.h"
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

// Instead of the recipe's L-BFGS, which stays on the host.
const Words kAdam = kTiny + Words{"--set", "optimizer.kind=adam", "--set", "optimizer.lr=0.01",
                                  "--set", "precision=float32",   "--set", "train.batch=20"};

class OnDevice : public ProgramTest {
 protected:
  // Under a fault of faults/vulkan_faults.cpp, or none.
  Ended run_with(const std::string& fault, const Words& words, const std::map<std::string, std::string>& more = {}) {
    Launch l = launch(words);
    l.environment["LD_PRELOAD"] = fault.empty() ? "" : GRADLOOM_VULKAN_FAULTS;
    l.environment["VULKAN_FAULT"] = fault;
    l.environment.insert(more.begin(), more.end());
    return Process(l).wait();
  }

  // For the CPU: the arithmetic of the device that --device gpu means.
  Words as_device() const {
    const auto devices = json_of({"devices"})["devices"];
    const auto chosen = vulkan::choose_device(*vulkan::list_devices(), "gpu").or_throw();
    for (const auto& device : devices)
      if (device.value("number", -1) == static_cast<int>(chosen.number)) return {"--arithmetic", device["arithmetic"]};
    ADD_FAILURE() << devices;
    return {};
  }

  void SetUp() override {
    const auto devices = vulkan::list_devices();
    if (!devices || devices->empty()) GTEST_SKIP() << (devices ? "there is no Vulkan device" : devices.error().message);
  }
};

TEST_F(OnDevice, TrainingAndEvaluationGiveTheResultsOfTheCpu) {
  json_of(Words{"train", "kan-hello", "--out", "cpu"} + as_device() + kAdam);
  const auto trained = json_of(Words{"train", "kan-hello", "--out", "gpu", "--device", "gpu", "--profile"} + kAdam);
  EXPECT_NE(trained["device"], "cpu");
  EXPECT_TRUE(trained["phases"].contains("gpu forward layer 0")) << trained["phases"];
  const auto a = json_of(Words{"eval", "cpu", "--predictions", "a.csv"} + as_device());
  const auto b = json_of({"eval", "gpu", "--predictions", "b.csv", "--device", "gpu"});
  EXPECT_EQ(a["test"], b["test"]);
  EXPECT_EQ(bytes_of(scratch_ / "a.csv"), bytes_of(scratch_ / "b.csv"));
}

// A file that is no library stands in the way of the system's.
TEST_F(OnDevice, WithoutVulkanTheProgramStartsAndSaysWhatIsMissing) {
  std::filesystem::create_directory(scratch_ / "lib");
  std::ofstream(scratch_ / "lib" / "libvulkan.so.1") << "";
  const std::map<std::string, std::string> no_vulkan{{"LD_LIBRARY_PATH", (scratch_ / "lib").string()}};
  EXPECT_EQ(run_with("", {"devices"}, no_vulkan).code, 0);
  EXPECT_EQ(run_with("", Words{"train", "kan-hello"} + kAdam, no_vulkan).code, 0);
  const Ended refused = run_with("", Words{"train", "kan-hello", "--device", "gpu"} + kAdam, no_vulkan);
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, testing::HasSubstr("Vulkan is not installed"));
}

TEST_F(OnDevice, DevicesTellTheirArithmetic) {
  const auto devices = json_of({"devices"})["devices"];
  const nlohmann::json names = {"fused", "split"};
  EXPECT_EQ(devices[0]["arithmetic"].back(), "split");
  for (std::size_t n = 1; n < devices.size(); ++n)
    EXPECT_TRUE(std::count(names.begin(), names.end(), devices[n]["arithmetic"]) == 1) << devices[n];
  EXPECT_THAT(run({"devices"}).out, testing::HasSubstr("arithmetic"));
}

// Asked for by name, an arithmetic that the device does not have is an error.
TEST_F(OnDevice, FusedArithmeticIsRefusedWhereTheDeviceHasNone) {
  if (as_device()[1] != "split") GTEST_SKIP() << "the device has fused arithmetic";
  const Words words = Words{"train", "kan-hello", "--device", "gpu", "--arithmetic", "fused"} + kAdam;
  EXPECT_EQ(json_of(words, 3)["error"]["code"], "unsuitable_device");
}

TEST_F(OnDevice, SparsityIsCompletedByTheHostAndNeverLeftOut) {
  const Words words = Words{"train", "kan-hello", "--device", "gpu", "--set", "model.sparsity=0.001"} + kAdam;
  const auto refused = json_of(words + Words{"--set", "optimizer.device=device"}, 2);
  EXPECT_EQ(refused["error"]["code"], "unsupported");
  EXPECT_THAT(refused["error"]["message"].get<std::string>(), testing::HasSubstr("model.sparsity"));
  const auto checked = json_of(
      Words{"check", "kan-hello", "--device", "gpu", "--max-elements", "20", "--set", "model.sparsity=0.01"} + kAdam);
  EXPECT_TRUE(checked["passed"]);
  EXPECT_LE(checked["device_difference"], 1e-4);
}

TEST_F(OnDevice, ADeviceInSoftwareIsToldAsSuch) {
  if (vulkan::list_devices()->front().kind != vulkan::DeviceKind::software) GTEST_SKIP() << "the device is no software";
  const Words words = Words{"train", "kan-hello", "--device", "0"} + kAdam;
  const std::string note = "is a software device; its times are not those of a GPU";
  EXPECT_THAT(run(words).err, testing::HasSubstr(note));
  for (const char* flag : {"--quiet", "--json"})
    EXPECT_THAT(run(words + Words{flag}).err, testing::Not(testing::HasSubstr(note)));
}

TEST_F(OnDevice, CheckComparesTheDeviceWithTheCpu) {
  const auto r = json_of(Words{"check", "kan-hello", "--device", "gpu", "--max-elements", "20"} + kAdam);
  EXPECT_TRUE(r["passed"]);
  EXPECT_LE(r["device_difference"], 1e-4);
}

TEST_F(OnDevice, BenchCountsWhatAStepMoves) {
  const auto r =
      json_of({"bench", "kan", "--device", "gpu", "--widths", "8,16,8,4", "--batch", "32", "--seconds", "0.01"});
  EXPECT_EQ(r["submits_per_step"], 1);
  EXPECT_EQ(r["bytes_device_to_host_per_step"], 0);
  EXPECT_EQ(r["bytes_host_to_device_per_step"], 512 + 32 * 8 * 4 + 32 * 4 * 4);
  EXPECT_LE(r["dispatches_per_step"], 4 * 3);
  EXPECT_GT(r["device_memory_bytes"], r["parameter_bytes"]);
  EXPECT_FALSE(r["kernel_us"].empty());
}

TEST_F(OnDevice, ARunThatWasResumedElsewhereGivesTheSameBits) {
  const Words training = Words{"train", "kan-hello"} + kAdam;
  json_of(training + Words{"--out", "whole", "--device", "gpu"});
  // A lost device leaves a checkpoint in the middle.
  const Ended lost = run_with(
      "lose=60", training + Words{"--set", "train.checkpoint_seconds=1e-6", "--out", "run", "--device", "gpu"});
  EXPECT_EQ(lost.code, 3) << lost.err;
  ASSERT_TRUE(has_checkpoint("run"));
  EXPECT_THAT(lost.err, testing::HasSubstr("gradloom resume run"));
  EXPECT_EQ(run(Words{"resume", "run"} + as_device()).code, 0);
  const auto a = json_of({"eval", "whole", "--predictions", "a.csv"});
  const auto b = json_of({"eval", "run", "--predictions", "b.csv"});
  EXPECT_EQ(a["test"], b["test"]);
  EXPECT_EQ(bytes_of(scratch_ / "a.csv"), bytes_of(scratch_ / "b.csv"));
}

// What compression keeps back is part of the state, however often a run saves.
TEST_F(OnDevice, CheckpointsOfCompressedGradientsDoNotDependOnWhenTheyAreSaved) {
  const Words training = Words{"train",    "kan-hello",
                               "--device", "gpu",
                               "--set",    "optimizer.device=host",
                               "--set",    "optimizer.compress=top-k"} +
                         kAdam;
  json_of(training + Words{"--out", "rare", "--set", "train.checkpoint_seconds=1000"});
  json_of(training + Words{"--out", "often", "--set", "train.checkpoint_seconds=1e-6"});
  EXPECT_TRUE(checkpoint("rare") == checkpoint("often"));
  EXPECT_THAT(checkpoint("rare"), testing::HasSubstr("residual/"));
}

TEST_F(OnDevice, FaultsHaveNamesAndTheExitCodeThree) {
  const Words training = Words{"train", "kan-hello", "--out", "run", "--json", "--device"} + kAdam;
  const auto name_of = [&](const std::string& fault, const std::string& device) {
    Words words = training;
    words.insert(words.begin() + 6, device);
    const Ended ended =
        fault == "driver" ? run_with("", words, {{"VK_ICD_FILENAMES", "/nonexistent"}}) : run_with(fault, words);
    EXPECT_EQ(ended.code, 3) << ended.err << ended.out;
    EXPECT_FALSE(has_checkpoint("run"));
    return parsed(ended)["error"].value("code", "");
  };
  EXPECT_EQ(name_of("driver", "gpu"), "missing_device");
  EXPECT_EQ(name_of("", "no-such-device"), "missing_device");
  EXPECT_EQ(name_of("limits", "gpu"), "unsuitable_device");
  EXPECT_EQ(name_of("memory=1", "gpu"), "device_memory");
  EXPECT_EQ(name_of("lose=1", "gpu"), "device_lost");
}

TEST_F(OnDevice, LbfgsRunsOnTheHostWithGradientsOfTheDevice) {
  const auto trained = json_of(Words{"train", "kan-hello", "--out", "run", "--device", "gpu"} + kTiny);
  EXPECT_NE(trained["device"], "cpu");
  EXPECT_TRUE(trained["test"].contains("rmse"));
}

TEST_F(OnDevice, AnInterruptedRunSaysWhereItWasAndGoesOnThere) {
  const Words training = {"train", "kan-hello", "--out", "run", "--device", "gpu"};
  Process process(
      launch(training + kAdam + Words{"--set", "epochs=1000000", "--set", "train.checkpoint_seconds=0.02"}));
  ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("run"); }));
  process.send(SIGINT);
  const Ended cut = process.wait();
  EXPECT_EQ(cut.code, 130) << cut.err;
  const auto devices = json_of({"devices"})["devices"];
  bool named = false;
  for (const auto& device : devices)
    if (device.contains("number") &&
        cut.err.find("running on " + device["name"].get<std::string>()) != std::string::npos) {
      named = true;
      EXPECT_THAT(cut.err, testing::HasSubstr("gradloom resume run --device " + device["number"].dump()));
    }
  EXPECT_TRUE(named) << cut.err;
}

TEST_F(OnDevice, CheckSaysWhatWasComparedAndWhatIsAllowed) {
  const Ended lbfgs = run(Words{"check", "kan-hello", "--device", "gpu", "--max-elements", "20"} + kTiny);
  EXPECT_EQ(lbfgs.code, 0) << lbfgs.err;
  EXPECT_THAT(lbfgs.out, testing::HasSubstr("parameters after 4 steps of lbfgs"));
  const auto r = json_of(Words{"check", "kan-hello", "--device", "gpu", "--max-elements", "20"} + kTiny);
  if (!r["device_equal"].get<bool>()) {
    EXPECT_THAT(lbfgs.out, testing::HasSubstr("0.0001 is allowed"));
  }
}

TEST_F(OnDevice, AutoTellsWhereItRuns) {
  const Ended ended = run(Words{"train", "kan-hello", "--out", "auto", "--device", "auto"} + kTiny);
  EXPECT_EQ(ended.code, 0);
  const auto devices = vulkan::list_devices();
  bool real = false;
  for (const auto& info : *devices) real = real || info.kind != vulkan::DeviceKind::software;
  if (!real) {
    EXPECT_THAT(ended.err, testing::HasSubstr("running on the CPU"));
  }
}

}  // namespace
}  // namespace gradloom::test
