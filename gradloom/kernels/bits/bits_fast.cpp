// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/bits/bits_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/bits/bits.h"
#include "gradloom/kernels/bits/reference.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::bits {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

using Word = std::uint64_t;
using D = hn::CappedTag<Word, 4>;
constexpr std::size_t kLanes = hn::MaxLanes(D());

template <BitOp op, class V>
HWY_INLINE V combine(V a, V b) {
  if constexpr (op == BitOp::a_and_b) return hn::And(a, b);
  if constexpr (op == BitOp::a_and_not_b) return hn::AndNot(b, a);
  if constexpr (op == BitOp::not_a_and_b) return hn::AndNot(a, b);
  if constexpr (op == BitOp::a_xor_b) return hn::Xor(a, b);
  if constexpr (op == BitOp::a_or_b) return hn::Or(a, b);
  const V ones = hn::Set(D(), ~Word{0});
  if constexpr (op == BitOp::nor) return hn::Xor(hn::Or(a, b), ones);
  if constexpr (op == BitOp::xnor) return hn::Xor(hn::Xor(a, b), ones);
  if constexpr (op == BitOp::a_or_not_b) return hn::Xor(hn::AndNot(a, b), ones);
  if constexpr (op == BitOp::not_a_or_b) return hn::Xor(hn::AndNot(b, a), ones);
  if constexpr (op == BitOp::nand) return hn::Xor(hn::And(a, b), ones);
  if constexpr (op == BitOp::not_a) return hn::Xor(a, ones);
  if constexpr (op == BitOp::zero) return hn::Zero(D());
  return ones;
}

// f(w) for every vector of the row; four per turn, so that the loop costs little beside the loads.
template <class F>
HWY_INLINE void for_vectors(std::size_t words, F&& f) {
  std::size_t w = 0;
  for (; w + 4 * kLanes <= words; w += 4 * kLanes) {
    f(w);
    f(w + kLanes);
    f(w + 2 * kLanes);
    f(w + 3 * kLanes);
  }
  for (; w < words; w += kLanes) f(w);
}

template <BitOp op>
HWY_INLINE void single(const BitInstruction& i, Word* base, std::size_t words) {
  const Word* a = base + i.a;
  const Word* b = base + i.b;
  Word* to = base + i.to;
  for_vectors(words, [=](std::size_t w) GRADLOOM_UNROLLED {
    hn::Store(combine<op>(hn::Load(D(), a + w), hn::Load(D(), b + w)), D(), to + w);
  });
}

template <BitOp inner, BitOp outer>
HWY_INLINE void paired(const BitInstruction& i, Word* base, std::size_t words) {
  const Word* a = base + i.a;
  const Word* b = base + i.b;
  const Word* c = base + i.c;
  Word* to = base + i.to;
  for_vectors(words, [=](std::size_t w) GRADLOOM_UNROLLED {
    const auto first = combine<inner>(hn::Load(D(), a + w), hn::Load(D(), b + w));
    hn::Store(combine<outer>(first, hn::Load(D(), c + w)), D(), to + w);
  });
}

// A function of its own for each inner operation: all in one would take minutes to compile under the sanitizers.
template <BitOp inner>
HWY_NOINLINE void pair_of(const BitInstruction& i, Word* base, std::size_t words) {
  switch (i.outer) {
#define GRADLOOM_CASE(OP) \
  case BitOp::OP:         \
    return paired<inner, BitOp::OP>(i, base, words);
    GRADLOOM_CASE(a_and_b)
    GRADLOOM_CASE(a_and_not_b)
    GRADLOOM_CASE(not_a_and_b)
    GRADLOOM_CASE(a_xor_b)
    GRADLOOM_CASE(a_or_b)
    GRADLOOM_CASE(nor)
    GRADLOOM_CASE(xnor)
    GRADLOOM_CASE(a_or_not_b)
    GRADLOOM_CASE(not_a_or_b)
    GRADLOOM_CASE(nand)
#undef GRADLOOM_CASE
    default:
      return;
  }
}

