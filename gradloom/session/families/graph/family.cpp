#include "gradloom/session/families/graph/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "gradloom/base/error.h"
#include "gradloom/data/graph_label_warning.h"
#include "gradloom/data/split.h"
#include "gradloom/session/check_family.h"
#include "gradloom/session/family_session.h"
#include "gradloom/train/metrics.h"
#include "gradloom/train/predict.h"

namespace gradloom {

using nlohmann::json;

namespace {

const std::vector<std::uint32_t>* find_split(const GraphSet& set, std::initializer_list<const char*> names) {
  for (const NodeSplit& s : set.node_splits)
    if (s.graph == 0 && std::find(names.begin(), names.end(), s.name) != names.end()) return &s.nodes;
  return nullptr;
}

// The first nodes of a graph and the edges among them.
GraphSet first_nodes(const GraphSet& set, std::uint32_t count) {
  const Graph& g = set.graphs.front();
  count = std::min(count, g.nodes());
  GraphSetBuilder result;
  result.node_labels = set.node_labels, result.edge_labels = set.edge_labels, result.node_classes = set.node_classes;
  GraphBuilder b(g.direction());
  for (std::uint32_t v = 0; v < count; ++v) {
    NodeValues values;
    if (!g.node_labels().empty()) values.label = g.node_labels()[v];
    if (!g.node_classes().empty()) values.node_class = g.node_classes()[v];
    values.features = g.node_features().subspan(v * g.node_feature_width(), g.node_feature_width());
    b.add_node(values).or_throw();
  }
  for (std::uint32_t e = 0; e < g.edges(); ++e) {
    if (g.edge_from()[e] >= count || g.edge_to()[e] >= count) continue;
    EdgeValues values;
    if (!g.edge_labels().empty()) values.label = g.edge_labels()[e];
    if (!g.edge_weights().empty()) values.weight = g.edge_weights()[e];
    values.features = g.edge_features().subspan(e * g.edge_feature_width(), g.edge_feature_width());
    b.add_edge(g.edge_from()[e], g.edge_to()[e], values).or_throw();
  }
  if (const SparseRows& s = g.sparse_features(); !s.empty()) {
    SparseRows part;
    part.columns = s.columns;
    part.row_ptr.assign(s.row_ptr.begin(), s.row_ptr.begin() + count + 1);
    part.column.assign(s.column.begin(), s.column.begin() + part.row_ptr.back());
    part.value.assign(s.value.begin(), s.value.begin() + part.row_ptr.back());
    b.set_sparse_features(std::move(part)).or_throw();
  }
  result.add(b, "part");
  return result.finish();
}

}  // namespace

void check_norm(const graph::NetworkOptions& model, const TrainingOptions& train) {
  if (model.norm == graph::Norm::batch && train.keep_best())
    throw_invalid(
        "model.norm = \"batch\" needs train.keep_best = false: its statistics are those of the last parameters");
}

template <class T>
GraphFamily<T>::GraphFamily(GraphOptions options, Source source)
    : Family<T, Model, Data, GraphOptions>(std::move(options)), set_(std::move(source)) {
  if (set_->size() == 0) throw_invalid("there are no graphs in the data");
  check_norm(options_.model, options_.train);
  if (options_.model.norm == graph::Norm::batch && options_.train.parallel_examples != 0)
    throw_invalid(
        "model.norm = \"batch\" needs train.parallel_examples = 0: its statistics are those of a whole batch");
  measure_features(*set_, options_.data.features);
  const bool of_nodes = options_.model.task == GraphTask::node;
  of_nodes ? split_nodes() : split_graphs();
  const GraphArrays<T>& arrays = train_->arrays();
  if (arrays.target.empty() && arrays.class_names.size() == 1)
    throw_invalid(fmt::format("every {} has the class '{}'; there is nothing to learn", of_nodes ? "node" : "graph",
                              arrays.class_names[0]));
  layout_ = graph_layout(*set_, arrays, options_.data.features);
  if (sizeof(T) == sizeof(float)) data_warnings_ = float32_warnings(*set_, options_.data.features);
  if (std::string warning = label_warning(*set_, options_.data.features.nodes); !warning.empty())
    data_warnings_.push_back(std::move(warning));
}

template <class T>
std::pair<GraphDataset<T>, bool> GraphFamily<T>::new_graphs(const GraphSet& graphs) const {
  const bool of_nodes = options_.model.task == GraphTask::node, of_classes = !layout_.classes.empty();
  const auto has_target = [&](const Graph& g) {
    if (of_nodes) return !g.node_classes().empty();
    return of_classes ? g.graph_class().has_value() : g.graph_target().has_value() && !g.graph_class();
  };
  bool targets_known = std::ranges::all_of(graphs.graphs, has_target);
  std::vector<std::uint32_t> which(graphs.size());
  std::iota(which.begin(), which.end(), 0u);
  auto arrays = std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(
      graphs, which, options_.model.task, layout_options(layout_, options_.data.features, targets_known)));
  std::vector<T> weight;
  if (of_nodes && targets_known) {
    for (const Graph& g : graphs.graphs)
      for (const std::uint32_t c : g.node_classes()) weight.push_back(c == kUnlabelled ? T(0) : T(1));
    targets_known = std::ranges::any_of(weight, [](T w) { return w != T(0); });
  }
  return {Data(std::move(arrays), std::move(weight)), targets_known};
}

