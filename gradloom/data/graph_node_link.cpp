#include "gradloom/data/graph_node_link.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "gradloom/data/graph_draft.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

using nlohmann::json;

class NodeLinkReader {
 public:
  NodeLinkReader(const GraphSource& source, GraphSetBuilder& set) : source_(source), set_(set) {}

  void run(const json& object, const std::string& where, std::size_t position) {
    GraphDraft draft;
    draft.direction = source_.direction;
    if (object.contains("directed")) {
      if (!object["directed"].is_boolean()) fail(where + ".directed", "must be true or false");
      draft.direction = object["directed"].get<bool>() ? Direction::directed : Direction::undirected;
    }
    draft.id = fmt::format("{}", position);
    if (object.contains("graph") && object["graph"].is_object()) {
      const json& graph = object["graph"];
      if (graph.contains("name")) draft.id = scalar(graph["name"], where + ".graph.name");
      draft.attributes = attributes(graph, where + ".graph", {"name"});
    }
    const json& nodes = list(object, "nodes", where);
    const char* key = object.contains("links") ? "links" : "edges";
    const json& edges = list(object, key, where);
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      const std::string at = fmt::format("{}.nodes[{}]", where, v);
      draft.nodes.push_back({id_of(nodes[v], "id", at), attributes(nodes[v], at, {"id"})});
    }
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::string at = fmt::format("{}.{}[{}]", where, key, e);
      draft.edges.push_back({id_of(edges[e], "source", at), id_of(edges[e], "target", at),
                             attributes(edges[e], at, {"source", "target", "key"})});
    }
    draft.node_place = [&](std::size_t v) { return fmt::format("{}: {}.nodes[{}]", source_.path.string(), where, v); };
    draft.edge_place = [&](std::size_t e) {
      return fmt::format("{}: {}.{}[{}]", source_.path.string(), where, key, e);
    };
    add_draft(std::move(draft), source_, set_);
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& message) const {
    throw_invalid(fmt::format("{}: {} {}", source_.path.string(), where, message));
  }

  const json& list(const json& object, const char* key, const std::string& where) const {
    if (!object.contains(key) || !object[key].is_array()) fail(where, fmt::format("has no list '{}'", key));
    return object[key];
  }

  static bool is_scalar(const json& value) { return value.is_string() || value.is_number() || value.is_boolean(); }
  std::string scalar(const json& value, const std::string& where) const {
    if (!is_scalar(value)) fail(where, "must be a text or a number");
    return name_in_json(value, fmt::format("{}: {}", source_.path.string(), where));
  }
  std::string id_of(const json& element, const char* key, const std::string& where) const {
    if (!element.is_object() || !element.contains(key)) fail(where, fmt::format("must be an object with '{}'", key));
    return scalar(element[key], fmt::format("{}.{}", where, key));
  }

  // Numbers with a fraction and lists of numbers are features; null is nothing.
  GraphAttributes attributes(const json& element, const std::string& where,
                             std::initializer_list<std::string_view> known) const {
    GraphAttributes found;
    for (const auto& [name, value] : element.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end() || value.is_null()) continue;
      const std::string at = fmt::format("{}.{}", where, TextLines::shown(name));
      if (value.is_number_float()) {
        found.add_number(name, value.get<double>(), value.dump());
      } else if (is_scalar(value)) {
        found.add_text(name, scalar(value, at));
      } else if (value.is_array()) {
        for (const json& element_value : value) {
          if (!element_value.is_number()) fail(at, "must be a text, a number or a list of numbers");
          found.append_number(name, element_value.get<double>());
        }
      } else {
        fail(at, "must be a text, a number or a list of numbers");
      }
    }
    return found;
  }

  const GraphSource& source_;
  GraphSetBuilder& set_;
};

}  // namespace

std::string name_in_json(const json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  // Beyond 64 bits whole numbers are read as fractions.
  if (value.is_number_float() && std::abs(value.get<double>()) >= 0x1p63)
    throw_invalid(
        fmt::format("{} is a number of which only the first digits are kept ({}); write it as text, in quotes", where,
                    value.dump()));
  return value.dump();
}

bool is_node_link(const json& object) {
  if (!object.is_object()) return false;
  if (object.contains("links") || object.contains("multigraph")) return true;
  if (!object.contains("edges") || !object["edges"].is_array() || object["edges"].empty()) return false;
  const json& first = object["edges"][0];
  return first.is_object() && first.contains("source");
}

void add_node_link(const json& object, const std::string& where, std::size_t position, const GraphSource& source,
                   GraphSetBuilder& set) {
  NodeLinkReader(source, set).run(object, where, position);
}

}  // namespace gradloom
