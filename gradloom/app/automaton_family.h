// Logic automata as the application sees them.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/automaton_study.h"
#include "gradloom/app/families/automaton/options.h"
#include "gradloom/app/family.h"
#include "gradloom/app/report.h"
#include "gradloom/data/grids.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/models/logic/automaton.h"

namespace gradloom::app {

template <class T>
class AutomatonFamily {
 public:
  using Scalar = T;
  using Model = logic::Automaton<T>;
  using Data = GridDataset<T>;
  using Options = AutomatonOptions;

  // Fails when a picture cannot be read; throws when the grid or the circuit cannot be made.
  static Result<AutomatonFamily> load(const Options& options, const std::filesystem::path& data_root);

  const Options& options() const { return options_; }

  const Data& train() const { return *train_; }
  const Data* validation() const;  // none: the hard circuit is judged on data of its own, see goal_reached()
  const Data* test() const { return &*test_; }

  Model model(std::size_t stage) const;
  std::string stage_note(std::size_t stage) const;
  TrainState<T> start(const Exec& ex, std::size_t restart) const;
  void enter_stage(const Exec&, std::size_t, TrainState<T>&) const {}
  bool before_epoch(const Exec&, std::size_t, std::uint64_t, TrainState<T>&) const { return false; }
  // Every goal.every epochs: a search for a circuit near the hard one that does all that is asked, on training
  // draws (automaton_trials.h). The parameters change only when it is found and passes goal_reached().
  void repair(const Exec& ex, const Model& model, std::uint64_t epoch, TrainState<T>& state) const;
  // Every goal.every epochs: does the hard circuit do all that is asked, on starts that are neither trained nor
  // tested on?
  bool goal_reached(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, std::uint64_t epoch) const;
  // Every goal.start_over epochs of the first stage: other wires and parameters as at the start, as if the seed were
  // another one. Returns the number of the start that begins (2, 3, ...), or 0.
  std::size_t start_over(const Exec& ex, std::size_t stage, std::uint64_t epoch, TrainState<T>& state) const;
  Result<void> restore(const Model& model, TrainState<T>& state) const { return model.derive(state.buffers.span()); }

  // accuracy (of the soft states, cut at 1/2), hard_loss (wrong target bits of all samples), hard_accuracy (mean over
  // samples; of a checkerboard the better phase).
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const;
  // Writes circuit.json, the hard circuit as it was learned; adds circuit, study and success to the summary.
  Result<void> finish(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const RunFolder& folder,
                      nlohmann::json& summary) const;
  Result<nlohmann::json> study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  // The same circuit on a small grid with few steps.
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const;

  void describe(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const nlohmann::json& summary,
                Report& report) const;
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

 private:
  AutomatonFamily(Options options, GridTask task);
  AutomatonSubject subject(const Model& model, const ModelArrays<T>& arrays) const;
  bool looks_at(std::uint64_t epoch) const;

  Options options_;
  std::optional<Data> train_, validation_, test_;
};

}  // namespace gradloom::app
