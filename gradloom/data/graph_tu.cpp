#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

#include "gradloom/data/archive.h"
#include "gradloom/data/csv.h"
#include "gradloom/data/graph_readers.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

namespace fs = std::filesystem;

struct Arc {
  std::uint32_t from, to;  // nodes of the file, from 0
  std::size_t line;
};

// Far above all data sets of this form: a graph takes several hundred bytes, however short its line is.
constexpr std::uint32_t kMostTuGraphs = 1u << 22;

// NAME of NAME_A.txt, empty for other files.
std::string set_name(const std::string& file) {
  return file.size() > 6 && file.ends_with("_A.txt") ? file.substr(0, file.size() - 6) : "";
}

// One file of the set: a line per node, edge or graph.
struct Column {
  std::string source;
  std::string text;
  std::vector<std::vector<double>> numbers;
  std::vector<std::string_view> words;  // into text
  bool present = false;
};

class TuReader {
 public:
  // The files of an archive, by their names without folders.
  TuReader(const GraphSource& source, ArchiveFiles files) : source_(source), folder_(source.path) {
    for (auto& [name, content] : files) {
      const std::string last = fs::path(name).filename().string();
      if (const std::string set = set_name(last); !set.empty()) {
        if (!name_.empty() && set != name_)
          throw_invalid(fmt::format("{}: the archive holds two data sets, '{}' and '{}'; unpack it and name one",
                                    folder_.string(), TextLines::shown(name_), TextLines::shown(set)));
        name_ = set;
      }
      if (!archive_.emplace(last, std::move(content)).second)
        throw_invalid(fmt::format("{}: the archive holds '{}' in two folders; unpack it and name one", folder_.string(),
                                  TextLines::shown(last)));
    }
    if (name_.empty())
      throw_invalid(
          fmt::format("{}: the archive has no file NAME_A.txt; only archives of "
                      "TU data are read, unpack others",
                      folder_.string()));
  }

  explicit TuReader(const GraphSource& source) : source_(source) {
    folder_ = source.path;
    std::error_code ignored;
    if (fs::is_directory(folder_, ignored)) {
      name_ = tu_prefix(folder_);
      if (name_.empty())
        throw Exception(ErrorCode::not_found, fmt::format("{}: the folder has no file NAME_A.txt", folder_.string()));
      for (const auto& entry : fs::directory_iterator(folder_, ignored))
        if (const std::string set = set_name(entry.path().filename().string()); !set.empty() && set != name_)
          throw_invalid(
              fmt::format("{0}: the folder holds two data sets, '{1}' and '{2}'; name the file of one, "
                          "{1}_A.txt or {2}_A.txt",
                          folder_.string(), TextLines::shown(name_), TextLines::shown(set)));
    } else {
      name_ = folder_.filename().string();
      if (!name_.ends_with("_A.txt"))
        throw_invalid(fmt::format("{}: name the folder of the set, or its file NAME_A.txt", folder_.string()));
      name_.resize(name_.size() - 6);
      folder_ = folder_.parent_path();
    }
  }

