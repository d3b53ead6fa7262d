// Sinkhorn's iteration: the bits of its definition on every instruction set, and sums that it reaches.
#include "gradloom/kernels/sinkhorn/sinkhorn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/simd_targets.h"
#include "tests/kernels/graph_kernels_support.h"

namespace gradloom::kernels {
namespace {

template <class T>
class SinkhornKernel : public ::testing::Test {};
using SinkhornScalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SinkhornKernel, SinkhornScalars);

TYPED_TEST(SinkhornKernel, GivesTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const std::size_t rows : {2u, 3u, 8u, 13u})
      for (const std::size_t columns : {2u, 3u, 4u, 7u, 8u, 9u, 16u, 23u, 33u}) {
        const auto k = test::random_numbers<T>(rows * columns, 1);
        const sinkhorn::Costs<T> costs{rows, columns, k.data(), T(5), T(1.5), T(0.75)};
        const auto run = [&](Variant variant) {
          std::vector<Buffer<T>> all;
          for (const std::size_t size : {rows, columns, rows * columns, rows, columns, rows * columns})
            all.push_back(test::random_numbers<T>(size, 2));
          const auto dg = test::random_numbers<T>(columns, 3);
          const auto start = test::random_numbers<T>(columns, 4);
          sinkhorn::scale_rows<T>(variant, costs, start.data(), all[0].data());
          sinkhorn::scale_columns<T>(variant, costs, all[0].data(), all[1].data());
          sinkhorn::matching<T>(variant, costs, all[0].data(), all[1].data(), all[2].data());
          sinkhorn::scale_columns_gradient<T>(variant, costs, all[0].data(), all[1].data(), dg.data(), all[3].data(),
                                              all[5].data());
          sinkhorn::scale_rows_gradient<T>(variant, costs, all[0].data(), start.data(), all[3].data(), all[4].data(),
                                           all[5].data());
          return all;
        };
        const auto expected = run(Variant(Variant::reference, arithmetic));
        for (const std::string& target : simd_targets(arithmetic)) {
          const ForceSimdTarget force(target);
          const auto found = run(Variant(Variant::fast, arithmetic));
          for (std::size_t n = 0; n < found.size(); ++n)
            EXPECT_TRUE(test::same_bits(expected[n], found[n]))
                << "array " << n << ", " << target << ", " << rows << " x " << columns;
        }
      }
}

TEST(Sinkhorn, ColumnsOfTheMatchingSumToWhatWasAsked) {
  const std::size_t rows = 5, columns = 11;
  const auto k = test::random_numbers<double>(rows * columns, 1);
  const sinkhorn::Costs<double> costs{rows, columns, k.data(), 2.0, std::log(10.0), std::log(4.0)};
  Buffer<double> f(rows), g(columns), p(rows * columns);
  sinkhorn::scale_rows<double>(Variant::fast, costs, g.data(), f.data());
  sinkhorn::scale_columns<double>(Variant::fast, costs, f.data(), g.data());
  sinkhorn::matching<double>(Variant::fast, costs, f.data(), g.data(), p.data());
  for (std::size_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += p[i * columns + j];
    EXPECT_NEAR(sum, j + 1 < columns ? 1.0 : 4.0, 1e-12);
  }
}

}  // namespace
}  // namespace gradloom::kernels
