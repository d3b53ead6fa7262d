// Pairs of graphs as the application sees them: a network learns their similarity from exact edit distances.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/families/pairs/options.h"
#include "gradloom/app/family.h"
#include "gradloom/app/report.h"
#include "gradloom/app/settings.h"
#include "gradloom/data/distance_table.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/models/graph/pair_network.h"

namespace gradloom::app {

// Graphs are split, not pairs: training pairs are of two training graphs; validation and test pairs of a held-out graph
// (first) and a training graph; `unseen` pairs of two test graphs. The target of a pair is exp(-2 distance / (n1 +
// n2)).
template <class T>
class PairFamily {
 public:
  using Scalar = T;
  using Model = graph::PairNetwork<T>;
  using Data = PairDataset<T>;
  using Options = PairOptions;

  static Result<PairFamily> load(const Options& options, const std::filesystem::path& data_root);

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

  // mse, mae of the similarity; distance_mae; spearman over all pairs, spearman_mean and precision_at_10 over queries:
  // a query is a graph that stands first in a pair, with all pairs that hold it.
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const;
  // Adds `unseen`, the metrics on pairs of two test graphs, to the summary.
  Result<void> finish(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const RunFolder& folder,
                      nlohmann::json& summary) const;
  Result<nlohmann::json> study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const;

  void describe(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const nlohmann::json& summary,
                Report& report) const;
  std::vector<std::string> warnings(const Exec&, const Model&, const ModelArrays<T>&) const { return {}; }

 private:
  PairFamily(Options options, std::shared_ptr<const GraphSet> set, std::shared_ptr<const DistanceTable> distances)
      : options_(std::move(options)), set_(std::move(set)), distances_(std::move(distances)) {}
  void split();
  // Pairs of `queries` (graphs of the set) with `others`; empty: all pairs of two queries.
  Data part(std::span<const std::uint32_t> queries, std::span<const std::uint32_t> others) const;
  graph::PairOptions network_options(const GraphArrays<T>& arrays) const;
  nlohmann::json unseen(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

  Options options_;
  std::shared_ptr<const GraphSet> set_;
  std::shared_ptr<const DistanceTable> distances_;
  std::optional<Data> train_, validation_, test_, unseen_;
};

}  // namespace gradloom::app
