// The seed of a start: that of the run, or another one for each restart.
#pragma once

#include "gradloom/base/random.h"

namespace gradloom {

// Restart 0 is the plain start of the seed.
inline std::uint64_t restart_seed(std::uint64_t seed, std::size_t restart) {
  return restart == 0 ? seed : RandomStream(seed, RandomUse::restart).bits(static_cast<std::uint32_t>(restart));
}

}  // namespace gradloom
