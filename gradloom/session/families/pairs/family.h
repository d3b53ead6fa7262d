// The family of pairs of graphs: a network learns their similarity from exact edit distances.
#pragma once

#include <optional>

#include "gradloom/data/distance_table.h"
#include "gradloom/data/graph_pairs.h"
#include "gradloom/models/graph/dual.h"
#include "gradloom/models/graph/pair_network.h"
#include "gradloom/session/families/graph/layout.h"
#include "gradloom/session/families/pairs/options.h"
#include "gradloom/session/family.h"

namespace gradloom {

struct PairSource {
  std::shared_ptr<const GraphSet> graphs;
  std::shared_ptr<const DistanceTable> distances;
};

// A sentence for what similarities cannot hold of these distances of the graphs: they are below 1e-30, which stands for
// all smaller ones, or else float32 distinguishes less than half of them.
std::vector<std::string> similarity_warnings(const GraphSet& set, const DistanceTable& distances, Precision precision);

// Graphs are split, not pairs: training pairs are of two training graphs; validation and test pairs of a held-out graph
// (first) and a training graph; `unseen` pairs of two test graphs. The target of a pair is exp(-2 distance / (n1 +
// n2)).
template <class T>
class PairFamily final : public Family<T, graph::PairNetwork<T>, PairDataset<T>, PairOptions> {
 public:
  using Model = graph::PairNetwork<T>;
  using Data = PairDataset<T>;
  using Source = PairSource;

  // Throws invalid_input when options, graphs and distances do not fit each other.
  PairFamily(PairOptions options, Source source);

  const Data* unseen() const { return unseen_ ? &*unseen_ : nullptr; }

  ModelDescription describe() const override;
  static PairFamily from_model(const PairOptions& options, const ModelDescription& description);
  const GraphLayout& layout() const { return layout_; }
  // All pairs of graphs that align_graphs() has made fit, in the order (0, 1), (0, 2), ..., (1, 2), ...; without
  // distances their targets are 1 and mean nothing.
  Data new_pairs(const GraphSet& graphs, const DistanceTable* distances) const;

  Model model(std::size_t stage) const override;
  std::string why_not_shared(const Model&) const override { return "batch norm ties the graphs of a batch together"; }
  Model model_for(std::size_t stage, const Data& data) const override;

  std::vector<std::string> output_names() const override { return {"similarity"}; }
  std::vector<SampleNames> sample_names() const override { return {{"id", sample_ids_}, {"other", other_ids_}}; }
  std::vector<std::string> warnings(const Exec&, const Model&, const ModelArrays<T>&) const override {
    return data_warnings_;
  }
  // Of pairs with such a graph.
  std::map<std::string, std::size_t> rows_outside() const override;
  // mse, mae of the similarity; distance_mae; spearman over all pairs, spearman_mean and precision_at_10 over queries:
  // a query is a graph that stands first in a pair, with all pairs that hold it.
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const override;
  nlohmann::json study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  // Adds `unseen`, the metrics on pairs of two test graphs.
  nlohmann::json conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                          const Metrics& metrics) const override;
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const override;
  static double exact_derivative(const Model& model, const ModelArrays<T>& arrays, const PairBatch<T>& batch,
                                 View<const T, 2> dl_dy, std::size_t i) requires std::same_as<T, double> {
    return graph::dual_derivative(model, {}, arrays, batch, dl_dy, i);
  }

  const GraphSet& graphs() const { return *set_; }

 private:
  using Base = Family<T, Model, Data, PairOptions>;
  using Base::options_, Base::train_, Base::validation_, Base::test_;
  PairFamily(PairOptions options, GraphLayout layout)
      : Family<T, Model, Data, PairOptions>(std::move(options)), layout_(std::move(layout)) {}
  void split();
  // Pairs of `queries` (graphs of the set) with `others`; empty: all pairs of two queries.
  Data part(std::span<const std::uint32_t> queries, std::span<const std::uint32_t> others) const;
  graph::PairOptions network_options(std::size_t features, std::size_t edge_features) const;
  nlohmann::json unseen_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

  std::shared_ptr<const GraphSet> set_;
  std::shared_ptr<const DistanceTable> distances_;
  GraphLayout layout_;
  std::vector<std::string>
      data_warnings_;  // what float32 cannot hold of the graphs, and what they have that is not used
  std::vector<std::string> sample_ids_, other_ids_;  // of the pairs that are tested
  std::optional<Data> unseen_;
};

}  // namespace gradloom
