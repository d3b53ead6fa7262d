#include "gradloom/session/families/kan/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/models/kan/grid.h"
#include "gradloom/session/check_family.h"
#include "gradloom/session/families/kan/functions.h"
#include "gradloom/session/families/kan/prune.h"
#include "gradloom/session/families/kan/samples.h"
#include "gradloom/session/family_session.h"
#include "gradloom/train/metrics.h"

namespace gradloom {

namespace {

// Sets (mean, std) so that (x - mean) / std maps [low, high] to the grid, or to mean 0 and standard deviation 1.
template <class T>
void normalise_inputs(const KanModelOptions& o, const kan::Network<T>& network, const RowDataset<T>& rows,
                      std::span<T> buffers) {
  if (o.normalise == InputScale::none) return;
  T* mean = buffers.data() + network.buffers()[network.affine().input_mean].offset;
  T* std = buffers.data() + network.buffers()[network.affine().input_std].offset;
  const RowBatch<T> all = rows.all();
  if (o.normalise == InputScale::standard) {
    const ColumnStatistics statistics = column_statistics<T>(all.x);
    for (std::size_t i = 0; i < rows.features(); ++i) {
      mean[i] = static_cast<T>(statistics.mean[i]);
      std[i] = static_cast<T>(statistics.std[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < rows.features(); ++i) {
    double low = all.x(0, i), high = low;
    for (std::size_t s = 1; s < all.size; ++s) {
      low = std::min(low, static_cast<double>(all.x(s, i)));
      high = std::max(high, static_cast<double>(all.x(s, i)));
    }
    const double scale = high > low ? (high - low) / (o.hi - o.lo) : 1.0;
    std[i] = static_cast<T>(scale);
    mean[i] = static_cast<T>(high > low ? low - o.lo * scale : low);
  }
}

template <class T>
void scale_outputs(const kan::Network<T>& network, const RowDataset<T>& rows, std::span<T> buffers) {
  const ColumnStatistics statistics = column_statistics<T>(rows.all().target);
  for (std::size_t j = 0; j < rows.outputs(); ++j) {
    buffers[network.buffers()[network.affine().output_mean].offset + j] = static_cast<T>(statistics.mean[j]);
    buffers[network.buffers()[network.affine().output_std].offset + j] = static_cast<T>(statistics.std[j]);
  }
}

std::size_t output_width(const KanOptions& o, std::size_t outputs) {
  // One logit is enough for two classes under binary cross-entropy.
  return o.train.loss_kind == LossKind::binary_cross_entropy && o.task == Task::classification ? 1 : outputs;
}

// Columns are centred where the network scales them: what a grid or an output means in the units of the data stays.
template <class T>
RowCentres choose_kan_centres(const KanOptions& o, const RowDataset<double>& training) {
  const LossKind loss = train_options(o).loss.kind;
  RowCentres centres = choose_centres<T>(training);
  if (o.model.normalise == InputScale::none) centres.x.clear();
  if (!o.model.scale_targets || loss == LossKind::binary_cross_entropy) centres.target.clear();
  return centres;
}

// The ranges of features, centred as the features are.
template <class T>
ColumnRanges<T> known_ranges(const std::vector<FeatureRange>& ranges, const std::vector<double>& centre) {
  ColumnRanges<T> known;
  for (std::size_t c = 0; c < ranges.size(); ++c) {
    const double middle = centre.empty() ? 0.0 : centre[c];
    known.low.push_back(static_cast<T>(ranges[c].low - middle));
    known.high.push_back(static_cast<T>(ranges[c].high - middle));
  }
  return known;
}

// A category that no training row has is nothing that a spline is extended to.
template <class T>
ColumnRanges<T> with_categories(ColumnRanges<T> ranges, const RowSource& source, const RowCode& code) {
  std::size_t at = 0;
  for (const ColumnCode& column : code.features) {
    const bool one_hot = !column.categories.empty() && source.categories == CategoryPolicy::one_hot;
    const std::size_t end = at + (one_hot ? column.categories.size() : 1);
    for (; at < std::min(end, ranges.low.size()); ++at)
      if (one_hot) ranges.low[at] = std::min(ranges.low[at], T(0)), ranges.high[at] = std::max(ranges.high[at], T(1));
  }
  return ranges;
}

// The centres of one kind in a model file, of `count` columns.
std::vector<double> read_centres(EntryReader& centre, const char* kind, std::size_t count) {
  if (!centre.has(kind)) return {};
  std::vector<double> numbers = centre.numbers(kind);
  if (numbers.size() != count) centre.fail(fmt::format("'{}' is not a list of {} numbers", kind, count));
  return numbers;
}

template <class T>
void refit_state(const Exec& ex, const KanModelOptions& o, const kan::Network<T>& network, const RowDataset<T>& rows,
                 TrainState<T>& state) {
  auto refitted =
      kan::refit<T>(ex, network, state.parameters.span(), state.buffers.span(), rows.all().x,
                    {.uniform_share = o.refit_uniform, .margin = o.refit_margin, .first_layer = o.refit_inputs});
  state.parameters = std::move(refitted.parameters);
  state.buffers = std::move(refitted.buffers);
}

// Gives every spline so many intervals; the functions stay.
template <class T>
void refine_state(const kan::Network<T>& network, unsigned grid, TrainState<T>& state) {
  if (grid == network.options().grid) return;
  auto refined = kan::refine<T>(network, state.parameters.span(), state.buffers.span(), grid);
  state.parameters = std::move(refined.parameters);
  state.buffers = std::move(refined.buffers);
}

}  // namespace

template <class T>
KanFamily<T>::KanFamily(KanOptions options, const Source& source)
    : Family<T, Model, Data, KanOptions>(std::move(options)),
      schema_(row_schema(source)),
      centres_(source.centres ? *source.centres : choose_kan_centres<T>(options_, source.train)) {
  train_ = convert<T>(source.train, centres_);
  ranges_ = known_ranges<T>(schema_.ranges, centres_.x);
  far_ranges_ = with_categories(ranges_, options_.data.source, schema_.training.code);
  table_warnings_ = table_warnings(source, options_.data.source);
  if (sizeof(T) == sizeof(float))
    for (std::string& warning : float32_warnings(source.train, centres_)) table_warnings_.push_back(std::move(warning));
  if (options_.train.loss_kind == LossKind::binary_cross_entropy && train_->is_classification() &&
      train_->outputs() != 2)
    throw_invalid(
        fmt::format("binary cross-entropy needs two classes, the data has {}; use loss.kind = "
                    "\"cross-entropy\"",
                    train_->outputs()));
  if (source.validation) validation_ = convert<T>(*source.validation, centres_);
  if (source.test) test_ = convert<T>(*source.test, centres_);
}

template <class T>
ModelDescription KanFamily<T>::describe() const {
  ModelDescription description = describe_rows(options_, schema_);
  description.normalisation = {{"inputs", name_of(kInputScales, options_.model.normalise)}};
  if (!centres_.x.empty()) description.normalisation["centre"]["inputs"] = centres_.x;
  if (!centres_.target.empty()) description.normalisation["centre"]["targets"] = centres_.target;
  return description;
}

template <class T>
KanFamily<T> KanFamily<T>::from_model(const KanOptions& options, const ModelDescription& description) {
  RowSplits source = restore_rows(description, options);
  source.centres.emplace();
  EntryReader scale(description.normalisation, "normalisation");
  value_of<InputScale>(kInputScales, scale.text("inputs"), "normalisation.inputs").or_throw();
  if (scale.has("centre")) {
    EntryReader centre(scale.at("centre"), "normalisation.centre");
    source.centres->x = read_centres(centre, "inputs", description.features.size());
    source.centres->target = read_centres(centre, "targets", description.targets.size());
    centre.done();
  }
  scale.done();
  return KanFamily(options, source);
}

template <class T>
kan::Network<T> KanFamily<T>::model(std::size_t stage) const {
  kan::NetworkOptions o =
      network_options(stage_of(options_, stage), train_->features(), output_width(options_, train_->outputs()));
  for (std::size_t s = 1; s <= stage; ++s) o.keep_zero = o.keep_zero || stage_of(options_, s).model.prunes();
  return Model(std::move(o));
}

template <class T>
std::string KanFamily<T>::stage_note(std::size_t stage) const {
  const KanModelOptions& o = stage_of(options_, stage).model;
  return fmt::format("grid {}{}", o.grid, stage > 0 && o.prunes() ? ", pruned" : "");
}

template <class T>
TrainState<T> KanFamily<T>::start(const Exec& ex, std::size_t restart) const {
  const Model network = model(0);
  TrainState<T> state = Base::start(ex, restart);
  normalise_inputs(options_.model, network, *train_, state.buffers.span());
  if (options_.model.scale_targets && !train_->is_classification())
    scale_outputs(network, *train_, state.buffers.span());
  network.derive(state.buffers.span()).or_throw();
  before_epoch(ex, 0, 0, state);
  return state;
}

template <class T>
CheckSubject<kan::Network<T>> KanFamily<T>::check_subject(const Exec& ex, std::size_t samples) const {
  return {model(0), start(ex, 0), first_rows(train_->all(), samples), nullptr};
}

template <class T>
void KanFamily<T>::take_over(const Model& trained, TrainState<T>& state) const {
  const kan::NetworkOptions &is = trained.options(), asked = model(0).options();
  if (is.degree != asked.degree)
    throw_invalid(fmt::format("the trained network has splines of degree {}, not {}", is.degree, asked.degree));
  if (is.knots != asked.knots || is.outside != asked.outside)
    throw_invalid("the trained network has another model.knots or model.outside; neither can be changed");
  refine_state(trained, asked.grid, state);
  Base::take_over(Model([&] {
                    kan::NetworkOptions refined = is;
                    refined.grid = asked.grid;
                    return refined;
                  }()),
                  state);
}

template <class T>
void KanFamily<T>::enter_stage(const Exec& ex, std::size_t stage, TrainState<T>& state) const {
  refine_state(model(stage - 1), stage_of(options_, stage).model.grid, state);
  if (stage_of(options_, stage).model.prunes()) prune_state(ex, stage, state);
  before_epoch(ex, stage, 0, state);
}

template <class T>
bool KanFamily<T>::refines(std::size_t stage) const {
  if (stage == 0) return false;
  const KanModelOptions &is = stage_of(options_, stage).model, &before = stage_of(options_, stage - 1).model;
  return is.grid > before.grid && is.sparsity == before.sparsity && !is.prunes();
}

// On the validation rows, or the training rows where there are none.
template <class T>
double KanFamily<T>::loss_of(const Exec& ex, std::size_t stage, const ModelArrays<T>& arrays) const {
  const Data& data = validation_ ? *validation_ : *train_;
  const Model network = model(stage);
  Predictor<Model, Data> predictor(ex, network, data);
  std::vector<double> partials(loss_partials(data.size()));
  return evaluate_loss<T>(ex, this->train_options(stage).loss, data.all(), predictor.run(arrays).view(), {}, partials);
}

template <class T>
void KanFamily<T>::prune_state(const Exec& ex, std::size_t stage, TrainState<T>& state) const {
  const KanModelOptions& o = stage_of(options_, stage).model;
  const Model network = model(stage);
  const formula::NetworkSamples samples = network_samples<T>(ex, network, {state.parameters, state.buffers}, *train_);
  const formula::Scores scores = formula::score(samples);
  KeptParts kept;
  if (o.prune_inputs) {
    kept = keep_inputs(samples, scores, *o.prune_inputs);
  } else if (o.prune) {
    kept = keep_above(samples, scores, *o.prune);
  } else {
    const double allowed = (1 + *o.prune_worse) * loss_of(ex, stage, {state.parameters, state.buffers});
    kept = keep_while(samples, scores, [&](const KeptParts& parts) {
             Buffer<T> parameters(state.parameters.size());
             std::copy_n(state.parameters.data(), parameters.size(), parameters.data());
             clear_edges<T>(network, samples, parts, parameters.span());
             return loss_of(ex, stage, {parameters.span(), state.buffers}) <= allowed;
           }).second;
  }
  clear_edges<T>(network, samples, kept, state.parameters.span());
}

template <class T>
nlohmann::json KanFamily<T>::conclude(const Exec&, const Model& network, const ModelArrays<T>& arrays,
                                      const Metrics&) const {
  if (!network.options().keep_zero) return nlohmann::json::object();
  std::size_t edges = 0, before = 0;
  std::vector<bool> reached(network.input_width(), false);
  const std::vector<std::vector<bool>> live = live_edges<T>(network, arrays.parameters);
  for (std::size_t l = 0; l < live.size(); ++l)
    for (std::size_t e = 0; e < live[l].size(); ++e) {
      ++before, edges += live[l][e] ? 1 : 0;
      if (l == 0 && live[l][e]) reached[e / network.shape(0).out] = true;
    }
  nlohmann::json inputs = nlohmann::json::array();
  for (std::size_t i = 0; i < reached.size(); ++i)
    if (reached[i])
      inputs.push_back(i < train_->feature_names().size() ? train_->feature_names()[i] : fmt::format("x{}", i + 1));
  return {{"pruned", {{"edges", edges}, {"edges_before", before}, {"inputs", inputs}}}};
}

template <class T>
bool KanFamily<T>::before_epoch(const Exec& ex, std::size_t stage, std::uint64_t epoch, TrainState<T>& state) const {
  const KanModelOptions& o = stage_of(options_, stage).model;
  if (std::find(o.refit.begin(), o.refit.end(), epoch) == o.refit.end()) return false;
  refit_state(ex, o, model(stage), *train_, state);
  return true;
}

template <class T>
std::vector<std::string> KanFamily<T>::warnings(const Exec& ex, const Model& network,
                                                const ModelArrays<T>& arrays) const {
  // Values of hidden nodes leave grids while the network learns. Refitting grids for the 4 to 8 % that small tables
  // have there made test losses better on one table and worse on another.
  constexpr double kFewInputs = 0.01, kFewHidden = 0.1;
  std::vector<std::string> found = table_warnings_;
  const auto tape = evaluate_rows(ex, network, arrays, train_->all()).tape;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const double share =
        static_cast<double>(tape.outside(l)) / static_cast<double>(train_->size() * network.shape(l).in);
    if (share <= (l == 0 ? kFewInputs : kFewHidden)) continue;
    const std::string cure =
        l == 0 && !options_.model.refit_inputs
            ? "model.normalise = \"range\" would scale the data to the grids, model.refit with model.refit_inputs = "
              "true would move the grids to the data"
            : fmt::format("{} in model.refit would move the grids to the data",
                          options_.model.refit.empty() ? "an epoch" : "a later epoch");
    found.push_back(
        fmt::format("{:.1f} % of the inputs of layer {} lie outside of its grid, where splines are extended as "
                    "model.outside says; {}",
                    100 * share, l, cure));
  }
  return found;
}

template <class T>
std::map<std::string, std::size_t> KanFamily<T>::rows_outside() const {
  std::map<std::string, std::size_t> counts;
  if (ranges_.low.empty()) return counts;
  if (validation_) counts["validation"] = gradloom::count_outside<T>(ranges_, validation_->all().x);
  if (test_) counts["test"] = gradloom::count_outside<T>(ranges_, test_->all().x);
  return counts;
}

template <class T>
std::vector<std::string> KanFamily<T>::data_warnings(const Data& rows, std::string_view name) const {
  const FarRows far = find_far_rows<T>(far_ranges_, rows.all().x);
  if (far.count == 0) return {};
  const std::size_t c = far.column;
  const double centre = centres_.x.empty() ? 0.0 : centres_.x[c];
  const auto in_file = [&](T value) { return static_cast<double>(value) + centre; };
  return {fmt::format(
      "{} of {} {} are far outside of the training data, such as one where {} is {:.7g} and training "
      "had {:.7g} to {:.7g}; splines are extended there as model.outside says, so the prediction is a guess",
      far.count, rows.size(), name, rows.feature_names()[c], in_file(rows.all().x(far.row, c)), in_file(ranges_.low[c]),
      in_file(ranges_.high[c]))};
}

template <class T>
std::map<std::string, double> KanFamily<T>::metrics(const Exec&, const Model&, const ModelArrays<T>&, const Data& data,
                                                    View<const T, 2> y) const {
  return row_metrics<T>(data.all(), data.parts().exact_target, y);
}

// Optional hooks: one of another name or signature would be left out without a word.
static_assert(HasLeaves<kan::Network<float>> && HasPenalty<kan::Network<float>> && HasBranches<kan::Network<float>>);

template class KanFamily<float>;
template class KanFamily<double>;
template std::unique_ptr<Session> make_session<KanFamily>(const KanOptions&, const RowSplits&, SessionOptions);
template Result<std::unique_ptr<Session>> load_session<KanFamily>(const KanOptions&, const ModelHead&,
                                                                  const TensorFile&, const std::filesystem::path&,
                                                                  SessionOptions);
template std::unique_ptr<Session> derive_session<KanFamily>(const KanOptions&, const Session&, SessionOptions);
template CheckReport check_family<KanFamily>(const KanOptions&, const RowSplits&, const SessionOptions&,
                                             const CheckOptions&);

}  // namespace gradloom
