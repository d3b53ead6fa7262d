#include "gradloom/data/graph_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "gradloom/data/csv.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {

GraphAttributes::Value* GraphAttributes::find(std::string_view name) {
  const auto it = std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.name == name; });
  return it == values_.end() ? nullptr : &*it;
}

bool GraphAttributes::has(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(), [&](const Value& v) { return v.name == name; });
}

bool GraphAttributes::add_text(std::string_view name, std::string_view text) {
  if (has(name)) return false;
  values_.push_back({std::string(name), std::string(text), {}});
  return true;
}

bool GraphAttributes::add_number(std::string_view name, double value, std::string_view text) {
  if (has(name)) return false;
  values_.push_back({std::string(name), std::string(text), {value}});
  return true;
}

bool GraphAttributes::append_number(std::string_view name, double value) {
  Value* known = find(name);
  if (known == nullptr) {
    values_.push_back({std::string(name), "", {value}});
    return true;
  }
  if (known->numbers.empty()) return false;
  known->numbers.push_back(value);
  return true;
}

std::optional<std::string> GraphAttributes::take(std::string_view name) {
  Value* known = find(name);
  if (known == nullptr) return std::nullopt;
  std::string text = std::move(known->text);
  values_.erase(values_.begin() + (known - values_.data()));
  return text;
}

void GraphAttributes::sort() {
  std::sort(values_.begin(), values_.end(), [](const Value& a, const Value& b) { return a.name < b.name; });
}

std::optional<std::string> GraphAttributes::label() {
  sort();
  const auto is_text = [](const Value& v) { return v.numbers.empty(); };
  const auto texts = std::count_if(values_.begin(), values_.end(), is_text);
  if (texts == 0) return std::nullopt;
  std::string label;
  for (const Value& v : values_)
    if (is_text(v)) label += texts == 1 ? v.text : fmt::format("{}{}={}", label.empty() ? "" : " ", v.name, v.text);
  return label;
}

std::vector<double> GraphAttributes::features() {
  sort();
  std::vector<double> features;
  for (const Value& v : values_) features.insert(features.end(), v.numbers.begin(), v.numbers.end());
  return features;
}

std::vector<std::pair<std::string, std::size_t>> GraphAttributes::kinds() {
  sort();
  std::vector<std::pair<std::string, std::size_t>> found;
  for (const Value& v : values_) found.emplace_back(v.name, v.numbers.size());
  return found;
}

std::string SharedFeatures::see(GraphAttributes& attributes) {
  auto kinds = attributes.kinds();
  if (!kinds_) {
    kinds_ = std::move(kinds);
    return "";
  }
  if (kinds == *kinds_) return "";
  for (const auto& [name, numbers] : kinds) {
    const auto known = std::ranges::find(*kinds_, name, &std::pair<std::string, std::size_t>::first);
    if (known != kinds_->end() && (known->second == 0) != (numbers == 0))
      return fmt::format(
          "the attribute '{}' is {} here and {} before; numbers with a fraction are features, all else is the label: "
          "write it in one form everywhere, 1.0 instead of 1 where it is a feature",
          TextLines::shown(name), numbers == 0 ? "a whole number or a text" : "a number with a fraction",
          numbers == 0 ? "a number with a fraction" : "a whole number or a text");
  }
  const std::vector<std::string> before = names();
  std::swap(kinds, *kinds_);
  const std::vector<std::string> now = names();
  std::swap(kinds, *kinds_);
  const auto [mine, known] = std::ranges::mismatch(now, before);
  if (now.size() != before.size() || mine == now.end()) return "";
  return fmt::format("the feature '{}' is in the place of '{}'; all must have the same features",
                     TextLines::shown(*mine), TextLines::shown(*known));
}

std::vector<std::string> SharedFeatures::names() const {
  std::vector<std::string> all;
  if (!kinds_) return all;
  for (const auto& [name, numbers] : *kinds_)
    for (std::size_t i = 0; i < numbers; ++i) all.push_back(numbers == 1 ? name : fmt::format("{}[{}]", name, i));
  return all;
}

namespace {

[[noreturn]] void fail_draft(const std::string& place, const std::string& message) {
  throw_invalid(fmt::format("{}: {}", place, message));
}

class DraftBuilder {
 public:
  DraftBuilder(GraphDraft draft, const GraphSource& source, GraphSetBuilder& set)
      : draft_(std::move(draft)), source_(source), set_(set), graph_(draft_.direction, source.loops) {}

