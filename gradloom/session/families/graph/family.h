// The family of graph networks: nodes of one graph, or whole graphs in folds.
#pragma once

#include <optional>

#include "gradloom/data/graph_dataset.h"
#include "gradloom/models/graph/dual.h"
#include "gradloom/models/graph/network.h"
#include "gradloom/session/families/graph/ged_sample.h"
#include "gradloom/session/families/graph/layout.h"
#include "gradloom/session/families/graph/options.h"
#include "gradloom/session/family.h"

namespace gradloom {

// Throws when a norm over batches and something else in the options exclude each other.
void check_norm(const graph::NetworkOptions& model, const TrainingOptions& train);

template <class T>
class GraphFamily final : public Family<T, graph::GraphNetwork<T>, GraphDataset<T>, GraphOptions> {
 public:
  using Model = graph::GraphNetwork<T>;
  using Data = GraphDataset<T>;
  using Source = std::shared_ptr<const GraphSet>;

  // Splits the graphs. Throws invalid_input when options and graphs do not fit each other.
  GraphFamily(GraphOptions options, Source source);

  ModelDescription describe() const override { return describe_graphs(layout_); }
  static GraphFamily from_model(const GraphOptions& options, const ModelDescription& description) {
    return GraphFamily(options, restore_layout(description, options.model.task));
  }
  const GraphLayout& layout() const { return layout_; }
  // Graphs that align_graphs() has made fit. The second is whether there are targets to compare with; a node task
  // needs that of some node, a graph task those of all graphs.
  std::pair<Data, bool> new_graphs(const GraphSet& graphs) const;

  std::size_t row_of(const Data& data, std::size_t n) const override { return data.row_of(n); }
  Model model(std::size_t stage) const override;
  std::string why_not_shared(const Model& model) const override {
    return model.options().task == GraphTask::node ? "the nodes of a graph are computed together"
                                                   : "batch norm needs all graphs of a batch";
  }
  Model model_for(std::size_t stage, const Data& data) const override;

  // With data.curve: `validation_accuracy` and `test_accuracy`, where there are such data. With ged.sample, every
  // ged.every epochs: `ged`, what GedSample::judge() says of the outputs for graphs that are not trained on.
  nlohmann::json epoch_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                               std::uint64_t epoch) const override;
  bool logs_accuracy() const override { return options_.data.curve; }
  std::vector<std::string> output_names() const override;
  std::vector<double> output_centres() const override {
    return layout_.target_centre == 0.0 ? std::vector<double>() : std::vector<double>{layout_.target_centre};
  }
  std::vector<SampleNames> sample_names() const override { return {{"id", sample_ids_}}; }
  std::vector<std::string> warnings(const Exec&, const Model&, const ModelArrays<T>&) const override {
    return data_warnings_;
  }
  std::size_t counted(const Data& data) const override;  // nodes without the others of the graph
  // Of graphs; all nodes of a node task are training data.
  std::map<std::string, std::size_t> rows_outside() const override;
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const override;
  // Adds `ged`, with ged.sample.
  nlohmann::json conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                          const Metrics& metrics) const override;
  std::string learned_from() const override;  // "2 labelled nodes of 34", or how many graphs
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const override;
  static double exact_derivative(const Model& model, const ModelArrays<T>& arrays, const GraphBatch<T>& batch,
                                 View<const T, 2> dl_dy, std::size_t i) requires std::same_as<T, double> {
    return graph::dual_derivative(model, {}, arrays, batch, dl_dy, {graph::DualDirection::What::parameter, i});
  }

  const GraphSet& graphs() const { return *set_; }

 private:
  using Base = Family<T, Model, Data, GraphOptions>;
  using Base::options_, Base::train_, Base::validation_, Base::test_;
  GraphFamily(GraphOptions options, GraphLayout layout)
      : Family<T, Model, Data, GraphOptions>(std::move(options)), layout_(std::move(layout)) {}
  void split_nodes();
  void split_graphs();
  // For data of this layout; but for its names and ranges.
  graph::NetworkOptions network_options(const GraphLayout& layout) const;
  nlohmann::json judge_distances(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  double accuracy(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const Data& data) const;

  std::shared_ptr<const GraphSet> set_;  // null when it comes from a model file
  GraphLayout layout_;
  std::vector<std::string>
      data_warnings_;                    // what float32 cannot hold of the graphs, and what they have that is not used
  std::vector<std::string> sample_ids_;  // of the graphs that are tested, or of all nodes
  std::vector<std::uint32_t> watched_;   // graphs of the part that distances are measured on
  // Measured when they are first needed; copies of a family share them.
  std::shared_ptr<std::optional<GedSample>> distances_ = std::make_shared<std::optional<GedSample>>();
};

}  // namespace gradloom
