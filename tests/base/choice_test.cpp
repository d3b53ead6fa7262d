// Tables of choices: from a name to a value and back.
#include "gradloom/base/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradloom::test {
namespace {

using testing::HasSubstr;

enum class Fruit { apple, pear, plum };
constexpr Choice<Fruit> kFruit[] = {{Fruit::apple, "apple", "red"}, {Fruit::pear, "pear", "green"}};

TEST(Choice, NamesAndValuesBelongTogether) {
  static_assert(name_of(kFruit, Fruit::pear) == "pear");
  EXPECT_EQ(value_of<Fruit>(kFruit, "pear", "fruit").or_throw(), Fruit::pear);
  EXPECT_EQ(names_of<Fruit>(kFruit), "apple, pear");
}

TEST(Choice, AnUnknownNameIsAnErrorThatNamesItAndAllThereAre) {
  EXPECT_FALSE(find_choice<Fruit>(kFruit, "plum"));
  EXPECT_FALSE(find_choice<Fruit>(kFruit, ""));
  const auto found = value_of<Fruit>(kFruit, "plum", "fruit");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(found.error().message, HasSubstr("no fruit 'plum'"));
  EXPECT_THAT(found.error().message, HasSubstr("apple, pear"));
}

TEST(Choice, AValueWithoutANameIsAnError) { EXPECT_THROW(name_of(kFruit, Fruit::plum), Exception); }

TEST(Choice, ATableCanLackAValue) {
  const auto rest = without(kFruit, Fruit::apple);
  EXPECT_EQ(names_of<Fruit>(rest), "pear");
}

}  // namespace
}  // namespace gradloom::test
