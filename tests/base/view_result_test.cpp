#include <gmock/gmock.h>

#include <memory>
#include <numeric>
#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/result.h"
#include "gradloom/base/view.h"

namespace gradloom {
namespace {

TEST(View, IsRowMajorUnlessStridesSayOtherwise) {
  std::vector<int> values(24);
  std::iota(values.begin(), values.end(), 0);
  const View<int, 3> cube(values.data(), {2, 3, 4});
  EXPECT_EQ(cube(1, 2, 3), 23);
  EXPECT_EQ(cube(1, 0, 2), 14);
  EXPECT_EQ(cube.stride(0), 12u);
  const View<int, 2> padded(values.data(), {4, 3}, {6, 1});
  EXPECT_EQ(padded(2, 1), 13);
  EXPECT_EQ(padded.row(3)[2], 20);
  const View<int, 2> transposed(values.data(), {4, 6}, {1, 4});
  EXPECT_EQ(transposed(1, 2), 9);
  padded(0, 0) = 100;
  EXPECT_EQ(values[0], 100);
}

TEST(View, FirstRowsAndConstViewsSeeTheSameMemory) {
  std::vector<float> values(12, 1.0f);
  const View<float, 2> all(values.data(), {4, 3});
  const View<const float, 2> fixed = all;
  EXPECT_EQ(fixed.data(), values.data());
  EXPECT_EQ(all.first(2).size(), 6u);
  EXPECT_EQ(all.first(2).stride(0), 3u);
  EXPECT_TRUE(all.first(0).empty());
}

TEST(View, EmptyOnesHaveNoElements) {
  const View<double, 2> nothing;
  EXPECT_TRUE(nothing.empty());
  EXPECT_EQ(nothing.size(), 0u);
  EXPECT_EQ(nothing.data(), nullptr);
  double value = 1.0;
  EXPECT_TRUE((View<double, 2>(&value, {0, 5}).empty()));
  EXPECT_FALSE((View<double, 2>(&value, {1, 1}).empty()));
}

Result<int> parse(bool good) {
  if (!good) return Error{ErrorCode::not_found, "there is no such number"};
  return 42;
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = parse(true);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 42);
  EXPECT_EQ(good.value(), 42);
  const Result<int> bad = parse(false);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::not_found);
  EXPECT_EQ(bad.error().message, "there is no such number");
}

TEST(Result, ThrowsItsErrorOnRequest) {
  EXPECT_EQ(parse(true).or_throw(), 42);
  try {
    parse(false).or_throw();
    ADD_FAILURE() << "no exception";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_STREQ(e.what(), "there is no such number");
    EXPECT_EQ(e.error().code, ErrorCode::not_found);
  }
}

TEST(Result, OfNothingIsGoodByDefault) {
  Result<void> good;
  EXPECT_TRUE(good.ok());
  EXPECT_NO_THROW(std::move(good).or_throw());
  Result<void> bad = Error{ErrorCode::io, "full"};
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "full");
  EXPECT_THROW(std::move(bad).or_throw(), Exception);
}

TEST(Exception, ShowsControlCharactersInsteadOfObeyingThem) {
  const Exception e(ErrorCode::invalid_input, std::string("a\0b\x1b[2J\tc\n", 10));
  EXPECT_STREQ(e.what(), "a?b?[2J\tc\n");
  EXPECT_EQ(e.error().message, e.what());
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
  EXPECT_EQ(*Result<std::unique_ptr<int>>(std::make_unique<int>(8)).or_throw(), 8);
}

int twice(int x) { return 2 * x; }

TEST(FunctionRef, CallsLambdasPointersToFunctionsAndConstObjects) {
  int calls = 0;
  const auto counting = [&calls](int x) {
    ++calls;
    return x + 1;
  };
  const FunctionRef<int(int)> f(counting);
  EXPECT_EQ(f(1) + f(2), 5);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(FunctionRef<int(int)>(&twice)(4), 8);
}

}  // namespace
}  // namespace gradloom
