#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gradloom/data/csv.h"
#include "gradloom/data/graph_draft.h"
#include "gradloom/data/graph_edge_list.h"
#include "gradloom/data/graph_readers.h"
#include "gradloom/data/text_lines.h"
#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_table(const CsvTable& table, std::size_t row, const std::string& message) {
  throw_invalid(fmt::format("{}:{}: {}", table.source, table.lines[row], message));
}

bool is_missing_word(std::string_view cell) {
  return cell.empty() || cell == "NA" || cell == "NaN" || cell == "nan" || cell == "?";
}

// Names in the order in which they first appear.
class Order {
 public:
  std::size_t add(std::string_view name) {
    const auto [it, added] = number_.emplace(std::string(name), names_.size());
    if (added) names_.emplace_back(name);
    return it->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t, std::less<>> number_;
  std::vector<std::string> names_;
};

class TableReader {
 public:
  TableReader(GraphTables tables, const GraphSource& source, fs::path nodes, fs::path edges, fs::path graphs)
      : source_(source), edges_(tables.edges, edges.string()) {
    const CsvOptions named{.header = CsvHeader::present, .comment = "#"};
    if (!tables.nodes.empty()) nodes_ = parse_csv(std::move(tables.nodes), named, nodes.string()).or_throw();
    if (!tables.graphs.empty()) graphs_ = parse_csv(std::move(tables.graphs), named, graphs.string()).or_throw();
  }

  GraphSet run() {
    read_nodes();
    read_edges();
    read_graphs();
    for (std::size_t g = 0; g < drafts_.size(); ++g) {
      GraphDraft& draft = drafts_[g];
      draft.id = order_.names()[g];
      draft.direction = source_.direction;
      draft.feature_names = feature_names_;
      draft.node_place = [&, g](std::size_t v) {
        return place(node_rows_[g].empty() ? edges_.table : *nodes_, node_rows_[g].empty() ? 0 : node_rows_[g][v]);
      };
      draft.edge_place = [&, g](std::size_t e) { return place(edges_.table, edge_rows_[g][e]); };
      add_draft(std::move(draft), source_, set_);
    }
    return set_.finish();
  }

 private:
  static std::string place(const CsvTable& table, std::size_t row) {
    return fmt::format("{}:{}", table.source, table.lines[row]);
  }

  std::size_t graph_of(std::string_view name) {
    const std::size_t g = order_.add(name);
    if (g == drafts_.size()) drafts_.emplace_back(), node_rows_.emplace_back(), edge_rows_.emplace_back();
    return g;
  }

  // The first of these names that the table has.
  static std::optional<std::size_t> find(const CsvTable& t, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      for (std::size_t c = 0; c < t.columns.size(); ++c)
        if (t.columns[c] == name) return c;
    return std::nullopt;
  }

  // The column with the ids. None: the names of the rows are ids (pandas' index).
  static std::optional<std::size_t> id_column(const CsvTable& t, std::initializer_list<std::string_view> names) {
    const auto named = find(t, names);
    return named || !t.row_names.empty() ? named : std::optional<std::size_t>(0);
  }
  static std::string_view id_of(const CsvTable& t, std::size_t row, const std::optional<std::size_t>& column) {
    return column ? t.cell(row, *column) : t.row_names[row];
  }

  // What the columns of the table of nodes are.
  struct NodeColumns {
    std::optional<std::size_t> id, graph, label, group, split;
    std::vector<std::size_t> features;
  };

  NodeColumns find_columns(const CsvTable& t) const {
    NodeColumns found;
    found.id = id_column(t, {"id", "node", "node_id", "name"});
    found.graph = find(t, {"graph"});
    found.label = find(t, {"label"});
    found.group = find(t, {source_.class_column});
    found.split = find(t, {"split"});
    if (!found.group && source_.class_column != "class" && !source_.known_features)
      throw Exception(
          ErrorCode::invalid_input,
          fmt::format("{}: data.class_column names the column '{}', which does not exist; the nearest is '{}'",
                      t.source, source_.class_column, nearest_name(source_.class_column, t.columns)));
    for (const std::string& name : source_.drop)
      if (!gradloom::find_column(t.columns, name) && !source_.known_features)
        throw_invalid(fmt::format("{}: data.drop names the column '{}', which does not exist; the nearest is '{}'",
                                  t.source, name, nearest_name(name, t.columns)));
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      // Numbers of columns count in the training file; where the new one lacks some, they would mean others.
      const bool known = source_.known_features && std::ranges::count(*source_.known_features, t.columns[c]) > 0;
      const bool dropped =
          !known && std::any_of(source_.drop.begin(), source_.drop.end(),
                                [&](const std::string& name) { return gradloom::find_column(t.columns, name) == c; });
      if (found.id == c || found.graph == c || found.label == c || found.group == c || found.split == c || dropped)
        continue;
      found.features.push_back(c);
    }
    return found;
  }

