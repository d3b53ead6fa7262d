// FamilySession: the Session of one family in one precision. Only the files of families include it.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include "gradloom/data/fingerprint.h"
#include "gradloom/exec/profile.h"
#include "gradloom/session/checkpoint_position.h"
#include "gradloom/session/make_trainer.h"
#include "gradloom/session/typed_session.h"
#include "gradloom/train/checkpoint.h"
#include "gradloom/train/device_predict.h"
#include "gradloom/train/predict.h"

namespace gradloom {

template <class F>
class FamilySession final : public TypedSession<F> {
 public:
  using T = typename F::Scalar;
  using M = typename F::Model;
  using D = typename F::Data;

  FamilySession(F family, SessionOptions settings) : TypedSession<F>(std::move(settings)), family_(std::move(family)) {
    choose_device();
    make_exec();
  }

  const F& family() const override { return family_; }
  const Exec& exec() const override { return *exec_; }
  ModelArrays<T> result_arrays() const override { return {result_parameters(), state_.buffers}; }

  const FamilyOptions& options() const override { return family_.options(); }
  std::size_t stages() const override { return family_.stages(); }
  std::uint64_t epochs(std::size_t stage) const override { return family_.train_options(stage).epochs; }
  std::string stage_note(std::size_t stage) const override { return family_.stage_note(stage); }
  std::size_t samples() const override { return family_.has_data() ? family_.train().size() : 0; }
  std::string learned_from() const override { return family_.learned_from(); }
  std::size_t parameter_count() const override { return this->model().parameters().logical_size(); }
  std::string device() const override { return device_ ? device_->info().name : "cpu"; }
  Arithmetic arithmetic() const override { return exec_->arithmetic(); }
  std::string why_not_shared() const override {
    if (device_) return "ranks cannot share a device";
    constexpr bool kDrawn = DrawnDataset<D, typename M::Batch>;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      if (const M model = family_.model(stage); !ranks_can_share(model)) return family_.why_not_shared(model);
      if (kDrawn && family_.train_options(stage).optimizer.kind == OptimizerKind::lbfgs)
        return "L-BFGS uses all drawn samples at once";
    }
    return {};
  }
  bool logs_accuracy() const override { return family_.logs_accuracy(); }
  const TrainPosition& position() const override { return state_.position; }
  std::uint64_t data_fingerprint() override {
    if (!data_) data_ = fingerprint(family_.train());
    return *data_;
  }
  Session::Fingerprints data_fingerprints() override {
    return {data_fingerprint(), family_.validation() ? fingerprint(*family_.validation()) : 0,
            family_.test() ? fingerprint(*family_.test()) : 0};
  }

  void preflight() override;
  TrainEnd start() override;
  void start_from(const Session& trained) override;
  TrainEnd train_stage(SessionListener& listener) override;
  void enter_stage() override {
    const std::size_t stage = ++state_.position.stage;
    family_.enter_stage(*exec_, stage, state_);
    begin_stage();
    if (family_.refines(stage)) keep_entered();
  }

  Result<void> save(const FilePlace& checkpoint, std::uint64_t log_lines) override;
  Result<Session::Restored> restore(const TensorFile& file, const std::filesystem::path& name) override;

  void restart_optimizer() override {
    gradloom::restart_optimizer(family_.train_options(state_.position.stage), samples(), state_);
  }

  ModelDescription describe() const override { return family_.describe(); }
  Result<void> restore_model(const ModelHead& head, const TensorFile& file, const std::filesystem::path& name) override;

  Metrics metrics() override {
    const M model = this->model();
    Comm* comm = this->settings_.comm;
    Metrics m{measure_part(model, family_.train(), comm), std::nullopt, std::nullopt};
    if (family_.validation()) m.validation = measure_part(model, *family_.validation(), comm);
    if (family_.test()) m.test = measure_part(model, *family_.test(), comm);
    return m;
  }
  std::optional<double> largest_class() const override {
    if constexpr (requires { share_of_largest(family_.train().all()); }) return share_of_largest(family_.train().all());
    return std::nullopt;
  }
  nlohmann::json study() override { return family_.study(*exec_, this->model(), result_arrays()); }
  nlohmann::json conclude(const Metrics& metrics) override {
    return family_.conclude(*exec_, this->model(), result_arrays(), metrics);
  }
  std::optional<circuit::AnyCircuit> hard_circuit() override {
    return family_.hard_circuit(this->model(), result_arrays());
  }
  std::vector<std::string> warnings() override {
    std::vector<std::string> all = family_.warnings(*exec_, this->model(), result_arrays());
    for (const auto& [name, part] : held_out())
      for (std::string& warning : family_.data_warnings(*part, std::string(name) + " rows"))
        all.push_back(std::move(warning));
    // Only a session knows where it runs.
    if (!device_ && options().train.compression.kind != kernels::compress::Compression::none)
      all.push_back("optimizer.compress has no effect on the CPU, where no gradient is transferred");
    if (!device_ && options().train.place != OptimizerPlace::automatic)
      all.push_back("optimizer.device has no effect on the CPU");
    return all;
  }
  std::vector<std::string> warnings(const RowDataset<double>& rows, std::string_view name) override {
    return family_.data_warnings(new_rows(rows), name);
  }
  std::map<std::string, std::size_t> rows_outside() const override { return family_.rows_outside(); }
  std::optional<std::size_t> rows_outside(const RowDataset<double>& rows) const override {
    return family_.new_rows_outside(rows);
  }

