#include "gradloom/session/families/pairs/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gradloom/data/graph_label_warning.h"
#include "gradloom/data/split.h"
#include "gradloom/session/check_family.h"
#include "gradloom/session/families/graph/family.h"
#include "gradloom/session/family_session.h"
#include "gradloom/train/predict.h"
#include "gradloom/train/ranking.h"

namespace gradloom {

using nlohmann::json;

namespace {

// 1 for equal graphs; `nodes` of both together.
double similarity(double distance, double nodes) { return std::exp(-2.0 * distance / nodes); }

// The least similarity that a float tells from 0 stands for all smaller ones.
constexpr double kLeastSimilarity = 1e-30;
constexpr std::string_view kSmallerDistances = "divide the distances by the cost of a typical edit";

}  // namespace

std::vector<std::string> similarity_warnings(const GraphSet& set, const DistanceTable& distances, Precision precision) {
  std::vector<std::string> warnings;
  std::vector<double> all;
  std::size_t small = 0;
  std::string first;
  for (std::uint32_t a = 0; a < set.size(); ++a)
    for (std::uint32_t b = a + 1; b < set.size(); ++b) {
      all.push_back(similarity(distances.at(a, b), set.graphs[a].nodes() + set.graphs[b].nodes()));
      if (all.back() < kLeastSimilarity && small++ == 0)
        first = fmt::format("'{}' and '{}' with the distance {}", set.ids[a], set.ids[b], distances.at(a, b));
    }
  if (small > 0) {
    warnings.push_back(
        fmt::format("{} of {} pairs have a similarity below {}, such as {}: such distances are not told apart; {}",
                    small, all.size(), kLeastSimilarity, first, kSmallerDistances));
  } else if (precision == Precision::float32) {
    if (std::string warning = float32_warning(std::move(all), "pair", "similarity"); !warning.empty())
      warnings.push_back(std::move(warning));
  }
  return warnings;
}

template <class T>
PairFamily<T>::PairFamily(PairOptions options, Source source)
    : Family<T, Model, Data, PairOptions>(std::move(options)),
      set_(std::move(source.graphs)),
      distances_(std::move(source.distances)) {
  check_norm(options_.model.encoder, options_.train);
  const LossKind loss = this->train_options(0).loss.kind;
  if (loss == LossKind::cross_entropy || loss == LossKind::binary_cross_entropy)
    throw_invalid(
        fmt::format("loss.kind = \"{}\" is for classes; similarities take mse, mae or huber", name_of(kLosses, loss)));
  check_same_graphs(*distances_, *set_).or_throw();
  split();
  layout_ = graph_layout(*set_, train_->graphs().arrays(), options_.data.features);
  layout_.classes.clear();
  if (sizeof(T) == sizeof(float)) data_warnings_ = float32_warnings(*set_, options_.data.features);
  for (std::string& warning : similarity_warnings(*set_, *distances_, options_.precision))
    data_warnings_.push_back(std::move(warning));
  if (std::ranges::all_of(train_->pairs(), [](const GraphPair& pair) { return pair.target < kLeastSimilarity; }))
    throw_invalid(fmt::format("every training pair has a similarity below {}: there is nothing to learn; {}",
                              kLeastSimilarity, kSmallerDistances));
  if (std::string warning = label_warning(*set_, options_.data.features.nodes); !warning.empty())
    data_warnings_.push_back(std::move(warning));
}

template <class T>
ModelDescription PairFamily<T>::describe() const {
  ModelDescription description = describe_graphs(layout_);
  description.targets = {"similarity"};
  return description;
}

template <class T>
PairFamily<T> PairFamily<T>::from_model(const PairOptions& options, const ModelDescription& description) {
  GraphLayout layout = restore_layout(description, GraphTask::graph);
  if (!layout.classes.empty()) throw_invalid("a model of pairs of graphs has no classes");
  if (layout.target_centre != 0.0)
    throw_invalid("a model of pairs of graphs has no centre: similarities are not moved");
  return PairFamily(options, std::move(layout));
}

template <class T>
PairDataset<T> PairFamily<T>::new_pairs(const GraphSet& graphs, const DistanceTable* distances) const {
  std::vector<std::uint32_t> which(graphs.size());
  std::iota(which.begin(), which.end(), 0u);
  std::vector<GraphPair> pairs;
  for (std::uint32_t a = 0; a < graphs.size(); ++a)
    for (std::uint32_t b = a + 1; b < graphs.size(); ++b) {
      const double nodes = graphs.graphs[a].nodes() + graphs.graphs[b].nodes();
      pairs.push_back({a, b, distances ? similarity(distances->at(a, b), nodes) : 1.0});
    }
  return Data(std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(
                  graphs, which, GraphTask::graph, layout_options(layout_, options_.data.features, false))),
              std::move(pairs));
}

