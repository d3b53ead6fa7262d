#include "gradloom/kernels/random/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels::random {
namespace {

template <class T>
void expect_the_bits_of_the_stream() {
  const RandomStream stream(0x123456789abcdefu, RandomUse::noise, 7, 1000);
  for (const std::size_t size : {0u, 1u, 31u, 32u, 255u, 256u, 700u})
    for (const std::uint32_t first : {0u, 5u, 0xffffff00u}) {
      std::vector<T> expected(size);
      for (std::size_t i = 0; i < size; ++i) {
        // 23 bits and a half are exact in both precisions.
        const std::uint64_t bits = stream.bits(first + static_cast<std::uint32_t>(i)) >> 41;
        expected[i] = static_cast<T>((static_cast<double>(bits) + 0.5) * 0x1p-23);
        EXPECT_GT(expected[i], T(0));
        EXPECT_LT(expected[i], T(1));
      }
      std::vector<T> actual(size);
      open_uniform<T>(Variant::reference, stream, first, actual);
      EXPECT_EQ(actual, expected) << size << " from " << first;
      for (const std::string& target : simd_targets()) {
        const ForceSimdTarget force(target);
        std::fill(actual.begin(), actual.end(), T(0));
        open_uniform<T>(Variant::fast, stream, first, actual);
        EXPECT_EQ(actual, expected) << target << ", " << size << " from " << first;
      }
    }
}

TEST(RandomWords, AreTheFirstBitsOfTheStream) {
  const RandomStream stream(77, RandomUse::fire, 3, 9);
  for (const std::size_t size : {0u, 1u, 31u, 33u, 700u})
    for (const std::uint32_t first : {0u, 5u, 0xffffff00u}) {
      std::vector<std::uint32_t> expected(size), actual(size);
      for (std::size_t i = 0; i < size; ++i)
        expected[i] = static_cast<std::uint32_t>(stream.bits(first + static_cast<std::uint32_t>(i)) >> 32);
      random_words(Variant::reference, stream, first, actual);
      EXPECT_EQ(actual, expected) << size << " from " << first;
      for (const std::string& target : simd_targets()) {
        const ForceSimdTarget force(target);
        std::fill(actual.begin(), actual.end(), 0u);
        random_words(Variant::fast, stream, first, actual);
        EXPECT_EQ(actual, expected) << target << ", " << size << " from " << first;
      }
    }
}

TEST(Draws, AgreeWithTheNumbersOfTheStream) {
  const RandomStream stream(78, RandomUse::fire, 3, 9);
  const double exactly = stream.uniform(7);  // not below itself, although its first bits are
  for (const double probability : {0.0, 0.1, 0.6, 1.0, exactly, std::nextafter(exactly, 1.0)})
    for (const std::size_t size : {0u, 1u, 64u, 257u, 700u})
      for (const std::uint32_t first : {0u, 5u, 0xffffff00u}) {
        std::vector<std::uint8_t> expected(size), actual(size, 7);
        for (std::size_t i = 0; i < size; ++i)
          expected[i] = stream.uniform(first + static_cast<std::uint32_t>(i)) < probability;
        for (const Variant variant : {Variant::reference, Variant::fast}) {
          draws(variant, stream, first, probability, actual);
          EXPECT_EQ(actual, expected) << probability << ", " << size << " from " << first;
        }
      }
}

TEST(OpenUniform, HasTheBitsOfTheStreamInFloat) { expect_the_bits_of_the_stream<float>(); }
TEST(OpenUniform, HasTheBitsOfTheStreamInDouble) { expect_the_bits_of_the_stream<double>(); }

}  // namespace
}  // namespace gradloom::kernels::random