  PredictedRows predict() override {
    PredictedRows rows = predict_part(family_.test() ? *family_.test() : family_.train());
    rows.samples = family_.sample_names();
    return rows;
  }
  PredictedRows predict(const RowDataset<double>& rows) override { return predict_part(new_rows(rows)); }
  PartMetrics measure(const RowDataset<double>& rows) override {
    return measure_part(this->model(), new_rows(rows), this->settings_.comm);
  }
  PredictedRows predict_on(const D& data) const override { return predict_part(data); }
  PartMetrics measure_on(const D& data) const override {
    return measure_part(family_.model_for(state_.position.stage, data), data, this->settings_.comm);
  }

  std::map<std::string, double> phases() const override {
    std::map<std::string, double> all;
    if (!this->settings_.profile) return all;
    for (const Profile::Entry& entry : profile_->entries()) all[entry.name] = entry.milliseconds;
    for (const auto& [kernel, milliseconds] : kernel_times_) all["gpu " + kernel] = milliseconds;
    return all;
  }

 private:
  Result<void> give_model(const nlohmann::json& options_of_stage, TensorWriter write) override {
    const M model = this->model();
    const TrainPosition& at = state_.position;
    ModelHead head{options().family, options().precision, options_of_stage, family_.describe()};
    head.epochs = at.run_epoch;
    head.arithmetic = arithmetic();
    head.finished = at.stage + 1 == stages() && at.stage_closed;
    if (const auto circuit = family_.hard_circuit(model, result_arrays()))
      head.circuit = nlohmann::json::parse(circuit::to_json(*circuit));
    return gradloom::give_model<T>(head, model.parameters(), model.buffers(), result_arrays(), write);
  }
  void choose_device();
  void make_exec();
  void check_part(const M& model, const D& part, const char* name) const;
  void begin_stage();
  void keep_entered();
  void finish_stage();
  void start_over(EpochLoop& trainer, SessionListener& listener, std::size_t stage, const TrainPosition& at);
  std::vector<std::pair<const char*, const D*>> held_out() const {
    std::vector<std::pair<const char*, const D*>> parts;
    if (family_.validation()) parts.emplace_back("validation", family_.validation());
    if (family_.test()) parts.emplace_back("test", family_.test());
    return parts;
  }
  bool keeps_best() const {
    return state_.best && state_.best->parameters.size() == state_.parameters.size() && options().train.keep_best();
  }
  std::span<const T> result_parameters() const {
    return keeps_best() ? state_.best->parameters.span() : state_.parameters.span();
  }
  // By all ranks of `comm` together; null: by this process.
  std::unique_ptr<AnyPredictor<T>> make_predictor(const M& model, const D& data, Comm* comm) const;
  PartMetrics measure_part(const M& model, const D& data, Comm* comm) const;
  PredictedRows predict_part(const D& data) const;
  D new_rows(const RowDataset<double>& rows) const {
    if (auto own = family_.new_rows(rows)) return std::move(*own);
    throw Exception(ErrorCode::unsupported,
                    fmt::format("models of family \"{}\" cannot be applied to rows", options().family));
  }

  template <class Batch>
  requires requires(const Batch& b) { b.label.size(), b.weight.size(); }
  static std::optional<double> share_of_largest(const Batch& b) {
    std::map<std::uint32_t, double> counts;
    double total = 0.0, most = 0.0;
    for (std::size_t i = 0; i < b.label.size(); ++i) {
      const double w = b.weight.empty() ? 1.0 : static_cast<double>(b.weight[i]);
      total += w, most = std::max(most, counts[b.label[i]] += w);
    }
    return total > 0.0 ? std::optional(most / total) : std::nullopt;
  }

  F family_;
  std::optional<Exec> exec_;  // these two: always there
  std::optional<Profile> profile_;
  vulkan::Device* device_ = nullptr;            // null: the CPU
  EpochLoop* trainer_ = nullptr;                // while a stage is trained
  std::map<std::string, double> kernel_times_;  // on a device, in milliseconds
  TrainState<T> state_;
  std::optional<std::uint64_t> data_;  // fingerprint of the training data, once it is needed
};

