// The soft graph edit distance: a differentiable stand-in for the cost of the best mapping. docs/math/ged.md derives
// it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gradloom/data/graph.h"
#include "gradloom/exec/exec.h"

namespace gradloom::ged {

// A first graph of n1 nodes (for instance a predicted one, whose entries may be fractions), a second one of n2 nodes,
// and what edits cost. K kinds of edges (labels; 1 when they have none). Everything is row-major and finite.
template <class T>
struct SoftInputs {
  std::size_t n1 = 0, n2 = 0, kinds = 1;
  std::span<const T>
      cost;              // (n1 + 1, n2 + 1): substitutions; last column deletions, last row insertions, corner unused
  std::span<const T> a;  // (K, n1, n1): how much of an edge of each kind there is; zero diagonal
  std::span<const T> b;  // (K, n2, n2)
  T edge_sub = 1, edge_delete = 1, edge_insert = 1;  // edge_sub <= edge_delete + edge_insert
  Direction direction = Direction::undirected;       // undirected: a and b are symmetric, each edge stands there twice
};

struct SoftOptions {
  double temperature = 0.2;  // > 0, in units of cost: the lower, the closer to one mapping, and the more iterations
  unsigned iterations = 50;  // >= 1, of Sinkhorn
  unsigned rounds = 3;  // >= 1: the first sees nodes only, each further one also the edges under the matching before
  Variant variant = Variant::fast;
};

// What the backward pass needs; made by the forward pass, reused without allocation for sizes that were seen.
template <class T>
struct SoftTape {
  std::vector<T> p;        // (rounds, n1 + 1, n2 + 1): matchings; the last one is the result
  std::vector<T> price;    // (rounds, n1 + 1, n2 + 1): costs that each round saw
  std::vector<T> rows;     // (rounds, iterations, n1 + 1): log scalings
  std::vector<T> columns;  // (rounds, iterations + 1, n2 + 1)
  std::vector<T> scratch, sum_a, sum_b;
  std::span<const T> matching(std::size_t n1, std::size_t n2) const {
    return std::span<const T>(p).last((n1 + 1) * (n2 + 1));
  }
};

// The cost of a matching p (n1 + 1, n2 + 1): rows i < n1 and columns j < n2 sum to 1. For p of zeros and ones this is
// the cost of that mapping. The corner counts for nothing.
template <class T>
T soft_cost(const SoftInputs<T>& in, std::span<const T> p, Arithmetic arithmetic = default_arithmetic());

// The cost of the matching that Sinkhorn finds. With n1 = 0 or n2 = 0 there is one matching, and this is its cost.
// Throws Exception{invalid_input} on sizes that do not fit and options out of range.
template <class T>
T soft_distance(const SoftInputs<T>& in, const SoftOptions& options, SoftTape<T>& tape);

// Overwrites dl_dcost (n1 + 1, n2 + 1) and dl_da (K, n1, n1; may be empty: not wanted) with dl_dy times the derivatives
// of soft_distance() with the same inputs, through all rounds and iterations. For an undirected graph the two entries
// of an edge are taken as independent: a caller who moves both adds both.
template <class T>
void soft_distance_backward(const SoftInputs<T>& in, const SoftOptions& options, SoftTape<T>& tape, T dl_dy,
                            std::span<T> dl_dcost, std::span<T> dl_da);

// Node costs of a first graph whose labels are distributions: cost[i][j] = sum_l label[i][l] table[l][j].
// label (n1, L), table (L, n2 + 1) with the deletion of label l in the last column, insert (n2), cost (n1 + 1, n2 + 1).
template <class T>
void soft_node_costs(std::span<const T> label, std::span<const T> table, std::span<const T> insert, std::size_t n1,
                     std::span<T> cost, Arithmetic arithmetic = default_arithmetic());
// Overwrites dl_dlabel (n1, L).
template <class T>
void soft_node_costs_backward(std::span<const T> table, std::span<const T> dl_dcost, std::size_t n1, std::size_t n2,
                              std::span<T> dl_dlabel, Arithmetic arithmetic = default_arithmetic());

}  // namespace gradloom::ged
