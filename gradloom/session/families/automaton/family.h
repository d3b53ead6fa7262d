// The family of logic automata: grids that are drawn anew for each epoch, hard circuits that are judged and repaired.
#pragma once

#include "gradloom/data/grids.h"
#include "gradloom/models/logic/automaton.h"
#include "gradloom/models/logic/dual.h"
#include "gradloom/session/families/automaton/options.h"
#include "gradloom/session/families/automaton/study.h"
#include "gradloom/session/family.h"

namespace gradloom {

template <class T>
class AutomatonFamily final : public Family<T, logic::Automaton<T>, GridDataset<T>, AutomatonOptions> {
 public:
  using Model = logic::Automaton<T>;
  using Data = GridDataset<T>;
  using Source = GridTask;  // with the size and the image of a picture

  // Throws invalid_input when the grid or the circuit cannot be made.
  AutomatonFamily(AutomatonOptions options, Source source);

  // The task, with the picture where there is one; the hard circuit stands beside it in a model file.
  ModelDescription describe() const override;
  static AutomatonFamily from_model(const AutomatonOptions& options, const ModelDescription& description);
  Model model(std::size_t stage) const override;
  std::string why_not_shared(const Model&) const override {
    return "the grid is so large that its rows are computed in bands";
  }
  // At each look: how many bits of the trials the hard circuit has right, for the progress alone.
  nlohmann::json epoch_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                               std::uint64_t epoch) const override;
  // Every goal.every epochs: a search for a circuit near the hard one that does all that is asked, on training
  // draws (trials.h). The parameters change only when it is found and passes goal_reached().
  void repair(const Exec& ex, const Model& model, std::size_t stage, std::uint64_t epoch,
              TrainState<T>& state) const override;
  // Every goal.every epochs: does the hard circuit do all that is asked, on starts that are neither trained nor
  // tested on?
  bool goal_reached(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                    std::uint64_t epoch) const override;
  // Every goal.start_over epochs of the first stage: other wires and parameters as at the start, as if the seed were
  // another one.
  std::size_t start_over(const Exec& ex, std::size_t stage, std::uint64_t epoch, TrainState<T>& state) const override;
  Result<void> restore(const Model& model, TrainState<T>& state) const override {
    return model.derive(state.buffers.span());
  }

  // accuracy (of the soft states, cut at 1/2), hard_loss (wrong target bits of all samples), hard_accuracy (mean over
  // samples; of a checkerboard the better phase).
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const override;
  nlohmann::json study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  // Adds circuit, study and success.
  nlohmann::json conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                          const Metrics& metrics) const override;
  std::optional<circuit::AnyCircuit> hard_circuit(const Model& model, const ModelArrays<T>& arrays) const override;
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  // The same circuit on a small grid with few steps.
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const override;
  static double exact_derivative(const Model& model, const ModelArrays<T>& arrays, const RowBatch<T>& batch,
                                 View<const T, 2> dl_dy, std::size_t i) requires std::same_as<T, double> {
    return logic::dual_derivative(model, {}, arrays, batch, dl_dy, i);
  }

  // The hard circuit, simplified, and what it was trained for.
  AutomatonSubject subject(const Model& model, const ModelArrays<T>& arrays) const;

 private:
  using Base = Family<T, Model, Data, AutomatonOptions>;
  using Base::options_, Base::train_, Base::test_;
  struct WithoutData {};
  AutomatonFamily(AutomatonOptions options, GridTask task, WithoutData)
      : Family<T, Model, Data, AutomatonOptions>(std::move(options)), task_(std::move(task)) {}
  bool looks_at(std::uint64_t epoch) const;

  GridTask task_;
  std::optional<Data> judged_;  // by the hard circuit, neither trained nor tested on; none without data
};

}  // namespace gradloom