template <template <class> class F>
std::unique_ptr<Session> make_session(const typename F<float>::Options& options,
                                      const typename F<float>::Source& source, SessionOptions settings) {
  if (options.precision == Precision::float64)
    return std::make_unique<FamilySession<F<double>>>(F<double>(options, source), std::move(settings));
  return std::make_unique<FamilySession<F<float>>>(F<float>(options, source), std::move(settings));
}

// The session of a model file, whose options were read already.
template <template <class> class F>
Result<std::unique_ptr<Session>> load_session(const typename F<float>::Options& options, const ModelHead& head,
                                              const TensorFile& file, const std::filesystem::path& name,
                                              SessionOptions settings) try {
  if (options.precision != head.precision || options.family != head.family)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: family and precision contradict its options", name.string())};
  std::unique_ptr<Session> session;
  if (options.precision == Precision::float64)
    session = std::make_unique<FamilySession<F<double>>>(F<double>::from_model(options, head.description),
                                                         std::move(settings));
  else
    session =
        std::make_unique<FamilySession<F<float>>>(F<float>::from_model(options, head.description), std::move(settings));
  if (auto r = session->restore_model(head, file, name); !r) return r.error();
  return session;
} catch (const Exception& e) {
  return Error{e.code(), fmt::format("{}: {}", name.string(), e.what())};
}

template <template <class> class F>
std::unique_ptr<Session> derive_session(const typename F<float>::Options& options, const Session& trained,
                                        SessionOptions settings) {
  const auto open = [&]<class T>(T) -> std::unique_ptr<Session> {
    auto session =
        std::make_unique<FamilySession<F<T>>>(F<T>::from_model(options, trained.describe()), std::move(settings));
    session->start_from(trained);
    return session;
  };
  return options.precision == Precision::float64 ? open(double()) : open(float());
}

template <class F>
void FamilySession<F>::choose_device() {
  if (!this->settings_.device) return;
  const vulkan::DeviceInfo& info = this->settings_.device->info();
  std::string lacks;
  ErrorCode code = ErrorCode::unsupported;
  if (!kRunsOnDevices<F>) {
    lacks = fmt::format("models of family \"{}\" run on the CPU only", options().family);
  } else if (sizeof(T) == 8 && !info.float64) {
    code = ErrorCode::unsuitable_device;
    lacks = fmt::format("the device {} has no 64-bit floating-point numbers; use precision = \"float32\"", info.name);
  }
  if (lacks.empty()) {
    device_ = this->settings_.device.get();
    this->log(LogLevel::info, "running on " + info.name);
    return;
  }
  if (this->settings_.device_policy == DevicePolicy::required) throw Exception(code, lacks);
  this->log(LogLevel::info, "running on the CPU: " + lacks);
}

// What the host adds to a run on a device has the device's bits.
template <class F>
void FamilySession<F>::make_exec() {
  ExecOptions options = this->settings_.exec;
  if (this->settings_.arithmetic) options.variant.arithmetic = *this->settings_.arithmetic;
  if (device_) options.variant.arithmetic = device_->info().arithmetic;
  exec_.emplace(options);
  profile_.emplace(exec_->threads());
  if (this->settings_.profile) exec_->set_profile(&*profile_);
}

template <class F>
void FamilySession<F>::begin_stage() {
  const std::uint64_t stage = state_.position.stage, run_epoch = state_.position.run_epoch;
  state_.position = {};
  state_.position.stage = stage;
  state_.position.run_epoch = run_epoch;
  state_.optimizer.clear();
  state_.lbfgs = {};
  state_.gradient = {};
  state_.residual = {};
  state_.best.reset();
  if (options().train.keep_best() && (family_.validation() || options().train.patience > 0)) state_.best.emplace();
}

// The function that a stage begins with is the best that it has seen.
template <class F>
void FamilySession<F>::keep_entered() {
  if (!state_.best || !family_.validation() || !options().train.keep_best()) return;
  const double loss = measure_part(this->model(), *family_.validation(), this->settings_.comm).loss;
  keep_best_parameters<T>(state_, loss);
  state_.best->run_epoch -= std::min<std::uint64_t>(1, state_.best->run_epoch);  // of the stage before
}

template <class F>
void FamilySession<F>::check_part(const M& model, const D& part, const char* name) const try {
  family_.check_part(model, part);
} catch (const Exception& e) {
  throw Exception(e.code(),
                  fmt::format("loss.kind = \"{}\" does not fit the {} data: {}", loss_name(options()), name, e.what()));
}

