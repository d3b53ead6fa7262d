#include "gradloom/base/rounding.h"

#include <gtest/gtest.h>

#include <string_view>

#include "gradloom/base/hash.h"

namespace gradloom {
namespace {

TEST(Rounding, IsUpToTheNextMultiple) {
  EXPECT_EQ(divide_up(0, 4), 0u);
  EXPECT_EQ(divide_up(1, 4), 1u);
  EXPECT_EQ(divide_up(8, 4), 2u);
  EXPECT_EQ(round_up(9, 4), 12u);
  EXPECT_EQ(padded(0), 0u);
  EXPECT_EQ(padded(1), 16u);
  EXPECT_EQ(padded(16), 16u);
}

// FNV-1a takes bytes; over words that are bytes it is the same.
TEST(Hash, HasThePublishedValues) {
  const auto of = [](std::string_view text) {
    Hash hash;
    for (const char c : text) hash.mix(static_cast<unsigned char>(c));
    return hash.value();
  };
  EXPECT_EQ(of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(of("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace gradloom
