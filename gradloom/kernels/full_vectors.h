// Whether the processor runs 512-bit vectors at full rate: the one place where kernels ask what it is good at. The
// answer changes times, never bits.
#pragma once

namespace gradloom::kernels {

// Intel since Skylake-X and AMD since Zen 5 have two 512-bit pipes for fused multiply-adds; Zen 4 runs such an
// instruction in two passes, and gains little from it. False without AVX-512.
bool full_vectors();

// For tests: overrides full_vectors() while it exists. Not for concurrent use.
class ForceFullVectors {
 public:
  explicit ForceFullVectors(bool full);
  ~ForceFullVectors();
  ForceFullVectors(const ForceFullVectors&) = delete;
  ForceFullVectors& operator=(const ForceFullVectors&) = delete;

 private:
  int previous_;
};

}  // namespace gradloom::kernels
