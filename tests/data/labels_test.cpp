#include "gradloom/data/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradloom/data/array_rows.h"
#include "tests/support/npy_files.h"

namespace gradloom {
namespace {

using testing::ElementsAre;

Labels labels_of(const std::vector<std::string_view>& values) { return encode_labels(values); }

TEST(Labels, WholeNumbersOfAnySizeDifferInOneDigit) {
  const Labels large = labels_of({"9007199254740993", "9007199254740992", "9007199254740993"});
  EXPECT_THAT(large.index, ElementsAre(1, 0, 1));
  EXPECT_THAT(large.names, ElementsAre("9007199254740992", "9007199254740993"));
  EXPECT_THAT(labels_of({"-123456789012345678901234567891", "-123456789012345678901234567890"}).names,
              ElementsAre("-123456789012345678901234567891", "-123456789012345678901234567890"));
}

TEST(Labels, SpellingsOfOneNumberAreOne) {
  const Labels labels =
      labels_of({"1", "1.0", "+1", "1e0", "10e-1", "2", "0", "-0", "0.0", ".5", "0.50", "100", "1e2"});
  EXPECT_THAT(labels.index, ElementsAre(2, 2, 2, 2, 2, 3, 0, 0, 0, 1, 1, 4, 4));
  EXPECT_THAT(labels.names, ElementsAre("0", "0.5", "1", "2", "100"));
}

TEST(Labels, NumbersAreSortedByValue) {
  EXPECT_THAT(labels_of({"10", "9", "-1", "-10", "0.25", "0", "1e300", "1e-300"}).names,
              ElementsAre("-10", "-1", "0", "1e-300", "0.25", "9", "10", "1e+300"));
}

TEST(Labels, ZerosInFrontMakeATextOfAll) {
  const Labels labels = labels_of({"007", "7", "7.0", "10"});
  EXPECT_THAT(labels.names, ElementsAre("007", "10", "7", "7.0"));
  EXPECT_THAT(labels.index, ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(labels_of({"nan", "1", "1.0"}).names, ElementsAre("1", "1.0", "nan"));
}

TEST(Labels, AreFoundByTheRulesThatMadeThem) {
  const std::vector<std::string> numbers{"7", "9007199254740992", "9007199254740993"}, texts{"007", "7"};
  const LabelIndex by_value(numbers), by_text(texts);
  EXPECT_EQ(by_value.find("7.0"), 0u);
  EXPECT_EQ(by_value.find("9007199254740993"), 2u);
  EXPECT_EQ(by_value.find("9007199254740994"), std::nullopt);
  EXPECT_EQ(by_value.find("007"), std::nullopt);
  EXPECT_EQ(by_value.find("seven"), std::nullopt);
  EXPECT_EQ(by_text.find("007"), 0u);
  EXPECT_EQ(by_text.find("7"), 1u);
  EXPECT_EQ(by_text.find("7.0"), std::nullopt);
}

TEST(Labels, OfArraysKeepAllDigitsOfIntegers) {
  const auto bytes =
      test::npy(test::header("<i8", "(3, 2)"),
                test::raw<std::int64_t>({1, 9007199254740993, 2, 9007199254740992, 3, -9007199254740993}));
  RowSource source;
  source.task = Task::classification;
  const auto rows =
      rows_from_arrays(to_row_matrix(parse_npy(bytes, "a.npy").or_throw(), "a.npy"), nullptr, source, nullptr).rows;
  EXPECT_THAT(rows.class_names(), ElementsAre("-9007199254740993", "9007199254740992", "9007199254740993"));
  EXPECT_THAT(rows.parts().label, ElementsAre(2, 1, 0));
}

}  // namespace
}  // namespace gradloom
