#include "gradloom/session/families/graph/ged_sample.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/base/random.h"
#include "gradloom/train/ranking.h"

namespace gradloom {

using nlohmann::json;

namespace {

struct Mean {
  double sum = 0.0;
  std::size_t count = 0;
  void add(double v) { sum += v, ++count; }
  json value() const { return count == 0 ? json(nullptr) : json(sum / static_cast<double>(count)); }
};

}  // namespace

GedSample::GedSample(const Exec& ex, const GraphSet& set, const std::vector<std::uint32_t>& part,
                     const GedSampleOptions& o) {
  std::vector<std::uint32_t> order(part.size());
  random_permutation(RandomStream(o.seed, RandomUse::data, 0, 1), order);
  for (const std::uint32_t r : order)
    if (rows_.size() < o.graphs && set.graphs[part[r]].nodes() <= o.nodes) rows_.push_back(r);
  std::sort(rows_.begin(), rows_.end());
  GraphSet sample;
  sample.node_labels = set.node_labels, sample.edge_labels = set.edge_labels;
  for (const std::uint32_t r : rows_) sample.graphs.push_back(set.graphs[part[r]]), sample.ids.push_back({});
  const ged::CostTable costs(ged::uniform_costs(), sample.node_labels, sample.edge_labels);
  pairs_ = ged::all_pairs(ex, sample, costs, {.limits = {.expansions = o.expansions}, .progress = {}});
}

template <class T>
json GedSample::judge(View<const T, 2> y) const {
  const std::size_t out = y.extent(1);
  const auto class_of = [&](std::size_t row) { return std::max_element(y.row(row), y.row(row) + out) - y.row(row); };
  std::vector<double> exact, apart;
  Mean all, same, different;
  for (std::size_t i = 1; i < rows_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t at = ged::AllPairs::at(i, j);
      if (pairs_.lower[at] != pairs_.upper[at]) continue;
      double squares = 0.0;
      for (std::size_t c = 0; c < out; ++c) {
        const double d = static_cast<double>(y(rows_[i], c)) - static_cast<double>(y(rows_[j], c));
        squares += d * d;
      }
      exact.push_back(pairs_.upper[at]), apart.push_back(std::sqrt(squares));
      all.add(exact.back());
      (class_of(rows_[i]) == class_of(rows_[j]) ? same : different).add(exact.back());
    }
  const std::optional<double> correlation = spearman(exact, apart);
  json result{{"pairs", pairs_.upper.size()}, {"exact", exact.size()}, {"mean", all.value()}};
  result["spearman"] = correlation ? json(*correlation) : json(nullptr);
  if (out > 1) result["same"] = same.value(), result["different"] = different.value();
  return result;
}

template json GedSample::judge(View<const float, 2>) const;
template json GedSample::judge(View<const double, 2>) const;

}  // namespace gradloom
