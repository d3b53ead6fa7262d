#include "gradloom/data/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gradloom/base/error.h"
#include "gradloom/data/binarise.h"
#include "gradloom/data/ranges.h"
#include "gradloom/data/split.h"

namespace gradloom {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

RowDataset<double> regression(std::size_t n) {
  RowParts<double> p;
  p.size = n;
  p.features = 3;
  p.targets = 2;
  for (std::size_t i = 0; i < 3 * n; ++i) p.x.push_back(static_cast<double>(i));
  for (std::size_t i = 0; i < 2 * n; ++i) p.target.push_back(static_cast<double>(i) / 10);
  for (std::size_t i = 0; i < n; ++i) p.weight.push_back(static_cast<double>(i + 1));
  return RowDataset<double>(p);
}

RowDataset<double> classification() {
  RowParts<double> p;
  p.size = 3;
  p.features = 1;
  p.x = {1, 2, 3};
  p.label = {0, 1, 0};
  p.class_names = {"a", "b"};
  return RowDataset<double>(p);
}

TEST(RowDataset, ShowsAllRowsWithoutCopying) {
  const auto rows = regression(5);
  const auto batch = rows.all();
  EXPECT_EQ(batch.size, 5u);
  EXPECT_EQ(batch.x.data(), rows.parts().x.data());
  EXPECT_EQ(batch.x(4, 2), 14);
  EXPECT_EQ(batch.target(4, 1), 0.9);
  EXPECT_TRUE(batch.label.empty());
  EXPECT_EQ(batch.weight[4], 5);
  EXPECT_THAT(rows.feature_names(), ElementsAre("x1", "x2", "x3"));
  EXPECT_EQ(rows.outputs(), 2u);
}

TEST(RowDataset, GathersRowsInTheOrderAskedFor) {
  const auto rows = regression(5);
  RowBatchStorage<double> storage(rows, 4);
  const std::vector<std::uint32_t> wanted{4, 0, 4};
  const auto batch = rows.gather(wanted, storage);
  EXPECT_EQ(batch.size, 3u);
  EXPECT_EQ(batch.x.extent(0), 3u);
  EXPECT_EQ(batch.x(0, 0), 12);
  EXPECT_EQ(batch.x(1, 2), 2);
  EXPECT_EQ(batch.target(2, 0), 0.8);
  EXPECT_THAT(batch.weight, ElementsAre(5, 1, 5));
  const auto* before = batch.x.data();
  EXPECT_EQ(rows.gather(std::vector<std::uint32_t>{1}, storage).x.data(), before);
  EXPECT_EQ(rows.gather({}, storage).size, 0u);
}

TEST(RowDataset, GathersLabels) {
  const auto rows = classification();
  EXPECT_EQ(rows.outputs(), 2u);
  RowBatchStorage<double> storage(rows, 2);
  const auto batch = rows.gather(std::vector<std::uint32_t>{1, 2}, storage);
  EXPECT_THAT(batch.label, ElementsAre(1, 0));
  EXPECT_TRUE(batch.target.empty());
  EXPECT_TRUE(batch.weight.empty());
}

TEST(RowDataset, ThrowsOnRowsOrStorageThatDoNotFit) {
  const auto rows = regression(2);
  RowBatchStorage<double> storage(rows, 1), other(classification(), 1);
  EXPECT_THROW(rows.gather(std::vector<std::uint32_t>{2}, storage), Exception);
  EXPECT_THROW(rows.gather(std::vector<std::uint32_t>{0, 1}, storage), Exception);
  EXPECT_THROW(rows.gather(std::vector<std::uint32_t>{0}, other), Exception);
  EXPECT_THROW(rows.subset(std::vector<std::uint32_t>{2}), Exception);
  RowParts<double> p;
  p.size = 2;
  p.features = 1;
  p.x = {1, 2};
  EXPECT_THROW(RowDataset<double>{p}, Exception);
  p.label = {0, 1};
  p.class_names = {"only"};
  EXPECT_THROW(RowDataset<double>{p}, Exception);
}

TEST(RowDataset, TakesSubsetsAndConverts) {
  const auto part = regression(5).subset(std::vector<std::uint32_t>{3, 1});
  EXPECT_EQ(part.size(), 2u);
  EXPECT_THAT(part.parts().x, ElementsAre(9, 10, 11, 3, 4, 5));
  EXPECT_EQ(regression(0).subset({}).size(), 0u);
  const RowDataset<float> single = convert<float>(part);
  EXPECT_EQ(single.all().target(0, 1), 0.7f);
  EXPECT_EQ(convert<double>(classification()).class_names(), classification().class_names());
}

TEST(ColumnStatistics, GivesConstantColumnsADeviationOfOne) {
  const std::vector<double> x{1, 0.1, 3, 0.1, 5, 0.1};
  const auto s = column_statistics(View<const double, 2>(x.data(), {3, 2}));
  EXPECT_DOUBLE_EQ(s.mean[0], 3);
  EXPECT_DOUBLE_EQ(s.std[0], std::sqrt(8.0 / 3));
  EXPECT_EQ(s.mean[1], 0.1);
  EXPECT_EQ(s.std[1], 1);
  EXPECT_EQ(column_statistics(View<const double, 2>(x.data(), {0, 2})).std[0], 1);
}

std::set<std::uint32_t> together(const Split& s) {
  std::set<std::uint32_t> all(s.train.begin(), s.train.end());
  all.insert(s.validation.begin(), s.validation.end());
  all.insert(s.test.begin(), s.test.end());
  return all;
}

TEST(Split, CoversEveryRowOnce) {
  for (std::size_t n : {0u, 1u, 2u, 7u, 100u, 1001u}) {
    const Split s = make_split(n, SplitFractions{0.7, 0.1, 0.2}, 42);
    EXPECT_EQ(s.train.size() + s.validation.size() + s.test.size(), n);
    EXPECT_EQ(together(s).size(), n);
  }
  const Split s = make_split(1000, SplitFractions{0.7, 0.1, 0.2}, 42);
  EXPECT_EQ(s.validation.size(), 100u);
  EXPECT_EQ(s.test.size(), 200u);
  EXPECT_EQ(make_split(1000, SplitFractions{0.5, 0, 0.2}, 42).train.size(), 500u);
  EXPECT_EQ(make_split(10, SplitCounts{3, 2, 1}, 1).train.size(), 3u);
}

TEST(Split, DependsOnTheSeedAlone) {
  EXPECT_EQ(make_split(50, SplitFractions{}, 1).test, make_split(50, SplitFractions{}, 1).test);
  EXPECT_NE(make_split(50, SplitFractions{}, 1).test, make_split(50, SplitFractions{}, 2).test);
}

TEST(Split, SpreadsClassesInProportion) {
  std::vector<std::uint32_t> labels(1000);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 10 == 0 ? 1 : 0;
  const auto ones = [&](const std::vector<std::uint32_t>& rows) {
    return std::count_if(rows.begin(), rows.end(), [&](std::uint32_t r) { return labels[r] == 1; });
  };
  const Split s = make_split(1000, SplitFractions{0.6, 0.2, 0.2}, 3, labels);
  EXPECT_NEAR(ones(s.test), 20, 1);
  EXPECT_NEAR(ones(s.validation), 20, 1);
  for (std::size_t f = 0; f < 10; ++f) EXPECT_NEAR(ones(make_fold(1000, 10, f, 3, labels).test), 10, 1);
}

TEST(Split, FoldsCoverEveryRowOnce) {
  std::set<std::uint32_t> seen;
  for (std::size_t f = 0; f < 4; ++f) {
    const Split s = make_fold(11, 4, f, 5);
    EXPECT_EQ(together(s).size(), 11u);
    EXPECT_THAT(s.test.size(), testing::AnyOf(2u, 3u));
    seen.insert(s.test.begin(), s.test.end());
  }
  EXPECT_EQ(seen.size(), 11u);
}

TEST(Split, ThrowsOnPartsThatDoNotFit) {
  EXPECT_THROW(make_split(10, SplitFractions{0.9, 0.2, 0.2}, 1), Exception);
  EXPECT_THROW(make_split(10, SplitFractions{-0.1, 0.2, 0.2}, 1), Exception);
  EXPECT_THROW(make_split(10, SplitCounts{9, 1, 1}, 1), Exception);
  EXPECT_THROW(make_fold(10, 1, 0, 1), Exception);
  EXPECT_THROW(make_fold(10, 11, 0, 1), Exception);
  EXPECT_THROW(make_fold(10, 5, 5, 1), Exception);
  EXPECT_THROW(make_split(10, SplitFractions{}, 1, std::vector<std::uint32_t>{1, 2}), Exception);
}

// Inputs are divided by their spread, errors of targets are squared.
TEST(RowDataset, NumbersThatFloatCannotComputeWithAreRefused) {
  const auto rows = [](double input, double target) {
    RowParts<double> p;
    p.size = 4, p.features = 1, p.targets = 1;
    for (int i = 0; i < 4; ++i) p.x.push_back(i * input), p.target.push_back(i * target);
    p.feature_names = {"a"}, p.target_names = {"b"};
    return RowDataset<double>(p);
  };
  const auto message = [&](double input, double target) -> std::string {
    try {
      convert<float>(rows(input, target));
      return "";
    } catch (const Exception& e) {
      return e.what();
    }
  };
  EXPECT_EQ(message(1, 1), "");
  EXPECT_EQ(message(1e-36, 1e-17), "");
  EXPECT_EQ(message(0, 0), "");
  EXPECT_THAT(message(1e-40, 1), AllOf(HasSubstr("input 'a'"), HasSubstr("3e-40"), HasSubstr("float64")));
  EXPECT_THAT(message(1, 1e-25), AllOf(HasSubstr("target 'b'"), HasSubstr("too little")));
  EXPECT_THAT(message(1, 1e25), AllOf(HasSubstr("target 'b'"), HasSubstr("too much")));
  EXPECT_THAT(message(1e39, 1), HasSubstr("too large"));
  EXPECT_NO_THROW(convert<double>(rows(1e-40, 1e-25)));
}

// One feature that is the target too.
RowDataset<double> column_of(std::vector<double> values) {
  RowParts<double> p;
  p.size = values.size(), p.features = 1, p.targets = 1;
  p.x = p.target = std::move(values);
  p.feature_names = {"a"}, p.target_names = {"b"};
  return RowDataset<double>(p);
}

TEST(RowCentres, AreTheMiddlesOfColumnsThatExceedTheirSpread64Times) {
  EXPECT_EQ(choose_centres<float>(column_of({1e9, 1e9 + 2})), (RowCentres{{1e9 + 1}, {1e9 + 1}}));
  EXPECT_EQ(choose_centres<float>(column_of({-1e9, -1e9 - 2})), (RowCentres{{-1e9 - 1}, {-1e9 - 1}}));
  EXPECT_EQ(choose_centres<float>(column_of({63, 64})), RowCentres());
  EXPECT_EQ(choose_centres<float>(column_of({64, 65})), (RowCentres{{64.5}, {64.5}}));
  EXPECT_EQ(choose_centres<float>(column_of({1e9, 1e9})), RowCentres()) << "a constant has no spread";
  EXPECT_EQ(choose_centres<float>(column_of({})), RowCentres());
  EXPECT_EQ(choose_centres<double>(column_of({1e9, 1e9 + 2})), RowCentres()) << "double has bits enough";
  EXPECT_EQ(choose_centres<double>(column_of({1e15, 1e15 + 2})), (RowCentres{{1e15 + 1}, {1e15 + 1}}));
}

TEST(RowCentres, AreSubtractedBeforeValuesAreRounded) {
  const auto rows = column_of({1e9 + 0.25, 1e9 + 0.5, 1e9 + 0.375});
  const RowCentres centre = choose_centres<float>(rows);
  const auto single = convert<float>(rows, centre);
  EXPECT_EQ(single.parts().centre, centre);
  EXPECT_THAT(single.parts().x, ElementsAre(-0.125f, 0.125f, 0.0f));
  EXPECT_THAT(single.parts().target, ElementsAre(-0.125f, 0.125f, 0.0f));
  const auto part = single.subset(std::vector<std::uint32_t>{1});
  EXPECT_EQ(part.parts().centre, centre);
  EXPECT_EQ(part.exact_target(0, 0), 0.125);
}

TEST(RowCentres, LeaveTargetsAsTheyWereBeforeRounding) {
  const auto rows = column_of({1e5, 1e5 + 0.1, 1e5 + 0.9});
  const auto single = convert<float>(rows, choose_centres<float>(rows));
  const double exact = (1e5 + 0.1) - single.parts().centre.target[0];
  EXPECT_EQ(single.exact_target(1, 0), exact);
  EXPECT_NE(static_cast<double>(single.all().target(1, 0)), exact);
  EXPECT_EQ(convert<float>(column_of({0.1, 0.7})).exact_target(1, 0), static_cast<double>(0.7f)) << "not centred";
}

TEST(RowDataset, WeightsThatFloatCannotComputeWithAreRefused) {
  for (const double weight : {1e-38, 1e39}) {
    RowParts<double> p = column_of({1, 2}).parts();
    p.weight = {1, weight};
    const RowDataset<double> rows(p);
    EXPECT_NO_THROW(convert<double>(rows));
    std::string message;
    try {
      convert<float>(rows);
    } catch (const Exception& e) {
      message = e.what();
    }
    EXPECT_THAT(message, AllOf(HasSubstr("row 1"), HasSubstr(weight < 1 ? "1e-38" : "1e+39"), HasSubstr("1.18e-38"),
                               HasSubstr(weight < 1 ? "would be 0" : "would be infinite"), HasSubstr("float64")));
  }
}

TEST(RowDataset, LargestWeightsThatLeaveFloatNoRoomForErrorsAreRefused) {
  for (const double weight : {1e-30, 1e30}) {
    RowParts<double> p = column_of({1, 2}).parts();
    p.weight = {weight, weight / 2};
    const RowDataset<double> rows(p);
    EXPECT_NO_THROW(convert<double>(rows));
    std::string message;
    try {
      convert<float>(rows);
    } catch (const Exception& e) {
      message = e.what();
    }
    EXPECT_THAT(message, AllOf(HasSubstr(weight < 1 ? "largest weight is 1e-30" : "largest weight is 1e+30"),
                               HasSubstr(weight < 1 ? "would be 0" : "would be infinite"), HasSubstr("float64")));
  }
  RowParts<double> p = column_of({1, 2, 3}).parts();
  p.weight = {1, 1e-30, 0};
  EXPECT_NO_THROW(convert<float>(RowDataset<double>(p))) << "small beside others";
}

TEST(BitColumns, HaveNamesWithAsManyDigitsAsTellThemApart) {
  const auto names = [](std::vector<double> values) {
    std::vector<std::string> found;
    for (const BitColumn& bit : choose_bits(column_of(std::move(values)), 8)) found.push_back(bit.name);
    return found;
  };
  EXPECT_THAT(names({1, 2, 3}), ElementsAre("a > 1.5", "a > 2.5"));
  EXPECT_THAT(names({1e6, 1e6 + 0.25, 1e6 + 0.5}), ElementsAre("a > 1000000.1", "a > 1000000.4"));
}

TEST(Float32Warnings, NameColumnsWhoseValuesMeet) {
  EXPECT_TRUE(float32_warnings(column_of({0.1, 0.2, 0.3, 1e6}), {}).empty());
  const auto close = column_of({1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3});
  EXPECT_TRUE(float32_warnings(close, choose_centres<float>(close)).empty());
  EXPECT_THAT(float32_warnings(close, {}),
              ElementsAre(AllOf(HasSubstr("input 'a' has 4 different values, of which float32 distinguishes 1"),
                                HasSubstr("float64")),
                          HasSubstr("target 'b'")));
  // One cell far away: no centre helps.
  const auto outlier = column_of({1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4, -1e9});
  EXPECT_THAT(float32_warnings(outlier, choose_centres<float>(outlier)), testing::SizeIs(2));
}

TEST(ColumnRanges, CountRowsOutsideAndFindThoseFarAway) {
  const std::vector<double> training{0, 10, 4, 30, 2, 20}, rows{0, 10, 4.5, 20, 2, 95, -13, 20, 2, 15};
  const auto ranges = column_ranges<double>({training.data(), {3, 2}});
  EXPECT_THAT(ranges.low, ElementsAre(0, 10));
  EXPECT_THAT(ranges.high, ElementsAre(4, 30));
  const View<const double, 2> view(rows.data(), {5, 2});
  EXPECT_EQ(count_outside<double>(ranges, view), 3u);
  const FarRows far = find_far_rows<double>(ranges, view);  // beyond -12 and 16, -50 and 90
  EXPECT_EQ(far.count, 2u);
  EXPECT_EQ(far.row, 2u);
  EXPECT_EQ(far.column, 1u);
  EXPECT_EQ(count_outside<double>({}, view), 0u) << "nothing is known";
}

}  // namespace
}  // namespace gradloom