template <class T>
PairDataset<T> PairFamily<T>::part(std::span<const std::uint32_t> queries,
                                   std::span<const std::uint32_t> others) const {
  std::vector<std::uint32_t> which(queries.begin(), queries.end());
  which.insert(which.end(), others.begin(), others.end());
  std::vector<GraphPair> pairs;
  const auto add = [&](std::size_t a, std::size_t b) {
    const double nodes = set_->graphs[which[a]].nodes() + set_->graphs[which[b]].nodes();
    const double target = similarity(distances_->at(which[a], which[b]), nodes);
    pairs.push_back({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), target});
  };
  for (std::size_t a = 0; a < queries.size(); ++a) {
    for (std::size_t b = 0; b < others.size(); ++b) add(a, queries.size() + b);
    if (others.empty())
      for (std::size_t b = a + 1; b < queries.size(); ++b) add(a, b);
  }
  return Data(
      std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(*set_, which, GraphTask::graph, options_.data.features)),
      std::move(pairs));
}

template <class T>
void PairFamily<T>::split() {
  const double validation = options_.data.validation, test = options_.data.test;
  const Split s =
      make_split(set_->size(), SplitFractions{1.0 - validation - test, validation, test}, data_seed(options_));
  if (s.train.size() < 2)
    throw_invalid(
        fmt::format("{} graphs leave {} for training after the split; a pair needs two", set_->size(), s.train.size()));
  train_.emplace(part(s.train, {}));
  if (!s.validation.empty()) validation_.emplace(part(s.validation, s.train));
  if (!s.test.empty()) test_.emplace(part(s.test, s.train));
  if (s.test.size() > 1) unseen_.emplace(part(s.test, {}));
  // In the order of part().
  std::vector<std::uint32_t> which = s.test;
  which.insert(which.end(), s.train.begin(), s.train.end());
  for (const GraphPair& pair : (test_ ? *test_ : *train_).pairs()) {
    sample_ids_.push_back(set_->ids[which[pair.first]]);
    other_ids_.push_back(set_->ids[which[pair.second]]);
  }
}

template <class T>
graph::PairOptions PairFamily<T>::network_options(std::size_t features, std::size_t edge_features) const {
  graph::PairOptions p = options_.model;
  p.encoder.inputs = features, p.encoder.edge_features = edge_features;
  return p;
}

template <class T>
graph::PairNetwork<T> PairFamily<T>::model_for(std::size_t stage, const Data& data) const {
  graph::PairOptions o = model(stage).options();
  o.encoder.limits.include(data.graphs());
  return Model(std::move(o));
}

template <class T>
graph::PairNetwork<T> PairFamily<T>::model(std::size_t) const {
  graph::PairOptions o = network_options(layout_.node_features, layout_.edge_features);
  for (const auto* part : {&train_, &validation_, &test_, &unseen_})
    if (*part) o.encoder.limits.include((*part)->graphs());
  return Model(std::move(o));
}

template <class T>
std::map<std::string, std::size_t> PairFamily<T>::rows_outside() const {
  std::map<std::string, std::size_t> counts;
  if (layout_.ranges.empty()) return counts;
  const auto count = [&](const char* name, const std::optional<Data>& part) {
    if (!part) return;
    const std::vector<std::size_t> found = outside_of_ranges(layout_, part->graphs().arrays());
    counts[name] = static_cast<std::size_t>(std::ranges::count_if(
        part->pairs(), [&](const GraphPair& pair) { return found[pair.first] > 0 || found[pair.second] > 0; }));
  };
  count("validation", validation_);
  count("test", test_);
  return counts;
}

