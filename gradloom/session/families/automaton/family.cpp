#include "gradloom/session/families/automaton/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "gradloom/circuit/run.h"
#include "gradloom/circuit/simplify.h"
#include "gradloom/circuit/validate.h"
#include "gradloom/models/logic/harden.h"
#include "gradloom/models/logic/search.h"
#include "gradloom/session/check_family.h"
#include "gradloom/session/families/automaton/trials.h"
#include "gradloom/session/family_session.h"

namespace gradloom {

using nlohmann::json;

namespace {

constexpr std::size_t kCheckHeight = 5, kCheckWidth = 4, kCheckSteps = 3, kCheckSamples = 2;

logic::AutomatonOptions automaton_options(logic::AutomatonOptions o, const GridTask& task) {
  o.height = task.height;
  o.width = task.width;
  o.target_channels = target_channels(task);
  o.masked = logic::MaskedCells::dead;
  o.evaluation = logic::EvaluationFiring::random;
  return o;
}

// A start that is always the same needs one sample.
std::size_t judged_samples(const AutomatonOptions& o, const GridTask& task) {
  return task.start == GridStart::random ? o.data.test_samples : 1;
}

json circuit_figures(const circuit::CellRule& learned, const circuit::CellRule& simple, std::size_t gates,
                     std::size_t active) {
  return {{"gates", gates},
          {"active_gates", active},
          {"gate_evaluations", learned.circuit.gates.size()},
          {"simplified_gates", simple.circuit.gates.size()},
          {"depth", circuit::size_of(simple.circuit).depth}};
}

}  // namespace

template <class T>
AutomatonFamily<T>::AutomatonFamily(AutomatonOptions options, Source source)
    : Family<T, Model, Data, AutomatonOptions>(std::move(options)), task_(source) {
  const std::uint64_t seed = options_.train.seed;
  judged_.emplace(source, GridPart::validation, seed, judged_samples(options_, source));
  train_.emplace(source, GridPart::train, seed, options_.data.samples);
  test_.emplace(source, GridPart::test, seed, judged_samples(options_, source));
  const std::uint64_t start_over = options_.goal.start_over, look = options_.goal.every;
  if (start_over > 0 && (look == 0 || start_over % look != 0))
    throw Exception(
        ErrorCode::invalid_input,
        fmt::format("train.start_over is {}, train.goal_every {}; the first must be a multiple of the second, "
                    "so that every start is tested before it is given up",
                    start_over, look));
}

template <class T>
ModelDescription AutomatonFamily<T>::describe() const {
  ModelDescription d;
  for (std::size_t c = 0; c < task_.channels; ++c) d.features.push_back(fmt::format("c{}", c + 1));
  for (std::size_t c = 0; c < target_channels(task_); ++c) d.targets.push_back(fmt::format("c{}", c + 1));
  d.normalisation = json::object();
  json image = json::array();  // a text for each row of each channel
  for (std::size_t at = 0; at < task_.image.size(); at += task_.width) {
    std::string row;
    for (std::size_t x = 0; x < task_.width; ++x) row += task_.image[at + x] ? '1' : '0';
    image.push_back(row);
  }
  d.input = {{"height", task_.height}, {"width", task_.width}, {"image", image}};
  if (task_.kind == GridTaskKind::life) d.input["rule"] = task_.rule.to_string();
  return d;
}

template <class T>
AutomatonFamily<T> AutomatonFamily<T>::from_model(const AutomatonOptions& options, const ModelDescription& d) {
  constexpr std::size_t kMostCells = 1u << 16;  // of a side, as recipes have them
  EntryReader reader(d.input, "input");
  GridTask task = options.data.task;
  task.channels = options.model.channels;
  task.height = reader.count("height", kMostCells);
  task.width = reader.count("width", kMostCells);
  const std::vector<std::string> image = reader.names("image");
  if (reader.has("rule")) {
    const std::string rule = reader.text("rule");
    if (rule.size() != task.rule.size() || rule.find_first_not_of("01") != std::string::npos)
      reader.fail("the rule does not have 512 bits");
    task.rule = PatchTable(rule);
  }
  reader.done();
  EntryReader(d.normalisation, "normalisation").done();
  if (task.height == 0 || task.width == 0) reader.fail("the grid has no cells");
  if (image.size() % task.height != 0 || image.empty() == (task.kind == GridTaskKind::picture))
    reader.fail(fmt::format("an image of {} rows does not fit the task", image.size()));
  for (const std::string& row : image) {
    if (row.size() != task.width || row.find_first_not_of("01") != std::string::npos)
      reader.fail(fmt::format("a row of the image does not have {} bits", task.width));
    for (const char bit : row) task.image.push_back(bit == '1');
  }
  if (task.kind == GridTaskKind::picture && task.image.size() != target_channels(task) * task.height * task.width)
    reader.fail("the image and the grid differ in size");
  if (d.features.size() != task.channels || d.targets.size() != target_channels(task) || !d.classes.empty())
    reader.fail("the numbers of features and targets do not fit the channels");
  return AutomatonFamily(options, std::move(task), WithoutData());
}

template <class T>
logic::Automaton<T> AutomatonFamily<T>::model(std::size_t stage) const {
  logic::AutomatonOptions o = automaton_options(stage_of(options_, stage).model, task_);
  if (stage == 0) o.noise_again = static_cast<std::uint32_t>(options_.goal.start_over);
  return Model(o);
}

template <class T>
bool AutomatonFamily<T>::looks_at(std::uint64_t epoch) const {
  const std::uint64_t every = options_.goal.every;
  return every != 0 && epoch % every == 0;
}

template <class T>
json AutomatonFamily<T>::epoch_metrics(const Exec&, const Model& model, const ModelArrays<T>& arrays,
                                       std::uint64_t epoch) const {
  if (!looks_at(epoch)) return json::object();
  const AutomatonSubject s = subject(model, arrays);
  logic::TrialCompiler compiler;
  const logic::TrialProgram& program = compiler.compile(s.rule.circuit);
  double wrong = 0, all = 0;
  for (logic::Trial& trial : make_trials(s, GridPart::validation, epoch, judged_->size())) {
    for (const auto& look : trial.looks)
      all += static_cast<double>(std::popcount(look.starts)) * static_cast<double>(trial.target.size());
    wrong += static_cast<double>(
        logic::TrialRunner(std::move(trial)).wrong(program, std::numeric_limits<std::uint64_t>::max() - 1));
  }
  return {{"shown", {{"hard_accuracy", 1 - wrong / std::max(all, 1.0)}}}};
}

template <class T>
bool AutomatonFamily<T>::goal_reached(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                      std::uint64_t epoch) const {
  if (!looks_at(epoch)) return false;
  const AutomatonSubject s = subject(model, arrays);
  logic::TrialCompiler compiler;
  const logic::TrialProgram& program = compiler.compile(s.rule.circuit);
  for (logic::Trial& trial : make_trials(s, GridPart::validation, epoch, judged_->size()))
    if (logic::TrialRunner(std::move(trial)).wrong(program, 0) > 0) return false;
  return holds_on_larger_grids(ex, s, GridPart::validation, epoch);
}

template <class T>
std::size_t AutomatonFamily<T>::start_over(const Exec& ex, std::size_t stage, std::uint64_t epoch,
                                           TrainState<T>& state) const {
  const std::uint64_t every = options_.goal.start_over;
  if (stage > 0 || every == 0 || epoch % every != 0 || epoch >= stage_of(options_, 0).train.epochs) return 0;
  TrainState<T> fresh = this->start(ex, options_.train.restarts - 1 + epoch / every);
  state.parameters = std::move(fresh.parameters);
  state.buffers = std::move(fresh.buffers);
  return epoch / every + 1;
}

template <class T>
void AutomatonFamily<T>::repair(const Exec& ex, const Model& model, std::size_t stage, std::uint64_t epoch,
                                TrainState<T>& state) const {
  const AutomatonGoalOptions& goal = options_.goal;
  const bool last = stage == 0 && goal.start_over != 0 && epoch % goal.start_over == 0;
  const std::size_t mutants = last && goal.search_last != 0 ? goal.search_last : goal.search;
  if (mutants == 0 || !looks_at(epoch)) return;
  const ModelArrays<T> arrays{state.parameters, state.buffers};
  const auto trials = make_trials(subject(model, arrays), GridPart::train, epoch, judged_->size());
  Buffer<T> found(state.parameters.size());
  std::copy_n(state.parameters.data(), found.size(), found.data());
  const std::uint64_t seed = options_.train.seed + (epoch << 32);
  logic::SearchOptions options{.mutants = mutants, .seed = seed};
  // Most of a picture is background: a tenth of it wrong is far from right.
  if (task_.kind == GridTaskKind::picture) options.hopeless = 0.1;
  const logic::SearchReport report =
      logic::search_gates<T>(ex, model, trials, options, state.buffers.span(), found.span());
  if (report.after == 0 && goal_reached(ex, model, {found, state.buffers}, epoch))
    std::copy_n(found.data(), found.size(), state.parameters.data());
}

template <class T>
AutomatonSubject AutomatonFamily<T>::subject(const Model& model, const ModelArrays<T>& arrays) const {
  AutomatonSubject s;
  s.rule = logic::harden(model, arrays);
  s.rule.circuit = circuit::simplify(s.rule.circuit);
  s.task = task_;
  const std::size_t judged = options_.data.test_steps;
  s.steps = judged == 0 ? model.options().steps : judged;
  s.fire = model.options().fire_probability;
  s.seed = options_.train.seed;
  return s;
}

template <class T>
std::map<std::string, double> AutomatonFamily<T>::metrics(const Exec& ex, const Model& model,
                                                          const ModelArrays<T>& arrays, const Data& data,
                                                          View<const T, 2> y) const {
  const AutomatonSubject s = subject(model, arrays);
  const RowBatch<T> all = data.all();
  std::vector<std::uint8_t> target(data.outputs());
  double soft = 0, hard = 0, wrong = 0;
  for (std::size_t i = 0; i < all.size; ++i) {
    std::size_t right = 0;
    for (std::size_t j = 0; j < target.size(); ++j) {
      target[j] = all.target(i, j) != T(0);
      right += (y(i, j) > T(0.5)) == (target[j] != 0);
    }
    soft += static_cast<double>(right) / static_cast<double>(target.size());
    circuit::Runner runner(ex, s.rule, start_grid(s.task, all.x.row(i)), {.fire = s.fire, .seed = s.seed + i});
    runner.step(s.steps);
    const PhaseAccuracy a = phase_accuracy(s.task, target, runner.grid());
    hard += a.best();
    wrong += (1 - a.same) * static_cast<double>(target.size());
  }
  const double n = static_cast<double>(std::max<std::size_t>(1, all.size));
  return {{"accuracy", soft / n}, {"hard_accuracy", hard / n}, {"hard_loss", std::round(wrong)}};
}

template <class T>
json AutomatonFamily<T>::study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const {
  const AutomatonSubject s = subject(model, arrays);
  json result = study_automaton(ex, s);
  result["circuit"] = circuit_figures(logic::harden(model, arrays), s.rule, model.gates(),
                                      logic::active_gates<T>(model.parameters(), arrays.parameters));
  return result;
}

template <class T>
CheckSubject<logic::Automaton<T>> AutomatonFamily<T>::check_subject(const Exec&, std::size_t samples) const {
  logic::AutomatonOptions o = automaton_options(options_.model, task_);
  o.height = std::min(kCheckHeight, o.height);
  o.width = std::min(kCheckWidth, o.width);
  o.steps = std::min(kCheckSteps, o.steps);
  o.gate_noise = 0.0;  // moves the logits before anything is computed; dual numbers know nothing of it
  const Model small(o);
  GridTask task = task_;
  task.height = small.options().height;
  task.width = small.options().width;
  task.start = GridStart::random;
  task.damage = 0;
  if (task.kind == GridTaskKind::picture) task.image.resize(o.target_channels * task.height * task.width);
  auto data =
      std::make_shared<const Data>(task, GridPart::train, options_.train.seed, std::min(samples, kCheckSamples));
  return {small, initial_state(small, options_.train.seed), data->all(), data};
}

template <class T>
std::vector<std::string> AutomatonFamily<T>::warnings(const Exec&, const Model& model,
                                                      const ModelArrays<T>& arrays) const {
  std::vector<std::string> found;
  const auto look = [&](const auto& layers, const char* name) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const auto unread = logic::unread_inputs(model.wires(layers[l], arrays.buffers), layers[l].in);
      if (!unread.empty())
        found.push_back(
            fmt::format("no gate reads {} of the {} inputs of {}.{}", unread.size(), layers[l].in, name, l));
    }
  };
  look(model.perception(), "perception");
  look(model.update(), "update");
  return found;
}

