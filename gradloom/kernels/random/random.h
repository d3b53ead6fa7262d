// Random numbers of many positions at once: the bits of RandomStream, on every instruction set.
#pragma once

#include <cstdint>
#include <span>

#include "gradloom/base/random.h"
#include "gradloom/exec/exec.h"

namespace gradloom::kernels::random {

// words[i] = the first 32 of the 64 bits at position first + i.
void random_words(Variant variant, const RandomStream& stream, std::uint32_t first, std::span<std::uint32_t> words);

// yes[i] = 1 if stream.uniform(first + i) < probability, else 0.
void draws(Variant variant, const RandomStream& stream, std::uint32_t first, double probability,
           std::span<std::uint8_t> yes);

// u[i] = (n + 1/2) / 2^23, n being the first 23 of the 64 bits at position first + i: never 0 or 1, in either
// precision.
template <class T>
void open_uniform(Variant variant, const RandomStream& stream, std::uint32_t first, std::span<T> u);

}  // namespace gradloom::kernels::random