  void read_nodes() {
    if (!nodes_) return;
    const CsvTable& t = *nodes_;
    const NodeColumns columns = find_columns(t);
    for (const std::size_t c : columns.features) feature_names_.push_back(t.columns[c]);
    for (std::size_t r = 0; r < t.rows(); ++r) {
      const std::size_t g = graph_of(columns.graph ? t.cell(r, *columns.graph) : std::string_view("0"));
      NodeDraft node;
      node.id = id_of(t, r, columns.id);
      if (node.id.empty()) fail_table(t, r, "the id of the node is empty");
      if (columns.label) node.attributes.add_text("label", t.cell(r, *columns.label));
      if (columns.group)
        node.attributes.add_text(source_.class_column,
                                 is_missing_word(t.cell(r, *columns.group)) ? "" : t.cell(r, *columns.group));
      if (columns.split) node.attributes.add_text("split", t.cell(r, *columns.split));
      for (const std::size_t c : columns.features) {
        double value = 0.0;
        if (!parse_number(t.cell(r, c), value) || !std::isfinite(value))
          fail_table(
              t, r,
              fmt::format("column '{}': '{}' is not a number, but features must be numbers; data.drop leaves a column "
                          "out, data.class_column says which one is the class, and a column called label holds "
                          "names",
                          TextLines::shown(t.columns[c]), TextLines::shown(t.cell(r, c))));
        node.attributes.append_number("features", value);
      }
      drafts_[g].nodes.push_back(std::move(node));
      node_rows_[g].push_back(r);
    }
  }

  void read_edges() {
    const CsvTable& t = edges_.table;
    std::vector<Order> names(drafts_.size());
    for (std::size_t r = 0; r < t.rows(); ++r) {
      const std::string_view name = edges_.graph ? t.cell(r, *edges_.graph) : std::string_view("0");
      const std::size_t known = drafts_.size(), g = graph_of(name);
      if (nodes_ && g >= known)
        fail_table(t, r, fmt::format("the graph '{}' has no nodes in {}", TextLines::shown(name), nodes_->source));
      EdgeDraft edge;
      edge.from = t.cell(r, edges_.from);
      edge.to = t.cell(r, edges_.to);
      if (edge.from.empty() || edge.to.empty()) fail_table(t, r, "an end of the edge is empty");
      if (edges_.label) edge.attributes.add_text("label", t.cell(r, *edges_.label));
      if (edges_.weight) edge.attributes.add_text("weight", t.cell(r, *edges_.weight));
      names.resize(drafts_.size());
      for (const std::string& end : {edge.from, edge.to})
        if (const std::size_t before = names[g].names().size(); !nodes_ && names[g].add(end) == before)
          drafts_[g].nodes.push_back({end, {}});
      drafts_[g].edges.push_back(std::move(edge));
      edge_rows_[g].push_back(r);
    }
  }

  // Class, target and part of each graph.
  void read_graphs() {
    if (!graphs_) return;
    const CsvTable& t = *graphs_;
    const auto column = id_column(t, {"id", "graph"});
    for (std::size_t r = 0; r < t.rows(); ++r) {
      const std::string_view id = id_of(t, r, column);
      const std::size_t known = drafts_.size(), g = graph_of(id);
      if (g >= known) fail_table(t, r, fmt::format("the graph '{}' has neither nodes nor edges", TextLines::shown(id)));
      for (std::size_t c = 0; c < t.columns.size(); ++c) {
        if (column == c) continue;
        const std::string& name = t.columns[c];
        if (name != source_.class_column && name != "target" && name != "split")
          fail_table(t, 0,
                     fmt::format("the column '{}' is none of id, {}, target, split; remove it, or name the class by "
                                 "data.class_column",
                                 TextLines::shown(name), source_.class_column));
        if (!drafts_[g].attributes.add_text(name, t.cell(r, c)))
          fail_table(t, r, fmt::format("the graph '{}' occurs twice", TextLines::shown(id)));
      }
    }
  }

  const GraphSource& source_;
  EdgeTable edges_;
  std::optional<CsvTable> nodes_, graphs_;
  Order order_;  // of the graphs
  std::vector<std::string> feature_names_;
  std::vector<GraphDraft> drafts_;
  std::vector<std::vector<std::size_t>> node_rows_, edge_rows_;  // of each graph
  GraphSetBuilder set_;
};

}  // namespace

Result<GraphSet> parse_graph_tables(GraphTables tables, const GraphSource& source) try {
  return TableReader(std::move(tables), source, source.path / "nodes.csv", source.path / "edges.csv",
                     source.path / "graphs.csv")
      .run();
} catch (const Exception& e) {
  return e.error();
}

GraphSet read_tables(const GraphSource& source) {
  std::error_code ignored;
  const bool folder = fs::is_directory(source.path, ignored);
  const fs::path edges = folder ? source.path / "edges.csv" : source.path;
  const fs::path nodes = !source.nodes.empty() ? source.nodes : edges.parent_path() / "nodes.csv";
  const fs::path graphs = edges.parent_path() / "graphs.csv";
  GraphTables tables;
  tables.edges = read_graph_text(edges, source.max_bytes);
  if (!source.nodes.empty() || fs::exists(nodes, ignored)) tables.nodes = read_graph_text(nodes, source.max_bytes);
  if (fs::exists(graphs, ignored)) tables.graphs = read_graph_text(graphs, source.max_bytes);
  return TableReader(std::move(tables), source, nodes, edges, graphs).run();
}

}  // namespace gradloom
