// Bit programs: the scalar definition against every instruction set.
#include "gradloom/kernels/bits/bits.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/kernels/bits/reference.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::test {
namespace {

using kernels::bits::BitInstruction;
using kernels::bits::BitOp;

constexpr std::array<std::size_t, 7> kWords = {4, 8, 12, 16, 20, 64, 132};

Buffer<std::uint64_t> random_words(std::size_t size, std::uint64_t seed) {
  Buffer<std::uint64_t> words(size);
  const RandomStream random(seed, RandomUse::user);
  for (std::size_t i = 0; i < size; ++i) words[i] = random.bits(static_cast<std::uint32_t>(i));
  return words;
}

// Every instruction there is, on rows 0 to 2, into row 3; and into an operand's own row.
std::vector<BitInstruction> every_instruction(std::uint32_t words) {
  std::vector<BitInstruction> all;
  for (unsigned op = 0; op < static_cast<unsigned>(BitOp::pair); ++op)
    for (const std::uint32_t to : {3 * words, 0u})
      all.push_back({static_cast<BitOp>(op), BitOp::a_and_b, BitOp::a_and_b, to, 0, words, 0});
  for (const BitOp inner : {BitOp::a_and_b, BitOp::a_and_not_b, BitOp::a_xor_b, BitOp::a_or_b})
    for (unsigned outer = 0; outer < static_cast<unsigned>(BitOp::not_a); ++outer)
      for (const std::uint32_t to : {3 * words, 2 * words})
        all.push_back({BitOp::pair, inner, static_cast<BitOp>(outer), to, 0, words, 2 * words});
  return all;
}

TEST(BitPrograms, EveryInstructionSetGivesTheBitsOfTheDefinition) {
  for (const std::string& name : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(name);
    for (const std::size_t words : kWords)
      for (const BitInstruction& i : every_instruction(static_cast<std::uint32_t>(words))) {
        Buffer<std::uint64_t> expected = random_words(4 * words, words), got = random_words(4 * words, words);
        kernels::bits::run_bits(Variant::reference, {&i, 1}, expected.data(), words);
        kernels::bits::run_bits(Variant::fast, {&i, 1}, got.data(), words);
        ASSERT_TRUE(std::equal(got.span().begin(), got.span().end(), expected.span().begin()))
            << name << " op " << static_cast<int>(i.op) << " " << static_cast<int>(i.inner) << " "
            << static_cast<int>(i.outer);
      }
  }
}

TEST(BitPrograms, TheDefinitionIsTheTruthTable) {
  constexpr std::uint64_t a = 0b1100, b = 0b1010;
  constexpr std::array<unsigned, 13> kTables = {0b1000, 0b0100, 0b0010, 0b0110, 0b1110, 0b0001, 0b1001,
                                                0b1101, 0b1011, 0b0111, 0b0011, 0b0000, 0b1111};
  for (unsigned op = 0; op < kTables.size(); ++op)
    EXPECT_EQ(kernels::bits::reference::apply_bits(static_cast<BitOp>(op), a, b) & 15, kTables[op]) << op;
}

TEST(BitPrograms, ShiftsMoveCellsAcrossWords) {
  for (const std::string& name : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(name);
    for (const std::size_t words : kWords) {
      const Buffer<std::uint64_t> row = random_words(words + 8, 5);
      Buffer<std::uint64_t> west(words), east(words);
      kernels::bits::shift_bits(Variant::fast, row.data() + 4, west.data(), east.data(), words);
      const auto cell = [&](std::size_t x) { return row[x / 64] >> x % 64 & 1; };
      for (std::size_t x = 0; x < 64 * words; ++x) {
        ASSERT_EQ(west[x / 64] >> x % 64 & 1, cell(4 * 64 + x - 1)) << name << " " << x;
        ASSERT_EQ(east[x / 64] >> x % 64 & 1, cell(4 * 64 + x + 1)) << name << " " << x;
      }
    }
  }
}

TEST(BitPrograms, StoresTellWhetherAnyBitChanged) {
  for (const std::string& name : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(name);
    for (const std::size_t words : {0u, 1u, 3u, 4u, 5u, 17u}) {
      const Buffer<std::uint64_t> from = random_words(words + 1, 2);
      Buffer<std::uint64_t> old = random_words(words + 1, 2), to(words + 1);
      EXPECT_FALSE(kernels::bits::store_bits(Variant::fast, from.data() + 1, old.data() + 1, to.data() + 1, words));
      EXPECT_TRUE(std::equal(from.data() + 1, from.data() + 1 + words, to.data() + 1));
      EXPECT_EQ(to[0], 0u);
      for (std::size_t w = 1; w <= words; ++w) {
        old[w] ^= 1;
        EXPECT_TRUE(kernels::bits::store_bits(Variant::fast, from.data() + 1, old.data() + 1, to.data() + 1, words));
        old[w] ^= 1;
      }
    }
  }
}

}  // namespace
}  // namespace gradloom::test
