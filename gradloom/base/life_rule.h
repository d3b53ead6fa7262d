// Rules that count neighbours: B3/S23 is the game of life.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradloom {

// Whether a cell is alive in the next step, by how many of its eight neighbours are alive: a dead one, a living one.
struct LifeRule {
  std::array<bool, 9> birth{}, survival{};
  bool operator==(const LifeRule&) const = default;
};

// Understands B3/S23 in any order and case, and 23/3, without what may follow a colon (the size of a grid). Nothing for
// any other text.
std::optional<LifeRule> parse_life_rule(std::string_view text);

// Births first, digits in order.
std::string name_of_rule(const LifeRule& rule);

// The next state of a cell by its 3 x 3 patch, whose cells are bits: row by row, the cell itself is bit 4.
using PatchTable = std::bitset<512>;
PatchTable patch_table(const LifeRule& rule);

}  // namespace gradloom
