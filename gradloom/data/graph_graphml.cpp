#include <fmt/format.h>

#include <map>

#include "gradloom/data/csv.h"
#include "gradloom/data/graph_draft.h"
#include "gradloom/data/graph_readers.h"
#include "gradloom/data/graph_xml.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

// What a <key> says of the attributes that name it.
struct GraphmlKey {
  std::string name;
  bool number = false, whole = false, ignored = false;
  const pugi::xml_node element;
};

bool is_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

class GraphmlParser {
 public:
  GraphmlParser(std::string_view text, const GraphSource& source) : source_(source), xml_(text, source.path.string()) {}

  GraphSet run() {
    const pugi::xml_node root = xml_.document().child("graphml");
    if (!root) xml_.fail(xml_.document().first_child(), "there is no <graphml> element");
    for (const pugi::xml_node& key : root.children("key")) read_key(key);
    for (const pugi::xml_node& graph : root.children("graph")) read_graph(graph);
    if (set_.size() == 0) xml_.fail(root, "there is no <graph> element");
    return set_.finish();
  }

 private:
  void read_key(const pugi::xml_node& key) {
    const std::string id = key.attribute("id").as_string();
    const std::string_view type = key.attribute("attr.type").as_string("string");
    std::string name = key.attribute("attr.name").as_string();
    const bool known =
        type == "boolean" || type == "int" || type == "long" || type == "float" || type == "double" || type == "string";
    if (!known) xml_.fail(key, fmt::format("the type '{}' of a key is not known", TextLines::shown(type)));
    GraphmlKey entry{name.empty() ? id : std::move(name), type == "float" || type == "double",
                     type == "int" || type == "long", key.attribute("yfiles.type") != nullptr, key};
    if (!keys_.emplace(id, std::move(entry)).second)
      xml_.fail(key, fmt::format("the key id '{}' occurs twice; ids must be unique", TextLines::shown(id)));
  }

  void add(const pugi::xml_node& at, const GraphmlKey& key, std::string_view text, GraphAttributes& found) const {
    double value = 0.0;
    if (key.number && !parse_number(text, value))
      xml_.fail(at, fmt::format("the attribute '{}' is '{}', not a number", TextLines::shown(key.name),
                                TextLines::shown(text)));
    if (key.whole && !is_whole(text))
      xml_.fail(at,
                fmt::format("the attribute '{}' is '{}', not a whole number, but its key has attr.type=\"{}\"; a key "
                            "of type double takes fractions",
                            TextLines::shown(key.name), TextLines::shown(text),
                            key.element.attribute("attr.type").as_string()));
    const bool added = key.number ? found.add_number(key.name, value, text) : found.add_text(key.name, text);
    if (!added) xml_.fail(at, fmt::format("the attribute '{}' occurs twice", TextLines::shown(key.name)));
  }

  // Those of the element, and the defaults of keys for elements of its `kind`.
  GraphAttributes attributes(const pugi::xml_node& element, std::string_view kind) const {
    GraphAttributes found;
    for (const pugi::xml_node& data : element.children("data")) {
      const auto key = keys_.find(data.attribute("key").as_string());
      if (key == keys_.end())
        xml_.fail(data,
                  fmt::format("the key '{}' is not declared", TextLines::shown(data.attribute("key").as_string())));
      if (!key->second.ignored) add(data, key->second, trimmed_xml(data.child_value()), found);
    }
    for (const auto& [_, key] : keys_) {
      const pugi::xml_node preset = key.element.child("default");
      const std::string_view of = key.element.attribute("for").as_string("all");
      if (preset && !key.ignored && (of == kind || of == "all") && !found.has(key.name))
        add(preset, key, trimmed_xml(preset.child_value()), found);
    }
    return found;
  }

  void read_graph(const pugi::xml_node& element) {
    const std::string_view mode = element.attribute("edgedefault").as_string("undirected");
    if (mode != "directed" && mode != "undirected")
      xml_.fail(element, fmt::format("edgedefault is '{}', not directed or undirected", TextLines::shown(mode)));
    GraphDraft draft;
    draft.direction = mode == "directed" ? Direction::directed : Direction::undirected;
    draft.id = element.attribute("id").as_string();
    if (draft.id.empty()) draft.id = fmt::format("{}", set_.size());
    std::vector<pugi::xml_node> nodes, edges;
    for (const pugi::xml_node& child : element.children()) {
      const std::string_view kind = child.name();
      if (kind == "node") {
        if (child.child("graph")) xml_.fail(child, "a graph inside a node cannot be read");
        draft.nodes.push_back({child.attribute("id").as_string(), attributes(child, "node")});
        nodes.push_back(child);
      } else if (kind == "edge") {
        const bool turned = child.attribute("directed") &&
                            child.attribute("directed").as_bool() != (draft.direction == Direction::directed);
        if (turned) xml_.fail(child, "directed and undirected edges in one graph cannot be read");
        draft.edges.push_back(
            {child.attribute("source").as_string(), child.attribute("target").as_string(), attributes(child, "edge")});
        edges.push_back(child);
      } else if (kind == "hyperedge") {
        xml_.fail(child, "edges between more than two nodes cannot be read");
      }
    }
    draft.attributes = attributes(element, "graph");
    draft.node_place = [&](std::size_t v) { return xml_.place(nodes[v]); };
    draft.edge_place = [&](std::size_t e) { return xml_.place(edges[e]); };
    add_draft(std::move(draft), source_, set_);
  }

  const GraphSource& source_;
  Xml xml_;
  std::map<std::string, GraphmlKey> keys_;
  GraphSetBuilder set_;
};

}  // namespace

Result<GraphSet> parse_graphml(std::string_view text, const GraphSource& source) try {
  return GraphmlParser(text, source).run();
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
