// Runs say in which arithmetic they compute, keep to it when they go on, and tell what an earlier contract left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>

#include "gradloom/app/recipe.h"
#include "gradloom/app/run/open.h"
#include "gradloom/app/run/run.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/exec/without_fma.h"
#include "gradloom/io/run_log.h"
#include "gradloom/train/checkpoint.h"
#include "tests/support/ranks.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

app::RunOptions computing(Arithmetic arithmetic) {
  app::RunOptions options;
  options.exec.threads = 1;
  options.exec.variant.arithmetic = arithmetic;
  return options;
}

Config small_recipe() {
  return app::load_recipe("kan-hello", std::vector<std::string>{"epochs=3", "data.samples=64", "data.test_samples=8"})
      .or_throw();
}

// Trains one epoch and stops.
void train_a_part(const std::filesystem::path& folder, app::RunOptions options) {
  std::atomic<bool> stop = false;
  options.stop = &stop;
  options.progress = [&](const app::Progress&) { stop = true; };
  ASSERT_TRUE(app::train(small_recipe(), folder, options).or_throw().interrupted);
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string checkpoint_of(const std::filesystem::path& run) { return content_of(run / "checkpoint/last.safetensors"); }

TEST(ArithmeticOfARun, StandsInItsCheckpointLogAndSummary) {
  const Scratch scratch;
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const std::string name(name_of(kArithmetics, arithmetic));
    const auto summary = app::train(small_recipe(), scratch / name, computing(arithmetic)).or_throw();
    EXPECT_EQ(to_json(summary)["arithmetic"], name);
    const auto file = read_safetensors(scratch / name / "checkpoint/last.safetensors").or_throw();
    EXPECT_EQ(checkpoint_head(file, name).or_throw().notes.arithmetic, arithmetic);
    const auto lines = read_run_log(scratch / name / "log.jsonl").or_throw().lines;
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines[0], (nlohmann::json{{"event", "begin"}, {"arithmetic", 2}, {"multiply_add", name}}));
  }
}

TEST(ArithmeticOfARun, IsFollowedByAResumeThatAsksForNone) {
  const Scratch scratch;
  for (const Arithmetic arithmetic : available_arithmetics()) {
    const std::string name(name_of(kArithmetics, arithmetic));
    app::train(small_recipe(), scratch / ("whole-" + name), computing(arithmetic)).or_throw();
    train_a_part(scratch / name, computing(arithmetic));
    app::resume(scratch / name, computing(default_arithmetic())).or_throw();
    EXPECT_EQ(checkpoint_of(scratch / name), checkpoint_of(scratch / ("whole-" + name)));
  }
}

TEST(ArithmeticOfARun, IsNotExchangedByAResumeThatAsksForTheOther) {
  if (available_arithmetics().size() < 2) GTEST_SKIP() << "this processor has one arithmetic";
  const Scratch scratch;
  train_a_part(scratch / "run", computing(Arithmetic::fused));
  app::RunOptions other = computing(Arithmetic::split);
  other.arithmetic = Arithmetic::split;
  const auto outcome = app::resume(scratch / "run", other);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message,
              HasSubstr("was trained in fused arithmetic; split arithmetic would not give equal"));
  EXPECT_TRUE(app::evaluate(scratch / "run", other, {}));
}

TEST(ArithmeticOfARun, IsThatOfItsModelUnlessAnotherIsAskedFor) {
  if (available_arithmetics().size() < 2) GTEST_SKIP() << "this processor has one arithmetic";
  const Scratch scratch;
  app::train(small_recipe(), scratch / "run", computing(Arithmetic::split)).or_throw();
  const auto opened = [&](const std::filesystem::path& model, std::optional<Arithmetic> asked) {
    app::RunOptions options = computing(default_arithmetic());
    options.arithmetic = asked;
    std::vector<Arithmetic> found;
    for (const auto part : {app::PartOfRun::model_file, app::PartOfRun::checkpoint})
      found.push_back(app::open_model_or_run(model, options, part).or_throw().session->arithmetic());
    return found;
  };
  for (const auto& model : {scratch / "run", scratch / "run/model.safetensors"}) {
    EXPECT_THAT(opened(model, {}), testing::Each(Arithmetic::split));
    EXPECT_THAT(opened(model, Arithmetic::fused), testing::Each(Arithmetic::fused));
  }
}

