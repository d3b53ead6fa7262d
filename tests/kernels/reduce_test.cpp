// Reductions do not depend on threads, instruction set or variant.
#include "gradloom/kernels/reduce/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/reduce/tree_sum.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels::reduce {
namespace {

template <class T>
class Reduce : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Reduce, Scalars);

TYPED_TEST(Reduce, IsTheSameForAllThreadsAndTargets) {
  using T = TypeParam;
  const RandomStream random(2, RandomUse::check);
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const std::size_t size : {0, 1, 15, 16, 17, 4095, 4096, 4097, 70001, 300000}) {
      std::vector<T> a(size), b(size), scratch(reduce_scratch(size));
      for (std::uint32_t n = 0; n < size; ++n) a[n] = T(random.normal(2 * n)), b[n] = T(random.normal(2 * n + 1));
      const Exec reference({1, Variant(Variant::reference, arithmetic)});
      const T expected_dot = dot<T>(reference, a, b, scratch), expected_max = max_abs<T>(reference, a, scratch);
      long double exact = 0, magnitude = 0;
      for (std::size_t n = 0; n < size; ++n)
        exact += static_cast<long double>(a[n]) * b[n], magnitude += std::abs(a[n] * b[n]);
      EXPECT_NEAR(static_cast<double>(expected_dot), static_cast<double>(exact),
                  static_cast<double>(300 * std::numeric_limits<T>::epsilon() * magnitude));
      auto expected_axpy = b, expected_scale = a;
      axpy<T>(reference, T(0.3), a, expected_axpy);
      scale<T>(reference, T(0.3), expected_scale);
      for (const unsigned threads : {1u, 2u, 3u, 8u}) {
        const Exec exec({threads, Variant(Variant::fast, arithmetic)});
        for (const std::string& target : simd_targets(arithmetic)) {
          const ForceSimdTarget force(target);
          SCOPED_TRACE(target + " " + std::to_string(threads) + " " + std::to_string(size));
          EXPECT_EQ((dot<T>(exec, a, b, scratch)), expected_dot);
          EXPECT_EQ((sum_of_squares<T>(exec, a, scratch)), (dot<T>(reference, a, a, scratch)));
          EXPECT_EQ((max_abs<T>(exec, a, scratch)), expected_max);
          auto y = b, x = a;
          axpy<T>(exec, T(0.3), a, y);
          scale<T>(exec, T(0.3), x);
          EXPECT_EQ(y, expected_axpy);
          EXPECT_EQ(x, expected_scale);
        }
      }
    }
}

// As ranks do: each sums aligned ranges of its chunks, and whoever has all of them finishes the tree.
TYPED_TEST(Reduce, AnyContiguousSplitOfItsChunksGivesTheBitsOfTheWhole) {
  using T = TypeParam;
  const RandomStream random(4, RandomUse::check);
  const std::size_t size = 12 * kReduceChunk + 77, chunks = reduce_scratch(size);
  std::vector<T> a(size), b(size), scratch(chunks);
  for (std::uint32_t n = 0; n < size; ++n) a[n] = T(random.normal(2 * n)), b[n] = T(random.normal(2 * n + 1));
  const Exec ex({.threads = 1});
  const T whole = dot<T>(ex, a, b, scratch);
  std::size_t other_than_in_order = 0;
  for (std::size_t cut = 1; cut < chunks; ++cut) {
    std::vector<T> levels(tree_levels(chunks));
    const TreeSum<T> sum{.root = levels.data(), .upper = levels.data() + 1, .stride = 1};
    T in_order = 0;
    for (std::size_t first = 0, count; first < chunks; first += count) {
      const std::size_t room = std::bit_floor((first < cut ? cut : chunks) - first);
      count = first == 0 ? room : std::min(room, std::size_t{1} << std::countr_zero(first));
      const std::size_t begin = first * kReduceChunk, length = std::min(size - begin, count * kReduceChunk);
      const T part = dot<T>(ex, std::span<const T>(a).subspan(begin, length),
                            std::span<const T>(b).subspan(begin, length), scratch);
      add_leaf(sum, first / count, &part, 0, 1);
      in_order += part;
    }
    finish_levels(sum, chunks, 0, 1);
    EXPECT_EQ(levels[0], whole) << "cut at chunk " << cut;
    other_than_in_order += in_order != whole;
  }
  EXPECT_GT(other_than_in_order, 0u) << "the two orders can hardly be told apart by these numbers";
}

TYPED_TEST(Reduce, MaxAbsFindsNaN) {
  using T = TypeParam;
  std::vector<T> a(5000, T(1)), scratch(reduce_scratch(a.size()));
  const Exec exec({1, Variant::fast});
  a[77] = T(-9);
  EXPECT_EQ((max_abs<T>(exec, a, scratch)), T(9));
  for (const std::size_t at : {0, 100, 4200, 4999}) {
    auto b = a;
    b[at] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_TRUE(std::isnan(max_abs<T>(exec, b, scratch)));
  }
}

}  // namespace
}  // namespace gradloom::kernels::reduce