template <class T>
json AutomatonFamily<T>::conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                  const Metrics& metrics) const {
  const json found = study(ex, model, arrays);
  return {{"circuit", found["circuit"]},
          {"study", found},
          {"success", metrics.test && metrics.test->values.at("hard_accuracy") == 1.0}};
}

template <class T>
std::optional<circuit::AnyCircuit> AutomatonFamily<T>::hard_circuit(const Model& model,
                                                                    const ModelArrays<T>& arrays) const {
  return logic::harden(model, arrays);
}

// Optional hooks: one of another name or signature would be left out without a word.
static_assert(HasShards<logic::Automaton<float>> && DrawnDataset<GridDataset<float>, RowBatch<float>>);

template class AutomatonFamily<float>;
template class AutomatonFamily<double>;
template std::unique_ptr<Session> make_session<AutomatonFamily>(const AutomatonOptions&, const GridTask&,
                                                                SessionOptions);
template Result<std::unique_ptr<Session>> load_session<AutomatonFamily>(const AutomatonOptions&, const ModelHead&,
                                                                        const TensorFile&, const std::filesystem::path&,
                                                                        SessionOptions);
template CheckReport check_family<AutomatonFamily>(const AutomatonOptions&, const GridTask&, const SessionOptions&,
                                                   const CheckOptions&);

}  // namespace gradloom