  GraphSet run() {
    read_nodes();
    read_arcs();
    const Column labels = words("node_labels", nodes(), "node");
    const Column classes = words("graph_labels", graphs_, "graph");
    const Column edge_labels = words("edge_labels", arcs_.size(), "edge");
    const Column features = numbers("node_attributes", nodes(), "node");
    const Column edge_features = numbers("edge_attributes", arcs_.size(), "edge");
    const Column targets = numbers("graph_attributes", graphs_, "graph");
    const Direction direction = find_direction(edge_labels);
    std::vector<GraphBuilder> graphs(graphs_, GraphBuilder(direction, source_.loops));
    std::vector<std::uint32_t> local(nodes());
    for (std::size_t v = 0; v < nodes(); ++v) {
      GraphBuilder& graph = graphs[graph_of_[v]];
      local[v] = graph.nodes();
      NodeValues values;
      if (labels.present) values.label = set_.node_labels.intern(labels.words[v]);
      if (features.present) values.features = features.numbers[v];
      if (auto added = graph.add_node(values); !added)
        fail(features.present ? features.source : indicator_, v + 1, added.error().message);
    }
    for (std::size_t e = 0; e < arcs_.size(); ++e) {
      const Arc& arc = arcs_[e];
      if (direction == Direction::undirected && arc.from > arc.to) continue;  // its twin is kept
      EdgeValues values;
      if (edge_labels.present) values.label = set_.edge_labels.intern(edge_labels.words[e]);
      if (edge_features.present) values.features = edge_features.numbers[e];
      GraphBuilder& graph = graphs[graph_of_[arc.from]];
      if (auto added = graph.add_edge(local[arc.from], local[arc.to], values); !added)
        fail(edges_, arc.line, fmt::format("nodes {}, {}: {}", arc.from + 1, arc.to + 1, added.error().message));
    }
    for (std::uint32_t g = 0; g < graphs_; ++g) {
      if (classes.present) graphs[g].set_class(set_.graph_classes.intern(classes.words[g]));
      if (targets.present && !targets.numbers[g].empty()) graphs[g].set_target(targets.numbers[g][0]);
      set_.add(graphs[g], fmt::format("{}", g + 1));
    }
    return set_.finish();
  }

 private:
  [[noreturn]] static void fail(const std::string& file, std::size_t line, const std::string& message) {
    throw_invalid(fmt::format("{}:{}: {}", file, line, message));
  }
  std::size_t nodes() const { return graph_of_.size(); }
  fs::path file(const char* part) const { return folder_ / fmt::format("{}_{}.txt", name_, part); }

  std::string content(const char* part) const {
    if (archive_.empty()) return read_graph_text(file(part), source_.max_bytes);
    const auto found = archive_.find(file(part).filename().string());
    if (found == archive_.end())
      throw Exception(ErrorCode::not_found,
                      fmt::format("{}: the archive has no file {}", folder_.string(), file(part).filename().string()));
    return found->second;
  }

  void read_nodes() {
    indicator_ = file("graph_indicator").string();
    const std::string text = content("graph_indicator");
    TextLines lines(text, indicator_, ",");
    while (lines.next()) {
      const std::uint32_t graph = lines.number(0, "number of the graph");
      if (graph == 0) lines.fail("graphs are numbered from 1");
      if (graph > graphs_ + 1)
        lines.fail("graph {} comes after graph {}; number the graphs 1, 2, ... in order", graph, graphs_);
      if (graph > kMostTuGraphs) lines.fail("there are more than {} graphs", kMostTuGraphs);
      graphs_ = std::max(graphs_, graph);
      graph_of_.push_back(graph - 1);
    }
    if (graphs_ == 0) fail(indicator_, 1, "there is no node");
  }

  void read_arcs() {
    edges_ = file("A").string();
    const std::string text = content("A");
    TextLines lines(text, edges_, ",");
    while (lines.next()) {
      if (arcs_.size() == std::numeric_limits<std::uint32_t>::max()) lines.fail("there are more than 2^32 - 1 edges");
      const std::uint32_t a = lines.number(0, "first node of the edge"), b = lines.number(1, "second node of the edge");
      for (std::uint32_t v : {a, b})
        if (v == 0 || v > nodes()) lines.fail("node {} does not exist; there are nodes 1 to {}", v, nodes());
      if (graph_of_[a - 1] != graph_of_[b - 1])
        lines.fail("the edge joins a node of graph {} with a node of graph {}", graph_of_[a - 1] + 1,
                   graph_of_[b - 1] + 1);
      arcs_.push_back({a - 1, b - 1, lines.line()});
    }
  }

