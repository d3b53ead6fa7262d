#include "gradloom/data/new_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "tests/support/npy_files.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class NewFile : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(scratch_ / name) << text; }

  // The rows of a file for a model that was trained on another one.
  Result<NewRows<double>> load(RowSource source, NewTargets wanted = NewTargets::optional) const {
    return load_from("old.csv", "new.csv", std::move(source), wanted);
  }
  Result<NewRows<double>> load_from(const std::string& old, const std::string& further, RowSource source,
                                    NewTargets wanted = NewTargets::optional) const {
    source.path = scratch_ / old;
    return load_new_rows(source, load_coded_rows(source).or_throw(), scratch_ / further, wanted);
  }

  test::Scratch scratch_;
};

TEST_F(NewFile, MayLackTheTarget) {
  write("old.csv", "a,kind,y\n1,red,5\n2,blue,6\n");
  write("new.csv", "kind,a\nred,7\n");
  const auto further = load({}).or_throw();
  EXPECT_FALSE(further.has_targets);
  EXPECT_THAT(further.rows.feature_names(), ElementsAre("a", "kind=blue", "kind=red"));
  EXPECT_THAT(further.rows.parts().x, ElementsAre(7, 0, 1));
  EXPECT_EQ(further.rows.outputs(), 1u);
  EXPECT_THAT(further.numbers, IsEmpty());
  EXPECT_THAT(load({}, NewTargets::needed).error().message,
              HasSubstr("new.csv has no column 'y', which data.target names"));
}

TEST_F(NewFile, HasItsTargetsWhereTheyAreThere) {
  write("old.csv", "a,b,y\n1,2,5\n2,3,6\n");
  write("new.csv", "a,b,y\n7,8,9\n");
  const auto further = load({}).or_throw();
  EXPECT_TRUE(further.has_targets);
  EXPECT_THAT(further.rows.parts().target, ElementsAre(9));
}

TEST_F(NewFile, KeepsTheClassesOfTheTrainingFile) {
  write("old.csv", "y,a,b\nno,1,2\nyes,2,3\n");
  write("new.csv", "a,b\n5,6\n7,8\n");
  const RowSource source{.task = Task::classification, .target = {"0"}};
  const auto further = load(source).or_throw();
  EXPECT_FALSE(further.has_targets);
  EXPECT_THAT(further.rows.class_names(), ElementsAre("no", "yes"));
  EXPECT_THAT(further.rows.parts().x, ElementsAre(5, 6, 7, 8));
  write("new.csv", "a,b,y\n5,6,yes\n");
  EXPECT_THAT(load(source).or_throw().rows.parts().label, ElementsAre(1));
}

// Numbers of columns are those of the training file, where the target stands first.
TEST_F(NewFile, WithoutHeaderIsReadByThePlacesOfTheTrainingFile) {
  write("old.csv", "5,1,10,2\n6,2,20,3\n");
  write("new.csv", "7,30,8\n");
  const RowSource source{.target = {"0"}, .drop = {"2"}};
  const auto further = load(source).or_throw();
  EXPECT_FALSE(further.has_targets);
  EXPECT_THAT(further.rows.parts().x, ElementsAre(7, 8));
  write("new.csv", "9,7,30,8\n");
  EXPECT_THAT(load(source).or_throw().rows.parts().target, ElementsAre(9));
  write("new.csv", "7,8\n");
  EXPECT_THAT(load(source).error().message, HasSubstr("has 2 columns; the training data have 4, and 3 without"));
}

TEST_F(NewFile, FitsAModelOfFormulas) {
  RowSource source;
  source.formula.formulas = {"x1 + x2", "x1 * x2"};
  source.formula.samples = 3;
  const auto training = load_coded_rows(source).or_throw();
  const auto read = [&](const std::string& text) {
    write("new.csv", text);
    return load_new_rows(source, training, scratch_ / "new.csv", NewTargets::optional);
  };
  const auto blind = read("x2,x1\n1,2\n").or_throw();
  EXPECT_FALSE(blind.has_targets);
  EXPECT_THAT(blind.rows.parts().x, ElementsAre(2, 1));
  const auto known = read("x1,sum,x2,product\n1,3,2,2\n").or_throw();
  EXPECT_TRUE(known.has_targets);
  EXPECT_THAT(known.rows.parts().x, ElementsAre(1, 2));
  EXPECT_THAT(known.rows.parts().target, ElementsAre(3, 2));
  EXPECT_THAT(read("1,2,3,2\n").or_throw().rows.parts().target, ElementsAre(3, 2)) << "by place";
  EXPECT_THAT(read("x1,x2,sum\n1,2,3\n").error().message, HasSubstr("1 columns beside the variables"));
  EXPECT_THAT(read("x1,sum\n1,2\n").error().message, HasSubstr("has no column 'x2'"));
}

TEST_F(NewFile, FitsAFormulaThatIsAVariable) {
  RowSource source;
  source.formula.formulas = {"x1"};
  source.formula.samples = 3;
  write("new.csv", "x1\n7\n");
  const auto further =
      load_new_rows(source, load_coded_rows(source).or_throw(), scratch_ / "new.csv", NewTargets::optional).or_throw();
  EXPECT_FALSE(further.has_targets);
  EXPECT_THAT(further.rows.parts().x, ElementsAre(7));
}

