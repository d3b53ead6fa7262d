#include "gradloom/data/distance_table.h"

#include <charconv>

#include "gradloom/data/text_lines.h"
#include "gradloom/io/file.h"

namespace gradloom {
namespace {

constexpr std::size_t kMostTableBytes = std::size_t{1} << 30;
constexpr std::uint32_t kMostGraphs = 1u << 15;  // what the bytes can hold, roughly
constexpr double kLargestDistance = 1e15;        // sums of many stay exact enough

double distance(const TextLines& lines, std::string_view word) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= 0) || value > kLargestDistance)
    lines.fail("a distance is '{}', not a number from 0 to {:g}", TextLines::shown(word), kLargestDistance);
  return value;
}

}  // namespace

Result<DistanceTable> parse_distances(std::string_view text, std::string_view source) try {
  TextLines lines(text, source);
  if (!lines.next()) lines.fail("the number of graphs is missing");
  if (lines.words().size() != 1) lines.fail("the first line holds the number of graphs and nothing else");
  const std::uint32_t count = lines.number(0, "number of graphs");
  if (count == 0 || count > kMostGraphs)
    lines.fail("there are {} graphs; their number must be from 1 to {}", count, kMostGraphs);
  if (!lines.next() || lines.words().size() != count)
    lines.fail("the second line has {} ids for {} graphs", lines.words().size(), count);
  DistanceTable table;
  for (const std::string_view id : lines.words()) table.ids.emplace_back(id);
  for (std::uint32_t i = 1; i < count; ++i) {
    if (!lines.next()) lines.fail("the distances of graph {} are missing", i);
    if (lines.words().size() != i) lines.fail("graph {} has {} distances, not {}", i, lines.words().size(), i);
    for (const std::string_view word : lines.words()) table.below.push_back(distance(lines, word));
  }
  if (lines.next()) lines.fail("text follows the distances of {} graphs", count);
  return table;
} catch (const Exception& e) {
  return e.error();
}

Result<DistanceTable> load_distances(const std::filesystem::path& path) {
  auto text = read_file(path, kMostTableBytes);
  if (!text) return text.error();
  return parse_distances(*text, path.string());
}

Result<void> check_same_graphs(const DistanceTable& table, const GraphSet& set) {
  if (table.size() != set.size())
    return Error{ErrorCode::invalid_input,
                 fmt::format("there are {} graphs, but the table has distances between {}", set.size(), table.size())};
  for (std::size_t i = 0; i < set.size(); ++i)
    if (table.ids[i] != set.ids[i])
      return Error{ErrorCode::invalid_input,
                   fmt::format("graph {} has the id '{}' in the graphs, but '{}' in the distances", i, set.ids[i],
                               TextLines::shown(table.ids[i]))};
  return {};
}

}  // namespace gradloom