template <class T>
std::map<std::string, double> PairFamily<T>::metrics(const Exec& ex, const Model&, const ModelArrays<T>&,
                                                     const Data& data, View<const T, 2> y) const {
  const PairBatch<T> batch = data.all();
  std::vector<double> predicted, truth;
  double squares = 0.0, absolute = 0.0, distance = 0.0;
  for (std::size_t p = 0; p < batch.size; ++p) {
    predicted.push_back(static_cast<double>(y(p, 0)));
    truth.push_back(static_cast<double>(batch.target(p, 0)));
    const double e = predicted[p] - truth[p];
    squares += e * e, absolute += std::abs(e);
    const double size = static_cast<double>(batch.inverse_size[p]);
    distance +=
        std::abs(std::log(std::max(truth[p], kLeastSimilarity)) - std::log(std::max(predicted[p], kLeastSimilarity))) /
        size;
  }
  const auto n = static_cast<double>(batch.size);
  std::map<std::string, double> m{{"mse", squares / n}, {"mae", absolute / n}, {"distance_mae", distance / n}};
  if (const auto all = spearman(predicted, truth)) m["spearman"] = *all;
  // One query each; summed in order.
  std::vector<std::optional<double>> rank(batch.graphs);
  std::vector<double> precision(batch.graphs, -1.0);
  ex.parallel_for(batch.graphs, [&](std::size_t g, unsigned) {
    std::vector<double> a, b;
    bool query = false;
    for (std::size_t e = batch.use_ptr[g]; e < batch.use_ptr[g + 1]; ++e) {
      query = query || batch.use_side[e] == 0;
      a.push_back(predicted[batch.use_pair[e]]), b.push_back(truth[batch.use_pair[e]]);
    }
    if (!query) return;
    rank[g] = spearman(a, b);
    precision[g] = precision_at(10, a, b);
  });
  double ranks = 0.0, ranked = 0.0, right = 0.0, queries = 0.0;
  for (std::size_t g = 0; g < batch.graphs; ++g) {
    if (rank[g]) ranks += *rank[g], ranked += 1;
    if (precision[g] >= 0) right += precision[g], queries += 1;
  }
  if (ranked > 0) m["spearman_mean"] = ranks / ranked;
  if (queries > 0) m["precision_at_10"] = right / queries;
  return m;
}

template <class T>
json PairFamily<T>::unseen_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const {
  if (!unseen_) return nullptr;
  Predictor<Model, Data> predictor(ex, model, *unseen_);
  return metrics(ex, model, arrays, *unseen_, predictor.run(arrays).view());
}

template <class T>
json PairFamily<T>::study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const {
  if (!unseen_) return json();
  return json{{"unseen", unseen_metrics(ex, model, arrays)}};
}

template <class T>
CheckSubject<graph::PairNetwork<T>> PairFamily<T>::check_subject(const Exec&, std::size_t samples) const {
  // As many graphs as make this many pairs.
  std::size_t count = 2;
  while (count * (count + 1) / 2 <= samples && count < set_->size()) ++count;
  std::vector<std::uint32_t> which(count);
  std::iota(which.begin(), which.end(), 0u);
  auto data = std::make_shared<Data>(part(which, {}));
  graph::PairOptions o = network_options(data->graphs().arrays().features, data->graphs().arrays().edge_features);
  o.encoder.limits.include(data->graphs());
  Model network(std::move(o));
  TrainState<T> state = initial_state(network, options_.train.seed);
  const PairBatch<T> batch = data->all();
  // Sums of products of large numbers: a noise of 1 would make every similarity exactly 0.
  return {
      .model = std::move(network), .state = std::move(state), .batch = batch, .owner = std::move(data), .noise = 0.05};
}

template <class T>
json PairFamily<T>::conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const Metrics&) const {
  return {{"unseen", unseen_metrics(ex, model, arrays)}};
}

// Optional hooks: one of another name or signature would be left out without a word.
static_assert(HasEncoder<graph::PairNetwork<float>> && HasLeaves<graph::PairNetwork<float>> &&
              HasRunningBuffers<graph::PairNetwork<float>>);
static_assert(HasBranches<graph::PairNetwork<float>>);

template class PairFamily<float>;
template class PairFamily<double>;
template std::unique_ptr<Session> make_session<PairFamily>(const PairOptions&, const PairSource&, SessionOptions);
template Result<std::unique_ptr<Session>> load_session<PairFamily>(const PairOptions&, const ModelHead&,
                                                                   const TensorFile&, const std::filesystem::path&,
                                                                   SessionOptions);
template CheckReport check_family<PairFamily>(const PairOptions&, const PairSource&, const SessionOptions&,
                                              const CheckOptions&);

}  // namespace gradloom
