#include "gradloom/data/graph_edge_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "gradloom/data/graph_source.h"
#include "gradloom/data/labels.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

constexpr std::string_view kFrom[] = {"from", "source", "src", "u"}, kTo[] = {"to", "target", "dst", "v"},
                           kOther[] = {"label", "weight", "graph"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The text up to the end of the first line that is neither empty nor a comment.
std::string_view first_row(std::string_view text) {
  std::size_t begin = 0, end = 0;
  do {
    begin = end;
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
  } while (end < text.size() && (text[begin] == '#' || text[begin] == '\n' || text[begin] == '\r'));
  return text.substr(0, end);
}

// Names of nodes may be words, so a header is known by its own: both ends in full. (u and v are common names of nodes.)
CsvTable read_edge_csv(const std::string& text, const std::string& name) {
  const CsvOptions headless{.header = CsvHeader::absent, .comment = "#"};
  const CsvTable plain = parse_csv(text.empty() ? text : std::string(first_row(text)), headless, name).or_throw();
  bool from = false, to = false;
  for (std::size_t c = 0; plain.rows() > 0 && c < plain.columns.size(); ++c) {
    const std::string_view cell = plain.cell(0, c);
    from = from || (cell != "u" && is_one_of(kFrom, cell));
    to = to || (cell != "v" && is_one_of(kTo, cell));
  }
  if (from && to) return parse_csv(text, {.header = CsvHeader::present, .comment = "#"}, name).or_throw();
  return parse_csv(text, {.comment = "#"}, name).or_throw();
}

}  // namespace

EdgeTable::EdgeTable(const std::string& text, const std::string& source) : table(read_edge_csv(text, source)) {
  const auto column = [&](std::span<const std::string_view> names) -> std::optional<std::size_t> {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (is_one_of(names, table.columns[c])) return c;
    return std::nullopt;
  };
  if (table.columns.size() < 2)
    throw_invalid(fmt::format("{}: there is one column; an edge needs two, its ends", table.source));
  from = column(kFrom).value_or(0);
  to = column(kTo).value_or(1);
  if (from == to) to = from == 0 ? 1 : 0;
  label = column({kOther, 1});
  weight = column({kOther + 1, 1});
  graph = column({kOther + 2, 1});
  // Without a header the third column is the label.
  if (table.columns[0] == "column1" && table.columns.size() == 3) label = 2;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (c != from && c != to && graph != c && label != c && weight != c)
      throw_invalid(fmt::format("{}: the column '{}' is none of from, to, label, weight, graph; remove or rename it",
                                table.source, table.columns[c]));
}

namespace {

class EdgeListParser {
 public:
  EdgeListParser(const std::string& text, const GraphSource& source)
      : source_(source), edges_(text, source.path.string()) {}

  GraphSet run() {
    // Rows of each graph, graphs in the order in which they first appear.
    std::map<std::string_view, std::size_t> number;
    std::vector<std::vector<std::size_t>> rows;
    std::vector<std::string> ids;
    for (std::size_t r = 0; r < table_.rows(); ++r) {
      const std::string_view name = edges_.graph ? table_.cell(r, *edges_.graph) : std::string_view("0");
      const auto [it, added] = number.emplace(name, rows.size());
      if (added) {
        rows.emplace_back();
        ids.emplace_back(name);
      }
      rows[it->second].push_back(r);
    }
    for (std::size_t g = 0; g < rows.size(); ++g) add_graph(rows[g], ids[g]);
    return set_.finish();
  }

 private:
  [[noreturn]] void fail(std::size_t row, const std::string& message) const {
    throw_invalid(fmt::format("{}:{}: {}", table_.source, table_.lines[row], message));
  }

  // Nodes are the names that occur, sorted.
  void add_graph(const std::vector<std::size_t>& rows, const std::string& id) {
    std::vector<std::string_view> names;
    for (std::size_t r : rows)
      for (std::size_t c : {edges_.from, edges_.to}) {
        if (table_.cell(r, c).empty()) fail(r, "an end of the edge is empty");
        names.push_back(table_.cell(r, c));
      }
    const Labels nodes = encode_labels(std::span<const std::string_view>(names));
    GraphBuilder graph(source_.direction, source_.loops);
    for (std::size_t v = 0; v < nodes.names.size(); ++v) graph.add_node().or_throw();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      EdgeValues values;
      if (edges_.label) values.label = set_.edge_labels.intern(table_.cell(rows[k], *edges_.label));
      double weight = 0.0;
      if (edges_.weight) {
        if (!parse_number(table_.cell(rows[k], *edges_.weight), weight))
          fail(rows[k],
               fmt::format("the weight '{}' is not a number", TextLines::shown(table_.cell(rows[k], *edges_.weight))));
        values.weight = weight;
      }
      if (auto added = graph.add_edge(nodes.index[2 * k], nodes.index[2 * k + 1], values); !added)
        fail(rows[k], added.error().message);
    }
    set_.add(graph, id);
  }

  const GraphSource& source_;
  EdgeTable edges_;
  const CsvTable& table_ = edges_.table;
  GraphSetBuilder set_;
};

}  // namespace

Result<GraphSet> parse_edge_list(std::string text, const GraphSource& source) try {
  return EdgeListParser(std::move(text), source).run();
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom
