// JSON that somebody else wrote: what is taken, and what is refused with which words.
#include "gradloom/io/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/mutate.h"

namespace gradloom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string json_error(const std::string& text) {
  const auto r = parse_json(text, "f.json");
  return r ? "no error" : r.error().message;
}

TEST(ParseJson, TakesWhatJsonIs) {
  const auto r = parse_json(R"({"a": [1, {"a": 2}, {"a": 3}], "b": {"a": null}})", "f.json");
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ((*r)["a"][2]["a"], 3);
  EXPECT_EQ(json_error(std::string(64, '[') + std::string(64, ']')), "no error");
}

TEST(ParseJson, SaysWhereItStopsBeingJson) {
  EXPECT_THAT(json_error("{\n\"a\": 1,\n}"), AllOf(HasSubstr("f.json:3: this is not JSON"), HasSubstr("byte 11")));
  EXPECT_THAT(json_error(""), HasSubstr("f.json:1:"));
  EXPECT_THAT(json_error("[\"\xff\"]"), HasSubstr("UTF-8"));
}

TEST(ParseJson, RefusesAKeyThatAppearsTwiceAtAnyLevel) {
  EXPECT_THAT(json_error(R"({"a": 1, "b": 2, "a": 1})"), HasSubstr("f.json: the key 'a' appears twice"));
  EXPECT_THAT(json_error(R"([{"x": [{"in": 1, "in": 2}]}])"), HasSubstr("'in' appears twice"));
}

TEST(ParseJson, RefusesNumbersBeyondADoubleAndTooManyLevels) {
  EXPECT_THAT(json_error("[1e400]"), AllOf(HasSubstr("'1e400'"), HasSubstr("too large"), Not(HasSubstr("exception"))));
  EXPECT_THAT(json_error(std::string(66, '[') + std::string(66, ']')), HasSubstr("64 levels"));
  EXPECT_THAT(json_error(std::string(100'000, '[')), HasSubstr("64 levels"));
}

TEST(ParseJson, SurvivesRandomDamage) {
  const std::string good =
      R"({"graphs": [{"nodes": 2, "edges": [[0, 1, "x"]], "id": "a"}, {"nodes": ["C"], "id": 1.5e3}]})";
  std::size_t refused = 0;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto r = parse_json(test::mutate(good, 3, i), "f.json");
    if (r) continue;
    ++refused;
    EXPECT_TRUE(r.error().message.starts_with("f.json:")) << r.error().message;
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_LT(refused, 3000u);
}

}  // namespace
}  // namespace gradloom
