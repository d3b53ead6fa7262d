// Runs of every family from recipe to folder, inside this process: sanitizers see what users run.
#include "gradloom/app/run/run.h"

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

  friend std::ostream& operator<<(std::ostream& out, const SmallRun& run) { return out << run.recipe; }
};

std::vector<SmallRun> small_runs() {
  return {
      {"Kan", "kan-hello", {"epochs=4", "data.samples=100", "data.test_samples=20", "train.batch=30"}},
      {"KanRefined",
       "kan-refine",
       {"data.samples=60", "data.test_samples=20", "epochs=2", "train.restarts=2", "train.restart_epochs=2"}},
      {"KanRefinedOnFewRows",
       "kan-refine",
       {"data.samples=40", "data.test_samples=20", "data.noise=0.2", "data.validation=0.3", "epochs=4",
        "train.restarts=1"}},
      {"Automaton",
       "checkerboard-small",
       {"epochs=4", "data.height=8", "data.width=8", "model.steps=3", "data.damage=0.5", "train.search=20",
        "train.goal_every=1", "train.start_over=1"}},
      {"Gates",
       "logic-classify",
       {"epochs=4", "data.path=table.csv", "data.test_path=", "data.test=0.2", "data.header=no", "data.target=-1",
        "data.drop=[]", "data.categorical=['0','1']", "train.batch=8"}},
      {"GraphOfOneClub", "karate", {"epochs=5", "data.curve=true"}},
      {"Graphs",
       "tu",
       {"epochs=3", "data.path=rings.json", "data.folds=3", "data.fold=0", "data.features=degrees", "data.curve=true",
        "train.batch=4", "model.hidden=[4]", "model.norm=none"}},
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
    // Rings and paths of 3 to 8 nodes; the class says which.
    json graphs = json::array();
    for (int i = 0; i < 12; ++i) {
      const int n = 3 + i / 2;
      json edges = json::array();
      for (int v = 0; v + i % 2 < n; ++v) edges.push_back({v, (v + 1) % n});
      graphs.push_back({{"id", std::to_string(i)}, {"class", i % 2 ? "path" : "ring"}, {"nodes", n}, {"edges", edges}});
    }
    std::ofstream(scratch_ / "rings.json") << json{{"graphs", graphs}};
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
  EXPECT_TRUE(to_json(*outcome)["loss"].is_number());
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "run/report.html"));
  auto again = app::evaluate(scratch_ / "run", options(1), {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again)["test"], to_json(*outcome)["test"]);
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
  for (const char* key : {"test", "curve", "chosen"})
    EXPECT_EQ(to_json(*rest).value(key, json()), to_json(*whole).value(key, json())) << key;
}

INSTANTIATE_TEST_SUITE_P(Threads, Runs, testing::ValuesIn(small_runs()),
                         [](const auto& run) { return run.param.name; });

// A run on a table of its own, stopped after its first epoch.
class StoppedRun : public testing::Test {
 protected:
  void SetUp() override {
    write_table(1);
    const std::vector<std::string> overrides = {"data.path=table.csv", "data.target=y", "epochs=3", "train.batch=8"};
    const Config recipe = app::load_recipe("kan-tabular", overrides).or_throw();
    std::atomic<bool> stop = false;
    app::RunOptions stopping = options();
    stopping.stop = &stop;
    stopping.progress = [&](const app::Progress&) { stop = true; };
    ASSERT_TRUE(app::train(recipe, scratch_ / "run", stopping).or_throw().interrupted);
  }

  void write_table(int factor) const {
    std::ofstream table(scratch_ / "table.csv");
    table << "x,y\n";
    for (int i = 0; i < 60; ++i) table << i << ',' << factor * (i % 7) << '\n';
  }

  app::RunOptions options() const {
    app::RunOptions o;
    o.exec.threads = 1;
    o.data_root = scratch_.path();
    return o;
  }

  // Replaces a number of the recipe that the folder keeps.
  void edit_recipe(const std::string& from, const std::string& to) const {
    std::ifstream file(scratch_ / "run/recipe.toml");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    std::ofstream(scratch_ / "run/recipe.toml") << text.replace(at, from.size(), to);
  }

  Scratch scratch_;
};

TEST_F(StoppedRun, GoesOnWithItsOwnDataOnly) {
  write_table(2);
  auto other = app::resume(scratch_ / "run", options());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, testing::HasSubstr("training data are not those"));
  auto looked = app::evaluate(scratch_ / "run", options(), {});
  ASSERT_TRUE(looked) << looked.error().message;
  EXPECT_TRUE(looked->data_changed);
  write_table(1);
  EXPECT_FALSE(app::evaluate(scratch_ / "run", options(), {}).or_throw().data_changed);
  EXPECT_TRUE(app::resume(scratch_ / "run", options()));
}

TEST_F(StoppedRun, SaysBeforeItTrainsThatItsLogIsDamaged) {
  std::ofstream(scratch_ / "run/log.jsonl") << "garbage\n{}\n";
  auto outcome = app::resume(scratch_ / "run", options());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("log.jsonl:1"));
}