  // Undirected when every arc stands there in both directions with the same label.
  Direction find_direction(const Column& labels) const {
    struct Known {
      std::uint32_t from, to, arc;
      auto ends() const { return std::pair(from, to); }
    };
    std::vector<Known> known;
    known.reserve(arcs_.size());
    for (std::uint32_t e = 0; e < arcs_.size(); ++e) known.push_back({arcs_[e].from, arcs_[e].to, e});
    std::ranges::sort(known, {}, [](const Known& k) { return std::tuple(k.from, k.to, k.arc); });
    const Known* twice = nullptr;  // of all that are there before, the first in the file
    for (std::size_t k = 1; k < known.size(); ++k)
      if (known[k].ends() == known[k - 1].ends() && (!twice || known[k].arc < twice->arc)) twice = &known[k];
    if (twice)
      fail(edges_, arcs_[twice->arc].line,
           fmt::format("the edge occurs twice, first in line {}", arcs_[(twice - 1)->arc].line));
    for (const Known& k : known) {
      const auto twin = std::ranges::lower_bound(known, std::pair(k.to, k.from), {}, &Known::ends);
      const bool there = twin != known.end() && twin->ends() == std::pair(k.to, k.from);
      if (!there || (labels.present && labels.words[k.arc] != labels.words[twin->arc])) return Direction::directed;
    }
    return Direction::undirected;
  }

  std::optional<Column> open(const char* part) const {
    std::error_code ignored;
    if (archive_.empty() ? !fs::exists(file(part), ignored) : !archive_.contains(file(part).filename().string()))
      return std::nullopt;
    Column column;
    column.source = file(part).string();
    column.text = content(part);
    column.present = true;
    return column;
  }
  static void check_count(const Column& column, std::size_t found, std::size_t due, const char* what) {
    if (found != due)
      throw_invalid(
          fmt::format("{}: there are {} lines, but {} {}s; each needs one line", column.source, found, due, what));
  }
  Column words(const char* part, std::size_t due, const char* what) const {
    std::optional<Column> column = open(part);
    if (!column) return {};
    // The first of several labels counts; the text moves with its column, so words are cut after that.
    Column result = std::move(*column);
    TextLines lines(result.text, result.source, ",");
    std::vector<std::pair<std::size_t, std::size_t>> places;
    std::size_t count = 0;
    while (lines.next()) {
      if (count++ >= due) continue;  // nothing is kept of what is too much
      const std::string_view word = lines.words()[0];
      places.emplace_back(static_cast<std::size_t>(word.data() - result.text.data()), word.size());
    }
    check_count(result, count, due, what);
    result.present = true;
    texts_.push_back(std::make_unique<std::string>(std::move(result.text)));
    for (const auto& [at, size] : places) result.words.push_back(std::string_view(*texts_.back()).substr(at, size));
    return result;
  }
  Column numbers(const char* part, std::size_t due, const char* what) const {
    std::optional<Column> column = open(part);
    if (!column) return {};
    TextLines lines(column->text, column->source, ",");
    std::size_t count = 0;
    while (lines.next()) {
      if (count++ >= due) continue;
      std::vector<double> row;
      for (std::string_view word : lines.words()) {
        double value = 0.0;
        if (!parse_number(word, value)) lines.fail("'{}' is not a number", TextLines::shown(word));
        row.push_back(value);
      }
      column->numbers.push_back(std::move(row));
    }
    check_count(*column, count, due, what);
    return std::move(*column);
  }

  const GraphSource& source_;
  fs::path folder_;
  ArchiveFiles archive_;  // empty: a folder
  std::string name_, indicator_, edges_;
  std::vector<std::uint32_t> graph_of_;  // of each node
  std::uint32_t graphs_ = 0;
  std::vector<Arc> arcs_;
  mutable std::vector<std::unique_ptr<std::string>> texts_;
  GraphSetBuilder set_;
};

}  // namespace

std::string tu_prefix(const fs::path& folder) {
  std::string best;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 6 && name.ends_with("_A.txt") && (best.empty() || name < best)) best = name;
  }
  return best.empty() ? best : best.substr(0, best.size() - 6);
}

GraphSet read_tu(const GraphSource& source) { return TuReader(source).run(); }

GraphSet read_tu_archive(std::string_view bytes, const GraphSource& source) {
  const auto is_text = [](std::string_view name) { return name.ends_with(".txt") && !name.ends_with("README.txt"); };
  return TuReader(source, parse_archive(bytes, source.max_bytes, source.path.string(), is_text).or_throw()).run();
}

}  // namespace gradloom
