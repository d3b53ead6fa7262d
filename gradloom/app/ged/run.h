// Graph edit distances of graphs in files: of one pair, or of all pairs of a set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/graph_source.h"
#include "gradloom/ged/ged.h"
#include "gradloom/io/fields.h"

namespace gradloom::app {

// "uniform", "topology", four numbers "node_sub,node_indel,edge_sub,edge_indel", or a .json file (docs/ged.md).
Result<ged::Costs> ged_costs(const std::string& words);

struct GedFiles {
  GraphFormat format = GraphFormat::automatic;
  Direction direction = Direction::undirected;  // where the format does not say
  std::filesystem::path folder;                 // of the files that a collection lists; empty: beside it
};

struct GedPairOptions {
  std::string first, second;  // FILE (with one graph), FILE:ID or FILE#POSITION (from 0)
  GedFiles files;
  ged::Costs costs;
  ged::Options ged;
  unsigned threads = 0;
};

struct GedPairReport {
  struct Side {
    std::string id;
    std::size_t nodes = 0, edges = 0;
    GRADLOOM_FIELDS(id, nodes, edges)
  };
  struct Edit {
    std::string edit;
    std::vector<std::uint32_t> from, to;
    double cost = 0.0;
    GRADLOOM_FIELDS(edit, from, to, cost)
  };
  struct Bounds {
    double label = 0.0, assignment = 0.0;
    GRADLOOM_FIELDS(label, assignment)
  };

  Side first, second;
  double lower = 0.0, upper = 0.0;
  bool exact = false, smallest = false;
  std::optional<double> threshold;
  std::optional<Nullable<bool>> within;          // of the threshold; null: a limit was reached before it was known
  std::vector<Nullable<std::uint32_t>> mapping;  // null: deleted
  std::vector<Edit> path;
  Bounds bounds;
  std::uint64_t expanded = 0;
  double seconds = 0.0;

  GRADLOOM_FIELDS(first, second, lower, upper, exact, smallest, threshold, within, mapping, path, bounds, expanded,
                  seconds)
};

Result<GedPairReport> ged_pair(const GedPairOptions& options);

struct GedAllPairsOptions {
  std::string file;
  std::string against;  // empty: all pairs of `file`; else: its graphs against those of this file
  GedFiles files;
  ged::Costs costs;
  ged::AllPairsOptions ged;
  unsigned threads = 0;
  Comm* comm = nullptr;  // ranks that share all pairs, not `against`; rank 0 writes, and has the result
  // Empty: nothing is written. By its extension: .csv, a matrix with ids in its first row and column; .npy, the matrix
  // in float64; otherwise text, for all pairs alone: the number of graphs; their ids; then row i = 1, 2, ... with the
  // distances to graphs 0 .. i-1. A pair that hit a limit is LOWER..UPPER, in .npy NaN.
  std::filesystem::path out;
};

struct GedAllPairsReport {
  struct Pair {
    std::string first, second;
    double lower = 0.0, upper = 0.0;
    std::uint64_t expanded = 0;
    GRADLOOM_FIELDS(first, second, lower, upper, expanded)
  };

  std::size_t graphs = 0;
  std::optional<std::size_t> against;  // graphs of the other file
  std::optional<unsigned> ranks;       // that shared the pairs
  std::size_t pairs = 0, inexact = 0;
  double exact_share = 0.0, mean = 0.0;  // the mean is of the upper bounds
  std::uint64_t expanded = 0;
  std::vector<Pair> hardest;  // those that took most expansions
  double seconds = 0.0, pairs_per_s = 0.0;
  Nullable<std::string> out;

  GRADLOOM_FIELDS(graphs, against, ranks, pairs, inexact, exact_share, mean, expanded, hardest, seconds, pairs_per_s,
                  out)
};

Result<GedAllPairsReport> ged_all_pairs(const GedAllPairsOptions& options);

struct BenchGedOptions {
  std::string file;  // empty: random molecules-like graphs
  std::size_t graphs = 64;
  std::uint32_t nodes = 9;
  std::uint64_t seed = 1;
  GedFiles files;
  ged::Costs costs;
  ged::Limits limits;
  unsigned threads = 1;
  double seconds = 1.0;
};

struct BenchGedReport {
  double pairs_per_s = 0.0, exact_share = 0.0;
  std::size_t pairs = 0, graphs = 0;
  unsigned threads = 1;
  double expanded_per_pair = 0.0;
  std::uint64_t most_expanded = 0;
  std::size_t checked = 0;  // pairs

  GRADLOOM_FIELDS(pairs_per_s, exact_share, pairs, graphs, threads, expanded_per_pair, most_expanded, checked)
};

// Fails with numeric when a mapping does not cost what was said, or the two exact searches disagree.
Result<BenchGedReport> bench_ged(const BenchGedOptions& options);

}  // namespace gradloom::app
