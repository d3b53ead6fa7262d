#include "gradloom/session/families/gates/family.h"

#include <fmt/format.h>

#include "gradloom/circuit/simplify.h"
#include "gradloom/circuit/simulate.h"
#include "gradloom/circuit/validate.h"
#include "gradloom/data/binarise.h"
#include "gradloom/models/logic/harden.h"
#include "gradloom/session/check_family.h"
#include "gradloom/session/family_session.h"
#include "gradloom/train/metrics.h"

namespace gradloom {

using nlohmann::json;

namespace {

// Whether every layer has as many pairs of inputs as gates, and gates enough to read them all.
bool can_be_unique(std::size_t inputs, const std::vector<std::size_t>& layers) {
  for (const std::size_t gates : layers) {
    if (2 * gates < inputs || gates > inputs * (inputs - 1) / 2) return false;
    inputs = gates;
  }
  return true;
}

}  // namespace

template <class T>
GatesFamily<T>::GatesFamily(GatesOptions options, const Source& source)
    : Family<T, Model, Data, GatesOptions>(std::move(options)),
      schema_(row_schema(source)),
      bits_(source.bits.empty() ? choose_bits(source.train, options_.thresholds) : source.bits) {
  table_warnings_ = table_warnings(source, options_.data.source);
  train_ = convert<T>(binarise(source.train, bits_));
  const auto hold_out = [&](const char* name, const std::optional<RowDataset<double>>& rows,
                            std::optional<Data>& part) {
    if (!rows) return;
    part = convert<T>(binarise(*rows, bits_));
    if (const auto count = count_outside(schema_.ranges, *rows)) outside_[name] = *count;
  };
  hold_out("validation", source.validation, validation_);
  hold_out("test", source.test, test_);
}

template <class T>
ModelDescription GatesFamily<T>::describe() const {
  json bits = json::array();
  for (const BitColumn& bit : bits_)
    bits.push_back({{"feature", bit.column}, {"threshold", bit.threshold}, {"name", bit.name}});
  ModelDescription description = describe_rows(options_, schema_);
  description.normalisation = {{"bits", bits}};
  return description;
}

template <class T>
GatesFamily<T> GatesFamily<T>::from_model(const GatesOptions& options, const ModelDescription& description) {
  RowSplits source = restore_rows(description, options);
  EntryReader reader(description.normalisation, "normalisation");
  const json& bits = reader.at("bits");
  reader.done();
  if (!bits.is_array() || bits.empty()) reader.fail("it has no bits");
  for (const json& element : bits) {
    EntryReader bit(element, "normalisation");
    const std::size_t feature = bit.count("feature", description.features.size() - 1);
    const json& threshold = bit.at("threshold");
    if (!threshold.is_number()) bit.fail("a 'threshold' is not a number");
    source.bits.push_back({feature, threshold.get<double>(), bit.text("name")});
    bit.done();
  }
  return GatesFamily(options, source);
}

template <class T>
logic::GateClassifier<T> GatesFamily<T>::model(std::size_t) const {
  logic::ClassifierOptions o;
  o.inputs = train_->features();
  o.layers = options_.model.gates;
  o.classes = train_->outputs();
  o.layers.back() = (o.layers.back() + o.classes - 1) / o.classes * o.classes;
  o.tau = options_.model.temperature;
  o.wires = options_.model.wires.value_or(can_be_unique(o.inputs, o.layers) ? logic::WireKind::unique
                                                                            : logic::WireKind::random);
  return Model(o);
}

template <class T>
std::map<std::string, double> GatesFamily<T>::metrics(const Exec&, const Model& model, const ModelArrays<T>& arrays,
                                                      const Data& data, View<const T, 2> y) const {
  std::map<std::string, double> result = row_metrics<T>(data.all(), y);
  const circuit::Circuit hard = circuit::simplify(logic::harden(model, arrays));
  const RowBatch<T> all = data.all();
  const std::size_t group = hard.outputs.size() / model.output_width();
  std::size_t right = 0;
  for (std::size_t first = 0; first < all.size; first += 64) {
    std::vector<std::uint64_t> inputs(hard.inputs, 0);
    const std::size_t count = std::min<std::size_t>(64, all.size - first);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] |= std::uint64_t{all.x(first + k, i) != T(0)} << k;
    const std::vector<std::uint64_t> outputs = circuit::outputs_for(hard, inputs);
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t best = 0, best_votes = 0;
      for (std::size_t c = 0; c < model.output_width(); ++c) {
        std::size_t votes = 0;
        for (std::size_t g = c * group; g < (c + 1) * group; ++g) votes += outputs[g] >> k & 1u;
        if (c == 0 || votes > best_votes) {
          best = c;
          best_votes = votes;
        }
      }
      right += best == all.label[first + k];
    }
  }
  if (all.size > 0) result["hard_accuracy"] = static_cast<double>(right) / static_cast<double>(all.size);
  return result;
}

template <class T>
json GatesFamily<T>::study(const Exec&, const Model& model, const ModelArrays<T>& arrays) const {
  const circuit::Circuit simple = circuit::simplify(logic::harden(model, arrays));
  return json{{"circuit",
               {{"gates", model.gates()},
                {"active_gates", logic::active_gates<T>(model.parameters(), arrays.parameters)},
                {"simplified_gates", simple.gates.size()},
                {"depth", circuit::size_of(simple).depth}}}};
}

template <class T>
CheckSubject<logic::GateClassifier<T>> GatesFamily<T>::check_subject(const Exec& ex, std::size_t samples) const {
  return {model(0), this->start(ex, 0), first_rows(train_->all(), samples), nullptr};
}

template <class T>
std::vector<std::string> GatesFamily<T>::warnings(const Exec&, const Model& model, const ModelArrays<T>& arrays) const {
  std::vector<std::string> found = table_warnings_;
  for (std::size_t l = 0; l < model.options().layers.size(); ++l) {
    const auto unread = logic::unread_inputs(model.wires(l, arrays.buffers), model.layer_inputs(l));
    if (!unread.empty())
      found.push_back(
          fmt::format("no gate reads {} of the {} inputs of layer.{}", unread.size(), model.layer_inputs(l), l));
  }
  return found;
}

template <class T>
std::optional<circuit::AnyCircuit> GatesFamily<T>::hard_circuit(const Model& model,
                                                                const ModelArrays<T>& arrays) const {
  circuit::Circuit hard = logic::harden(model, arrays);
  const RowDataset<double>& rows = schema_.training.rows;
  for (const BitColumn& bit : bits_) hard.meaning.inputs.push_back({rows.feature_names()[bit.column], bit.threshold});
  const std::size_t votes = hard.outputs.size() / rows.outputs();
  for (const std::string& name : rows.class_names())
    hard.meaning.outputs.insert(hard.meaning.outputs.end(), votes, name);
  return hard;
}

// Optional hooks: one of another name or signature would be left out without a word.
static_assert(HasLeaves<logic::GateClassifier<float>> && FinishesGradient<logic::GateClassifier<float>>);

template class GatesFamily<float>;
template class GatesFamily<double>;
template std::unique_ptr<Session> make_session<GatesFamily>(const GatesOptions&, const RowSplits&, SessionOptions);
template Result<std::unique_ptr<Session>> load_session<GatesFamily>(const GatesOptions&, const ModelHead&,
                                                                    const TensorFile&, const std::filesystem::path&,
                                                                    SessionOptions);
template CheckReport check_family<GatesFamily>(const GatesOptions&, const RowSplits&, const SessionOptions&,
                                               const CheckOptions&);

}  // namespace gradloom
