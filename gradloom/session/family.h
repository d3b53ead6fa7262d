// Family: the contract between a kind of network and the session that trains it. A family holds its options and its
// data; it makes the model of each stage, and hooks say what happens between epochs and stages.
//
//   template <class T>
//   class RadialFamily final : public Family<T, RadialNetwork<T>, RowDataset<T>, RadialOptions> {
//    public:
//     RadialFamily(RadialOptions options, const RowSplits& source);
//     RadialNetwork<T> model(std::size_t stage) const override;
//     ...
//   };
//
// Hooks are virtual, and families say `override`: a hook with a wrong name or signature does not compile.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/base/result.h"
#include "gradloom/data/rows.h"
#include "gradloom/session/check.h"
#include "gradloom/session/model_file.h"

namespace gradloom {

// A model, its state and some data, small enough to be evaluated thousands of times. The batch belongs to the family or
// to `owner`.
template <class M>
struct CheckSubject {
  M model;
  TrainState<typename M::Scalar> state;
  typename M::Batch batch;
  std::shared_ptr<const void> owner;
  double noise = 1.0;        // standard deviation of what is added to the parameters, so that no gradient is zero by
                             // chance
  double input_noise = 0.0;  // the same for the inputs; nodes of a graph are often equal, and a maximum of equals has
                             // no derivative
};

// Throws invalid_input when rows do not fit a loss over `outputs`: other targets, labels or weights than it needs.
template <class T>
void check_row_loss(const LossOptions& loss, const RowBatch<T>& rows, std::size_t outputs);

// Throws invalid_input, naming the first tensor that differs, when a trained network has other tensors than the one
// that is to begin with them.
void check_same_slices(const Slices& trained, const Slices& asked);

// T is the scalar, M the model, D the data set, O the options (they derive from FamilyOptions and have `stages`). A
// family also has a constructor from (O, Source), where Source is its data in memory, and, for double,
//   static double exact_derivative(model, arrays, batch, dl_dy, i)   by dual numbers, of parameter i.
template <class T, class M, class D, class O>
class Family {
 public:
  using Scalar = T;
  using Model = M;
  using Data = D;
  using Options = O;
  using DeviceModel = void;  // the model's version for devices; families that have one say so

  virtual ~Family() = default;

  const O& options() const { return options_; }
  std::size_t stages() const { return stage_count(options_); }
  TrainOptions train_options(std::size_t stage) const { return gradloom::train_options(stage_of(options_, stage)); }

  bool has_data() const { return train_.has_value(); }  // not when it comes from a model file
  const D& train() const { return *train_; }
  const D* validation() const { return validation_ ? &*validation_ : nullptr; }
  const D* test() const { return test_ ? &*test_ : nullptr; }
  // New rows, in the features of the source that the family was made of, as the model reads them; none for families
  // that learn from other things.
  virtual std::optional<D> new_rows(const RowDataset<double>&) const { return std::nullopt; }
  // The row of the data's targets that belongs to sample n, as its source counts them.
  virtual std::size_t row_of(const D&, std::size_t n) const { return n; }
  // Throws invalid_input when a part of the data does not fit the loss; here, for losses over rows.
  virtual void check_part(const M& model, const D& part) const {
    check_row_loss<T>(train_options(0).loss, part.all(), model.output_width());
  }

  virtual M model(std::size_t stage) const = 0;
  // Why ranks cannot share a step of this model, which has no parts that one rank could compute without the others.
  virtual std::string why_not_shared(const M&) const { return "the samples of a batch are computed together"; }
  // What the stage is about: "grid 10".
  virtual std::string stage_note(std::size_t stage) const {
    return stages() > 1 ? fmt::format("stage {}", stage + 1) : "";
  }

  // Fresh parameters and buffers; `restart` counts from 0, which has the seed of the run.
  virtual TrainState<T> start(const Exec&, std::size_t restart) const {
    const std::uint64_t seed = options_.train.seed;
    const RandomStream others(seed, RandomUse::restart);
    return initial_state(model(0), restart == 0 ? seed : others.bits(static_cast<std::uint32_t>(restart)));
  }
  // Maps the state of a trained network to that of the first stage. Throws invalid_input when it is another network.
  virtual void take_over(const M& trained, TrainState<T>&) const {
    check_same_slices(trained.parameters(), model(0).parameters());
    check_same_slices(trained.buffers(), model(0).buffers());
  }
  // Maps the state at the end of the stage before to the beginning of `stage`.
  virtual void enter_stage(const Exec&, std::size_t /*stage*/, TrainState<T>&) const {}
  // Whether a stage begins with the function of the stage before and only adds detail: until its losses on validation
  // data are lower, what the stage before has learned is kept.
  virtual bool refines(std::size_t /*stage*/) const { return false; }
  // What must happen before this epoch of a stage; true when parameters or buffers changed.
  virtual bool before_epoch(const Exec&, std::size_t /*stage*/, std::uint64_t /*epoch*/, TrainState<T>&) const {
    return false;
  }
  // After each epoch of a stage: may improve the parameters by other means than a gradient.
  virtual void repair(const Exec&, const M&, std::size_t /*stage*/, std::uint64_t /*epoch*/, TrainState<T>&) const {}
  // Whether training may end here; asked after each epoch of a stage.
  virtual bool goal_reached(const Exec&, const M&, const ModelArrays<T>&, std::uint64_t /*epoch*/) const {
    return false;
  }
  // Whether the stage begins again: changes parameters and buffers and returns the number of the start that begins (2,
  // 3, ...), or 0.
  virtual std::size_t start_over(const Exec&, std::size_t /*stage*/, std::uint64_t /*epoch*/, TrainState<T>&) const {
    return 0;
  }
  // After loading a checkpoint: what a model derives from its buffers.
  virtual Result<void> restore(const M&, TrainState<T>&) const { return {}; }

