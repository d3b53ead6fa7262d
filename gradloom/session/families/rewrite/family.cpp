#include "gradloom/session/families/rewrite/family.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/models/graph/rewrite_path.h"
#include "gradloom/models/graph/rewrite_run.h"
#include "gradloom/session/check_family.h"
#include "gradloom/session/family_session.h"

namespace gradloom {

using nlohmann::json;

namespace {

constexpr std::size_t kJudged = 1000;           // expressions
constexpr std::uint64_t kGedExpansions = 5000;  // for the distance of one wrong result

std::vector<RewriteSample> first_passes(std::vector<Expression> expressions) {
  std::vector<RewriteSample> samples;
  for (Expression& e : expressions) samples.push_back(make_sample(std::move(e)));
  return samples;
}

}  // namespace

template <class T>
RewriteFamily<T>::RewriteFamily(RewriteOptions options, Source)
    : Family<T, Model, Data, RewriteOptions>(std::move(options)) {
  if (options_.train.loss_kind != LossKind::cross_entropy)
    throw_invalid(fmt::format("loss.kind = \"{}\"; edits are classes and need cross-entropy (and loss.soft_weight)",
                              loss_name(options_)));
  validate(options_.model);  // before the data, which takes a while
  make_data();
}

template <class T>
void RewriteFamily<T>::make_data() {
  ExpressionSetOptions o = options_.data.expressions;
  o.seed = data_seed(options_);
  ExpressionSets sets = draw_expressions(o);
  std::vector<Expression> held_out = sets.test;
  held_out.insert(held_out.end(), sets.validation.begin(), sets.validation.end());
  held_out.insert(held_out.end(), sets.large.begin(), sets.large.end());
  std::vector<RewriteSample> samples = pass_samples(sets.train, held_out), kept;
  const Exec ex({.threads = 1});
  const auto proofs = graph::prove_passes(ex, samples, options_.data.expansions);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    proofs_.exact += proofs[s] == graph::PathProof::exact;
    proofs_.beaten += proofs[s] == graph::PathProof::beaten;
    proofs_.open += proofs[s] == graph::PathProof::open;
    if (proofs[s] == graph::PathProof::exact) kept.push_back(std::move(samples[s]));
  }
  const RewriteLoss& loss = options_.soft;
  train_.emplace(std::move(kept), loss);
  if (!sets.validation.empty()) validation_.emplace(first_passes(std::move(sets.validation)), loss);
  if (!sets.test.empty()) test_.emplace(first_passes(std::move(sets.test)), loss);
  large_ = std::move(sets.large);
  for (const auto* part : {&train_, &validation_, &test_})
    if (*part) most_nodes_ = std::max(most_nodes_, (*part)->most_nodes());
}

template <class T>
ModelDescription RewriteFamily<T>::describe() const {
  ModelDescription d;
  d.targets = {"normal_form"};
  d.normalisation = json::object();
  std::vector<std::string> symbols;
  for (std::size_t s = 0; s < kSymbols; ++s) symbols.emplace_back(symbol_name(static_cast<Symbol>(s)));
  d.input = {{"most_nodes", most_nodes_}, {"symbols", symbols}};
  return d;
}

template <class T>
RewriteFamily<T> RewriteFamily<T>::from_model(const RewriteOptions& options, const ModelDescription& d) {
  EntryReader reader(d.input, "input");
  const std::size_t most_nodes = reader.count("most_nodes", 1 << 20);
  std::vector<std::string> symbols;
  for (std::size_t s = 0; s < kSymbols; ++s) symbols.emplace_back(symbol_name(static_cast<Symbol>(s)));
  if (reader.names("symbols") != symbols) reader.fail("'symbols' differ from those of this program");
  reader.done();
  if (most_nodes == 0) reader.fail("'most_nodes' is 0");
  if (!d.features.empty() || d.targets.size() != 1 || !d.classes.empty())
    reader.fail("expressions have no features and no classes");
  validate(options.model);
  return RewriteFamily(options, most_nodes);
}

template <class T>
graph::TreeNetwork<T> RewriteFamily<T>::model(std::size_t) const {
  graph::TreeOptions o = options_.model;
  o.most_nodes = most_nodes_;
  return Model(o);
}