template <class F>
Result<void> FamilySession<F>::save(const FilePlace& checkpoint, std::uint64_t log_lines) {
  if (trainer_) trainer_->sync();
  const M model = this->model();
  const bool accumulating = is_accumulating(family_.train_options(state_.position.stage), samples(), state_.position);
  return save_checkpoint<T>(checkpoint, model.parameters(), model.buffers(), state_,
                            accumulating ? GradientIn::checkpoint : GradientIn::nowhere,
                            {.log_lines = log_lines, .data = data_fingerprint(), .arithmetic = arithmetic()});
}

template <class F>
Result<Session::Restored> FamilySession<F>::restore(const TensorFile& file, const std::filesystem::path& name) {
  auto head = checkpoint_head(file, name);
  if (!head) return head.error();
  std::vector<std::uint64_t> epochs_by_stage;
  for (std::size_t s = 0; s < stages(); ++s) epochs_by_stage.push_back(epochs(s));
  if (auto r = check_position(epochs_by_stage, samples(), head->position, name.string()); !r) return r.error();
  const M model = family_.model(head->position.stage);
  auto state = load_checkpoint<T>(file, name, model.parameters(), model.buffers());
  if (!state) return state.error();
  state_ = std::move(*state);
  if (!device_ && state_.residual.size() > 0)
    this->log(LogLevel::warning,
              "no gradient is transferred on the CPU: the error feedback of optimizer.compress is dropped");
  if (auto r = family_.restore(model, state_); !r) return r.error();
  const bool old_contract = !head->notes.arithmetic;  // whose fingerprints were others
  return Session::Restored{head->notes.log_lines,
                           !old_contract && head->notes.data && *head->notes.data != data_fingerprint(), old_contract};
}

template <class F>
Result<void> FamilySession<F>::restore_model(const ModelHead& head, const TensorFile& file,
                                             const std::filesystem::path& name) {
  const M model = family_.model(stages() - 1);
  auto arrays = read_model_arrays<T>(file, name, model.parameters(), model.buffers());
  if (!arrays) return arrays.error();
  state_ = {};
  state_.parameters = std::move(arrays->parameters);
  state_.buffers = std::move(arrays->buffers);
  state_.position.stage = stages() - 1;
  state_.position.stage_done = state_.position.stage_closed = true;
  state_.position.run_epoch = head.epochs;
  if (auto r = family_.restore(model, state_); !r)
    return Error{r.error().code, fmt::format("{}: {}", name.string(), r.error().message)};
  if (head.circuit.is_null()) return {};
  const auto circuit = family_.hard_circuit(model, result_arrays());
  if (!circuit || nlohmann::json::parse(circuit::to_json(*circuit)) != head.circuit)
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{}: the metadata entry 'circuit' is not the hard circuit of the parameters", name.string())};
  return {};
}

template <class F>
std::unique_ptr<AnyPredictor<typename F::Scalar>> FamilySession<F>::make_predictor(const M& model, const D& data,
                                                                                   Comm* comm) const {
  if constexpr (kRunsOnDevices<F>)
    if (device_) return std::make_unique<DevicePredictor<typename F::DeviceModel, D>>(*device_, model, data);
  return std::make_unique<Predictor<M, D>>(*exec_, model, data, comm);
}

template <class F>
PartMetrics FamilySession<F>::measure_part(const M& model, const D& data, Comm* comm) const {
  const auto predictor = make_predictor(model, data, comm);
  const auto& y = predictor->run(result_arrays());
  std::vector<double> partials(loss_partials(data.size()));
  const LossOptions loss = family_.train_options(state_.position.stage).loss;
  return {evaluate_loss<T>(*exec_, loss, data.all(), y.view(), {}, partials),
          family_.metrics(*exec_, model, result_arrays(), data, y.view()), family_.counted(data)};
}

template <class F>
PredictedRows FamilySession<F>::predict_part(const D& data) const {
  const M model = family_.model_for(state_.position.stage, data);
  const auto predictor = make_predictor(model, data, this->settings_.comm);
  const auto& y = predictor->run(result_arrays());
  PredictedRows rows;
  std::vector<double> centre = family_.output_centres();
  rows.precision = sizeof(T) == 4 && centre.empty() ? Precision::float32 : Precision::float64;
  centre.resize(y.width, 0.0);
  if constexpr (std::is_same_v<D, RowDataset<T>>)
    rows.names = data.is_classification() ? family_.train().class_names() : family_.train().target_names();
  if (rows.names.empty()) rows.names = family_.output_names();
  rows.width = y.width;
  for (std::size_t s = 0; s < y.rows; ++s)
    for (std::size_t j = 0; j < y.width; ++j)
      rows.values.push_back(static_cast<double>(y.view()(family_.row_of(data, s), j)) + centre[j]);
  return rows;
}

}  // namespace gradloom

#include "gradloom/session/family_training.h"  // how it trains
