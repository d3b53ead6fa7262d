#include <fmt/format.h>

#include <charconv>

#include "gradloom/data/csv.h"
#include "gradloom/data/graph_draft.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

constexpr int kDeepestList = 32;

struct GmlEntry;

struct GmlValue {
  enum class Kind { whole, real, text, list } kind = Kind::list;
  std::string_view text;          // of a number or a quoted text, as it stands in the file
  std::vector<GmlEntry> entries;  // of a list
  std::size_t line = 0;
};

struct GmlEntry {
  std::string_view key;
  GmlValue value;
};

// Keys and values into a tree. Throws with line and column.
class GmlReader {
 public:
  GmlReader(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  GmlValue run() {
    GmlValue root;
    read_entries(root, 0);
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw_invalid(fmt::format("{}:{}:{}: {}", source_, line_, at_ - line_start_ + 1, message));
  }

  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return text_[at_]; }
  void step() {
    if (here() == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f'; }

  void skip_blanks() {
    while (!at_end() && (is_blank(here()) || here() == '#')) {
      if (here() == '#')
        while (!at_end() && here() != '\n') step();
      else
        step();
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (!at_end() && !is_blank(here()) && here() != '[' && here() != ']' && here() != '"') step();
    return text_.substr(begin, at_ - begin);
  }

  void read_entries(GmlValue& list, int depth) {
    if (depth > kDeepestList) fail(fmt::format("lists are nested more than {} deep", kDeepestList));
    for (;;) {
      skip_blanks();
      if (at_end()) {
        if (depth > 0) fail(fmt::format("the list that opens in line {} is not closed", list.line));
        return;
      }
      if (here() == ']') {
        if (depth == 0) fail("there is one ']' too many");
        step();
        return;
      }
      const char c = here();
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'))
        fail(fmt::format("a key is expected here, not '{}'", TextLines::shown(std::string_view(&text_[at_], 1))));
      const std::string_view key = word();
      list.entries.push_back({key, read_value(key, depth)});
    }
  }

  GmlValue read_value(std::string_view key, int depth) {
    skip_blanks();
    GmlValue value;
    value.line = line_;
    if (at_end()) fail(fmt::format("the value of '{}' is missing", TextLines::shown(key)));
    if (here() == '[') {
      step();
      read_entries(value, depth + 1);
    } else if (here() == '"') {
      step();
      const std::size_t begin = at_;
      while (!at_end() && here() != '"') step();
      if (at_end()) fail(fmt::format("the text that opens in line {} is not closed", value.line));
      value.kind = GmlValue::Kind::text;
      value.text = text_.substr(begin, at_ - begin);
      step();
    } else {
      value.text = word();
      double number = 0.0;
      if (!parse_number(value.text, number))
        fail(fmt::format("the value of '{}' is '{}', which is not a number, text or list", TextLines::shown(key),
                         TextLines::shown(value.text)));
      const bool whole = value.text.find_first_not_of("+-0123456789") == std::string_view::npos;
      value.kind = whole ? GmlValue::Kind::whole : GmlValue::Kind::real;
    }
    return value;
  }

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
};

// Texts of GML are ASCII; other characters are written as &#233; or by name.
std::string unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t end = text.starts_with('&') ? text.substr(0, 12).find(';') : std::string_view::npos;
    if (end == std::string_view::npos) {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::string_view name = text.substr(1, end - 1);
    std::uint32_t code = name == "quot" ? '"' : name == "amp" ? '&' : name == "lt" ? '<' : name == "gt" ? '>' : 0;
    if (name.starts_with('#')) std::from_chars(name.data() + 1, name.data() + name.size(), code);
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      plain += text.substr(0, end + 1);
    } else if (code < 0x80) {
      plain += static_cast<char>(code);
    } else {
      if (code >= 0x10000)
        plain += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3f)),
                  static_cast<char>(0x80 | (code >> 6 & 0x3f))};
      else if (code >= 0x800)
        plain += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f))};
      else
        plain += static_cast<char>(0xc0 | code >> 6);
      plain += static_cast<char>(0x80 | (code & 0x3f));
    }
    text.remove_prefix(end + 1);
  }
  return plain;
}

