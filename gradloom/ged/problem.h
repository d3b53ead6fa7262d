// One pair of graphs with its costs, laid out for the searches of this room.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gradloom/data/graph.h"
#include "gradloom/ged/costs.h"

namespace gradloom::ged {

inline constexpr std::uint32_t kErased = 0xffffffffu;  // image of a node that is deleted
inline constexpr Cost kForbidden = Cost{1} << 46;      // above the cost of every mapping
inline constexpr std::uint32_t kLargestGraph = 4096;   // nodes that a dense matrix is made for

// The image of each node: a node of the other graph, no two the same, or kErased.
using Mapping = std::vector<std::uint32_t>;

// A graph with its edges as a dense matrix of relations. Relation 0 is "no edge"; others are distinct pairs of (label
// of the edge to the other node, label of the edge from it), each 0 for none or 1 + a label.
struct DenseGraph {
  DenseGraph() = default;
  // Throws Exception{unsupported} above kLargestGraph nodes or 65535 relations.
  DenseGraph(const Graph& graph, Labels labels);

  std::uint32_t nodes = 0;
  Direction direction = Direction::undirected;
  std::vector<std::uint32_t> label;                     // (nodes), kUnlabelled where there is none
  std::vector<std::uint64_t> loop;                      // (nodes), 0 or 1 + the label of the loop
  std::vector<std::uint16_t> relation;                  // (nodes, nodes)
  std::vector<std::array<std::uint64_t, 2>> relations;  // the meaning of each
};

// Rows are the nodes of the smaller graph (of the first when equal), columns those of the other one. Costs are in
// steps; a cost that concerns half an edge is half of the edge's steps, hence whole.
class Problem {
 public:
  // Both graphs must outlive the problem. Throws Exception{invalid_input} when only one of them is directed, and
  // unsupported when the costs of all edits could overflow.
  void set(const DenseGraph& first, const DenseGraph& second, const CostTable& costs);

  std::uint32_t rows() const { return n1_; }
  std::uint32_t columns() const { return n2_; }
  bool swapped() const { return swapped_; }  // rows are the second graph
  // Every row gets a column in some optimal mapping; true when no substitution costs more than deleting and inserting.
  bool full() const { return full_; }

  Cost node(std::uint32_t i, std::uint32_t j) const { return node_[i * n2_ + j]; }  // loops included
  Cost erase(std::uint32_t i) const { return erase_[i]; }
  Cost insert(std::uint32_t j) const { return insert_[j]; }
  std::uint16_t relation1(std::uint32_t i, std::uint32_t k) const { return rows_->relation[i * n1_ + k]; }
  std::uint16_t relation2(std::uint32_t j, std::uint32_t l) const { return columns_->relation[j * n2_ + l]; }
  // Both edges between two nodes, from relation a to relation b.
  Cost pair(std::uint32_t a, std::uint32_t b) const { return pair_[a * relations2_ + b]; }
  // The same, less what is paid to insert b.
  Cost gain(std::uint32_t a, std::uint32_t b) const { return gain_[a * relations2_ + b]; }

  // What a search may not use: row to column, or row to kErased. Followed by refresh() once all are said.
  void forbid(std::uint32_t i, std::uint32_t j);
  void refresh();
  void clear_forbidden();

  // The cost of a mapping of rows. O(rows^2).
  Cost cost(std::span<const std::uint32_t> image) const;
  // What row i adds at column j, or at kErased, to the cost of inserting all columns: its node, and its edges to the
  // images of all other rows. O(rows).
  Cost share(std::span<const std::uint32_t> image, std::uint32_t i, std::uint32_t j) const;
  // From a mapping of rows to one of the first graph.
  Mapping to_first(std::span<const std::uint32_t> image) const;

  // A lower bound on what the edges between a node of each graph and the rest cost at that node's end (half of each),
  // from how many edges of which kind there are. `count` has width() entries.
  std::uint32_t width() const { return groups_ + kinds_; }
  Cost half_edges(const std::uint16_t* count1, const std::uint16_t* count2) const {
    if (simple_) {
      const int d = int{count1[0]} - int{count2[0]};
      return d > 0 ? d * half_delete_ : -d * half_insert_;
    }
    return half_edges_general(count1, count2);
  }
  // Adds the edges of a relation to a node's counts, or takes them away.
  void add_counts1(std::uint16_t* count, std::uint16_t relation, int sign) const {
    add(kinds1_, count, relation, sign);
  }
  void add_counts2(std::uint16_t* count, std::uint16_t relation, int sign) const {
    add(kinds2_, count, relation, sign);
  }

  // Nodes that can be swapped without changing anything have the same twin number, the lowest of them.
  std::span<const std::uint32_t> column_twins() const { return twins_; }

 private:
  struct Kinds {
    std::array<std::uint16_t, 4> at{};  // positions in the counts
    std::uint8_t size = 0;
  };
  Cost half_edges_general(const std::uint16_t* count1, const std::uint16_t* count2) const;
  static void add(const std::vector<Kinds>& kinds, std::uint16_t* count, std::uint16_t relation, int sign) {
    const Kinds& k = kinds[relation];
    for (std::uint8_t i = 0; i < k.size; ++i) count[k.at[i]] = static_cast<std::uint16_t>(count[k.at[i]] + sign);
  }
  void set_nodes(const CostTable& costs);
  void set_pairs(const CostTable& costs);
  void set_kinds(const CostTable& costs);
  void find_twins();

  // Costs from rows to columns, whichever graph is first.
  Cost loop_or_edge(const CostTable& c, std::uint64_t a, std::uint64_t b) const;

  const DenseGraph *rows_ = nullptr, *columns_ = nullptr;
  std::uint32_t n1_ = 0, n2_ = 0, relations2_ = 1;
  bool swapped_ = false, full_ = true, simple_ = true, forbidden_ = false;
  std::vector<Cost> node_, erase_, insert_, pair_, gain_;
  std::vector<Cost> allowed_node_, allowed_erase_;  // without what was forbidden
  Cost insert_all_ = 0;
  std::uint32_t groups_ = 1, kinds_ = 0;
  std::vector<Kinds> kinds1_, kinds2_;  // of each relation
  std::vector<std::uint8_t> kind_group_;
  Cost half_same_ = 0, half_sub_ = 0, half_delete_ = 0, half_insert_ = 0;
  std::vector<std::uint32_t> twins_;
};

}  // namespace gradloom::ged