template <class T>
std::map<std::string, double> RewriteFamily<T>::final_metrics(const Exec& ex, const Model& model,
                                                              const ModelArrays<T>& arrays,
                                                              std::span<const Expression> expressions) const {
  const auto runs = graph::rewrite<T>(ex, model, arrays, expressions, {.passes = options_.model.passes});
  const graph::ExpressionCosts costs(ged::uniform_costs());
  std::vector<ged::Distance> distance(runs.size());
  std::vector<std::uint8_t> plain(runs.size());
  ex.parallel_for(runs.size(), [&](std::size_t k, unsigned) {
    const Expression truth = normal_form(expressions[k]);
    plain[k] = truth == expressions[k];
    const Exec alone({.threads = 1});
    distance[k] = graph::expression_distance(alone, runs[k].result, truth, costs, kGedExpansions);
  });
  double match = 0, sum = 0, proven = 0, settled = 0, kept = 0, passes = 0;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    match += distance[k].exact && distance[k].upper == 0;
    sum += distance[k].upper;
    proven += distance[k].exact;
    settled += runs[k].settled, kept += plain[k];
    passes += static_cast<double>(runs[k].passes);
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, runs.size()));
  return {{"exact_match", match / n}, {"ged", sum / n},       {"ged_exact", proven / n},
          {"settled", settled / n},   {"passes", passes / n}, {"keep_everything", kept / n}};
}

template <class T>
std::map<std::string, double> RewriteFamily<T>::metrics(const Exec& ex, const Model& model,
                                                        const ModelArrays<T>& arrays, const Data& data,
                                                        View<const T, 2> y) const {
  const std::size_t count = std::min(kJudged, data.size());
  double right = 0, nodes = 0, match = 0;
  std::vector<Expression> expressions;
  for (std::size_t k = 0; k < count; ++k) {
    const RewriteSample& sample = data.samples()[k];
    const auto edits = graph::decode_edits<T>(y.row(k), sample.source);
    for (std::size_t v = 0; v < edits.size(); ++v) right += edits[v] == sample.edits[v], nodes += 1;
    match += apply_edits(sample.source, edits) == sample.target;
    expressions.push_back(sample.source);
  }
  auto m = final_metrics(ex, model, arrays, expressions);
  m["edit_accuracy"] = right / std::max(1.0, nodes);
  m["pass_match"] = match / static_cast<double>(count);
  return m;
}

template <class T>
json RewriteFamily<T>::large_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const {
  if (large_.empty()) return nullptr;
  return final_metrics(ex, model, arrays, std::span<const Expression>(large_).first(std::min(kJudged, large_.size())));
}

template <class T>
json RewriteFamily<T>::study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const {
  if (large_.empty()) return json();
  return json{{"large", large_metrics(ex, model, arrays)}};
}

template <class T>
CheckSubject<graph::TreeNetwork<T>> RewriteFamily<T>::check_subject(const Exec&, std::size_t samples) const {
  // Small trees: the loss is evaluated for every number of the output.
  constexpr std::size_t kMostNodes = 12;
  std::vector<RewriteSample> some;
  for (const RewriteSample& sample : train_->samples())
    if (some.size() < samples && sample.source.size() <= kMostNodes) some.push_back(sample);
  if (some.empty()) some.push_back(train_->samples().front());
  auto data = std::make_shared<Data>(std::move(some), options_.soft);
  graph::TreeOptions o = model(0).options();
  o.most_nodes = data->most_nodes();
  Model network(o);
  TrainState<T> state = initial_state(network, options_.train.seed);
  const TreeBatch<T> batch = data->all();
  return {std::move(network), std::move(state), batch, std::move(data)};
}

template <class T>
json RewriteFamily<T>::conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                const Metrics&) const {
  return {{"large", large_metrics(ex, model, arrays)},
          {"paths", {{"exact", proofs_.exact}, {"beaten", proofs_.beaten}, {"open", proofs_.open}}}};
}

// Optional hooks: one of another name or signature would be left out without a word.
static_assert(HasParts<graph::TreeNetwork<float>>);

template class RewriteFamily<float>;
template class RewriteFamily<double>;
template std::unique_ptr<Session> make_session<RewriteFamily>(const RewriteOptions&, const NoSource&, SessionOptions);
template Result<std::unique_ptr<Session>> load_session<RewriteFamily>(const RewriteOptions&, const ModelHead&,
                                                                      const TensorFile&, const std::filesystem::path&,
                                                                      SessionOptions);
template CheckReport check_family<RewriteFamily>(const RewriteOptions&, const NoSource&, const SessionOptions&,
                                                 const CheckOptions&);

}  // namespace gradloom
