// Sums over samples can be cut at any leaf: pieces that go on with one stack, and ranges that are summed apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/spline/cases.h"

namespace gradloom::kernels::spline {
namespace {

// The samples [begin, end) of a problem.
template <class T>
LayerTape<T> part_of(const LayerTape<T>& tape, const Shape& shape, std::size_t begin, std::size_t end) {
  LayerTape<T> part = tape;
  part.batch = end - begin, part.stride = tape.pitch();
  part.x += begin * kPanel, part.span += begin, part.value += begin * basis_stride(shape.degree);
  if (part.base_value) part.base_value += begin;
  return part;
}

// The gradients of weights and biases, side by side, in a stack of their own.
template <class T>
struct SplitSums {
  std::size_t weights, size;
  Buffer<T> levels;

  SplitSums(const Problem<T>& p, std::size_t count)
      : weights(p.dl_dw.size()), size(weights + p.dl_db.size()), levels(size * reduce::tree_levels(count)) {
    std::fill(levels.begin(), levels.end(), T(7));
  }
  reduce::TreeSum<T> stack() { return {.root = levels.data(), .upper = levels.data() + size, .stride = size}; }

  void add(Variant variant, const Problem<T>& p, std::size_t begin, std::size_t end, reduce::TreeSum<T> sum) {
    const Shape& s = p.what.shape;
    const LayerTape<T> part = part_of(p.tape, s, begin, end);
    const T* dl_dy = p.dl_dy.data() + begin * kPanel;
    weight_gradient<T>(variant, s, part, dl_dy, {0, s.in}, sum);
    bias_gradient<T>(variant, s, {part.batch, part.stride}, dl_dy, sum.at(weights));
  }
  bool same_result(const SplitSums& other) const {
    return std::memcmp(levels.data(), other.levels.data(), size * sizeof(T)) == 0;
  }
};

template <class T>
class SplineSplit : public ::testing::Test {};
using SplitScalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SplineSplit, SplitScalars);

// Few samples for many spans, so that leaves leave rows empty; a last leaf of a few samples.
template <class T, class F>
void for_split_problems(F&& f) {
  const FlushSubnormals flush;
  for (const std::size_t batch : {std::size_t{200}, 4 * kChunk, 7 * kChunk + 3, 13 * kChunk + 200})
    for (const Variant variant : {Variant::reference, Variant::fast}) {
      Problem<T> p({.shape = {.in = 3, .out = 9, .grid = 300, .degree = 3}, .batch = batch}, batch, Points::everywhere);
      evaluate_basis(variant, p.layer, p.tape, {0, batch});
      SplitSums<T> whole(p, leaves(batch));
      whole.add(variant, p, 0, batch, whole.stack());
      f(variant, p, whole);
    }
}

TYPED_TEST(SplineSplit, PiecesOfABatchGiveTheBitsOfTheWhole) {
  for_split_problems<TypeParam>([](Variant variant, const Problem<TypeParam>& p, const auto& whole) {
    const std::size_t batch = p.what.batch;
    for (const std::size_t piece : {kChunk, 2 * kChunk, 3 * kChunk, 5 * kChunk}) {
      SplitSums<TypeParam> sums(p, leaves(batch));
      for (std::size_t begin = 0; begin < batch; begin += piece) {
        auto sum = sums.stack();
        sum.leaf = begin / kChunk, sum.complete = begin + piece >= batch;
        sums.add(variant, p, begin, std::min(batch, begin + piece), sum);
      }
      EXPECT_TRUE(sums.same_result(whole)) << batch << " samples in pieces of " << piece;
    }
  });
}

TYPED_TEST(SplineSplit, RangesThatAreSummedApartGiveTheBitsOfTheWhole) {
  for_split_problems<TypeParam>([](Variant variant, const Problem<TypeParam>& p, const auto& whole) {
    const std::size_t batch = p.what.batch, count = leaves(batch);
    for (const std::size_t cut : {std::size_t{1}, count / 3, count / 2, count - 1}) {
      SplitSums<TypeParam> sums(p, count), range(p, count);
      for (std::size_t first = 0, size; first < count; first += size) {
        const std::size_t room = std::bit_floor((first < cut ? cut : count) - first);
        size = first == 0 ? room : std::min(room, std::size_t{1} << std::countr_zero(first));
        auto own = range.stack();
        own.apart = first > 0;
        range.add(variant, p, first * kChunk, std::min(batch, (first + size) * kChunk), own);
        reduce::add_leaf(sums.stack(), first / size, range.levels.data(), 0, range.size);
      }
      reduce::finish_levels(sums.stack(), count, 0, sums.size);
      EXPECT_TRUE(sums.same_result(whole)) << batch << " samples, cut at leaf " << cut;
    }
  });
}

}  // namespace
}  // namespace gradloom::kernels::spline
