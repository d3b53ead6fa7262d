// The arithmetic speed that the processor itself allows, measured beside every benchmark.
#pragma once

namespace gradloom::kernels::peak {

struct PeakRates {
  double mul_add_gflops = 0.0;  // multiplications and additions as separate instructions, on the best SIMD target
  double fma_gflops = 0.0;      // fused
};

// Of one thread. The best of several probes of about 0.2 ms: what is not reached is not the machine's neighbours'
// doing.
PeakRates measure_peak(bool double_precision);

}  // namespace gradloom::kernels::peak
