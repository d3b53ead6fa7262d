// The arithmetic speed that the processor itself allows, measured beside every benchmark.
#pragma once

namespace gradloom::kernels::peak {

struct PeakRates {
  double mul_add_gflops = 0.0;  // multiplications and additions as separate instructions, on the best SIMD target
  double fma_gflops = 0.0;      // fused
};

// Of one thread. The best of 400 probes of some 20 us: short ones run between interruptions, so the result is that of
// the processor and not of its neighbours.
PeakRates measure_peak(bool double_precision);

}  // namespace gradloom::kernels::peak
