// The SIMD version of every gate kernel gives the bits of the scalar definition, on every instruction set.
#include <gtest/gtest.h>

#include <cstring>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/gate/cases.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels::gate {
namespace {

template <class T>
::testing::AssertionResult same_bits(const char* what, const Buffer<T>& a, const Buffer<T>& b) {
  for (std::size_t n = 0; n < a.size(); ++n)
    if (std::memcmp(&a[n], &b[n], sizeof(T)) != 0)
      return ::testing::AssertionFailure() << what << "[" << n << "]: " << a[n] << " and " << b[n];
  return ::testing::AssertionSuccess();
}

template <class T>
class GateParity : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GateParity, Scalars);

TYPED_TEST(GateParity, EveryTargetGivesTheBitsOfTheDefinition) {
  const FlushSubnormals flush;
  std::uint64_t seed = 1;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const Case& c : cases())
      for (const Logits logits : {Logits::initial, Logits::mixed, Logits::decided, Logits::one_each}) {
        SCOPED_TRACE(c.name());
        const GradientMode mode = ++seed % 2 == 0 ? GradientMode::accumulate : GradientMode::overwrite;
        Problem<TypeParam> expected(c, logits, seed);
        expected.run(Variant(Variant::reference, arithmetic), mode);
        for (const std::string& target : simd_targets(arithmetic)) {
          SCOPED_TRACE(target);
          const ForceSimdTarget force(target);
          for (const bool full : {false, true}) {
            const ForceFullVectors force_vectors(full);
            Problem<TypeParam> actual(c, logits, seed);
            actual.run(Variant(Variant::fast, arithmetic), mode);
            for (std::size_t g = 0; g < c.gates; ++g)
              for (std::size_t m = 0; m < kSums; ++m)
                ASSERT_EQ(std::memcmp(&actual.gates[g].c[m], &expected.gates[g].c[m], sizeof(TypeParam)), 0) << g;
            EXPECT_TRUE(same_bits("out", expected.out, actual.out));
            EXPECT_TRUE(same_bits("dl_din", expected.dl_din, actual.dl_din));
            EXPECT_TRUE(same_bits("sums", expected.sums, actual.sums));
            EXPECT_TRUE(same_bits("dl_dz", expected.dl_dz, actual.dl_dz));
          }
        }
        if (this->HasFailure()) return;
      }
}

// Copies share gates, not results: each has those of a call of its own.
TYPED_TEST(GateParity, CopiesAreAsIfEachWereAlone) {
  const FlushSubnormals flush;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const Case& c : {Case{9, 48, 6, Wiring::same}, Case{9, 8, 1, Wiring::fan, 4}, Case{40, 40, 1, Wiring::circle},
                          Case{17, 31, 1}}) {
      SCOPED_TRACE(c.name());
      Problem<TypeParam> p(c, Logits::mixed, 3);
      p.run(Variant(Variant::reference, arithmetic), GradientMode::overwrite);
      const std::size_t inputs = p.in.size(), outputs = p.out.size(), in_step = inputs + kTile,
                        out_step = outputs + 2 * kTile;
      for (const std::size_t count : {1u, 2u, 3u, 5u, 7u}) {
        Buffer<TypeParam> in(count * in_step), together(count * out_step), alone(count * out_step);
        for (std::size_t i = 0; i < in.size(); ++i)
          in[i] = p.in[i % inputs] * static_cast<TypeParam>(1 + i / in_step) / static_cast<TypeParam>(count);
        for (std::size_t k = 0; k < count; ++k)
          forward<TypeParam>(Variant(Variant::reference, arithmetic), p.layer(), in.data() + k * in_step,
                             alone.data() + k * out_step);
        for (const std::string& target : simd_targets(arithmetic)) {
          SCOPED_TRACE(target);
          const ForceSimdTarget force(target);
          for (const bool full : {false, true})
            for (const Variant variant :
                 {Variant(Variant::fast, arithmetic), Variant(Variant::reference, arithmetic)}) {
              const ForceFullVectors force_vectors(full);
              std::fill_n(together.data(), together.size(), TypeParam(0));
              forward<TypeParam>(variant, p.layer(), in.data(), together.data(), {count, in_step, out_step});
              EXPECT_TRUE(same_bits("out", alone, together));
            }
        }
      }
    }
}

}  // namespace
}  // namespace gradloom::kernels::gate
