// What the keys of a recipe become.
#include "gradloom/app/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/session/families/kan/options.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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