TEST(ArithmeticOfARun, ThatTheProcessorLacksIsNotExchanged) {
  if (available_arithmetics().size() < 2) GTEST_SKIP() << "this processor has one arithmetic";
  const Scratch scratch;
  train_a_part(scratch / "run", computing(Arithmetic::fused));
  const std::string before = checkpoint_of(scratch / "run");
  {
    const WithoutFma processor;
    const auto outcome = app::resume(scratch / "run", computing(Arithmetic::split));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::unsupported);
    EXPECT_THAT(outcome.error().message, HasSubstr("trained in fused arithmetic, which this processor does not have"));
    EXPECT_TRUE(app::evaluate(scratch / "run", computing(Arithmetic::split), {})) << "a look at it harms nothing";
    EXPECT_THROW(Exec({.variant = {Variant::fast, Arithmetic::fused}}), Exception);
  }
  // Of two ranks, one has such a processor.
  const auto failures = run_ranks(2, [&](Comm& comm) {
    std::optional<WithoutFma> processor;
    if (comm.rank() == 1) processor.emplace();
    app::RunOptions options = computing(comm.rank() == 1 ? Arithmetic::split : Arithmetic::fused);
    options.comm = &comm;
    app::resume(scratch / "run", options).or_throw();
  });
  EXPECT_THAT(failures[1], HasSubstr("trained in fused arithmetic, which this processor does not have"));
  EXPECT_NE(failures[0], "");
  EXPECT_EQ(checkpoint_of(scratch / "run"), before);
}

TEST(ArithmeticOfARun, OfAnUnknownContractIsRefused) {
  const Scratch scratch;
  train_a_part(scratch / "run", computing(default_arithmetic()));
  const auto path = scratch / "run/checkpoint/last.safetensors";
  const auto file = read_safetensors(path).or_throw();
  Metadata metadata = file.metadata();
  nlohmann::json state = nlohmann::json::parse(metadata["state"]);
  state["arithmetic"] = 3;
  metadata["state"] = state.dump();
  std::vector<TensorView> tensors;
  for (const Tensor& t : file.tensors()) tensors.push_back({t.name, t.dtype, t.shape, t.bytes});
  write_safetensors(path, tensors, metadata).or_throw();
  const auto outcome = app::resume(scratch / "run", computing(default_arithmetic()));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("follows numerical contract 3; this program follows contract 2"));
}

// A run of version 0.1 that was stopped between two batches of one optimizer step (tests/data/contract-1).
class RunOfContractOne : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(GRADLOOM_TESTS_DIR "/data/contract-1", scratch_ / "run",
                          std::filesystem::copy_options::recursive);
  }
  Scratch scratch_;
};

TEST_F(RunOfContractOne, CanBeEvaluated) {
  const auto found = app::evaluate(scratch_ / "run", computing(default_arithmetic()), {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->data_changed);
  EXPECT_TRUE(found->metrics.test);
}

TEST_F(RunOfContractOne, IsNotContinuedWithOtherBits) {
  const std::string before = checkpoint_of(scratch_ / "run");
  const auto outcome = app::resume(scratch_ / "run", computing(default_arithmetic()));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::unsupported);
  EXPECT_THAT(outcome.error().message, HasSubstr("--restart-optimizer"));
  EXPECT_EQ(checkpoint_of(scratch_ / "run"), before);
}

TEST_F(RunOfContractOne, GoesOnWithAFreshOptimizerOnRequest) {
  app::RunOptions options = computing(default_arithmetic());
  options.restart_optimizer = true;
  std::vector<std::string> warnings;
  options.log = [&](LogLevel level, const std::string& text) {
    if (level == LogLevel::warning) warnings.push_back(text);
  };
  const auto summary = app::resume(scratch_ / "run", options);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->epochs, 3u);
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("does not say which training data the run had")));
  const auto file = read_safetensors(scratch_ / "run/checkpoint/last.safetensors").or_throw();
  EXPECT_TRUE(checkpoint_head(file, "run").or_throw().notes.arithmetic);
}

}  // namespace
}  // namespace gradloom::test