TEST_F(NewFile, IsMatchedByNameThoughTheRecipeHasNumbers) {
  write("old.csv", "id,a,b,y\nu,1,2,5\nv,2,3,6\n");
  write("new.csv", "b,a\n1,2\n");
  const auto further = load({.drop = {"0"}}).or_throw();
  EXPECT_FALSE(further.has_targets);
  EXPECT_THAT(further.rows.parts().x, ElementsAre(2, 1));
  write("new.csv", "y,b,a\n9,1,2\n");
  EXPECT_THAT(load({.drop = {"0"}}).or_throw().rows.parts().target, ElementsAre(9));
  write("new.csv", "a,b,z\n1,2,3\n");
  EXPECT_THAT(load({.drop = {"0"}}).error().message, HasSubstr("has the column 'z', which the training file"));
  write("new.csv", "id,b,a,z\nw,1,2,3\n");
  EXPECT_THAT(load({.drop = {"0"}}, NewTargets::needed).or_throw().rows.parts().target, ElementsAre(3))
      << "a test file's target may have another name";
}

TEST_F(NewFile, NamesTheColumnThatTheModelNeeds) {
  write("old.csv", "a,b,y\n1,2,5\n2,3,6\n");
  for (const char* text : {"a\n7\n", "a,c\n7,8\n", "a,y\n7,8\n"}) {
    write("new.csv", text);
    EXPECT_THAT(load({.target = {"y"}}).error().message,
                EndsWith("new.csv has no column 'b', which the model was trained on"));
  }
}

TEST_F(NewFile, MayLackAllTargetsButNotOne) {
  write("old.csv", "a,y,z\n1,2,5\n2,3,6\n");
  write("new.csv", "a,y\n7,8\n");
  EXPECT_THAT(load({.target = {"y", "z"}}).error().message, EndsWith("has no column 'z', which data.target names"));
}

TEST_F(NewFile, OfTextAloneHasTheHeaderOfTheTrainingFile) {
  write("old.csv", "c,s,y\nred,round,5\nblue,flat,6\n");
  write("new.csv", "c,s\nred,round\n");
  EXPECT_THAT(load({}).or_throw().rows.parts().x, ElementsAre(0, 1, 0, 1));
  write("new.csv", "red,round\n");
  EXPECT_THAT(load({}).error().message, HasSubstr("has no header, but the training file has one"));
  write("old.csv", "red,round,5\nblue,flat,6\n");
  write("new.csv", "red,flat\nblue,round\n");
  EXPECT_EQ(load({}).or_throw().rows.size(), 2u) << "without header, as the training file";
}

TEST_F(NewFile, HasTheOrdinalsOfTheTrainingFile) {
  write("old.csv", "c,n,y\nred,10,5\ngreen,9,6\nblue,9,7\n");
  write("new.csv", "c,n\nred,10.0\n");
  const RowSource source{.categorical = {"n"}, .categories = CategoryPolicy::ordinal};
  for (const NewTargets wanted : {NewTargets::optional, NewTargets::needed}) {
    EXPECT_THAT(load(source).or_throw().rows.parts().x, ElementsAre(2, 1));
    write("new.csv", "c,n,y\nred,10.0,1\n");
    EXPECT_THAT(load(source, wanted).or_throw().rows.parts().x, ElementsAre(2, 1));
  }
  write("new.csv", "c,n\nred,9\npink,9\n");
  EXPECT_THAT(load(source).error().message,
              AllOf(HasSubstr("row 2"), HasSubstr("column 'c': 'pink'"), EndsWith("it knows 'blue', 'green', 'red'")));
  write("new.csv", "c,n\nred,11\n");
  EXPECT_THAT(load(source).error().message, AllOf(HasSubstr("column 'n': '11'"), EndsWith("it knows '9', '10'")));
}

TEST_F(NewFile, HasTheCategoriesOfTheTrainingFile) {
  write("old.csv", "n,c,y\n1,red,5\n2,blue,6\n3,7,6\n");
  write("new.csv", "n,c\n3,7\n");
  const RowSource source{.categorical = {"0"}};
  EXPECT_THAT(load(source).or_throw().rows.parts().x, ElementsAre(0, 0, 1, 1, 0, 0)) << "a word, though a number";
  write("new.csv", "n,c\n4,red\n");
  EXPECT_THAT(load(source).error().message, AllOf(HasSubstr("column 'n': '4'"), Not(HasSubstr("--set"))));
  write("new.csv", "c\nred\n");
  EXPECT_THAT(load(source).error().message, EndsWith("has no column 'n', which the model was trained on"));
}

