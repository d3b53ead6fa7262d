// The known name that is nearest to a misspelled one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gradloom {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, the first one on ties; "" when there are none. Last parts are also compared with
// each other, so `lr` finds `optimizer.lr`, and `data.batch` finds `train.batch`.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// The same, but "" when nothing is near: more than a third of the letters of the whole names differ.
std::string near_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace gradloom