template <class T>
void GraphFamily<T>::split_nodes() {
  if (options_.train.batch != 0) throw_invalid("a node task has one batch, the whole graph; set train.batch = 0");
  const char* for_many = options_.train.parallel_examples != 0 ? "train.parallel_examples"
                         : options_.ged.sample != 0            ? "train.ged_sample"
                                                               : nullptr;
  if (for_many) throw_invalid(fmt::format("{} is for graph tasks; a node task has only one graph", for_many));
  if (set_->size() != 1) throw_invalid(fmt::format("a node task needs one graph; the data has {}", set_->size()));
  const std::uint32_t which[] = {0};
  auto arrays =
      std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(*set_, which, GraphTask::node, options_.data.features));
  const std::uint32_t nodes = set_->graphs[0].nodes();
  std::vector<std::uint32_t> known;
  for (std::uint32_t v = 0; v < nodes; ++v)
    if (set_->graphs[0].node_classes()[v] != kUnlabelled) known.push_back(v);
  Split split;
  const auto* given = find_split(*set_, {"train"});
  if (!options_.data.train_nodes.empty()) {
    for (const std::uint64_t v : options_.data.train_nodes) {
      if (v >= nodes)
        throw_invalid(
            fmt::format("data.train_nodes names node {}, but the graph has {} nodes, counted from 0", v, nodes));
      split.train.push_back(static_cast<std::uint32_t>(v));
    }
    for (const std::uint32_t v : known)
      if (std::find(split.train.begin(), split.train.end(), v) == split.train.end()) split.test.push_back(v);
  } else if (given) {
    split.train = *given;
    if (const auto* v = find_split(*set_, {"val", "validation", "valid"})) split.validation = *v;
    if (const auto* v = find_split(*set_, {"test"})) split.test = *v;
  } else {
    const double validation = options_.data.validation, test = options_.data.test;
    split = make_split(known.size(), SplitFractions{1.0 - validation - test, validation, test}, data_seed(options_));
    for (auto* part : {&split.train, &split.validation, &split.test})
      for (std::uint32_t& i : *part) i = known[i];
  }
  if (split.train.empty()) throw_invalid("no node is left to train on");
  const auto part = [&](const std::vector<std::uint32_t>& which_nodes) {
    std::vector<T> weight(nodes, T(0));
    for (const std::uint32_t v : which_nodes) weight[v] = T(1);
    return Data(arrays, std::move(weight));
  };
  train_.emplace(part(split.train));
  if (!split.validation.empty()) validation_.emplace(part(split.validation));
  if (!split.test.empty()) test_.emplace(part(split.test));
  for (std::uint32_t v = 0; v < nodes; ++v) sample_ids_.push_back(set_->node_id(0, v));
}

