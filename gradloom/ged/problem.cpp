#include "gradloom/ged/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gradloom::ged {
namespace {

// 1 + the label of an edge, as relations and loops hold it.
std::uint64_t code_of(const Graph& graph, std::uint32_t edge, Labels labels) {
  if (labels == Labels::ignore || graph.edge_labels().empty()) return 1 + std::uint64_t{kUnlabelled};
  return 1 + std::uint64_t{graph.edge_labels()[edge]};
}
std::uint32_t label_of(std::uint64_t code) { return static_cast<std::uint32_t>(code - 1); }

}  // namespace

DenseGraph::DenseGraph(const Graph& graph, Labels labels) : nodes(graph.nodes()), direction(graph.direction()) {
  if (nodes > kLargestGraph)
    throw Exception(ErrorCode::unsupported,
                    fmt::format("the graph has {} nodes; edit distances are computed for graphs "
                                "of at most {}",
                                nodes, kLargestGraph));
  const bool labelled = labels == Labels::compare && !graph.node_labels().empty();
  label.assign(nodes, kUnlabelled);
  if (labelled) std::copy(graph.node_labels().begin(), graph.node_labels().end(), label.begin());
  loop.assign(nodes, 0);
  relation.assign(std::size_t{nodes} * nodes, 0);
  relations = {{0, 0}};
  std::map<std::array<std::uint64_t, 2>, std::uint16_t> known{{{0, 0}, 0}};
  const auto relate = [&](std::uint32_t a, std::uint32_t b, int side, std::uint64_t code) {
    std::uint16_t& at = relation[std::size_t{a} * nodes + b];
    auto meaning = relations[at];
    meaning[static_cast<std::size_t>(side)] = code;
    const auto [it, added] = known.emplace(meaning, static_cast<std::uint16_t>(relations.size()));
    if (added) relations.push_back(meaning);
    if (relations.size() > 65535)
      throw Exception(ErrorCode::unsupported, "the graph has too many different edge labels");
    at = it->second;
  };
  for (std::uint32_t e = 0; e < graph.edges(); ++e) {
    const std::uint32_t from = graph.edge_from()[e], to = graph.edge_to()[e];
    const std::uint64_t code = code_of(graph, e, labels);
    if (from == to) {
      loop[from] = code;
    } else if (direction == Direction::undirected) {
      relate(from, to, 0, code);
      relate(to, from, 0, code);
    } else {
      relate(from, to, 0, code);
      relate(to, from, 1, code);
    }
  }
}

Cost Problem::loop_or_edge(const CostTable& c, std::uint64_t a, std::uint64_t b) const {
  if (swapped_) std::swap(a, b);
  if (a == 0 && b == 0) return 0;
  if (b == 0) return c.edge_delete(label_of(a));
  if (a == 0) return c.edge_insert(label_of(b));
  return c.edge_sub(label_of(a), label_of(b));
}

void Problem::set(const DenseGraph& first, const DenseGraph& second, const CostTable& costs) {
  if (first.direction != second.direction && first.nodes > 0 && second.nodes > 0)
    throw_invalid("one graph is directed and the other is not; they cannot be compared");
  swapped_ = second.nodes < first.nodes;
  rows_ = swapped_ ? &second : &first;
  columns_ = swapped_ ? &first : &second;
  n1_ = rows_->nodes;
  n2_ = columns_->nodes;
  const double edits = static_cast<double>(n1_) * (n1_ + 1.0) + static_cast<double>(n2_) * (n2_ + 1.0);
  if (edits * static_cast<double>(costs.largest()) > static_cast<double>(kForbidden) / 4)
    throw Exception(ErrorCode::unsupported,
                    "the costs need too many digits for graphs of this size; round them to fewer");
  forbidden_ = false;
  set_nodes(costs);
  set_pairs(costs);
  set_kinds(costs);
  find_twins();
}

void Problem::set_nodes(const CostTable& c) {
  node_.resize(std::size_t{n1_} * n2_);
  erase_.resize(n1_);
  insert_.resize(n2_);
  for (std::uint32_t i = 0; i < n1_; ++i)
    erase_[i] = (swapped_ ? c.node_insert(rows_->label[i]) : c.node_delete(rows_->label[i])) +
                loop_or_edge(c, rows_->loop[i], 0);
  for (std::uint32_t j = 0; j < n2_; ++j)
    insert_[j] = (swapped_ ? c.node_delete(columns_->label[j]) : c.node_insert(columns_->label[j])) +
                 loop_or_edge(c, 0, columns_->loop[j]);
  full_ = true;
  for (std::uint32_t i = 0; i < n1_; ++i)
    for (std::uint32_t j = 0; j < n2_; ++j) {
      const std::uint32_t a = rows_->label[i], b = columns_->label[j];
      const Cost cost =
          (swapped_ ? c.node_sub(b, a) : c.node_sub(a, b)) + loop_or_edge(c, rows_->loop[i], columns_->loop[j]);
      node_[std::size_t{i} * n2_ + j] = cost;
      full_ = full_ && cost <= erase_[i] + insert_[j];
    }
}

void Problem::set_pairs(const CostTable& c) {
  relations2_ = static_cast<std::uint32_t>(columns_->relations.size());
  const std::size_t size = rows_->relations.size() * relations2_;
  pair_.resize(size);
  gain_.resize(size);
  for (std::size_t a = 0, at = 0; a < rows_->relations.size(); ++a)
    for (std::uint32_t b = 0; b < relations2_; ++b, ++at) {
      const auto &x = rows_->relations[a], &y = columns_->relations[b];
      pair_[at] = loop_or_edge(c, x[0], y[0]) + loop_or_edge(c, x[1], y[1]);
      gain_[at] = pair_[at] - pair_[b];  // row 0 is "inserted"
    }
  insert_all_ = 0;
  for (std::uint32_t j = 0; j < n2_; ++j) {
    insert_all_ += insert_[j];
    for (std::uint32_t l = 0; l < j; ++l) insert_all_ += pair(0, relation2(j, l));
  }
}

void Problem::set_kinds(const CostTable& c) {
  const bool directed = rows_->direction == Direction::directed || columns_->direction == Direction::directed;
  groups_ = directed ? 2 : 1;
  std::vector<std::uint64_t> codes1, codes2, shared;
  const auto collect = [](const DenseGraph& g, std::vector<std::uint64_t>& codes) {
    for (const auto& meaning : g.relations)
      for (std::uint64_t code : meaning)
        if (code != 0) codes.push_back(code);
    std::sort(codes.begin(), codes.end());
    codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  };
  collect(*rows_, codes1);
  collect(*columns_, codes2);
  std::set_intersection(codes1.begin(), codes1.end(), codes2.begin(), codes2.end(), std::back_inserter(shared));

  // The cheapest of each sort of edit among the labels that occur, so that counting stays a bound for any table.
  Cost same = kForbidden, sub = kForbidden, erase = kForbidden, insert = kForbidden;
  for (std::uint64_t a : codes1) {
    erase = std::min(erase, loop_or_edge(c, a, 0));
    for (std::uint64_t b : codes2) {
      Cost& least = a == b ? same : sub;
      least = std::min(least, loop_or_edge(c, a, b));
    }
  }
  for (std::uint64_t b : codes2) insert = std::min(insert, loop_or_edge(c, 0, b));
  half_delete_ = erase / 2;
  half_insert_ = insert / 2;
  half_sub_ = std::min(sub, erase + insert) / 2;
  half_same_ = std::min(same / 2, half_sub_);
  simple_ =
      !directed && codes1.size() <= 1 && codes2.size() <= 1 && (codes1.empty() || codes2.empty() || codes1 == codes2);

  kinds_ = simple_ ? 0 : groups_ * static_cast<std::uint32_t>(shared.size());
  kind_group_.resize(kinds_);
  for (std::uint32_t k = 0; k < kinds_; ++k) kind_group_[k] = static_cast<std::uint8_t>(k / shared.size());
  const auto fill = [&](const DenseGraph& g, std::vector<Kinds>& kinds) {
    kinds.assign(g.relations.size(), Kinds{});
    for (std::size_t r = 0; r < g.relations.size(); ++r)
      for (std::uint32_t side = 0; side < 2; ++side) {
        const std::uint64_t code = g.relations[r][side];
        if (code == 0) continue;
        kinds[r].at[kinds[r].size++] = static_cast<std::uint16_t>(side);
        const auto it = std::lower_bound(shared.begin(), shared.end(), code);
        if (simple_ || it == shared.end() || *it != code) continue;
        kinds[r].at[kinds[r].size++] =
            static_cast<std::uint16_t>(groups_ + side * shared.size() + static_cast<std::size_t>(it - shared.begin()));
      }
  };
  fill(*rows_, kinds1_);
  fill(*columns_, kinds2_);
}