TEST_F(StoppedRun, WarnsWhenItsLogIsLostAndAFinishedOneKeepsItsReport) {
  std::vector<std::string> warnings;
  app::RunOptions listening = options();
  listening.log = [&](LogLevel level, const std::string& text) {
    if (level == LogLevel::warning) warnings.push_back(text);
  };
  ASSERT_TRUE(app::resume(scratch_ / "run", listening));
  EXPECT_TRUE(warnings.empty());
  const auto report = [&] {
    std::ifstream file(scratch_ / "run/report.html");
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const std::string whole = report();
  std::filesystem::remove(scratch_ / "run/log.jsonl");
  ASSERT_TRUE(app::resume(scratch_ / "run", listening));
  EXPECT_THAT(warnings, testing::ElementsAre(testing::HasSubstr("lost lines")));
  EXPECT_EQ(report(), whole);
}

TEST_F(StoppedRun, IsRefusedWhereItsRecipeDoesNotLead) {
  edit_recipe("epochs = 3", "epochs = 0");
  auto outcome = app::resume(scratch_ / "run", options());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("1 epochs of stage 1, but the options have 0"));
}

TEST(Classes, OneAloneIsNothingToLearn) {
  const Scratch scratch;
  std::ofstream(scratch / "table.csv") << "x,y\n1,a\n2,a\n3,a\n4,a\n5,a\n6,a\n";
  app::RunOptions options;
  options.data_root = scratch.path();
  const std::vector<std::string> more = {"data.path=table.csv", "data.target=y", "task=classification"};
  auto outcome = app::train(app::load_recipe("kan-tabular", more).or_throw(), scratch / "run", options);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("every sample has the class 'a'"));
}

TEST(Losses, ThatDoNotFitTheDataLeaveNoFolder) {
  const Scratch scratch;
  std::ofstream(scratch / "table.csv") << "x,y,w\n1,0.5,0\n2,1.5,0\n3,0.25,0\n4,1,0\n5,0,0\n6,0.5,0\n";
  app::RunOptions options;
  options.data_root = scratch.path();
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"data.path=table.csv", "data.target=y", "epochs=1", "train.batch=0"});
    auto outcome = app::train(app::load_recipe("kan-tabular", more).or_throw(), scratch / "run", options);
    EXPECT_FALSE(outcome);
    EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
    return outcome ? std::string() : outcome.error().message;
  };
  EXPECT_THAT(refusal({"loss.kind=cross-entropy"}), testing::HasSubstr("loss.kind = \"cross-entropy\" does not fit"));
  EXPECT_THAT(refusal({"loss.kind=binary-cross-entropy"}), testing::HasSubstr("is 1.5; it must lie between 0 and 1"));
  EXPECT_THAT(refusal({"data.weight=w"}), testing::HasSubstr("every sample has weight 0"));
}

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

// Half a search would choose another network than the whole one.
TEST(RunsWithASearch, LeaveNothingBehindWhenTheyAreStoppedInIt) {
  const Scratch scratch;
  {
    std::ofstream table(scratch / "t.csv");
    table << "x,y\n";
    for (int i = 0; i < 60; ++i) table << i << ',' << i % 7 << '\n';
  }
  const Config recipe =
      app::load_recipe("kan-tabular", std::vector<std::string>{"data.path=" + (scratch / "t.csv").string(), "epochs=2"})
          .or_throw();
  std::atomic<bool> stop = false;
  app::RunOptions options;
  options.exec.threads = 1;
  options.stop = &stop;
  options.log = [&](LogLevel, const std::string& text) { stop = stop || text.starts_with("choosing"); };
  const app::RunSummary cut = app::train(recipe, scratch / "run", options).or_throw();
  EXPECT_TRUE(stop);
  EXPECT_EQ(cut.interrupted, true);
  EXPECT_FALSE(cut.run);
  EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
  stop = false;
  options.log = {};
  const app::RunSummary whole = app::train(recipe, scratch / "run", options).or_throw();
  ASSERT_TRUE(whole.result);
  EXPECT_GT(whole.result->settled->at("candidates").size(), 1u);
}

// A search for a formula follows training: what it had when it was stopped is nothing, and the run is not finished.
TEST(RunsWithASearch, GoOnWithItsFormulaWhenTheyAreResumed) {
  const Scratch scratch;
  const Config recipe =
      app::load_recipe("kan-formula", std::vector<std::string>{"data.formula=x1*x2", "data.samples=60",
                                                               "data.test_samples=20", "epochs=2", "model.refit=[]"})
          .or_throw();
  std::atomic<bool> stop = false;
  app::RunOptions options;
  options.exec.threads = 1;
  options.stop = &stop;
  options.log = [&](LogLevel, const std::string& text) { stop = stop || text.starts_with("searching"); };
  const app::RunSummary cut = app::train(recipe, scratch / "run", options).or_throw();
  EXPECT_TRUE(stop);
  EXPECT_EQ(cut.interrupted, true);
  EXPECT_FALSE(cut.result);
  EXPECT_TRUE(std::filesystem::exists(scratch / "run" / "report.html"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "run" / "formula.json"));
  stop = false;
  options.log = {};
  const app::RunSummary whole = app::resume(scratch / "run", options).or_throw();
  ASSERT_TRUE(whole.result);
  EXPECT_EQ(whole.result->found.at("formula").at("text"), "x1*x2");
  EXPECT_TRUE(std::filesystem::exists(scratch / "run" / "formula.json"));
}

}  // namespace
}  // namespace gradloom::test
