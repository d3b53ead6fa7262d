// The SIMD version of dropout's random bits: the bits of philox4x32 on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradloom/kernels/rowwise/rowwise.h"

namespace gradloom::kernels::rowwise::fast {

// keep[n] = 1 where the random 16 bits of n reach the threshold, for n in [begin, end); begin is a multiple of 8.
void keep_numbers(const DropoutKey& key, std::size_t begin, std::size_t end, std::uint8_t* keep);

}  // namespace gradloom::kernels::rowwise::fast
