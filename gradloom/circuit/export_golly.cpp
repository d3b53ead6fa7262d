#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "gradloom/base/error.h"
#include "gradloom/circuit/diagram.h"
#include "gradloom/circuit/export.h"
#include "gradloom/circuit/netlist.h"

namespace gradloom::circuit {
namespace {

constexpr std::uint32_t kMostGollyChannels = 8;
constexpr std::size_t kMostTreeEntries = std::size_t{1} << 24;  // of all nodes
// Positions of the 3 x 3 patch in the order in which a rule tree asks: corners, sides, the cell itself.
constexpr std::uint32_t kAsked[] = {0, 2, 6, 8, 1, 3, 5, 7, 4};
constexpr std::uint32_t kDepth = 9;

// A node of a rule tree is what is left of all outputs once some cells are known: their diagrams.
class RuleTree {
 public:
  explicit RuleTree(const CellRule& rule)
      : channels_(rule.channels), states_(1u << rule.channels), diagrams_(rule.circuit, places(rule.channels)) {
    node(diagrams_.outputs(), 0);
  }

  std::string text() const {
    std::string text = fmt::format("num_states={}\nnum_neighbors=8\nnum_nodes={}\n", states_, lines_.size());
    for (const std::string& line : lines_) text += line;
    return text;
  }

 private:
  // Of each input of the circuit: cells in the order in which they are asked, channels of a cell together.
  static std::vector<std::uint32_t> places(std::uint32_t channels) {
    std::vector<std::uint32_t> place(9 * channels);
    for (std::uint32_t k = 0; k < kDepth; ++k)
      for (std::uint32_t c = 0; c < channels; ++c) place[c * 9 + kAsked[k]] = k * channels + c;
    return place;
  }

  // The number of the node for `left` when `known` cells are known; beyond the last one the state.
  std::uint32_t node(const std::vector<Diagrams::Ref>& left, std::uint32_t known) {
    if (known == kDepth) {
      std::uint32_t state = 0;
      for (std::uint32_t c = 0; c < channels_; ++c) state |= left[c] << c;
      return state;
    }
    const auto key = std::pair(known, left);
    if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
    std::vector<std::uint32_t> children;
    for (std::uint32_t state = 0; state < states_; ++state) {
      std::vector<Diagrams::Ref> then = left;
      for (Diagrams::Ref& f : then)
        for (std::uint32_t c = 0; c < channels_; ++c) f = diagrams_.after(f, known * channels_ + c, state >> c & 1);
      children.push_back(node(then, known + 1));
    }
    if ((entries_ += states_) > kMostTreeEntries)
      throw Exception(
          ErrorCode::unsupported,
          fmt::format("the rule tree has more than {} entries; use a rule with fewer channels", kMostTreeEntries));
    lines_.push_back(fmt::format("{} {}\n", kDepth - known, fmt::join(children, " ")));
    const auto number = static_cast<std::uint32_t>(lines_.size() - 1);
    numbers_.emplace(key, number);
    return number;
  }

  std::uint32_t channels_, states_;
  Diagrams diagrams_;
  std::map<std::pair<std::uint32_t, std::vector<Diagrams::Ref>>, std::uint32_t> numbers_;
  std::vector<std::string> lines_;
  std::size_t entries_ = 0;
};

// Golly finds a rule by the name of its file: letters, digits, '_' and '-'.
void check_rule_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool good = !name.empty() && name.size() <= 100 && letter(name[0]) &&
                    std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
  if (!good)
    throw_invalid(
        fmt::format("'{}' is not a valid name for a rule: letters, digits, '_' and '-', with a letter first", name));
}

}  // namespace

std::string to_golly(const CellRule& rule, std::string_view name) {
  check_rule_name(name);
  if (rule.channels > kMostGollyChannels)
    throw Exception(
        ErrorCode::unsupported,
        fmt::format("Golly has at most 256 states, that is 8 channels; the rule has {} channels; observe fewer of them",
                    rule.channels));
  std::string text = fmt::format("@RULE {}\n\n@TREE\n\n{}", name, RuleTree(rule).text());
  text += "\n@COLORS\n\n";
  for (std::uint32_t state = 1; state < 1u << rule.channels; ++state) {
    const auto part = [&](std::uint32_t c) { return state >> c & 1 ? 255 : rule.channels == 1 ? 255 : 40; };
    text += fmt::format("{} {} {} {}\n", state, part(0), part(1), part(2));
  }
  return text;
}

}  // namespace gradloom::circuit
