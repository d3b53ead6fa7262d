// What the keys of a recipe become.
#include "gradloom/app/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradloom/app/recipe.h"

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

TEST(DataPaths, AKeyThatTheSchemaDoesNotMarkIsNoPath) {
  const Config recipe = app::parse_recipe("family = 'kan'", "test", {}).or_throw();
  EXPECT_THROW(app::data_path(recipe, "data.separator", "root"), Exception);
}

}  // namespace
}  // namespace gradloom::test
