#include <optional>
#include <span>

#include "gradloom/data/graph_source.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

class TveParser {
 public:
  TveParser(std::string_view text, const GraphSource& source)
      : lines_(text, source.path.string()), graph_(source.direction, source.loops) {}

  GraphSet run() {
    while (lines_.next()) {
      const auto& words = lines_.words();
      if (words[0] == "t")
        start();
      else if (words[0] == "v")
        node();
      else if (words[0] == "e")
        edge();
      else if (!words[0].starts_with('#'))
        lines_.fail("the line starts with '{}'; it must start with t, v, e or #", TextLines::shown(words[0]));
    }
    finish();
    if (set_.size() == 0) lines_.fail("there is no graph; one starts with a line 't ID'");
    return set_.finish();
  }

 private:
  void finish() {
    if (open_) set_.add(graph_, id_, split_);
    open_ = false;
  }

  // "t ID", "t ID SPLIT", "t # ID"; "t # -1" ends a file of some programs.
  void start() {
    finish();
    auto words = std::span(lines_.words()).subspan(1);
    if (!words.empty() && words[0] == "#") words = words.subspan(1);
    if (words.empty() || words.size() > 2)
      lines_.fail("a graph starts with 't ID', 't # ID' or 't ID SPLIT', but {} words follow the t", words.size());
    if (words[0] == "-1") return;
    id_ = words[0];
    split_ = words.size() > 1 ? words[1] : "";
    open_ = true;
  }

  void require_open() const {
    if (!open_) lines_.fail("there is a node or edge before the first line 't ID'");
  }

  void node() {
    require_open();
    const auto& words = lines_.words();
    if (words.size() > 3) lines_.fail("a node is 'v NUMBER LABEL', but {} words follow the v", words.size() - 1);
    const std::uint32_t number = lines_.number(1, "number of the node");
    if (number != graph_.nodes())
      lines_.fail("node {} is listed where node {} is expected; number the nodes 0, 1, 2, ... in order", number,
                  graph_.nodes());
    NodeValues values;
    if (words.size() == 3) values.label = set_.node_labels.intern(words[2]);
    if (auto added = graph_.add_node(values); !added) lines_.fail("{}", added.error().message);
  }

  void edge() {
    require_open();
    const auto& words = lines_.words();
    if (words.size() > 4) lines_.fail("an edge is 'e FROM TO LABEL', but {} words follow the e", words.size() - 1);
    EdgeValues values;
    const std::uint32_t from = lines_.number(1, "first node of the edge");
    const std::uint32_t to = lines_.number(2, "second node of the edge");
    if (words.size() == 4) values.label = set_.edge_labels.intern(words[3]);
    if (auto added = graph_.add_edge(from, to, values); !added) lines_.fail("{}", added.error().message);
  }

  TextLines lines_;
  GraphSetBuilder set_;
  GraphBuilder graph_;
  std::string id_, split_;
  bool open_ = false;
};

}  // namespace

Result<GraphSet> parse_tve(std::string_view text, const GraphSource& source) try {
  return TveParser(text, source).run();
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
