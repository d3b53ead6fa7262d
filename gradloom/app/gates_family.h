// Classifiers of logic gates as the application sees them.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/families/gates/options.h"
#include "gradloom/app/family.h"
#include "gradloom/app/report.h"
#include "gradloom/app/settings.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/models/logic/classifier.h"

namespace gradloom::app {

template <class T>
class GatesFamily {
 public:
  using Scalar = T;
  using Model = logic::GateClassifier<T>;
  using Data = RowDataset<T>;
  using Options = GatesOptions;

  // Loads the data and turns it into bits, with thresholds from the training part.
  static Result<GatesFamily> load(const Options& options, const std::filesystem::path& data_root);

  const Options& options() const { return options_; }

  const Data& train() const { return *train_; }
  const Data* validation() const { return validation_ ? &*validation_ : nullptr; }
  const Data* test() const { return test_ ? &*test_ : nullptr; }

  Model model(std::size_t stage) const;
  std::string stage_note(std::size_t stage) const;
  TrainState<T> start(const Exec& ex, std::size_t restart) const;
  void enter_stage(const Exec&, std::size_t, TrainState<T>&) const {}
  bool before_epoch(const Exec&, std::size_t, std::uint64_t, TrainState<T>&) const { return false; }
  // Whether training may end here; asked after each epoch of a stage.
  bool goal_reached(const Exec&, const Model&, const ModelArrays<T>&, std::uint64_t) const { return false; }
  Result<void> restore(const Model& model, TrainState<T>& state) const { return model.derive(state.buffers.span()); }

  // accuracy (soft) and hard_accuracy (of the circuit; the lowest class on ties).
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const;
  // Writes circuit.json; adds circuit to the summary.
  Result<void> finish(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const RunFolder& folder,
                      nlohmann::json& summary) const;
  Result<nlohmann::json> study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const;

  void describe(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const nlohmann::json& summary,
                Report& report) const;
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

 private:
  GatesFamily(Options options, const RowSplits& splits);

  Options options_;
  std::optional<Data> train_, validation_, test_;
};

}  // namespace gradloom::app