void run_bits_simd(const BitInstruction* program, std::size_t count, Word* base, std::size_t words) {
  for (const BitInstruction* p = program; p != program + count; ++p) {
    const BitInstruction& i = *p;
    switch (i.op) {
#define GRADLOOM_CASE(OP)              \
  case BitOp::OP:                      \
    single<BitOp::OP>(i, base, words); \
    break;
      GRADLOOM_CASE(a_and_b)
      GRADLOOM_CASE(a_and_not_b)
      GRADLOOM_CASE(not_a_and_b)
      GRADLOOM_CASE(a_xor_b)
      GRADLOOM_CASE(a_or_b)
      GRADLOOM_CASE(nor)
      GRADLOOM_CASE(xnor)
      GRADLOOM_CASE(a_or_not_b)
      GRADLOOM_CASE(not_a_or_b)
      GRADLOOM_CASE(nand)
      GRADLOOM_CASE(not_a)
      GRADLOOM_CASE(zero)
      GRADLOOM_CASE(one)
#undef GRADLOOM_CASE
      case BitOp::pair:
        if (i.inner == BitOp::a_and_b) pair_of<BitOp::a_and_b>(i, base, words);
        if (i.inner == BitOp::a_and_not_b) pair_of<BitOp::a_and_not_b>(i, base, words);
        if (i.inner == BitOp::a_xor_b) pair_of<BitOp::a_xor_b>(i, base, words);
        if (i.inner == BitOp::a_or_b) pair_of<BitOp::a_or_b>(i, base, words);
        break;
    }
  }
}

void shift_bits_simd(const Word* centre, Word* west, Word* east, std::size_t words) {
  for_vectors(words, [=](std::size_t w) GRADLOOM_UNROLLED {
    const auto here = hn::LoadU(D(), centre + w);
    const auto before = hn::LoadU(D(), centre + w - 1), after = hn::LoadU(D(), centre + w + 1);
    hn::StoreU(hn::Or(hn::ShiftLeft<1>(here), hn::ShiftRight<63>(before)), D(), west + w);
    hn::StoreU(hn::Or(hn::ShiftRight<1>(here), hn::ShiftLeft<63>(after)), D(), east + w);
  });
}

bool store_bits_simd(const Word* from, const Word* old, Word* to, std::size_t words) {
  auto changed = hn::Zero(D());
  std::size_t w = 0;
  for (; w + kLanes <= words; w += kLanes) {
    const auto fresh = hn::LoadU(D(), from + w);
    changed = hn::Or(changed, hn::Xor(fresh, hn::LoadU(D(), old + w)));
    hn::StoreU(fresh, D(), to + w);
  }
  const bool rest = reference::store_bits(from + w, old + w, to + w, words - w);
  return !hn::AllTrue(D(), hn::Eq(changed, hn::Zero(D()))) || rest;
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::bits
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::bits {
HWY_EXPORT(run_bits_simd);
HWY_EXPORT(shift_bits_simd);
HWY_EXPORT(store_bits_simd);

void run_bits(Variant variant, std::span<const BitInstruction> program, std::uint64_t* base, std::size_t words) {
  if (variant == Variant::reference) return reference::run_bits(program, base, words);
  HWY_DYNAMIC_DISPATCH(run_bits_simd)(program.data(), program.size(), base, words);
}

void shift_bits(Variant variant, const std::uint64_t* centre, std::uint64_t* west, std::uint64_t* east,
                std::size_t words) {
  if (variant == Variant::reference) return reference::shift_bits(centre, west, east, words);
  HWY_DYNAMIC_DISPATCH(shift_bits_simd)(centre, west, east, words);
}

bool store_bits(Variant variant, const std::uint64_t* from, const std::uint64_t* old, std::uint64_t* to,
                std::size_t words) {
  if (variant == Variant::reference) return reference::store_bits(from, old, to, words);
  return HWY_DYNAMIC_DISPATCH(store_bits_simd)(from, old, to, words);
}

}  // namespace gradloom::kernels::bits
#endif
