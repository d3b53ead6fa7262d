// Graph edit distances beside a graph network in training: exact distances of a sample, and how its outputs
// follow them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gradloom/base/view.h"
#include "gradloom/data/graph.h"
#include "gradloom/ged/ged.h"

namespace gradloom {

struct GedSampleOptions {
  std::size_t graphs = 12;           // all pairs of them are compared
  std::uint32_t nodes = 16;          // most of a graph that is sampled: exact searches grow exponentially
  std::uint64_t expansions = 20000;  // of each search; a pair that needs more does not count
  std::uint64_t seed = 0;
};

// Some graphs of a part of a set (`part`: numbers in the set; row k of an output belongs to part[k]), and the distances
// of all their pairs at uniform costs, computed in parallel. The same on any number of threads.
class GedSample {
 public:
  GedSample(const Exec& ex, const GraphSet& set, const std::vector<std::uint32_t>& part,
            const GedSampleOptions& options);

  // y (rows of the part, Out). JSON: pairs, exact (those whose distance is proven; only they count), mean (their
  // distance), spearman (rank correlation of distance and Euclidean distance of the outputs), same and different (mean
  // distance of pairs that get the same class, or different ones; absent for one output). null where undefined.
  template <class T>
  nlohmann::json judge(View<const T, 2> y) const;

 private:
  std::vector<std::uint32_t> rows_;  // of the part, ascending
  ged::AllPairs pairs_;
};

}  // namespace gradloom
