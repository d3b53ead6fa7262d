#include "gradloom/data/graph_label_warning.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

// A label is a value, or "name=value name=value".
bool has_whole_number(std::string_view label) {
  const auto is_whole = [](std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  if (is_whole(label)) return true;
  while (!label.empty()) {
    const std::size_t end = std::min(label.find(' '), label.size()), name = label.substr(0, end).rfind('=');
    if (name != label.npos && is_whole(label.substr(name + 1, end - name - 1))) return true;
    label.remove_prefix(std::min(end + 1, label.size()));
  }
  return false;
}

// Numbers of kinds (of atoms, say) are few, and each has many nodes.
bool look_like_quantities(const GraphSet& set) {
  constexpr std::size_t kFew = 16, kManyNodes = 100;
  std::size_t nodes = 0;
  for (const Graph& g : set.graphs) nodes += g.nodes();
  const auto& labels = set.node_labels.names();
  return labels.size() > kFew && nodes < kManyNodes * labels.size() && std::ranges::all_of(labels, has_whole_number);
}

}  // namespace

std::string label_warning(const GraphSet& set, NodeFeatures asked) {
  if (asked != NodeFeatures::automatic || set.graphs.front().node_labels().empty()) return "";
  const NodeFeatures found = resolve_features(asked, set);
  const bool numbers = look_like_quantities(set);
  const char* write = "; to learn from the numbers, write them as fractions (17.0) or give them as features";
  if (has_labels(found) && numbers)
    return fmt::format(
        "the nodes have {} different labels made of whole numbers, such as '{}', and each is a feature of its own{}; "
        "data.features = \"{}\" says that they are names of kinds",
        set.node_labels.size(), TextLines::shown(set.node_labels.names().front()), write,
        name_of(kNodeFeatures, found));
  if (found != NodeFeatures::given) return "";
  return fmt::format(
      "the nodes have {} different labels, which are taken for names and are no features; data.features = \"all\" "
      "uses them beside the numbers of the file, \"given\" says that they are none{}",
      set.node_labels.size(), numbers ? write : "");
}

}  // namespace gradloom