  // What a model file tells of the model beside options and tensors. Throws unsupported for families that have none;
  // those that do also have
  //   static F from_model(const Options&, const ModelDescription&)   itself without data; throws what it refuses.
  virtual ModelDescription describe() const {
    throw Exception(ErrorCode::unsupported,
                    fmt::format("models of family \"{}\" cannot be saved to a model file", options_.family));
  }
  // The model of a stage for data that the family was not made of.
  virtual M model_for(std::size_t stage, const D&) const { return model(stage); }

  // For the log, after each epoch.
  // The member `shown` is for those who watch, and not logged.
  virtual nlohmann::json epoch_metrics(const Exec&, const M&, const ModelArrays<T>&, std::uint64_t /*epoch*/) const {
    return nlohmann::json::object();
  }
  // Whether epoch_metrics() holds accuracies that a report draws as a curve.
  virtual bool logs_accuracy() const { return false; }
  // Figures of one part of the data, whose predictions are y.
  virtual std::map<std::string, double> metrics(const Exec& ex, const M& model, const ModelArrays<T>& arrays,
                                                const D& data, View<const T, 2> y) const = 0;
  // Samples of a part that its metrics are about.
  virtual std::size_t counted(const D& data) const { return data.size(); }
  // What only this family can tell of its model (a hard circuit on larger grids, under damage); null when nothing.
  virtual nlohmann::json study(const Exec&, const M&, const ModelArrays<T>&) const { return nullptr; }
  // Its own keys in the summary of a finished run, whose metrics are given; here, what study() found.
  virtual nlohmann::json conclude(const Exec& ex, const M& model, const ModelArrays<T>& arrays, const Metrics&) const {
    nlohmann::json found = study(ex, model, arrays);
    return found.is_null() ? nlohmann::json::object() : found;
  }
  // The circuit that the parameters stand for, as it was learned; none for networks that are no circuits.
  virtual std::optional<circuit::AnyCircuit> hard_circuit(const M&, const ModelArrays<T>&) const {
    return std::nullopt;
  }
  virtual std::vector<std::string> warnings(const Exec&, const M&, const ModelArrays<T>&) const { return {}; }
  // What outputs are called, and the samples that Session::predict() is about: those of the test data, or of the
  // training data where there is none. Empty: they have no names. Families of rows say neither: tables do.
  virtual std::vector<std::string> output_names() const { return {}; }
  virtual std::vector<SampleNames> sample_names() const { return {}; }
  // What is added to outputs, in double, to get the numbers of the data; empty: nothing.
  virtual std::vector<double> output_centres() const { return {}; }
  // Samples of "validation" and "test" with a feature outside of its range in the training data; empty where that is
  // not known or means nothing. The same of rows in the features of the source.
  virtual std::map<std::string, std::size_t> rows_outside() const { return {}; }
  virtual std::optional<std::size_t> new_rows_outside(const RowDataset<double>&) const { return std::nullopt; }
  // What is to be said of samples that are predicted; `name` is what they are called: "test rows".
  virtual std::vector<std::string> data_warnings(const D&, std::string_view /*name*/) const { return {}; }
  // "1000 training samples".
  virtual std::string learned_from() const { return fmt::format("{} training samples", train().size()); }
  // What a check of the gradients looks at.
  virtual CheckSubject<M> check_subject(const Exec& ex, std::size_t samples) const = 0;

 protected:
  explicit Family(O options) : options_(std::move(options)) {}
  Family(const Family&) = default;
  Family(Family&&) = default;

  O options_;
  std::optional<D> train_, validation_, test_;  // the constructor from a source sets train_ at least
};

// The session of a family in the precision of its options. Defined in family_session.h; each family of the library has
// its own compiled.
template <template <class> class F>
std::unique_ptr<Session> make_session(const typename F<float>::Options& options,
                                      const typename F<float>::Source& source, SessionOptions settings);

// A session without data from a model file.
template <template <class> class F>
Result<std::unique_ptr<Session>> load_session(const typename F<float>::Options& options, const ModelHead& head,
                                              const TensorFile& file, const std::filesystem::path& name,
                                              SessionOptions settings);

// A session without data, of a trained model under other options: what start_from() makes of it. Throws as that does.
template <template <class> class F>
std::unique_ptr<Session> derive_session(const typename F<float>::Options& options, const Session& trained,
                                        SessionOptions settings);

// Likewise, in check_family.h. Gradients are checked in double precision, bits are compared in that of the options.
// Throws invalid_input when there is nothing to check.
template <template <class> class F>
CheckReport check_family(const typename F<float>::Options& options, const typename F<float>::Source& source,
                         const SessionOptions& settings, const CheckOptions& what);

}  // namespace gradloom
