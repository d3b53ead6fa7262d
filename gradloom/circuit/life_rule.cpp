#include "gradloom/circuit/life_rule.h"

#include <array>
#include <bit>
#include <optional>

#include "gradloom/base/life_rule.h"
#include "gradloom/circuit/simulate.h"

namespace gradloom::circuit {
namespace {

constexpr unsigned kCells = 9, kCentre = 4, kNeighbours = 8;

}  // namespace

std::string life_rule(const CellRule& rule) {
  if (rule.channels != 1) return "";
  std::array<std::optional<bool>, kNeighbours + 1> next[2];  // of a dead cell, of one that lives
  for (std::uint64_t block = 0; block < (1u << kCells) / 64; ++block) {
    std::array<std::uint64_t, kCells> in;
    for (unsigned i = 0; i < kCells; ++i) in[i] = variable_word(i, block);
    const std::uint64_t out = outputs_for(rule.circuit, in)[0];
    for (unsigned k = 0; k < 64; ++k) {
      const auto patch = static_cast<unsigned>(block * 64 + k);
      const unsigned alive = patch >> kCentre & 1;
      const bool value = out >> k & 1;
      std::optional<bool>& known = next[alive][static_cast<unsigned>(std::popcount(patch)) - alive];
      if (known.value_or(value) != value) return "";
      known = value;
    }
  }
  LifeRule found;
  for (unsigned n = 0; n <= kNeighbours; ++n) {
    found.birth[n] = next[0][n].value();
    found.survival[n] = next[1][n].value();
  }
  return name_of_rule(found);
}

std::string standard_rule(std::string_view name) {
  const auto rule = parse_life_rule(name);
  return rule ? name_of_rule(*rule) : "";
}

}  // namespace gradloom::circuit