template <class T>
void GraphFamily<T>::split_graphs() {
  const std::size_t n = set_->size();
  std::vector<std::uint32_t> labels;
  for (const Graph& g : set_->graphs)
    if (g.graph_class()) labels.push_back(*g.graph_class());
  if (labels.size() != n) labels.clear();
  if (!labels.empty() && std::equal(labels.begin() + 1, labels.end(), labels.begin()))
    throw_invalid("every graph has the same class; there is nothing to learn");
  const double validation = options_.data.validation;
  const std::size_t folds = options_.data.folds;
  Split split;
  if (folds > 0) {
    const std::int64_t asked = options_.data.fold;
    const std::size_t fold =
        asked >= 0 ? static_cast<std::size_t>(asked) : static_cast<std::size_t>(options_.train.seed) % folds;
    if (folds < 2 || fold >= folds || folds > n)
      throw_invalid(fmt::format("data.fold = {} of data.folds = {} does not exist for {} graphs", fold, folds, n));
    split = make_fold(n, folds, fold, data_seed(options_), labels);
    hold_out(split, validation, data_seed(options_), labels);
  } else {
    const double test = options_.data.test;
    split = make_split(n, SplitFractions{1.0 - validation - test, validation, test}, data_seed(options_), labels);
  }
  if (split.train.empty()) throw_invalid(fmt::format("{} graphs leave nothing to train on after the split", n));
  // A probability is not moved.
  if (options_.train.loss_kind != LossKind::binary_cross_entropy)
    measure_targets<T>(*set_, split.train, options_.data.features);
  const auto part = [&](const std::vector<std::uint32_t>& which) {
    return Data(
        std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(*set_, which, GraphTask::graph, options_.data.features)),
        {});
  };
  train_.emplace(part(split.train));
  if (!split.validation.empty()) validation_.emplace(part(split.validation));
  if (!split.test.empty()) test_.emplace(part(split.test));
  for (const std::uint32_t g : split.test.empty() ? split.train : split.test) sample_ids_.push_back(set_->ids[g]);
  watched_ = !split.validation.empty() ? split.validation : !split.test.empty() ? split.test : split.train;
}

template <class T>
graph::NetworkOptions GraphFamily<T>::network_options(const GraphLayout& l) const {
  graph::NetworkOptions o = options_.model;
  o.inputs = l.node_features, o.edge_features = l.edge_features, o.sparse = l.sparse;
  const bool one_logit = options_.train.loss_kind == LossKind::binary_cross_entropy;
  o.outputs = l.classes.empty() || one_logit ? 1 : l.classes.size();
  if (l.edge_weights && !graph::takes_edge_weights(o.kind))
    throw_invalid(
        fmt::format("the edges have weights, which model.layer = \"{}\" cannot use; choose another layer (mean, gcn, "
                    "sage-mean, gin), or data without weights",
                    name_of(graph::kLayers, o.kind)));
  return o;
}

template <class T>
graph::GraphNetwork<T> GraphFamily<T>::model(std::size_t) const {
  graph::NetworkOptions o = network_options(layout_);
  for (const auto* part : {&train_, &validation_, &test_})
    if (*part) o.limits.include(**part);
  return Model(std::move(o));
}

template <class T>
graph::GraphNetwork<T> GraphFamily<T>::model_for(std::size_t stage, const Data& data) const {
  graph::NetworkOptions o = model(stage).options();
  o.limits.include(data);
  return Model(std::move(o));
}

template <class T>
double GraphFamily<T>::accuracy(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                const Data& data) const {
  Predictor<Model, Data> predictor(ex, model, data);
  const auto found = row_metrics<T>(data.all(), predictor.run(arrays).view());
  return found.contains("accuracy") ? found.at("accuracy") : 0.0;
}

template <class T>
json GraphFamily<T>::judge_distances(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const {
  if (!*distances_)
    distances_->emplace(
        ex, *set_, watched_,
        GedSampleOptions{options_.ged.sample, options_.ged.nodes, options_.ged.expansions, data_seed(options_)});
  const Data& part = validation_ ? *validation_ : test_ ? *test_ : *train_;
  Predictor<Model, Data> predictor(ex, model, part);
  const Predictions<T>& y = predictor.run(arrays);
  return (*distances_)->template judge<T>(y.view());
}

template <class T>
json GraphFamily<T>::epoch_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                   std::uint64_t epoch) const {
  json found = json::object();
  if (options_.data.curve) {
    if (validation_) found["validation_accuracy"] = accuracy(ex, model, arrays, *validation_);
    if (test_) found["test_accuracy"] = accuracy(ex, model, arrays, *test_);
  }
  if (options_.ged.sample > 0 && epoch % options_.ged.every == 0) found["ged"] = judge_distances(ex, model, arrays);
  return found;
}