Cost Problem::half_edges_general(const std::uint16_t* count1, const std::uint16_t* count2) const {
  int common[2] = {0, 0};
  for (std::uint32_t k = 0; k < kinds_; ++k)
    common[kind_group_[k]] += std::min(count1[groups_ + k], count2[groups_ + k]);
  Cost cost = 0;
  for (std::uint32_t g = 0; g < groups_; ++g) {
    const int a = count1[g], b = count2[g];
    if (common[g] > 0) cost += common[g] * half_same_;
    if (std::min(a, b) > common[g]) cost += (std::min(a, b) - common[g]) * half_sub_;
    if (a > b) cost += (a - b) * half_delete_;
    if (b > a) cost += (b - a) * half_insert_;
  }
  return cost;
}

void Problem::find_twins() {
  twins_.resize(n2_);
  // Sums over the relations of a column tell most columns apart without a look at the others: those of two twins differ
  // by the relation between them alone.
  const auto mark = [](std::uint64_t relation, std::uint64_t x) {
    return relation == 0 ? 0 : (relation * 0x9e3779b97f4a7c15u ^ (x + 1)) * 0xbf58476d1ce4e5b9u;
  };
  std::vector<std::uint64_t> sum(n2_, 0);
  for (std::uint32_t v = 0; v < n2_; ++v)
    for (std::uint32_t x = 0; x < n2_; ++x)
      if (x != v) sum[v] += mark(relation2(v, x), x);
  for (std::uint32_t w = 0; w < n2_; ++w) {
    twins_[w] = w;
    for (std::uint32_t v = 0; v < w && twins_[w] == w; ++v) {
      if (twins_[v] != v || insert_[v] != insert_[w] || relation2(v, w) != relation2(w, v)) continue;
      if (sum[v] - mark(relation2(v, w), w) != sum[w] - mark(relation2(w, v), v)) continue;
      // Edges tell most columns apart after a few looks, labels only at the end of a column.
      bool same = true;
      for (std::uint32_t x = 0; x < n2_ && same; ++x)
        same = x == v || x == w || (relation2(v, x) == relation2(w, x) && relation2(x, v) == relation2(x, w));
      for (std::uint32_t i = 0; i < n1_ && same; ++i) same = node(i, v) == node(i, w);
      if (same) twins_[w] = v;
    }
  }
}

void Problem::forbid(std::uint32_t i, std::uint32_t j) {
  if (!forbidden_) {
    allowed_node_ = node_;
    allowed_erase_ = erase_;
    forbidden_ = true;
  }
  if (j == kErased)
    erase_[i] = kForbidden;
  else
    node_[std::size_t{i} * n2_ + j] = kForbidden;
}

void Problem::refresh() { find_twins(); }

void Problem::clear_forbidden() {
  if (!forbidden_) return;
  node_ = allowed_node_;
  erase_ = allowed_erase_;
  forbidden_ = false;
  find_twins();
}

Cost Problem::cost(std::span<const std::uint32_t> image) const {
  Cost total = insert_all_;
  for (std::uint32_t i = 0; i < n1_; ++i) {
    const std::uint32_t j = image[i];
    total += j == kErased ? erase_[i] : node(i, j) - insert_[j];
    const std::uint16_t* r1 = rows_->relation.data() + std::size_t{i} * n1_;
    if (j == kErased) {
      for (std::uint32_t k = 0; k < i; ++k) total += gain_[r1[k] * relations2_];
      continue;
    }
    const std::uint16_t* r2 = columns_->relation.data() + std::size_t{j} * n2_;
    for (std::uint32_t k = 0; k < i; ++k)
      total += gain_[r1[k] * relations2_ + (image[k] == kErased ? 0u : r2[image[k]])];
  }
  return total;
}

Cost Problem::share(std::span<const std::uint32_t> image, std::uint32_t i, std::uint32_t j) const {
  const std::uint16_t* r1 = rows_->relation.data() + std::size_t{i} * n1_;
  if (j == kErased) {
    Cost total = erase_[i];
    for (std::uint32_t k = 0; k < n1_; ++k) total += gain_[r1[k] * relations2_];
    return total;
  }
  // Row i has no relation to itself, which gains nothing.
  const std::uint16_t* r2 = columns_->relation.data() + std::size_t{j} * n2_;
  Cost total = node(i, j) - insert_[j];
  for (std::uint32_t k = 0; k < n1_; ++k)
    total += gain_[r1[k] * relations2_ + (image[k] == kErased ? 0u : r2[image[k]])];
  return total;
}

Mapping Problem::to_first(std::span<const std::uint32_t> image) const {
  if (!swapped_) return {image.begin(), image.end()};
  Mapping mapping(n2_, kErased);
  for (std::uint32_t i = 0; i < n1_; ++i)
    if (image[i] != kErased) mapping[image[i]] = i;
  return mapping;
}

}  // namespace gradloom::ged
