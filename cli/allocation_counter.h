// How many bytes this program has asked operator new for; the benchmarks report what a training step adds.
#pragma once

#include <cstdint>

namespace gradloom::cli {

std::uint64_t allocated_bytes();

}  // namespace gradloom::cli
