// Spline networks as the application sees them: data, model of each stage, what happens between stages, metrics,
// report.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/families/kan/options.h"
#include "gradloom/app/family.h"
#include "gradloom/app/report.h"
#include "gradloom/app/settings.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/train/metrics.h"
#include "gradloom/train/predict.h"
#include "gradloom/train/state.h"

namespace gradloom::app {

template <class T>
class KanFamily {
 public:
  using Scalar = T;
  using Model = kan::Network<T>;
  using Data = RowDataset<T>;
  using Options = KanOptions;

  // Loads the data that the options name.
  static Result<KanFamily> load(const Options& options, const std::filesystem::path& data_root);

  const Options& options() const { return options_; }

  const Data& train() const { return *train_; }
  const Data* validation() const { return validation_ ? &*validation_ : nullptr; }
  const Data* test() const { return test_ ? &*test_ : nullptr; }

  Model model(std::size_t stage) const;
  std::string stage_note(std::size_t stage) const;  // "grid 10"

  // Fresh parameters and buffers; `restart` counts from 0.
  TrainState<T> start(const Exec& ex, std::size_t restart) const;
  // Maps the state at the end of the stage before to the beginning of `stage`; nothing for stage 0 but a refit.
  void enter_stage(const Exec& ex, std::size_t stage, TrainState<T>& state) const;
  // Refits grids where the options ask for it before this epoch of a stage; true when parameters and buffers changed.
  bool before_epoch(const Exec& ex, std::size_t stage, std::uint64_t epoch, TrainState<T>& state) const;
  // Whether training may end here; asked after each epoch of a stage.
  bool goal_reached(const Exec&, const Model&, const ModelArrays<T>&, std::uint64_t) const { return false; }
  // After loading a checkpoint.
  Result<void> restore(const Model& model, TrainState<T>& state) const { return model.derive(state.buffers.span()); }

  // A further file in the columns of the training data; its targets may be missing.
  Result<FurtherRows<T>> read_further(const std::filesystem::path& file) const;

  // Figures of one part of the data, whose predictions are y.
  std::map<std::string, double> metrics(const Exec&, const Model&, const ModelArrays<T>&, const Data& data,
                                        View<const T, 2> y) const {
    return row_metrics<T>(data.all(), y);
  }
  // The end of a run: files of its own in the folder, keys of its own in the summary.
  Result<void> finish(const Exec&, const Model&, const ModelArrays<T>&, const RunFolder&, nlohmann::json&) const {
    return {};
  }
  // What `check` looks at.
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const;
  // What `eval` adds to the metrics.
  Result<nlohmann::json> study(const Exec&, const Model&, const ModelArrays<T>&) const { return nlohmann::json(); }

  // Sections and warnings that only this family has.
  void describe(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const nlohmann::json& summary,
                Report& report) const;
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

 private:
  KanFamily(Options options, std::filesystem::path data_root, RowSplits splits);

  Options options_;
  std::filesystem::path data_root_;
  LoadedRows like_;  // a training row as it was read: the names of features and classes, and the code
  std::optional<Data> train_, validation_, test_;
};

}  // namespace gradloom::app
