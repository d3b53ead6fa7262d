#include "gradloom/circuit/life_rule.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cctype>
#include <optional>
#include <utility>

#include "gradloom/circuit/simulate.h"

namespace gradloom::circuit {
namespace {

constexpr unsigned kCells = 9, kCentre = 4, kNeighbours = 8;

// Of 0..8 neighbours: whether a cell is alive in the next step.
using Counts = std::array<bool, kNeighbours + 1>;

std::string text_of(const Counts& births, const Counts& survivals) {
  const auto digits = [](const Counts& counts) {
    std::string text;
    for (unsigned n = 0; n < counts.size(); ++n)
      if (counts[n]) text += static_cast<char>('0' + n);
    return text;
  };
  return fmt::format("B{}/S{}", digits(births), digits(survivals));
}

std::optional<Counts> counts_of(std::string_view digits) {
  Counts counts{};
  for (const char c : digits) {
    if (c < '0' || c > '8') return std::nullopt;
    counts[static_cast<std::size_t>(c - '0')] = true;
  }
  return counts;
}

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
  Counts counts[2];
  for (unsigned alive = 0; alive < 2; ++alive)
    for (unsigned n = 0; n <= kNeighbours; ++n) counts[alive][n] = next[alive][n].value();
  return text_of(counts[0], counts[1]);
}

std::string standard_rule(std::string_view name) {
  name = name.substr(0, name.find(':'));
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return "";
  std::string_view first = name.substr(0, slash), second = name.substr(slash + 1);
  const auto begins = [](std::string_view part, char letter) {
    return !part.empty() && std::toupper(static_cast<unsigned char>(part.front())) == letter;
  };
  if (begins(first, 'B') && begins(second, 'S')) std::swap(first, second);
  if (begins(first, 'S') && begins(second, 'B')) first.remove_prefix(1), second.remove_prefix(1);
  const auto survivals = counts_of(first), births = counts_of(second);
  return survivals && births ? text_of(*births, *survivals) : "";
}

}  // namespace gradloom::circuit
