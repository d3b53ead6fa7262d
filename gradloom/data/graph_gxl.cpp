#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "gradloom/data/csv.h"
#include "gradloom/data/graph_draft.h"
#include "gradloom/data/graph_readers.h"
#include "gradloom/data/graph_xml.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

namespace fs = std::filesystem;

// Numbers with a fraction are features, everything else is the label.
GraphAttributes attributes_of(const Xml& xml, const pugi::xml_node& element) {
  GraphAttributes found;
  for (const pugi::xml_node& attribute : element.children("attr")) {
    const std::string name = attribute.attribute("name").as_string();
    const pugi::xml_node value = attribute.first_child();
    const std::string_view kind = value.name(), text = trimmed_xml(value.child_value());
    bool added = false;
    if (kind == "float" || kind == "double") {
      double number = 0.0;
      if (!parse_number(text, number)) xml.fail(attribute, fmt::format("'{}' is not a number", TextLines::shown(text)));
      added = found.add_number(name, number, text);
    } else if (kind == "int" || kind == "string" || kind == "bool" || kind == "enum") {
      added = found.add_text(name, text);
    } else {
      xml.fail(attribute,
               fmt::format("the attribute '{}' holds '{}'; only int, float, double, string, bool and enum are read",
                           TextLines::shown(name), TextLines::shown(kind)));
    }
    if (!added) xml.fail(attribute, fmt::format("the attribute '{}' occurs twice", TextLines::shown(name)));
  }
  return found;
}

// What is called what in one graph.
struct GxlFeatures {
  SharedFeatures nodes, edges;
};

GxlFeatures read_graph(const Xml& xml, const pugi::xml_node& element, GraphSetBuilder& set, GraphBuilder& graph) {
  GxlFeatures shared;
  std::map<std::string, std::uint32_t> numbers;
  for (const pugi::xml_node& node : element.children("node")) {
    const std::string id = node.attribute("id").as_string();
    if (!numbers.emplace(id, graph.nodes()).second)
      xml.fail(node, fmt::format("the node id '{}' occurs twice; ids must be unique", TextLines::shown(id)));
    GraphAttributes attributes = attributes_of(xml, node);
    if (const std::string wrong = shared.nodes.see(attributes); !wrong.empty()) xml.fail(node, wrong);
    NodeValues values;
    if (const auto label = attributes.label()) values.label = set.node_labels.intern(*label);
    const std::vector<double> features = attributes.features();
    values.features = features;
    if (auto added = graph.add_node(values); !added) xml.fail(node, added.error().message);
  }
  for (const pugi::xml_node& edge : element.children("edge")) {
    std::uint32_t ends[2];
    for (int side = 0; side < 2; ++side) {
      const std::string id = edge.attribute(side == 0 ? "from" : "to").as_string();
      const auto it = numbers.find(id);
      if (it == numbers.end())
        xml.fail(edge, fmt::format("the edge ends at the node '{}', which does not exist", TextLines::shown(id)));
      ends[side] = it->second;
    }
    GraphAttributes attributes = attributes_of(xml, edge);
    if (const std::string wrong = shared.edges.see(attributes); !wrong.empty()) xml.fail(edge, wrong);
    EdgeValues values;
    if (const auto label = attributes.label()) values.label = set.edge_labels.intern(*label);
    const std::vector<double> features = attributes.features();
    values.features = features;
    if (auto added = graph.add_edge(ends[0], ends[1], values); !added) xml.fail(edge, added.error().message);
  }
  return shared;
}

// All graphs of a document; `id` and `group` (a class, may be null) are those of a collection.
void read_document(std::string_view text, const GraphSource& source, const std::string& file, GraphSetBuilder& set,
                   const std::string* id, const std::string* group) {
  const Xml xml(text, file);
  const pugi::xml_node root = xml.document().child("gxl");
  if (!root) xml.fail(xml.document().first_child(), "there is no <gxl> element");
  std::size_t count = 0;
  for (const pugi::xml_node& element : root.children("graph")) {
    const std::string_view mode = element.attribute("edgemode").as_string("directed");
    if (mode != "directed" && mode != "undirected" && mode != "defaultdirected" && mode != "defaultundirected")
      xml.fail(element, fmt::format("the edge mode '{}' is not known", TextLines::shown(mode)));
    GraphBuilder graph(mode.ends_with("undirected") ? Direction::undirected : Direction::directed, source.loops);
    const GxlFeatures shared = read_graph(xml, element, set, graph);
    if (group != nullptr) graph.set_class(set.graph_classes.intern(*group));
    std::string own = element.attribute("id").as_string();
    if (own.empty()) own = fs::path(file).stem().string();
    set.add(graph, id != nullptr ? *id + (count == 0 ? "" : fmt::format("-{}", count)) : own);
    if (auto r = set.name_features(shared.nodes.names(), shared.edges.names()); !r)
      xml.fail(element, r.error().message);
    ++count;
  }
  if (count == 0) xml.fail(root, "there is no <graph> element");
}

// <print file class> of CXL, <graph file class> of GEDLIB.
void list_prints(const pugi::xml_node& element, std::vector<pugi::xml_node>& prints, int depth) {
  for (const pugi::xml_node& child : element.children()) {
    if (std::strcmp(child.name(), "print") == 0 || (std::strcmp(child.name(), "graph") == 0 && child.attribute("file")))
      prints.push_back(child);
    else if (depth < 8)
      list_prints(child, prints, depth + 1);
  }
}

}  // namespace

Result<GraphSet> parse_gxl(std::string_view text, const GraphSource& source) try {
  GraphSetBuilder set;
  read_document(text, source, source.path.string(), set, nullptr, nullptr);
  return set.finish();
} catch (const Exception& e) {
  return e.error();
}

GraphSet read_cxl(std::string_view text, const GraphSource& source) {
  const Xml xml(text, source.path.string());
  std::vector<pugi::xml_node> prints;
  list_prints(xml.document(), prints, 0);
  if (prints.empty())
    xml.fail(xml.document().first_child(), "the collection lists no <print file=...> or <graph file=...>");
  GraphSetBuilder set;
  for (const pugi::xml_node& print : prints) {
    const fs::path name = print.attribute("file").as_string();
    if (name.empty() || name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end())
      xml.fail(print, fmt::format("the file '{}' is not a name inside the folder of the collection",
                                  TextLines::shown(name.string())));
    const fs::path file = (source.folder.empty() ? source.path.parent_path() : source.folder) / name;
    std::string content;
    try {
      content = read_graph_text(file, source.max_bytes);
    } catch (const Exception& e) {
      xml.fail(print,
               fmt::format("{}; data.graph_folder is the folder of the files that a collection lists", e.what()));
    }
    const std::string id = (name.parent_path() / name.stem()).string(), group = print.attribute("class").as_string();
    read_document(content, source, file.string(), set, &id, print.attribute("class") ? &group : nullptr);
  }
  return set.finish();
}

bool is_collection(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  return head.find("<GraphCollection") != std::string_view::npos ||
         head.find("<fingerprints") != std::string_view::npos;
}

GraphSet read_gxl_folder(const GraphSource& source) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source.path))
    if (entry.path().extension() == ".gxl") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  GraphSetBuilder set;
  for (const fs::path& file : files) {
    const std::string content = read_graph_text(file, source.max_bytes), id = file.stem().string();
    read_document(content, source, file.string(), set, &id, nullptr);
  }
  return set.finish();
}

}  // namespace gradloom
