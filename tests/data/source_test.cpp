#include "gradloom/data/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "gradloom/io/file.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RowDataset<double> sample(std::vector<std::string> formulas, std::vector<double> ranges = {-1, 1}, std::size_t n = 20) {
  FormulaOptions o;
  o.formulas = std::move(formulas);
  o.ranges = std::move(ranges);
  o.samples = n;
  return rows_from_formulas(o).or_throw();
}

std::string formula_error(const std::string& formula) {
  FormulaOptions o;
  o.formulas = {formula};
  const auto result = rows_from_formulas(o);
  return result.ok() ? "no error" : result.error().message;
}

TEST(Formula, ComputesWhatItSays) {
  const auto d = sample({"exp(sin(pi*x1)+x2^2)", "x1**2 - log(e) + -x2^2"});
  EXPECT_EQ(d.features(), 2u);
  EXPECT_EQ(d.outputs(), 2u);
  for (std::size_t s = 0; s < d.size(); ++s) {
    const double a = d.all().x(s, 0), b = d.all().x(s, 1);
    EXPECT_NEAR(d.all().target(s, 0), std::exp(std::sin(M_PI * a) + b * b), 1e-12);
    EXPECT_NEAR(d.all().target(s, 1), a * a - 1 - b * b, 1e-12);
  }
}

TEST(Formula, KnowsTheFunctionsOfScience) {
  const auto value = [](const std::string& f) { return sample({f}, {-1, 1}, 1).all().target(0, 0); };
  EXPECT_NEAR(value("bessel_j0(1)"), 0.7651976865579666, 1e-12);
  EXPECT_NEAR(value("bessel_j(0, -1)"), 0.7651976865579666, 1e-12);
  EXPECT_NEAR(value("bessel_j(1, -1)"), -0.4400505857449335, 1e-12);
  EXPECT_NEAR(value("bessel_j(-1, 1)"), -0.4400505857449335, 1e-12);
  EXPECT_NEAR(value("bessel_j(-1, -1)"), 0.4400505857449335, 1e-12);
  EXPECT_NEAR(value("bessel_j(0.5, 1)"), 0.6713967071418030, 1e-10);
  EXPECT_NEAR(value("erf(0.5)"), 0.5204998778130465, 1e-12);
  EXPECT_NEAR(value("gamma(5) + lgamma(3)"), 24 + std::log(2.0), 1e-12);
  EXPECT_NEAR(value("arcsin(1) + ln(e) + (1 < 2 ? 3 : 4) + step(-1) + relu(2)"), M_PI / 2 + 6, 1e-12);
}

TEST(Formula, SamplesDependOnSeedAndIndexAlone) {
  const auto few = sample({"x1"}, {2, 3}, 5), many = sample({"x1"}, {2, 3}, 9);
  for (std::size_t s = 0; s < 5; ++s) EXPECT_EQ(few.all().x(s, 0), many.all().x(s, 0));
  for (double x : many.parts().x) EXPECT_TRUE(x >= 2 && x < 3);
  EXPECT_EQ(sample({"x1"}, {0, 1}, 0).size(), 0u);
}

TEST(Formula, AddsNoiseOfTheSizeAskedFor) {
  FormulaOptions o;
  o.formulas = {"0*x1"};
  o.samples = 20000;
  o.noise = 0.5;
  const auto d = rows_from_formulas(o).or_throw();
  const auto s = column_statistics(d.all().target);
  EXPECT_NEAR(s.mean[0], 0, 0.02);
  EXPECT_NEAR(s.std[0], 0.5, 0.02);
}

TEST(Formula, TakesNamedVariablesAndTheirRanges) {
  FormulaOptions o;
  o.formulas = {"exp(-theta**2/2)/sigma"};
  o.variables = {"theta", "sigma"};
  o.ranges = {1, 3, 5, 6};
  const auto d = rows_from_formulas(o).or_throw();
  EXPECT_THAT(d.feature_names(), ElementsAre("theta", "sigma"));
  EXPECT_GE(d.all().x(0, 1), 5);
  o.ranges = {1, 2, 3};
  EXPECT_THAT(rows_from_formulas(o).error().message, HasSubstr("3 numbers"));
  o.ranges = {2, 1};
  EXPECT_THAT(rows_from_formulas(o).error().message, HasSubstr("from 2 to 1"));
}

