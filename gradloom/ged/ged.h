// The graph edit distance: what it costs at least to turn one graph into another, with the mapping and the edits that
// do it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/data/graph.h"
#include "gradloom/exec/exec.h"
#include "gradloom/ged/costs.h"
#include "gradloom/ged/problem.h"

namespace gradloom::ged {

enum class Solver {
  depth_first,  // branch and bound with assignment bounds; in parallel over subtrees
  best_first,   // A* with label bounds: a second opinion where one graph has at most 64 nodes; one thread
};
inline constexpr Choice<Solver> kSolvers[] = {
    {Solver::depth_first, "dfs", "branch and bound"},
    {Solver::best_first, "best-first", "A*, an independent search to compare with, for small graphs"},
};

// Which optimal mapping is returned; `any` saves the searches for the smallest.
enum class Ties {
  smallest,  // the lexicographically smallest one (a deleted node counts as larger than any image)
  any,
};

struct Limits {
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t expansions = std::numeric_limits<std::uint64_t>::max();  // nodes of the search tree that are opened
};

struct Options {
  Solver solver = Solver::depth_first;
  Ties ties = Ties::smallest;
  Limits limits;
  // Asks only whether the distance is at most this, which is often much faster: the search ends as soon as it knows.
  // >= 0; for the depth-first solver.
  std::optional<double> threshold;
  const std::atomic<bool>* stop = nullptr;  // not owned, may be null; once it is set, a limit is reached
};

enum class Edit {
  node_substitute,  // a -> b; cost 0 when the labels are equal
  node_delete,
  node_insert,
  edge_substitute,  // edge a-b of the first graph -> edge c-d of the second
  edge_delete,
  edge_insert,
};
const char* edit_name(Edit edit);

// One edit; numbers are those of the graph that each node belongs to. `from` is empty for insertions, `to` for
// deletions; each holds one node, or the two ends of an edge.
struct EditOperation {
  Edit edit = Edit::node_substitute;
  std::vector<std::uint32_t> from, to;
  double cost = 0.0;
};

// lower <= distance <= upper; `exact` when they are equal and proven. `upper` is the cost of `mapping`. The search
// stops at whichever limit comes first, and then never claims more than it knows.
struct Distance {
  double lower = 0.0, upper = 0.0;
  bool exact = false;
  bool smallest = false;       // `mapping` is the lexicographically smallest optimal one
  std::optional<bool> within;  // with a threshold: upper <= threshold, or lower > threshold; none: a limit was reached
  Mapping mapping;             // of the nodes of the first graph; kErased: deleted
  std::uint64_t expanded = 0;
  double seconds = 0.0;
};

// Costs must have been made from the labels of both graphs. Without a time limit the result (all but `seconds`) does
// not depend on the number of threads. Throws Exception{invalid_input, unsupported} as DenseGraph and Problem do.
Distance edit_distance(const Exec& ex, const Graph& first, const Graph& second, const CostTable& costs,
                       const Options& options = {});

// The cost of a mapping by definition, edit by edit. Throws Exception{invalid_input} when it is none.
double mapping_cost(const Graph& first, const Graph& second, const CostTable& costs, const Mapping& mapping);

// The edits of a mapping that cost something, and substitutions of nodes that do not: node deletions and substitutions
// in order, node insertions, then edges. Their costs add up to mapping_cost().
std::vector<EditOperation> edit_path(const Graph& first, const Graph& second, const CostTable& costs,
                                     const Mapping& mapping);

// Lower bounds on the distance, from the cheapest to the best.
double label_bound(const Graph& first, const Graph& second, const CostTable& costs);  // counts of labels and degrees
// Nodes with half their edges; what `seconds` allow is a bound as well.
double assignment_bound(const Graph& first, const Graph& second, const CostTable& costs,
                        double seconds = std::numeric_limits<double>::infinity());

using PairOfGraphs = std::pair<std::size_t, std::size_t>;  // the first is turned into the second

struct PairDistances {
  std::vector<double> lower, upper;     // of each pair
  std::vector<std::uint64_t> expanded;  // the same
  std::uint64_t exact = 0;              // pairs
  std::vector<std::size_t> hard;        // with options.leave_hard: pairs that need a longer search
};

struct AllPairs : PairDistances {  // pair (i, j), j < i, is at i (i - 1) / 2 + j
  std::size_t graphs = 0;
  static std::size_t at(std::size_t i, std::size_t j) { return i * (i - 1) / 2 + j; }
  // In the order of the file: the graph that comes first is turned into the later one.
  static PairOfGraphs of(std::size_t at);
};

struct CrossPairs : PairDistances {  // (rows, columns)
  std::size_t rows = 0, columns = 0;
};

struct AllPairsOptions {
  Limits limits;  // of each pair; the time limit counts from the start of a pair
  // Called now and then, on the thread of the caller, with the pairs that are done; not after a stop.
  std::function<void(std::size_t done, std::size_t total)> progress;
  // Not owned, may be null. Once it is set, the search at hand ends, and the remaining pairs get bounds without one.
  const std::atomic<bool>* stop = nullptr;
  bool leave_hard = false;  // list the hard pairs instead of solving them; they have bounds
};

// The distances (no mappings) between all graphs of a set, in parallel over pairs; pairs that turn out hard are then
// solved one after another, in parallel inside.
AllPairs all_pairs(const Exec& ex, const GraphSet& set, const CostTable& costs, const AllPairsOptions& options = {});

// The same between each of the first `rows` graphs of a set and each of the others.
CrossPairs cross_pairs(const Exec& ex, const GraphSet& set, std::size_t rows, const CostTable& costs,
                       const AllPairsOptions& options = {});

// The same of these pairs, one after another, in parallel inside: what all_pairs() does with hard ones.
PairDistances hard_pairs(const Exec& ex, const GraphSet& set, std::span<const PairOfGraphs> pairs,
                         const CostTable& costs, const AllPairsOptions& options = {});

struct Found {
  std::size_t graph = 0;  // of the set
  double lower = 0.0, upper = 0.0;
  bool within = true;  // false: a limit was reached before it was known, and lower <= threshold
};

// The graphs of a set within `threshold` of graph `query` of the same set, with their distances: by upper bound, then
// by number; those that are not known to be follow. Graph `query` itself is left out. In parallel over graphs; limits
// are those of each pair.
std::vector<Found> search(const Exec& ex, const GraphSet& set, std::size_t query, const CostTable& costs,
                          double threshold, const AllPairsOptions& options = {});

}  // namespace gradloom::ged
