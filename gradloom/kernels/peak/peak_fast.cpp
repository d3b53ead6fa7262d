// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/peak/peak_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>
#include <chrono>

#include "gradloom/kernels/peak/peak.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::peak {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

constexpr std::size_t kChains = 14;
constexpr std::size_t kRounds = 8000;

// Keeps a value in a register, so that the compiler can neither drop nor merge the work on it.
template <class V>
HWY_INLINE void hold(V& v) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  asm volatile("" : "+m"(v));
#elif HWY_TARGET <= HWY_AVX3
  asm volatile("" : "+v"(v.raw));
#else
  asm volatile("" : "+x"(v.raw));
#endif
}

// Chains of multiplications and of additions, which do not wait for each other.
template <class D>
double separate_rate(D d) {
  using T = hn::TFromD<D>;
  hn::Vec<D> v[kChains];
  unroll<kChains>([&](auto i) GRADLOOM_UNROLLED { v[i] = hn::Set(d, static_cast<T>(1)); });
  auto factor = hn::Set(d, static_cast<T>(1)), term = hn::Zero(d);
  hold(factor);
  hold(term);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t round = 0; round < kRounds; ++round)
    unroll<kChains>([&](auto i) GRADLOOM_UNROLLED {
      v[i] = i % 2 == 0 ? hn::Mul(v[i], factor) : hn::Add(v[i], term);
      hold(v[i]);
    });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return static_cast<double>(kRounds * kChains * hn::MaxLanes(d)) / seconds * 1e-9;
}

template <class D>
double fused_rate(D d) {
  using T = hn::TFromD<D>;
  hn::Vec<D> v[kChains];
  unroll<kChains>([&](auto i) GRADLOOM_UNROLLED { v[i] = hn::Set(d, static_cast<T>(1)); });
  auto factor = hn::Set(d, static_cast<T>(1)), term = hn::Zero(d);
  hold(factor);
  hold(term);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t round = 0; round < kRounds; ++round)
    unroll<kChains>([&](auto i) GRADLOOM_UNROLLED {
      v[i] = hn::MulAdd(v[i], factor, term);
      hold(v[i]);
    });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return static_cast<double>(2 * kRounds * kChains * hn::MaxLanes(d)) / seconds * 1e-9;
}

// The better of both widths: processors that halve wide instructions reach more with narrow ones.
template <class T>
PeakRates probe_peak() {
  PeakRates best;
  const auto probe = [&](auto d) {
    best.mul_add_gflops = std::max(best.mul_add_gflops, separate_rate(d));
    best.fma_gflops = std::max(best.fma_gflops, fused_rate(d));
  };
  for (int n = 0; n < 400; ++n) {
    probe(Tag<T>());
    if constexpr (!std::is_same_v<Tag<T>, WideTag<T>>) probe(WideTag<T>());
  }
  return best;
}

PeakRates ProbePeak(bool double_precision) { return double_precision ? probe_peak<double>() : probe_peak<float>(); }

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::peak
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::peak {

HWY_EXPORT(ProbePeak);
PeakRates measure_peak(bool double_precision) { return HWY_DYNAMIC_DISPATCH(ProbePeak)(double_precision); }

}  // namespace gradloom::kernels::peak
#endif
