#include "gradloom/base/life_rule.h"

#include <bit>
#include <utility>

namespace gradloom {
namespace {

using Counts = std::array<bool, 9>;

std::optional<Counts> counts_of(std::string_view digits) {
  Counts counts{};
  for (const char c : digits) {
    if (c < '0' || c > '8') return std::nullopt;
    counts[static_cast<std::size_t>(c - '0')] = true;
  }
  return counts;
}

std::string digits_of(const Counts& counts) {
  std::string text;
  for (std::size_t n = 0; n < counts.size(); ++n)
    if (counts[n]) text += static_cast<char>('0' + n);
  return text;
}

}  // namespace

std::optional<LifeRule> parse_life_rule(std::string_view text) {
  text = text.substr(0, text.find(':'));
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  std::string_view first = text.substr(0, slash), second = text.substr(slash + 1);
  const auto begins = [](std::string_view part, char upper, char lower) {
    return part.starts_with(upper) || part.starts_with(lower);
  };
  if (begins(first, 'B', 'b') && begins(second, 'S', 's')) std::swap(first, second);
  if (begins(first, 'S', 's') && begins(second, 'B', 'b')) first.remove_prefix(1), second.remove_prefix(1);
  const auto survival = counts_of(first), birth = counts_of(second);
  if (!survival || !birth) return std::nullopt;
  return LifeRule{*birth, *survival};
}

std::string name_of_rule(const LifeRule& rule) {
  std::string name = "B";
  name += digits_of(rule.birth);
  name += "/S";
  name += digits_of(rule.survival);
  return name;
}

PatchTable patch_table(const LifeRule& rule) {
  PatchTable table;
  for (unsigned patch = 0; patch < table.size(); ++patch) {
    const unsigned alive = patch >> 4 & 1, neighbours = static_cast<unsigned>(std::popcount(patch)) - alive;
    table[patch] = alive ? rule.survival[neighbours] : rule.birth[neighbours];
  }
  return table;
}

}  // namespace gradloom
