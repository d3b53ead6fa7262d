#include "gradloom/app/graph_settings.h"

#include <fmt/format.h>

#include "gradloom/app/settings.h"

namespace gradloom::app {
namespace {

template <class E, std::size_t N>
E by_name(const std::pair<std::string_view, E> (&table)[N], std::string_view name, const char* what) {
  for (const auto& [known, value] : table)
    if (known == name) return value;
  throw Exception(ErrorCode::invalid_input, fmt::format("there is no {} \"{}\"", what, name));
}

}  // namespace

graph::LayerKind layer_kind(std::string_view name) {
  using graph::LayerKind;
  static constexpr std::pair<std::string_view, LayerKind> kKinds[] = {
      {"mean", LayerKind::mean},         {"gcn", LayerKind::gcn}, {"sage-mean", LayerKind::sage_mean},
      {"sage-max", LayerKind::sage_max}, {"gin", LayerKind::gin}, {"gat", LayerKind::gat}};
  return by_name(kKinds, name, "kind of layer");
}

GraphFeatureOptions feature_options(const Config& r) {
  static constexpr std::pair<std::string_view, NodeFeatures> kFeatures[] = {
      {"auto", NodeFeatures::automatic},  {"given", NodeFeatures::given},       {"labels", NodeFeatures::labels},
      {"degrees", NodeFeatures::degrees}, {"identity", NodeFeatures::identity}, {"constant", NodeFeatures::constant}};
  GraphFeatureOptions o;
  o.nodes = by_name(kFeatures, r.string("data.features"), "kind of features");
  return o;
}

Result<GraphSet> load_graphs(const Config& r, const std::filesystem::path& data_root) {
  GraphSource source;
  source.path = data_path(r, "data.path", data_root);
  auto format = parse_graph_format(r.string("data.format"));
  if (!format) return format.error();
  source.format = *format;
  return gradloom::load_graphs(source);
}

Result<void> check_norm(const Config& r) {
  if (r.string("model.norm") != "batch" || !r.boolean("train.keep_best")) return {};
  return Error{ErrorCode::invalid_input,
               "model.norm = \"batch\" needs train.keep_best = false: its statistics belong to the last parameters"};
}

}  // namespace gradloom::app
