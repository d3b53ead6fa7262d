// What runs of recipes say of their settings: nothing where they are right, and a cure where they are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "gradloom/app/recipe.h"
#include "gradloom/app/run/run.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class RecipeAdvice : public testing::Test {
 protected:
  std::vector<std::string> warnings_of(const char* recipe, const std::vector<std::string>& overrides,
                                       const std::filesystem::path& data_root) const {
    app::RunOptions options;
    options.exec.threads = 1;
    options.data_root = data_root;
    const auto summary = app::train(app::load_recipe(recipe, overrides).or_throw(), {}, options).or_throw();
    return summary.result->warnings;
  }

  // Rows of noise, whose classes cannot be told.
  void write_noise(const std::filesystem::path& file, int rows, const char* first, bool numbered) const {
    std::mt19937 random(1);
    std::ofstream out(file);
    out << first;
    for (int row = 0; row < rows; ++row) {
      if (numbered) out << row << ',';
      out << (random() % 2 ? "odd" : "even");
      for (int c = 0; c < 12; ++c) out << ',' << static_cast<double>(random() % 1024) / 1024.0;
      out << '\n';
    }
  }

  Scratch scratch_;
};

constexpr const char* kColumns = "a,b,c,d,e,f,g,h,i,j,k,l\n";

TEST_F(RecipeAdvice, ShippedRecipesNeedNone) {
  for (const char* name : {"kan-hello", "kan-special", "karate"})
    EXPECT_THAT(warnings_of(name, {}, scratch_.path()), IsEmpty()) << name;
}

TEST_F(RecipeAdvice, ShippedRecipesOfPublicDataNeedNone) {
  const char* root = std::getenv("GRADLOOM_DATA");
  if (!root) GTEST_SKIP() << "GRADLOOM_DATA is not set";
  for (const char* name : {"kan-digits", "cora", "tu", "monks"})
    EXPECT_THAT(warnings_of(name, {}, root), IsEmpty()) << name;
  EXPECT_THAT(
      warnings_of("graph-classify", {"data.path=tu/MUTAG", "data.features=labels", "data.standardise=false"}, root),
      IsEmpty());
}

TEST_F(RecipeAdvice, NamesFineGridsThatDidNoBetterOnFewRows) {
  app::RunOptions options;
  options.exec.threads = 1;
  std::string log;
  options.log = [&](LogLevel, std::string_view text) { log += std::string(text) + '\n'; };
  const std::vector<std::string> few = {"data.samples=60", "data.noise=0.1", "data.validation=0.2", "train.restarts=1",
                                        "epochs=30"};
  const auto summary = app::train(app::load_recipe("kan-refine", few).or_throw(), {}, options).or_throw();
  const auto& stages = summary.result->stages;
  ASSERT_EQ(stages.size(), 5u);
  const auto loss = [&](std::size_t stage) { return stages[stage]["validation"]["loss"].get<double>(); };
  for (std::size_t s = 1; s < stages.size(); ++s)
    EXPECT_LT(loss(s), 1.01 * loss(s - 1)) << stages[s]["note"];  // 10 is no multiple of 3
  EXPECT_THAT(summary.result->warnings, Contains(AllOf(HasSubstr("grid 100 did no better"), HasSubstr("validation"))));
  EXPECT_THAT(log, HasSubstr("grid 100 did no better on validation data: the function of the stage before stays"));
}

TEST_F(RecipeAdvice, AFineGridThatIsGivenKeepsRowsToWatchIt) {
  std::ofstream table(scratch_ / "t.csv");
  table << "a,b,y\n";
  for (int i = 0; i < 80; ++i) table << i * 37 % 80 / 80.0 << ',' << i * 61 % 80 / 80.0 << ',' << i * 37 % 80 << '\n';
  table.close();
  app::RunOptions options;
  options.exec.threads = 1;
  options.data_root = scratch_.path();
  for (const auto& [grid, watched] : {std::pair("model.grid=50", true), {"model.grid=4", false}}) {
    const std::vector<std::string> given = {"data.path=t.csv", "epochs=6", grid};
    const auto summary = app::train(app::load_recipe("kan-tabular", given).or_throw(), {}, options).or_throw();
    EXPECT_EQ(summary.result->metrics.validation.has_value(), watched) << grid;
    for (const auto& candidate : summary.result->settled->at("candidates"))
      EXPECT_EQ(candidate.at("grid"), watched ? 50 : 4) << grid;
  }
}

TEST_F(RecipeAdvice, OfGatesNamesWhatTheyHave) {
  write_noise(scratch_ / "noise.csv", 120, (std::string("class,") + kColumns).c_str(), false);
  EXPECT_THAT(warnings_of("logic-classify",
                          {"data.path=noise.csv", "data.target=class", "data.test=0.5", "data.validation=0",
                           "model.size=given", "model.gates=[200,200,100]", "model.temperature=2", "epochs=150",
                           "train.batch=16", "train.keep_best=false", "optimizer.weight_decay=0"},
                          scratch_.path()),
              Contains(AllOf(HasSubstr("overfit: the accuracy of the hard circuit"), HasSubstr("model.gates"))));
}

TEST_F(RecipeAdvice, OfGraphsNamesWhatTheyHaveUnlessOnlyAFewNodesHaveLabels) {
  write_noise(scratch_ / "nodes.csv", 400, (std::string("id,class,") + kColumns).c_str(), true);
  std::ofstream edges(scratch_ / "edges.csv");
  edges << "from,to\n";
  for (int v = 1; v < 400; ++v) edges << v - 1 << ',' << v << '\n';
  edges.close();
  const std::vector<std::string> noise = {"data.path=" + scratch_.path().string(), "model.dropout=0", "epochs=200",
                                          "train.keep_best=false", "train.patience=0"};
  EXPECT_THAT(warnings_of("graph-nodes", noise, scratch_.path()),
              Contains(AllOf(HasSubstr("overfit"), HasSubstr("model.dropout"))));
  std::vector<std::string> few = noise;
  few.insert(few.end(), {"data.validation=0.5", "data.test=0.4"});
  EXPECT_THAT(warnings_of("graph-nodes", few, scratch_.path()), IsEmpty());
}

}  // namespace
}  // namespace gradloom::test