TEST(Formula, RefusesNamesThatCannotBeVariables) {
  const auto error = [](std::vector<std::string> names) {
    FormulaOptions o;
    o.formulas = {"1"};
    o.variables = std::move(names);
    const auto result = rows_from_formulas(o);
    return result.ok() ? "no error" : result.error().message;
  };
  EXPECT_EQ(error({"T", "p_2"}), "no error");
  EXPECT_THAT(error({"2x"}), HasSubstr("'2x'"));
  EXPECT_THAT(error({"sin"}), HasSubstr("a function or constant"));
  EXPECT_THAT(error({"pi"}), HasSubstr("a function or constant"));
  EXPECT_THAT(error({"a", "a"}), HasSubstr("'a' twice"));
}

TEST(Formula, NamesPositionAndTokenOfErrors) {
  EXPECT_THAT(formula_error("x1 + foo"), testing::AllOf(HasSubstr("position 6"), HasSubstr("'foo'")));
  EXPECT_THAT(formula_error("sin(x1"), HasSubstr("'sin(x1'"));
  EXPECT_THAT(formula_error("x1 +"), HasSubstr("formula 'x1 +'"));
  EXPECT_THAT(formula_error("exp(x1)+p"), HasSubstr("position 9: there is no 'p'"));
  EXPECT_THAT(formula_error("exp(x1)+x_1+x"), HasSubstr("position 9: there is no 'x_1'"));
  EXPECT_THAT(formula_error("exp(x1)+exx(x1)+ex(x1)"), HasSubstr("position 9: there is no 'exx'"));
  EXPECT_THAT(formula_error("x1 *"), HasSubstr("position 5: the formula ends too early"));
  EXPECT_THAT(formula_error("x1 = 3"), HasSubstr("position 4: '=' assigns"));
  EXPECT_THAT(formula_error("x1 + T*2"), testing::AllOf(HasSubstr("position 6: there is no 'T'"),
                                                        HasSubstr("x1, x2, ..."), HasSubstr("data.variables")));
  EXPECT_THAT(formula_error("sine(x1)"), HasSubstr("the nearest is 'sin'"));
  EXPECT_THAT(formula_error("x1, x1"), HasSubstr("2 results"));
  EXPECT_THAT(formula_error(""), HasSubstr("formula ''"));
  EXPECT_THAT(formula_error("x99999"), HasSubstr("above the limit"));
  EXPECT_THAT(formula_error("log(x1)"), testing::AllOf(HasSubstr("sample"), HasSubstr("x1 = -")));
}

TEST(Formula, SurvivesRandomDamage) {
  FormulaOptions o;
  o.samples = 2;
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    o.formulas = {test::mutate("exp(sin(pi*x1)+x2^2)/max(1, x3) > 2 ? 1 : -x1", 7, i)};
    const auto result = rows_from_formulas(o);
    ASSERT_TRUE(result.ok() || !result.error().message.empty());
  }
}

TEST(LoadRows, MakesClassesOfAFormula) {
  RowSource s;
  s.task = Task::classification;
  s.formula.formulas = {"x1*x2 > 0"};
  const auto d = load_rows(s).or_throw();
  EXPECT_THAT(d.class_names(), ElementsAre("0", "1"));
}

TEST(LoadRows, SaysWhatIsMissing) {
  EXPECT_THAT(load_rows({}).error().message, HasSubstr("set a path"));
  RowSource s;
  s.path = "/nowhere/data.csv";
  EXPECT_EQ(load_rows(s).error().code, ErrorCode::not_found);
}

