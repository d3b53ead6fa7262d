// Graph networks as the application sees them: nodes of one graph, or whole graphs in folds.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/families/graph/options.h"
#include "gradloom/app/family.h"
#include "gradloom/app/graph_ged.h"
#include "gradloom/app/report.h"
#include "gradloom/app/settings.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::app {

template <class T>
class GraphFamily {
 public:
  using Scalar = T;
  using Model = graph::GraphNetwork<T>;
  using Data = GraphDataset<T>;
  using Options = GraphOptions;

  // Loads and splits the data.
  static Result<GraphFamily> load(const Options& options, const std::filesystem::path& data_root);

  const Options& options() const { return options_; }

  const Data& train() const { return *train_; }
  const Data* validation() const { return validation_ ? &*validation_ : nullptr; }
  const Data* test() const { return test_ ? &*test_ : nullptr; }

  Model model(std::size_t stage) const;
  std::string stage_note(std::size_t stage) const;
  TrainState<T> start(const Exec& ex, std::size_t restart) const;
  void enter_stage(const Exec&, std::size_t, TrainState<T>&) const {}
  bool before_epoch(const Exec&, std::size_t, std::uint64_t, TrainState<T>&) const { return false; }
  bool goal_reached(const Exec&, const Model&, const ModelArrays<T>&, std::uint64_t) const { return false; }
  Result<void> restore(const Model&, TrainState<T>&) const { return {}; }

  // For the log. With data.curve: `validation_accuracy` and `test_accuracy`, where there are such data. With
  // train.ged_sample, every train.ged_every epochs: `ged`, what GedSample::judge() says of the outputs for graphs that
  // are not trained on.
  nlohmann::json epoch_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                               std::uint64_t epoch) const;
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const;
  // Adds `curve` (accuracy after each epoch, as the log of the run has it) and `chosen` (the epoch that did best on
  // validation data, and its accuracy on the test part) to the summary, with data.curve; and `ged`, with
  // train.ged_sample.
  Result<void> finish(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const RunFolder& folder,
                      nlohmann::json& summary) const;
  Result<nlohmann::json> study(const Exec&, const Model&, const ModelArrays<T>&) const { return nlohmann::json(); }
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const;

  std::string learned_from() const;  // "2 labelled nodes of 34", or how many graphs
  void describe(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const nlohmann::json& summary,
                Report& report) const;
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

 private:
  GraphFamily(Options options, std::shared_ptr<const GraphSet> set)
      : options_(std::move(options)), set_(std::move(set)) {}
  void split_nodes();
  void split_graphs();
  graph::NetworkOptions network_options(const GraphArrays<T>& arrays) const;
  nlohmann::json judge_distances(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  // The graph of a node task with classes, when it is small enough to be looked at.
  std::optional<GraphPicture> picture(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  double accuracy(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const Data& data) const;

  Options options_;
  std::shared_ptr<const GraphSet> set_;
  std::optional<Data> train_, validation_, test_;
  std::vector<std::uint32_t> watched_;  // graphs of the part that distances are measured on
  // Measured when they are first needed; copies of a family share them.
  std::shared_ptr<std::optional<GedSample>> distances_ = std::make_shared<std::optional<GedSample>>();
};

}  // namespace gradloom::app
