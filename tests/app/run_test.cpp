// Runs of every family from recipe to folder, inside this process: sanitizers see what users run.
#include "gradloom/app/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>

#include "gradloom/app/recipe.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using nlohmann::json;

// A recipe that ships, made small enough for a test.
struct SmallRun {
  std::string name, recipe;
  std::vector<std::string> overrides;
};

std::vector<SmallRun> small_runs() {
  return {
      {"Kan", "kan-hello", {"epochs=4", "data.samples=100", "data.test_samples=20", "train.batch=30"}},
      {"KanRefined",
       "kan-refine",
       {"data.samples=60", "data.test_samples=20", "epochs=2", "train.restarts=2", "train.restart_epochs=2"}},
      {"Automaton",
       "checkerboard-small",
       {"epochs=4", "data.height=8", "data.width=8", "model.steps=3", "data.damage=0.5"}},
      {"Gates",
       "logic-classify",
       {"epochs=4", "data.path=table.csv", "data.test_path=", "data.test=0.2", "data.header=no", "data.target=-1",
        "data.drop=[]", "data.categorical=['0','1']", "train.batch=8"}},
      {"GraphOfOneClub", "karate", {"epochs=5"}},
  };
}

class Runs : public testing::TestWithParam<SmallRun> {
 protected:
  Config recipe() const {
    auto r = app::load_recipe(GetParam().recipe, GetParam().overrides);
    if (!r) throw std::runtime_error(r.error().message);
    return std::move(*r);
  }

  void SetUp() override {
    std::ofstream table(scratch_ / "table.csv");
    for (int i = 0; i < 40; ++i) table << i % 3 << ',' << i % 5 << ',' << i % 2 << '\n';
  }

  app::RunOptions options(unsigned threads) const {
    app::RunOptions o;
    o.exec.threads = threads;
    o.data_root = scratch_.path();
    return o;
  }

  std::string checkpoint(const char* run) const {
    std::ifstream file(scratch_ / run / "checkpoint/last.safetensors", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Scratch scratch_;
};

TEST_P(Runs, LeaveAFolderThatCanBeEvaluated) {
  auto outcome = app::train(recipe(), scratch_ / "run", options(2));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->interrupted);
  EXPECT_TRUE(outcome->summary["loss"].is_number());
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "run/report.html"));
  auto again = app::evaluate(scratch_ / "run", options(1), {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)["test"], outcome->summary["test"]);
}

TEST_P(Runs, EndWithTheSameBitsOnAnyThreads) {
  ASSERT_TRUE(app::train(recipe(), scratch_ / "one", options(1)));
  ASSERT_TRUE(app::train(recipe(), scratch_ / "three", options(3)));
  ASSERT_FALSE(checkpoint("one").empty());
  EXPECT_EQ(checkpoint("one"), checkpoint("three"));
}

TEST_P(Runs, StoppedAfterAnEpochAndResumedEndAsIfNothingHadHappened) {
  auto whole = app::train(recipe(), scratch_ / "whole", options(1));
  ASSERT_TRUE(whole) << whole.error().message;
  std::atomic<bool> stop = false;
  app::RunOptions stopping = options(1);
  stopping.stop = &stop;
  stopping.progress = [&](const app::Progress&) { stop = true; };
  auto first = app::train(recipe(), scratch_ / "parts", stopping);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(first->interrupted);
  auto rest = app::resume(scratch_ / "parts", options(2));
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(checkpoint("parts"), checkpoint("whole"));
  EXPECT_EQ(rest->summary["test"], whole->summary["test"]);
}

INSTANTIATE_TEST_SUITE_P(Threads, Runs, testing::ValuesIn(small_runs()),
                         [](const auto& run) { return run.param.name; });

TEST(ShippedRecipes, AreReadWithoutComplaintAndSayWhatTheyAre) {
  ASSERT_GE(app::shipped_recipes().size(), 10u);
  for (const app::ShippedRecipe& shipped : app::shipped_recipes()) {
    auto recipe = app::load_recipe(shipped.name, {});
    ASSERT_TRUE(recipe) << shipped.name << ": " << recipe.error().message;
    EXPECT_GT(shipped.summary.size(), 20u) << shipped.name;
    // What a run keeps is the recipe with every default: it must mean the same.
    auto again = app::parse_recipe(recipe->documented(), shipped.name, {});
    ASSERT_TRUE(again) << shipped.name << ": " << again.error().message;
    EXPECT_EQ(again->documented(), recipe->documented()) << shipped.name;
  }
}

}  // namespace
}  // namespace gradloom::test
