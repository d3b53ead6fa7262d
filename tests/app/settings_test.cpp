// What the keys of a recipe become.
#include "gradloom/app/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "gradloom/app/families/families.h"
#include "gradloom/app/families/kan/settle.h"
#include "gradloom/app/families/settle.h"
#include "gradloom/app/recipe.h"
#include "gradloom/session/families/kan/options.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(SettleSize, RowsWithoutWeightHaveNoShareInTheErrorOfACandidate) {
  RowParts<double> parts;
  parts.size = 100, parts.features = parts.targets = 1;
  for (std::size_t s = 0; s < parts.size; ++s) parts.x.push_back(static_cast<double>(s));
  parts.target = parts.x;
  const Config recipe = app::parse_recipe("family = 'kan'", "test", {}).or_throw();
  app::SizeChoice choice;
  choice.candidates = {nlohmann::json::object(), nlohmann::json::object()};
  choice.keys = {"model.hidden"};
  choice.overrides = [](std::size_t, app::TrainingRows) { return std::vector<std::string>(); };
  const auto errors = [&](std::size_t weighted) {
    parts.weight.assign(parts.size, 0.0);
    std::fill_n(parts.weight.begin(), weighted, 1.0);
    const app::settle_detail::Comparison what{
        {RowDataset<double>(parts), std::nullopt, std::nullopt, {}}, parts.size, 5, app::TrainingRows::all};
    const auto settled =
        app::settle_detail::choose(recipe, what, choice, {}, 1, [](const auto&, RowSplits) { return 3.0; }).or_throw();
    std::vector<double> all;
    for (const auto& candidate : settled->found.at("candidates")) all.push_back(candidate.at("loss"));
    return all;
  };
  EXPECT_THAT(errors(100), ElementsAre(3.0, 3.0));
  EXPECT_THAT(errors(3), ElementsAre(3.0, 3.0));              // at least two of the five folds have none
  EXPECT_THAT(errors(1), ElementsAre(kInfinite, kInfinite));  // it is never on both sides
}

