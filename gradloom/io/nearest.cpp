#include "gradloom/io/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gradloom {
namespace {

// Names are short; what is longer comes from a hostile file and is compared by its beginning.
constexpr std::size_t kLongest = 200;

std::string_view last_part(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string_view first_parts(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

// What it costs to look at the last part of a name alone. A section that exists was probably meant, and the key stands
// in another one; a section that does not exist is a misspelt one, where whole names tell more.
std::size_t price_of_last_part(std::string_view name, std::span<const std::string> candidates) {
  if (name.find('.') == std::string_view::npos) return 1;
  for (const std::string& candidate : candidates)
    if (first_parts(candidate) == first_parts(name)) return 1;
  return 2;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::size_t price = price_of_last_part(name, candidates);
  const std::string* best = nullptr;
  std::pair<std::size_t, std::size_t> best_distance;
  for (const std::string& candidate : candidates) {
    const std::size_t whole = edit_distance(name, candidate);
    const std::size_t part = price + edit_distance(last_part(name), last_part(candidate));
    const std::pair distance{std::min(whole, part), whole};
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? *best : std::string();
}

std::string near_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return 3 * edit_distance(name, nearest) <= std::max(name.size(), nearest.size()) ? nearest : std::string();
}

}  // namespace gradloom