class GmlParser {
 public:
  explicit GmlParser(const GraphSource& source) : source_(source) {}

  GraphSet run(std::string_view text) {
    const GmlValue root = GmlReader(text, source_.path.string()).run();
    for (const auto& [key, value] : root.entries)
      if (key == "graph" && value.kind == GmlValue::Kind::list) read_graph(value);
    if (set_.size() == 0) fail(1, "there is no 'graph [ ... ]'");
    return set_.finish();
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& message) const {
    throw_invalid(fmt::format("{}: {}", place(line), message));
  }
  std::string place(std::size_t line) const { return fmt::format("{}:{}", source_.path.string(), line); }

  static const GmlValue* find(const GmlValue& list, std::string_view key) {
    for (const auto& [name, value] : list.entries)
      if (name == key) return &value;
    return nullptr;
  }

  std::string end(const GmlValue& element, std::string_view key) const {
    const GmlValue* value = find(element, key);
    if (value == nullptr || value->kind != GmlValue::Kind::whole)
      fail(element.line, fmt::format("the whole number '{}' is missing", key));
    return std::string(value->text);
  }

  // Lists say how something is drawn; they are left out.
  GraphAttributes attributes(const GmlValue& element, std::initializer_list<std::string_view> known) const {
    GraphAttributes found;
    for (const auto& [key, value] : element.entries) {
      if (std::find(known.begin(), known.end(), key) != known.end() || value.kind == GmlValue::Kind::list ||
          (value.kind == GmlValue::Kind::text && value.text == "_networkx_list_start"))
        continue;
      double number = 0.0;
      parse_number(value.text, number);
      const bool real = value.kind == GmlValue::Kind::real;
      const bool added = real && found.has(key) ? found.append_number(key, number)
                         : real                 ? found.add_number(key, number, value.text)
                                                : found.add_text(key, unescaped(value.text));
      if (!added) fail(value.line, fmt::format("'{}' occurs twice", TextLines::shown(key)));
    }
    return found;
  }

  void read_graph(const GmlValue& graph) {
    GraphDraft draft;
    const GmlValue* directed = find(graph, "directed");
    draft.direction = directed != nullptr && directed->text == "1" ? Direction::directed : Direction::undirected;
    const GmlValue* name = find(graph, "name");
    const GmlValue* id = find(graph, "id");
    draft.id = name != nullptr && !name->text.empty() ? unescaped(name->text)
               : id != nullptr && !id->text.empty()   ? unescaped(id->text)
                                                      : fmt::format("{}", set_.size());
    std::vector<std::size_t> nodes, edges;
    std::vector<std::string> names;  // of the nodes
    for (const auto& [key, value] : graph.entries) {
      if (key == "node") {
        draft.nodes.push_back({end(value, "id"), attributes(value, {"id", "label"})});
        const GmlValue* label = find(value, "label");
        names.push_back(label != nullptr ? unescaped(label->text) : draft.nodes.back().id);
        nodes.push_back(value.line);
      } else if (key == "edge") {
        draft.edges.push_back({end(value, "source"), end(value, "target"), attributes(value, {"source", "target"})});
        edges.push_back(value.line);
      }
    }
    draft.attributes = attributes(graph, {"directed", "multigraph", "node", "edge", "name", "id", "label"});
    draft.node_place = [&](std::size_t v) { return place(nodes[v]); };
    draft.edge_place = [&](std::size_t e) { return place(edges[e]); };
    add_draft(std::move(draft), source_, set_);
    set_.name_nodes(std::move(names));
  }

  const GraphSource& source_;
  GraphSetBuilder set_;
};

}  // namespace

Result<GraphSet> parse_gml(std::string_view text, const GraphSource& source) try {
  return GmlParser(source).run(text);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