TEST_F(NewFile, IsFilledWithTheMeansOfTheTrainingFile) {
  write("old.csv", "a,c,y\n1,red,5\n3,red,6\n,blue,6\n8,,7\n");
  write("new.csv", "a,c\n100,red\n,\n");
  const RowSource one_hot{.missing = MissingPolicy::mean};
  const double blue = 1.0 / 3, red = 2.0 / 3;
  EXPECT_THAT(load(one_hot).or_throw().rows.parts().x, ElementsAre(100, 0, 1, 4, blue, red));
  const RowSource ordinal{.missing = MissingPolicy::mean, .categories = CategoryPolicy::ordinal};
  EXPECT_THAT(load(ordinal).or_throw().rows.parts().x, ElementsAre(100, 1, 4, red));
  write("new.csv", "a,c,y\n,red,1\n");
  EXPECT_THAT(load(one_hot, NewTargets::needed).or_throw().rows.parts().x, ElementsAre(4, 0, 1));
  write("old.csv", "a,c,y\n1,red,5\n3,red,6\n");
  EXPECT_THAT(load(one_hot).or_throw().rows.parts().x, ElementsAre(2, 1)) << "though nothing was missing in training";
  EXPECT_THAT(load({}).error().message, HasSubstr("is missing; the model was trained without"));
}

TEST_F(NewFile, TellsWhichRowsAreLeft) {
  write("old.csv", "a,b,y\n1,2,5\n2,,6\n3,4,5\n");
  write("new.csv", "a,b\n1,2\n?,3\n5,6\n");
  const auto further = load({.missing = MissingPolicy::drop}).or_throw();
  EXPECT_THAT(further.rows.parts().x, ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(further.numbers, ElementsAre(1, 3));
}

TEST_F(NewFile, NeedsWeightsOnlyWhereItIsMeasured) {
  write("old.csv", "a,w,y\n1,1,5\n2,3,6\n");
  const RowSource source{.weight = "w", .missing = MissingPolicy::drop};
  write("new.csv", "a\n7\n");
  EXPECT_THAT(load(source).or_throw().rows.parts().x, ElementsAre(7));
  write("new.csv", "a,w\n7,\n");
  EXPECT_THAT(load(source).or_throw().rows.parts().x, ElementsAre(7)) << "nobody asks for it";
  write("new.csv", "a,w,y\n7,2,9\n");
  EXPECT_THAT(load(source).or_throw().rows.parts().weight, ElementsAre(2));
  write("new.csv", "a,y\n7,9\n");
  EXPECT_THAT(load(source).error().message, EndsWith("has no column 'w', which data.weight names"));
}

std::string matrix(const std::string& shape, std::vector<double> values) {
  return test::npy(test::header("<f8", shape), test::raw<double>(std::move(values)));
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST_F(NewFile, MayBeAnArray) {
  write("old.npy", matrix("(2, 3)", {1, 2, 5, 3, 4, 6}));
  write("new.npy", matrix("(3, 3)", {7, kNone, 9, 8, kNone, 9, 5, 6, 7}));
  const auto filled = load_from("old.npy", "new.npy", {.missing = MissingPolicy::mean}).or_throw();
  EXPECT_THAT(filled.rows.parts().x, ElementsAre(7, 3, 8, 3, 5, 6)) << "the mean of 2 and 4";
  EXPECT_THAT(filled.rows.parts().target, ElementsAre(9, 9, 7));
  const auto left = load_from("old.npy", "new.npy", {.missing = MissingPolicy::drop}).or_throw();
  EXPECT_THAT(left.rows.parts().x, ElementsAre(5, 6));
  EXPECT_THAT(left.numbers, ElementsAre(3));
  write("new.npy", matrix("(1, 2)", {7, 8}));
  const auto alone = load_from("old.npy", "new.npy", {}).or_throw();
  EXPECT_FALSE(alone.has_targets) << "as many columns as features";
  EXPECT_THAT(alone.rows.parts().x, ElementsAre(7, 8));
  write("new.npy", matrix("(1, 4)", {7, 8, 9, 10}));
  EXPECT_THAT(load_from("old.npy", "new.npy", {}).error().message, HasSubstr("3 features, the training file 2"));
  write("new.csv", "1,2,3\n");
  EXPECT_THAT(load_from("old.npy", "new.csv", {}).error().message,
              EndsWith("new.csv is a text table, but the training file an array"));
}

TEST_F(NewFile, MayBeSeveralArrays) {
  const auto write_zip = [&](const std::string& name, std::vector<double> x, std::vector<double> y) {
    test::Zip zip;
    zip.add("x.npy", matrix("(2, 2)", std::move(x)), true);
    if (!y.empty()) zip.add("y.npy", matrix("(2,)", std::move(y)), false);
    write(name, zip.bytes());
  };
  write_zip("old.npz", {1, 2, 3, 4}, {0, 1});
  write_zip("new.npz", {5, 6, 7, 8}, {1, 1});
  const auto further = load_from("old.npz", "new.npz", {.task = Task::classification}).or_throw();
  EXPECT_THAT(further.rows.parts().x, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(further.rows.parts().label, ElementsAre(1, 1)) << "the classes of the training file";
  write_zip("new.npz", {5, 6, 7, 8}, {});
  EXPECT_FALSE(load_from("old.npz", "new.npz", {.task = Task::classification}).or_throw().has_targets);
}

}  // namespace
}  // namespace gradloom
