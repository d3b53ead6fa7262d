// Runs on a device that fails: what was saved before is whole, and the run goes on elsewhere.
#include "tests/support/device.h"

#include "gradloom/app/recipe.h"
#include "gradloom/app/run/run.h"
#include "gradloom/io/file.h"
#include "tests/support/scratch.h"

namespace gradloom::app {
namespace {

using RunOnDevice = test::DeviceTest;

Config small_recipe(const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {"epochs=6",
                                        "data.samples=60",
                                        "data.test_samples=20",
                                        "train.batch=20",
                                        "train.checkpoint_seconds=1e-6",
                                        "optimizer.kind=adam",
                                        "optimizer.lr=0.01",
                                        "precision=float32"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return load_recipe("kan-hello", overrides).or_throw();
}

RunOptions on_cpu() {
  RunOptions options;
  options.exec.threads = 1;
  return options;
}

TEST_F(RunOnDevice, LostDeviceLeavesACheckpointFromWhichTheCpuGoesOn) {
  const test::Scratch scratch;
  const Config recipe = small_recipe();
  RunOptions options = on_cpu(), cpu = on_cpu();
  options.device = own_device({.lose_at_submit = 90});
  cpu.exec = test::exec_like(*options.device);
  const auto whole = train(recipe, scratch / "whole", cpu).or_throw();
  const auto lost = train(recipe, scratch / "run", options);
  ASSERT_FALSE(lost.ok()) << "the device was not lost; the run was too short";
  EXPECT_EQ(lost.error().code, ErrorCode::device_lost) << lost.error().message;
  const auto resumed = resume(scratch / "run", cpu).or_throw();
  EXPECT_EQ(to_json(resumed)["test"], to_json(whole)["test"]);
}

TEST_F(RunOnDevice, CompressedGradientsGoOnAfterALostDevice) {
  const test::Scratch scratch;
  const Config recipe = small_recipe({"optimizer.device=host", "optimizer.compress=top-k", "train.accumulate=2"});
  const auto on = [&](const vulkan::Faults& faults) {
    RunOptions options = on_cpu();
    options.device = own_device(faults);
    return options;
  };
  const auto whole = train(recipe, scratch / "whole", on({})).or_throw();
  const auto lost = train(recipe, scratch / "run", on({.lose_at_submit = 120}));
  ASSERT_FALSE(lost.ok()) << "the device was not lost; the run was too short";
  EXPECT_EQ(lost.error().code, ErrorCode::device_lost) << lost.error().message;
  const auto resumed = resume(scratch / "run", on({})).or_throw();
  EXPECT_EQ(to_json(resumed)["test"], to_json(whole)["test"]);
}

TEST_F(RunOnDevice, WhereTheOptimizerRunsIsChecked) {
  const test::Scratch scratch;
  const auto error_of = [&](const std::vector<std::string>& more) {
    RunOptions options = on_cpu();
    options.device = own_device({});
    const auto result = train(small_recipe(more), scratch / "run", options);
    return result.ok() ? Error{ErrorCode::busy, "none"} : result.error();
  };
  EXPECT_EQ(error_of({"optimizer.kind=lbfgs", "optimizer.device=device"}).code, ErrorCode::unsupported);
  EXPECT_EQ(error_of({"optimizer.kind=lbfgs", "optimizer.compress=16-bit"}).code, ErrorCode::unsupported);
  EXPECT_EQ(error_of({"optimizer.compress=16-bit"}).code, ErrorCode::invalid_input);
  EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
  EXPECT_EQ(error_of({"optimizer.kind=lbfgs"}).message, "none") << "L-BFGS runs on the host by itself";
}

TEST_F(RunOnDevice, FullDeviceIsRefusedBeforeAnythingIsWritten) {
  const test::Scratch scratch;
  RunOptions options = on_cpu();
  options.device = own_device({.memory_bytes = 2000});
  const auto result = train(small_recipe(), scratch / "run", options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::device_memory) << result.error().message;
  EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
  // A device that is only preferred gives way, and says so.
  std::string told;
  options.device_policy = DevicePolicy::preferred;
  options.log = [&](LogLevel, const std::string& text) { told += text; };
  EXPECT_EQ(train(small_recipe(), scratch / "run", options).or_throw().result->device, "cpu");
  EXPECT_NE(told.find("running on the CPU: the device has no room"), std::string::npos) << told;
}

TEST_F(RunOnDevice, OtherFamiliesAreRefusedOrRunOnTheCpu) {
  const test::Scratch scratch;
  const Config recipe = load_recipe("checkerboard-small", std::vector<std::string>{"epochs=1"}).or_throw();
  RunOptions options = on_cpu();
  options.device = own_device({});
  EXPECT_EQ(train(recipe, scratch / "refused", options).error().code, ErrorCode::unsupported);
  options.device_policy = DevicePolicy::preferred;
  EXPECT_TRUE(train(recipe, scratch / "run", options).ok());
}

}  // namespace
}  // namespace gradloom::app