  void run() {
    add_nodes();
    for (std::size_t e = 0; e < draft_.edges.size(); ++e) add_edge(e);
    if (const auto name = draft_.attributes.take(source_.class_column))
      graph_.set_class(set_.graph_classes.intern(*name));
    if (const auto target = draft_.attributes.take("target")) {
      double value = 0.0;
      if (!parse_number(*target, value))
        fail_draft(source_.path.string(),
                   fmt::format("the target '{}' of graph '{}' is not a number", TextLines::shown(*target), draft_.id));
      graph_.set_target(value);
    }
    const auto index = static_cast<std::uint32_t>(set_.size());
    set_.add(graph_, draft_.id, draft_.attributes.take("split").value_or(""));
    for (auto& [name, nodes] : splits_) set_.add_node_split({index, name, std::move(nodes)});
    set_.name_nodes(std::move(names_));
    const auto named = set_.name_features(draft_.feature_names.empty() ? node_features_.names() : draft_.feature_names,
                                          edge_features_.names());
    if (!named) fail_draft(source_.path.string(), named.error().message);
  }

 private:
  void add_nodes() {
    bool classes = false;
    for (const NodeDraft& node : draft_.nodes) classes = classes || node.attributes.has(source_.class_column);
    for (std::size_t v = 0; v < draft_.nodes.size(); ++v) {
      NodeDraft& node = draft_.nodes[v];
      if (!numbers_.emplace(node.id, graph_.nodes()).second)
        fail_draft(draft_.node_place(v),
                   fmt::format("the node id '{}' occurs twice; ids must be unique", TextLines::shown(node.id)));
      NodeValues values;
      const auto name = node.attributes.take(source_.class_column);
      if (classes) values.node_class = name && !name->empty() ? set_.node_classes.intern(*name) : kUnlabelled;
      if (const auto split = node.attributes.take("split"); split && !split->empty())
        splits_[*split].push_back(graph_.nodes());
      if (const std::string wrong = draft_.feature_names.empty() ? node_features_.see(node.attributes) : "";
          !wrong.empty())
        fail_draft(draft_.node_place(v), wrong);
      if (const auto label = node.attributes.label()) values.label = set_.node_labels.intern(*label);
      const std::vector<double> features = node.attributes.features();
      values.features = features;
      if (auto added = graph_.add_node(values); !added) fail_draft(draft_.node_place(v), added.error().message);
      names_.push_back(std::move(node.id));
    }
  }

  std::uint32_t end(std::size_t edge, const std::string& id) const {
    const auto it = numbers_.find(id);
    if (it == numbers_.end())
      fail_draft(draft_.edge_place(edge),
                 fmt::format("the edge ends at the node '{}', which does not exist", TextLines::shown(id)));
    return it->second;
  }

  void add_edge(std::size_t e) {
    EdgeDraft& edge = draft_.edges[e];
    const std::uint32_t from = end(e, edge.from), to = end(e, edge.to);
    EdgeValues values;
    if (const auto weight = edge.attributes.take("weight")) {
      double value = 0.0;
      if (!parse_number(*weight, value))
        fail_draft(draft_.edge_place(e), fmt::format("the weight '{}' is not a number", TextLines::shown(*weight)));
      values.weight = value;
    }
    if (const std::string wrong = edge_features_.see(edge.attributes); !wrong.empty())
      fail_draft(draft_.edge_place(e), wrong);
    if (const auto label = edge.attributes.label()) values.label = set_.edge_labels.intern(*label);
    const std::vector<double> features = edge.attributes.features();
    values.features = features;
    if (draft_.direction == Direction::undirected && from != to && is_twin(from, to, values)) return;
    if (auto added = graph_.add_edge(from, to, values); !added) fail_draft(draft_.edge_place(e), added.error().message);
  }

  // Whether the same edge was given from its other end, once.
  bool is_twin(std::uint32_t from, std::uint32_t to, const EdgeValues& values) {
    Known mine{values.label, values.weight, {values.features.begin(), values.features.end()}, false};
    const auto other = known_.find({to, from});
    if (other == known_.end()) {
      known_.emplace(std::pair(from, to), std::move(mine));
      return false;
    }
    if (other->second.twice || !(other->second == mine)) return false;  // the builder refuses it
    other->second.twice = true;
    return true;
  }

  struct Known {
    std::optional<std::uint32_t> label;
    std::optional<double> weight;
    std::vector<double> features;
    bool twice = false;
    bool operator==(const Known& o) const { return label == o.label && weight == o.weight && features == o.features; }
  };

  GraphDraft draft_;
  const GraphSource& source_;
  GraphSetBuilder& set_;
  GraphBuilder graph_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of nodes, by id
  std::vector<std::string> names_;
  SharedFeatures node_features_, edge_features_;
  std::map<std::string, std::vector<std::uint32_t>> splits_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Known> known_;
};

}  // namespace

void add_draft(GraphDraft draft, const GraphSource& source, GraphSetBuilder& set) {
  DraftBuilder(std::move(draft), source, set).run();
}

}  // namespace gradloom
