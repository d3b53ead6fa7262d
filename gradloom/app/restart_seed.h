// The seed of a start: that of the recipe, or another one for each restart.
#pragma once

#include "gradloom/base/random.h"
#include "gradloom/io/config.h"

namespace gradloom::app {

// Restart 0 is the plain start of the recipe's seed.
inline std::uint64_t restart_seed(const Config& recipe, std::size_t restart) {
  const auto seed = static_cast<std::uint64_t>(recipe.integer("seed"));
  return restart == 0 ? seed : RandomStream(seed, RandomUse::restart).bits(static_cast<std::uint32_t>(restart));
}

}  // namespace gradloom::app
