#include "gradloom/data/other_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OtherFile : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(scratch_ / name) << text; }

  // The rows of new.csv for a model that was trained on old.csv.
  Result<OtherRows> load(RowSource source) const {
    source.path = scratch_ / "old.csv";
    return load_other_rows(source, load_rows(source).or_throw(), scratch_ / "new.csv");
  }

  test::Scratch scratch_;
};

TEST_F(OtherFile, MayLackTheTarget) {
  write("old.csv", "a,kind,y\n1,red,5\n2,blue,6\n");
  write("new.csv", "kind,a\nred,7\n");
  const auto rows = load({}).or_throw();
  EXPECT_FALSE(rows.has_targets);
  EXPECT_THAT(rows.rows.feature_names(), ElementsAre("a", "kind=blue", "kind=red"));
  EXPECT_THAT(rows.rows.parts().x, ElementsAre(7, 0, 1));
  EXPECT_EQ(rows.rows.outputs(), 1u);
}

TEST_F(OtherFile, HasItsTargetsWhereTheyAreThere) {
  write("old.csv", "a,b,y\n1,2,5\n2,3,6\n");
  write("new.csv", "a,b,y\n7,8,9\n");
  const auto rows = load({}).or_throw();
  EXPECT_TRUE(rows.has_targets);
  EXPECT_THAT(rows.rows.parts().target, ElementsAre(9));
}

TEST_F(OtherFile, KeepsTheClassesOfTheTrainingFile) {
  write("old.csv", "y,a,b\nno,1,2\nyes,2,3\n");
  write("new.csv", "a,b\n5,6\n7,8\n");
  const auto rows = load({.task = Task::classification, .target = {"0"}}).or_throw();
  EXPECT_FALSE(rows.has_targets);
  EXPECT_THAT(rows.rows.class_names(), ElementsAre("no", "yes"));
  EXPECT_THAT(rows.rows.parts().x, ElementsAre(5, 6, 7, 8));
}

// Numbers of columns are those of the training file, where the target stands first.
TEST_F(OtherFile, WithoutHeaderIsReadByThePlacesOfTheTrainingFile) {
  write("old.csv", "5,1,10,2\n6,2,20,3\n");
  write("new.csv", "7,30,8\n");
  const auto rows = load({.target = {"0"}, .drop = {"2"}}).or_throw();
  EXPECT_FALSE(rows.has_targets);
  EXPECT_THAT(rows.rows.parts().x, ElementsAre(7, 8));
}

TEST_F(OtherFile, FitsAModelOfFormulas) {
  RowSource source;
  source.formula.formulas = {"x1 + x2", "x1 * x2"};
  source.formula.samples = 3;
  const auto like = load_rows(source).or_throw();
  write("new.csv", "x2,x1\n1,2\n");
  const auto blind = load_other_rows(source, like, scratch_ / "new.csv").or_throw();
  EXPECT_FALSE(blind.has_targets);
  EXPECT_THAT(blind.rows.parts().x, ElementsAre(2, 1));
  write("new.csv", "x1,x2,sum,product\n1,2,3,2\n");
  const auto known = load_other_rows(source, like, scratch_ / "new.csv").or_throw();
  EXPECT_TRUE(known.has_targets);
  EXPECT_THAT(known.rows.parts().target, ElementsAre(3, 2));
}

TEST_F(OtherFile, IsMatchedByNameThoughTheRecipeHasNumbers) {
  write("old.csv", "id,a,b,y\nu,1,2,5\nv,2,3,6\n");
  write("new.csv", "b,a\n1,2\n");
  const auto rows = load({.drop = {"0"}}).or_throw();
  EXPECT_FALSE(rows.has_targets);
  EXPECT_THAT(rows.rows.parts().x, ElementsAre(2, 1));
  write("new.csv", "y,b,a\n9,1,2\n");
  EXPECT_THAT(load({.drop = {"0"}}).or_throw().rows.parts().target, ElementsAre(9));
  write("new.csv", "a,b,z\n1,2,3\n");
  EXPECT_THAT(load({.drop = {"0"}}).error().message, HasSubstr("has the feature 'z'"));
}

TEST_F(OtherFile, MayLackNothingElse) {
  write("old.csv", "a,b,y\n1,2,5\n2,3,6\n");
  write("new.csv", "a\n7\n");
  EXPECT_THAT(load({.target = {"y"}}).error().message, HasSubstr("data.target names the column 'y'"));
  write("new.csv", "a,c\n7,8\n");
  EXPECT_THAT(load({.target = {"y"}}).error().message, HasSubstr("data.target names the column 'y'"));
}

}  // namespace
}  // namespace gradloom
