// What a step tells the device besides its samples: the head of the batch that is copied there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gradloom::kernels {

// Bytes [0, 256): 64 whole numbers, of which the first says which pair of the losses is the first of this step, the
// second how many leaves of the optimizer step came before (reduce/tree_sum.h). Bytes [256, 512): scalars.
inline constexpr std::size_t kStepScalarsAt = 256, kStepHeadBytes = 512;

enum class StepScalar : std::size_t {
#define GRADLOOM_LOSS_SCALAR(number, name) name = number,
#define GRADLOOM_STEP_SCALAR GRADLOOM_LOSS_SCALAR
#include "gradloom/kernels/shader/step_scalars.inc"
};

template <class T>
void set_step_scalar(std::byte* head, StepScalar which, T value) {
  std::memcpy(head + kStepScalarsAt + static_cast<std::size_t>(which) * sizeof(T), &value, sizeof(T));
}

inline void set_step_leaf(std::byte* head, std::size_t leaf) {
  const auto number = static_cast<std::uint32_t>(leaf);
  std::memcpy(head + sizeof(number), &number, sizeof(number));
}

}  // namespace gradloom::kernels