TEST(LoadRows, ReadsNumpyMatrices) {
  const test::Scratch scratch;
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n";
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  const double values[]{1, 2, 3, 4, 5, 6};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  ASSERT_TRUE(write_file_atomic(scratch / "m.npy", bytes).ok());
  RowSource s;
  s.path = scratch / "m.npy";
  s.target = {"1"};
  const auto d = load_rows(s).or_throw();
  EXPECT_THAT(d.parts().x, ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(d.parts().target, ElementsAre(2, 5));
  s.target = {"3"};
  EXPECT_THAT(load_rows(s).error().message, HasSubstr("0 to 2"));
  const double bad = std::nan("");
  std::memcpy(bytes.data() + bytes.size() - 8, &bad, 8);
  ASSERT_TRUE(write_file_atomic(scratch / "m.npy", bytes).ok());
  s.target = {"0"};
  EXPECT_THAT(load_rows(s).error().message, HasSubstr("row 1, column 2"));
  s.missing = MissingPolicy::mean;
  EXPECT_THAT(load_rows(s).or_throw().parts().x, ElementsAre(2, 3, 5, 3));
  s.missing = MissingPolicy::drop;
  EXPECT_EQ(load_rows(s).or_throw().size(), 1u);
}

// These read the real files of the test data.
class RealData : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("GRADLOOM_DATA");
    if (root == nullptr) GTEST_SKIP() << "GRADLOOM_DATA is not set, so there is no real data to read";
    root_ = root;
  }
  std::filesystem::path root_;
};

TEST_F(RealData, CaliforniaHousingNeedsNoOptions) {
  RowSource s;
  s.path = root_ / "tabular/california_housing.csv";
  const auto d = load_rows(s).or_throw();
  EXPECT_EQ(d.size(), 20640u);
  EXPECT_EQ(d.features(), 8u);
  EXPECT_THAT(d.target_names(), ElementsAre("MedHouseVal"));
  EXPECT_EQ(d.all().target(0, 0), 4.526);
}

TEST_F(RealData, BreastCancerSkipsItsFirstLine) {
  RowSource s;
  s.task = Task::classification;
  s.path = root_ / "tabular/breast_cancer.csv";
  s.csv.skip_rows = 1;
  const auto d = load_rows(s).or_throw();
  EXPECT_EQ(d.size(), 569u);
  EXPECT_EQ(d.features(), 30u);
  EXPECT_EQ(d.outputs(), 2u);
}

TEST_F(RealData, DigitsAreInflated) {
  RowSource s;
  s.task = Task::classification;
  s.path = root_ / "tabular/digits.csv.gz";
  const auto d = load_rows(s).or_throw();
  EXPECT_EQ(d.size(), 1797u);
  EXPECT_EQ(d.features(), 64u);
  EXPECT_EQ(d.outputs(), 10u);
}

TEST_F(RealData, MonksHaveTheClassFirstAndANameLast) {
  RowSource s;
  s.task = Task::classification;
  s.path = root_ / "tabular/monks-1.train";
  s.target = {"0"};
  s.drop = {"-1"};
  s.categorical = {"1", "2", "3", "4", "5", "6"};
  const auto d = load_rows(s).or_throw();
  EXPECT_EQ(d.size(), 124u);
  EXPECT_EQ(d.features(), 17u);
  EXPECT_EQ(d.outputs(), 2u);
}

TEST_F(RealData, AdultHasCategoriesAndMissingValues) {
  RowSource s;
  s.task = Task::classification;
  s.path = root_ / "tabular/adult-train.csv";
  s.missing = MissingPolicy::drop;
  const auto d = load_rows(s).or_throw();
  EXPECT_EQ(d.size(), 30162u);
  EXPECT_THAT(d.class_names(), ElementsAre("<=50K", ">50K"));
  EXPECT_EQ(d.features(), 104u);
}

TEST_F(RealData, YachtIsSeparatedByBlanks) {
  RowSource s;
  s.path = root_ / "uci/yacht/data.txt";
  EXPECT_EQ(load_rows(s).or_throw().size(), 308u);
}

}  // namespace
}  // namespace gradloom
