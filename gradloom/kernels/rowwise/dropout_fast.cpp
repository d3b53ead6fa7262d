// Random bits for dropout; lanes are counters of Philox.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/rowwise/dropout_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/random/philox-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>
#include <cstring>

#include "gradloom/kernels/rowwise/rowwise.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::rowwise {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// keep[n] = 1 where the random 16 bits of n reach the threshold, for n in [begin, end); begin is a multiple of 8.
void keep_numbers(const DropoutKey& k, std::size_t begin, std::size_t end, std::uint8_t* HWY_RESTRICT keep) {
  constexpr std::size_t kCounters = 32, kNumbers = 8 * kCounters;
  std::uint32_t words[4 * kCounters];
  std::uint16_t halves[kNumbers];
  std::uint8_t kept[kNumbers];
  const auto least = static_cast<std::uint16_t>(std::min(k.threshold, 0xffffu));
  const std::uint8_t any = k.threshold > 0xffffu ? 0 : 1;
  for (std::size_t n = begin; n < end; n += kNumbers) {
    random::HWY_NAMESPACE::random_words<kCounters>(Tag<std::uint32_t>(), static_cast<std::uint32_t>(n / 8),
                                                   {0, k.sample, k.epoch, k.use}, k.key, words);
    std::memcpy(halves, words, sizeof(words));  // the lower half of a word comes first
    for (std::size_t i = 0; i < kNumbers; ++i) kept[i] = halves[i] >= least ? any : 0;
    std::memcpy(keep + n, kept, std::min(kNumbers, end - n));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::rowwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::rowwise {
HWY_EXPORT(keep_numbers);

void Dropout::keep(std::size_t begin, std::size_t end, std::uint8_t* keep) const {
  HWY_DYNAMIC_DISPATCH(keep_numbers)(key_, begin, end, keep);
}

}  // namespace gradloom::kernels::rowwise
#endif
