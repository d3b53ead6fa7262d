#include "gradloom/data/csv.h"
#include "gradloom/data/graph_source.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

class GinParser {
 public:
  GinParser(std::string_view text, const GraphSource& source)
      : lines_(text, source.path.string()), graph_(Direction::undirected, source.loops) {}

  GraphSet run() {
    if (!lines_.next() || lines_.words().size() != 1) lines_.fail("the first line must be the number of graphs");
    const std::uint32_t graphs = lines_.number(0, "number of graphs");
    for (std::uint32_t g = 0; g < graphs; ++g) read_graph(g, graphs);
    if (lines_.next()) lines_.fail("text follows after the last of {} graphs", graphs);
    if (graphs == 0) lines_.fail("there is no graph");
    return set_.finish();
  }

 private:
  void read_graph(std::uint32_t number, std::uint32_t graphs) {
    if (!lines_.next()) lines_.fail("the file ends before graph {} of {}", number + 1, graphs);
    if (lines_.words().size() != 2)
      lines_.fail("a graph starts with 'NODES CLASS', but this line has {} words", lines_.words().size());
    const std::uint32_t nodes = lines_.number(0, "number of nodes");
    graph_.set_class(set_.graph_classes.intern(lines_.words()[1]));
    listed_.clear();
    for (std::uint32_t i = 0; i < nodes; ++i) read_node(i, nodes);
    // Every edge is listed at both ends, and becomes one edge.
    for (const Listed& l : listed_) {
      if (l.to >= nodes)
        fail_at(l, fmt::format("neighbour {} does not exist; there are {} nodes, numbered from 0", l.to, nodes));
      if (l.from <= l.to)
        if (auto added = graph_.add_edge(l.from, l.to); !added) fail_at(l, added.error().message);
    }
    std::size_t loops = 0, forward = 0;
    for (const Listed& l : listed_) {
      loops += l.from == l.to;
      forward += l.from < l.to;
      if (!graph_.has_edge(l.from, l.to))
        fail_at(l, fmt::format("node {} lists {} as a neighbour, but not the other way round", l.from, l.to));
    }
    if (2 * forward + loops != listed_.size())
      lines_.fail("graph {}: a node lists a neighbour that does not list it in turn, or lists one twice", number + 1);
    set_.add(graph_, fmt::format("{}", number));
  }

  // "TAG DEGREE NEIGHBOUR... FEATURE..."
  void read_node(std::uint32_t node, std::uint32_t nodes) {
    if (!lines_.next()) lines_.fail("the file ends before node {} of {}", node + 1, nodes);
    const auto& words = lines_.words();
    const std::uint32_t degree = lines_.number(1, "number of neighbours");
    if (degree > words.size() - 2)
      lines_.fail("{} neighbours are announced, but {} words follow", degree, words.size() - 2);
    for (std::uint32_t k = 0; k < degree; ++k)
      listed_.push_back({node, lines_.number(2 + k, "neighbour"), lines_.line()});
    features_.clear();
    for (std::size_t k = 2 + degree; k < words.size(); ++k) {
      double value = 0.0;
      if (!parse_number(words[k], value)) lines_.fail("the feature '{}' is not a number", TextLines::shown(words[k]));
      features_.push_back(value);
    }
    NodeValues values;
    values.label = set_.node_labels.intern(words[0]);
    values.features = features_;
    if (auto added = graph_.add_node(values); !added) lines_.fail("{}", added.error().message);
  }

  struct Listed {
    std::uint32_t from, to;
    std::size_t line;
  };
  [[noreturn]] void fail_at(const Listed& l, const std::string& message) const {
    throw_invalid(fmt::format("{}:{}: {}", lines_.source(), l.line, message));
  }

  TextLines lines_;
  GraphSetBuilder set_;
  GraphBuilder graph_;
  std::vector<Listed> listed_;
  std::vector<double> features_;
};

}  // namespace

Result<GraphSet> parse_gin(std::string_view text, const GraphSource& source) try {
  return GinParser(text, source).run();
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