TEST(SettleSize, WhatIsSetIsPartOfEveryCandidate) {
  const auto grids = [](std::size_t rows, const app::GivenSize& given) {
    std::vector<unsigned> found;
    for (const app::KanSize& size : app::sizes_to_try(rows, 3, 1, given)) found.push_back(size.grid);
    return found;
  };
  EXPECT_THAT(grids(2000, {}), ElementsAre(3, 3, 3, 5, 6));
  // [8] is there once, although two candidates differ in nothing but their grid.
  EXPECT_THAT(grids(2000, {.hidden = {}, .grid = 4, .decay = 0.1}), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(grids(80, {.hidden = {}, .grid = 50, .decay = {}}), ElementsAre(50, 50, 50, 50))
      << "the fifth would have too many parameters with its own grid";
  EXPECT_FALSE(app::is_fine_grid(80, 6));
  EXPECT_TRUE(app::is_fine_grid(80, 7));
  EXPECT_FALSE(app::is_fine_grid(5000, 12));
}

TEST(DataPaths, AreTheKeysThatTheSchemaMarks) {
  const auto paths = [](const char* toml, const std::vector<std::string>& more) {
    return app::data_paths(app::parse_recipe(toml, "test", more).or_throw(), "root");
  };
  EXPECT_THAT(paths("family = 'kan'", {"data.formula=x1"}), IsEmpty());
  EXPECT_THAT(paths("family = 'kan'", {"data.path=a", "data.test_path=b"}), ElementsAre("root/a", "root/b"));
  EXPECT_THAT(paths("family = 'kan'", {"data.path=a", "data.test_path="}), ElementsAre("root/a"));
  EXPECT_THAT(paths("family = 'gates'", {"data.path=a", "data.root=r"}), ElementsAre("r/a"));
  EXPECT_THAT(paths("family = 'automaton'", {"data.image=a.png"}), ElementsAre("root/a.png"));
  EXPECT_THAT(paths("family = 'graph'", {"data.path=/a"}), ElementsAre("/a"));
  EXPECT_THAT(paths("family = 'graph-pairs'", {"data.path=a", "data.distances=b"}), ElementsAre("root/a", "root/b"));
  EXPECT_THAT(paths("family = 'graph-rewrite'", {}), IsEmpty());
}

TEST(DataPaths, ATextThatDoesNotNameAFileIsNoPath) {
  using Path = std::filesystem::path;
  static_assert(std::is_invocable_v<decltype(app::data_path), std::string, FileName, Path>);
  static_assert(!std::is_invocable_v<decltype(app::data_path), std::string, std::string, Path>);
}

TEST(ParseRecipe, RefusesAnOverrideThatEveryStageOverrules) {
  const auto taken = [](const std::string& stages, std::vector<std::string> overrides) {
    return app::parse_recipe("family = 'kan'\n" + stages, "test", overrides).ok();
  };
  const std::string one = "[[stage]]\ngrid = 3\nepochs = 5\n", none = "[[stage]]\nlr = 0.5\n";
  EXPECT_TRUE(taken("", {"model.grid=9", "epochs=9", "optimizer.lr=0.1"}));
  EXPECT_FALSE(taken(one + none, {"model.grid=9"}));  // a grid goes on into the next stages
  EXPECT_TRUE(taken(none + one, {"model.grid=9"}));
  EXPECT_TRUE(taken(one + none, {"epochs=9"}));
  EXPECT_TRUE(taken(one + none, {"optimizer.lr=0.1"}));
  EXPECT_FALSE(taken(one + one, {"epochs=9"}));
  EXPECT_FALSE(taken(none, {" optimizer.lr = 0.1"}));
  EXPECT_TRUE(taken(one, {"stage=[]", "model.grid=9"}));
  EXPECT_TRUE(taken(one, {"stage.0.grid=9"}));
}

TEST(ParseRecipe, RefusesNumbersThatThePrecisionTurnsIntoOthers) {
  const auto message = [](const std::string& key, const char* precision) {
    const std::vector<std::string> overrides{key, std::string("precision=") + precision};
    const auto recipe = app::parse_recipe("family = 'kan'", "test", overrides);
    return recipe ? std::string() : recipe.error().message;
  };
  for (const std::string key :
       {"loss.huber_delta=1e-50", "optimizer.lr=1e-50", "optimizer.clip_norm=1e-60", "optimizer.epsilon=1e-40",
        "optimizer.weight_decay=1e-39", "optimizer.clip_value=1e39", "schedule.factor=1e-39"}) {
    const std::string name = key.substr(0, key.find('='));
    EXPECT_THAT(message(key, "float32"), AllOf(HasSubstr(name + " = 1e"), HasSubstr("1.18e-38"), HasSubstr("float64")));
    EXPECT_EQ(message(key, "float64"), "");
  }
  EXPECT_THAT(message("optimizer.lr=1e-310", "float64"), HasSubstr("2.23e-308"));
  for (const char* key : {"loss.soft_weight=1e39", "loss.soft_temperature=1e-40"}) {
    const std::vector<std::string> overrides{key};
    const auto recipe = app::parse_recipe("family = 'graph-rewrite'", "test", overrides);
    ASSERT_FALSE(recipe) << key;
    EXPECT_THAT(recipe.error().message, HasSubstr("float32"));
  }
}

std::vector<std::string> warnings_of(const std::vector<std::string>& overrides) {
  return app::recipe_warnings(app::parse_recipe("family = 'kan'", "test", overrides).or_throw());
}

TEST(RecipeWarnings, NameWhatLbfgsDoesNotUse) {
  std::vector<std::string> keys = {"data.formula=x1",
                                   "optimizer.weight_decay=0.1",
                                   "optimizer.clip_norm=1",
                                   "optimizer.clip_value=1",
                                   "optimizer.momentum=0.5",
                                   "schedule.kind=cosine",
                                   "schedule.warmup=0.1",
                                   "train.batch=10",
                                   "optimizer.decay=['layer.0*']"};
  keys.push_back("optimizer.kind=lbfgs");
  std::vector<std::string> named;
  for (const std::string& warning : warnings_of(keys)) named.push_back(warning.substr(0, warning.find(' ')));
  EXPECT_THAT(named, testing::UnorderedElementsAre("optimizer.weight_decay", "optimizer.clip_norm",
                                                   "optimizer.clip_value", "optimizer.momentum", "schedule.kind",
                                                   "schedule.warmup", "train.batch", "optimizer.decay"));
  keys.back() = "optimizer.kind=sgd";
  EXPECT_THAT(warnings_of(keys), IsEmpty());
}

TEST(RecipeWarnings, NameAStepOfLbfgsThatWasLeftToAnotherOptimizer) {
  EXPECT_THAT(warnings_of({"data.formula=x1", "optimizer.kind=lion", "optimizer.lr=1"}),
              ElementsAre("optimizer.lr = 1.0 is a step for L-BFGS or SGD; lion diverges with it: set 0.01 or less"));
  for (const std::string other : {"optimizer.kind=sgd", "optimizer.kind=lbfgs"})
    EXPECT_THAT(warnings_of({"data.formula=x1", other, "optimizer.lr=1"}), IsEmpty());
  EXPECT_THAT(warnings_of({"data.formula=x1", "optimizer.kind=adamw", "optimizer.lr=0.3"}), IsEmpty());
}

TEST(RecipeWarnings, NameDataKeysOfAnotherSource) {
  EXPECT_THAT(warnings_of({"data.path=a.csv", "data.samples=7", "data.drop=['a']", "data.npz_x=u"}),
              ElementsAre(HasSubstr("data.samples = 7 has no effect without data.formula"), HasSubstr("data.npz_x")));
  EXPECT_THAT(warnings_of({"data.formula=x1", "data.samples=7", "data.drop=['a']", "data.test=0.5"}),
              ElementsAre(HasSubstr("data.drop"), HasSubstr("data.test = 0.5 has no effect without data.path")));
  EXPECT_THAT(warnings_of({"data.path=a.npy.gz", "data.comment=x"}), ElementsAre(HasSubstr("it is for text files")));
  EXPECT_THAT(warnings_of({"data.path=a.npz", "data.target=2"}), ElementsAre(HasSubstr("data.npz_y")));
}

TEST(RecipeWarnings, NameFoldsAndEpochsThatNeverCome) {
  EXPECT_THAT(warnings_of({"data.path=a", "data.fold=1"}), ElementsAre(HasSubstr("data.fold = 1 has no effect")));
  EXPECT_THAT(warnings_of({"data.path=a", "data.fold=1", "data.folds=5"}), IsEmpty());
  EXPECT_THAT(warnings_of({"data.path=a", "data.folds=5", "data.test=0.4"}), ElementsAre(HasSubstr("data.test")));
  EXPECT_THAT(warnings_of({"data.path=a", "epochs=20", "model.refit=[0,21]"}), ElementsAre(HasSubstr("epoch 21")));
  EXPECT_THAT(warnings_of({"data.path=a", "epochs=20", "model.refit=[0,20]"}), IsEmpty());
  EXPECT_THAT(warnings_of({"data.path=a", "model.refit_inputs=true"}), ElementsAre(HasSubstr("model.refit")));
}

TEST(RecipeWarnings, NameARuleThatATableReplaces) {
  const auto warned = [](const std::vector<std::string>& keys) {
    return app::recipe_warnings(app::load_recipe("game-of-life", keys).or_throw());
  };
  EXPECT_THAT(warned({"data.rule=B36/S23", "data.rule_table=t.csv"}),
              ElementsAre(HasSubstr("data.rule = \"B36/S23\" has no effect with data.rule_table")));
  EXPECT_THAT(warned({"data.rule=B36/S23"}), IsEmpty());
  EXPECT_THAT(warned({"data.rule_table=t.csv"}), IsEmpty());
}

// The keys that are named, of a shipped recipe.
std::vector<std::string> idle_of(const std::string& recipe, const std::vector<std::string>& overrides) {
  std::vector<std::string> named;
  for (const std::string& warning : app::recipe_warnings(app::load_recipe(recipe, overrides).or_throw()))
    named.push_back(warning.substr(0, warning.find(' ')));
  return named;
}

TEST(RecipeWarnings, NameTheBestEpochWithoutDataToFindIt) {
  const std::string best = "train.keep_best=true", none = "data.validation=0";
  for (const char* recipe : {"kan-tabular", "logic-classify"}) {
    EXPECT_THAT(idle_of(recipe, {"data.path=a", best}), IsEmpty());
    EXPECT_THAT(idle_of(recipe, {"data.path=a", none}), IsEmpty());
    EXPECT_THAT(idle_of(recipe, {"data.path=a", none, best}), ElementsAre("train.keep_best"));
    EXPECT_THAT(idle_of(recipe, {"data.path=a", none, best, "train.patience=5"}), IsEmpty());
  }
  EXPECT_THAT(idle_of("tu", {"model.norm=none", best}), IsEmpty());
  EXPECT_THAT(idle_of("tu", {"model.norm=none", none, best}), ElementsAre("train.keep_best"));
  EXPECT_THAT(idle_of("ged-regression", {none, best}), ElementsAre("train.keep_best"));
  EXPECT_THAT(idle_of("rewrite", {"data.validation_samples=0", best}), ElementsAre("train.keep_best"));
  EXPECT_THAT(idle_of("picture", {best}), ElementsAre("train.keep_best"));
  EXPECT_THAT(idle_of("karate", {best}), ElementsAre("train.keep_best"));
  EXPECT_THAT(idle_of("graph-nodes", {"data.path=a", none, best}), IsEmpty()) << "the file may have a split";
}

TEST(RecipeWarnings, NameFreeKnotsThatNothingPlaces) {
  const std::vector<std::string> keys = {"data.path=a", "model.knots=free", "model.refit=[]"};
  EXPECT_THAT(warnings_of(keys), ElementsAre(HasSubstr("model.knots = \"free\" has no effect with model.refit = []")));
  EXPECT_THAT(warnings_of({"data.path=a", "model.knots=free", "model.refit=[0]"}), IsEmpty());
}

TEST(RecipeWarnings, NameKeysOfOtherGraphs) {
  EXPECT_THAT(idle_of("tu", {"data.test=0.4"}), ElementsAre("data.test"));
  EXPECT_THAT(idle_of("tu", {"data.test=0.4", "data.folds=0"}), IsEmpty());
  EXPECT_THAT(idle_of("karate", {"data.test=0.4", "data.validation=0.3", "data.seed=1", "data.standardise=true",
                                 "data.normalise_rows=true", "model.head_dropout=0.5"}),
              testing::UnorderedElementsAre("data.test", "data.validation", "data.seed", "data.standardise",
                                            "data.normalise_rows", "model.head_dropout"));
  EXPECT_THAT(idle_of("karate", {"model.head_dropout=0.5", "model.jumping=concat"}), IsEmpty());
  EXPECT_THAT(idle_of("karate", {"data.path=g.json"}), ElementsAre("data.graph"));
  for (const char* features : {"labels", "degrees", "identity", "constant"})
    EXPECT_THAT(idle_of("graph-classify", {"data.path=a", std::string("data.features=") + features}),
                ElementsAre("data.standardise"));
  const auto of_file = [](const char* path, const char* more) {
    return idle_of("graph-classify", {std::string("data.path=") + path, "data.drop=[a]", "data.graph_folder=f", more});
  };
  EXPECT_THAT(of_file("g.json", "name=x"), ElementsAre("data.graph_folder", "data.drop"));
  EXPECT_THAT(of_file("g.graphml.gz", "name=x"), ElementsAre("data.graph_folder", "data.drop"));
  EXPECT_THAT(of_file("g", "data.format=gml"), ElementsAre("data.graph_folder", "data.drop"));
  EXPECT_THAT(of_file("c.cxl", "name=x"), ElementsAre("data.drop"));
  EXPECT_THAT(of_file("e.csv", "data.nodes=n.csv"), ElementsAre("data.graph_folder"));
  EXPECT_THAT(of_file("folder", "name=x"), IsEmpty());
}

TEST(RecipeWarnings, NameDetailsOfWhatIsSwitchedOff) {
  EXPECT_THAT(idle_of("rewrite", {"loss.soft_weight=0", "loss.soft_temperature=0.5", "loss.soft_rounds=3",
                                  "loss.soft_iterations=7"}),
              testing::UnorderedElementsAre("loss.soft_temperature", "loss.soft_rounds", "loss.soft_iterations"));
  EXPECT_THAT(idle_of("rewrite", {"data.large_samples=0", "data.large_least=20", "data.large_most=50"}),
              testing::UnorderedElementsAre("data.large_least", "data.large_most"));
  EXPECT_THAT(idle_of("checkerboard", {"epochs=49"}), ElementsAre("train.goal_every"));
  EXPECT_THAT(idle_of("checkerboard", {"epochs=50"}), IsEmpty());
  EXPECT_THAT(idle_of("checkerboard-async", {"stage.1.epochs=10"}), IsEmpty()) << "the first stage is long enough";
  EXPECT_THAT(idle_of("checkerboard", {"train.shuffle=false"}), ElementsAre("train.shuffle"));
}

TEST(RecipeWarnings, ShippedRecipesHaveNone) {
  for (const app::ShippedRecipe& recipe : app::shipped_recipes()) {
    std::vector<std::string> more;
    if (recipe.name == "kan-tabular" || recipe.name == "kan-rows" || recipe.name == "logic-classify")
      more = {"data.path=a.csv"};
    EXPECT_THAT(app::recipe_warnings(app::load_recipe(recipe.name, more).or_throw()), IsEmpty()) << recipe.name;
  }
}

TEST(LoadSplits, FoldsOfAFormulaAreItsTestSamples) {
  const Config recipe = app::parse_recipe("family = 'kan'", "test",
                                          std::vector<std::string>{"data.formula=x1", "data.samples=10", "data.folds=5",
                                                                   "data.validation=0"})
                            .or_throw();
  const RowSplits parts = app::load_splits(app::option_schema<KanOptions>().read(recipe), "").or_throw();
  EXPECT_EQ(parts.train.size(), 8u);
  EXPECT_EQ(parts.test->size(), 2u);
}

TEST(LoadSplits, ReadsTheTestFileByTheWordsAndMeansOfTheTrainingFile) {
  const Scratch scratch;
  std::ofstream(scratch / "train.csv") << "c,a,y\nred,1,5\ngreen,3,6\nblue,5,7\nblue,3,7\n";
  std::ofstream(scratch / "test.csv") << "a,c,y\n,red,1\n7,red,2\n";
  const std::vector<std::string> keys = {"data.root=" + scratch.path().string(), "data.path=train.csv",
                                         "data.test_path=test.csv", "data.categories=ordinal", "data.missing=mean"};
  const Config recipe = app::parse_recipe("family = 'kan'", "test", keys).or_throw();
  const KanOptions options = app::option_schema<KanOptions>().read(recipe);
  EXPECT_THAT(app::load_splits(options, "").or_throw().test->parts().x, ElementsAre(2, 3, 2, 7));
}

}  // namespace
}  // namespace gradloom::test