template <class T>
std::size_t GraphFamily<T>::counted(const Data& data) const {
  const std::span<const T> weight = data.all().weight;
  if (weight.empty()) return data.size();
  return static_cast<std::size_t>(std::ranges::count_if(weight, [](T w) { return w != T(0); }));
}

template <class T>
std::map<std::string, std::size_t> GraphFamily<T>::rows_outside() const {
  std::map<std::string, std::size_t> counts;
  if (options_.model.task == GraphTask::node || layout_.ranges.empty()) return counts;
  const auto count = [&](const char* name, const std::optional<Data>& part) {
    if (!part) return;
    const std::vector<std::size_t> found = outside_of_ranges(layout_, part->arrays());
    counts[name] =
        static_cast<std::size_t>(std::ranges::count_if(found, [](std::size_t features) { return features > 0; }));
  };
  count("validation", validation_);
  count("test", test_);
  return counts;
}

template <class T>
std::map<std::string, double> GraphFamily<T>::metrics(const Exec&, const Model&, const ModelArrays<T>&,
                                                      const Data& data, View<const T, 2> y) const {
  return row_metrics<T>(data.all(), data.arrays().exact_target, y);
}

template <class T>
CheckSubject<graph::GraphNetwork<T>> GraphFamily<T>::check_subject(const Exec&, std::size_t samples) const {
  const GraphTask task = options_.model.task;
  GraphSet part;
  std::vector<std::uint32_t> which{0};
  if (task == GraphTask::node) {
    part = first_nodes(*set_, static_cast<std::uint32_t>(std::min<std::size_t>(8 * samples, 1u << 20)));
  } else {
    which.resize(std::min(samples, set_->size()));
    std::iota(which.begin(), which.end(), 0u);
  }
  GraphFeatureOptions features = options_.data.features;
  features.nodes = layout_.nodes;  // a part would resolve differently
  auto data = std::make_shared<Data>(std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(
                                         task == GraphTask::node ? part : *set_, which, task, features)),
                                     std::vector<T>());
  GraphLayout shape = layout_;  // a part of a graph has fewer nodes to tell apart
  shape.node_features = data->arrays().features, shape.edge_features = data->arrays().edge_features;
  shape.sparse = data->arrays().sparse(), shape.edge_weights = !data->arrays().edge_weight.empty();
  graph::NetworkOptions o = network_options(shape);
  o.limits.include(*data);
  Model network(std::move(o));
  TrainState<T> state = initial_state(network, options_.train.seed);
  const GraphBatch<T> batch = data->all();
  return {.model = std::move(network),
          .state = std::move(state),
          .batch = batch,
          .owner = std::move(data),
          .input_noise = 0.1};
}

template <class T>
std::vector<std::string> GraphFamily<T>::output_names() const {
  if (layout_.classes.empty()) return {"target"};
  return options_.train.loss_kind == LossKind::binary_cross_entropy ? std::vector<std::string>() : layout_.classes;
}

template <class T>
std::string GraphFamily<T>::learned_from() const {
  if (options_.model.task != GraphTask::node) return fmt::format("{} training graphs", train_->size());
  const auto batch = train_->all();
  const auto labelled = std::count_if(batch.weight.begin(), batch.weight.end(), [](T w) { return w != T(0); });
  return fmt::format("trained on {} labelled nodes of {}", labelled, batch.weight.size());
}

template <class T>
json GraphFamily<T>::conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const Metrics&) const {
  return options_.ged.sample > 0 ? json{{"ged", judge_distances(ex, model, arrays)}} : json::object();
}

// Optional hooks: one of another name or signature would be left out without a word.
static_assert(HasLeaves<graph::GraphNetwork<float>> && HasRunningBuffers<graph::GraphNetwork<float>>);
static_assert(HasBranches<graph::GraphNetwork<float>>);

template class GraphFamily<float>;
template class GraphFamily<double>;
template std::unique_ptr<Session> make_session<GraphFamily>(const GraphOptions&, const std::shared_ptr<const GraphSet>&,
                                                            SessionOptions);
template Result<std::unique_ptr<Session>> load_session<GraphFamily>(const GraphOptions&, const ModelHead&,
                                                                    const TensorFile&, const std::filesystem::path&,
                                                                    SessionOptions);
template CheckReport check_family<GraphFamily>(const GraphOptions&, const std::shared_ptr<const GraphSet>&,
                                               const SessionOptions&, const CheckOptions&);

}  // namespace gradloom
