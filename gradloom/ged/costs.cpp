#include "gradloom/ged/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "gradloom/data/csv.h"
#include "gradloom/io/json.h"
#include "gradloom/io/nearest.h"

namespace gradloom::ged {
namespace {

constexpr double kLargestCost = 1e12;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw_invalid(fmt::format(format, std::forward<Args>(args)...));
}

// Every number of the costs, in a fixed order.
template <class F>
void for_each_cost(const Costs& c, F&& f) {
  for (double cost : {c.node_sub, c.node_delete, c.node_insert, c.edge_sub, c.edge_delete, c.edge_insert}) f(cost);
  for (const auto* pairs : {&c.node_pairs, &c.edge_pairs})
    for (const PairCost& p : *pairs) f(p.cost);
  for (const auto* list : {&c.node_deletes, &c.node_inserts, &c.edge_deletes, &c.edge_inserts})
    for (const LabelCost& l : *list) f(l.cost);
}

// Units of a cost, as the costs that were given allow them.
class Scale {
 public:
  explicit Scale(const Costs& costs) {
    double largest = 0.0;
    for_each_cost(costs, [&](double c) {
      if (!(c >= 0.0) || c > kLargestCost) refuse("the cost {} is not a number from 0 to {:g}", c, kLargestCost);
      largest = std::max(largest, c);
    });
    if (largest > 0.0 && largest < 1e-12) refuse("the largest cost is {}; it must be at least 1e-12", largest);
    for (double decimals = 1.0; decimals <= 1e6 && !exact_; decimals *= 10.0) {
      exact_ = true;
      for_each_cost(costs, [&](double c) {
        // The nearest double of a decimal number, times a power of ten, is within an ulp or two of a whole number.
        const double scaled = c * decimals;
        exact_ = exact_ && std::abs(scaled - std::round(scaled)) <= 4e-16 * scaled;
      });
      denominator_ = decimals;
    }
    if (!exact_) denominator_ = std::ldexp(1.0, 30 - std::ilogb(largest));
    std::int64_t divisor = 0, most = 0;
    for_each_cost(costs, [&](double c) {
      divisor = std::gcd(divisor, units(c));
      most = std::max(most, units(c));
    });
    if (divisor > 0) divisor_ = divisor;
    if (most / divisor_ > (std::int64_t{1} << 40)) refuse("the costs need more than 12 digits; round them to fewer");
  }
  Cost steps(double c) const { return 2 * (units(c) / divisor_); }
  double numerator() const { return static_cast<double>(divisor_); }
  double denominator() const { return 2.0 * denominator_; }

 private:
  std::int64_t units(double c) const { return std::llround(c * denominator_); }
  bool exact_ = false;
  double denominator_ = 1.0;
  std::int64_t divisor_ = 1;
};

std::uint32_t cost_label(const LabelTable& table, const std::string& name, const char* what) {
  if (const auto found = table.find(name)) return *found;
  const std::string nearest = nearest_name(name, table.names());
  refuse("the costs name the {} label '{}', which no graph has{}", what, name,
         nearest.empty() ? "" : "; the nearest is '" + nearest + "'");
}

void fill_pairs(std::unordered_map<std::uint64_t, Cost>& to, const std::vector<PairCost>& pairs,
                const LabelTable& table, const char* what, const Scale& scale) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  for (const PairCost& p : pairs) ends.emplace_back(cost_label(table, p.a, what), cost_label(table, p.b, what));
  for (std::size_t i = 0; i < pairs.size(); ++i)
    to.try_emplace(std::uint64_t{ends[i].first} << 32 | ends[i].second, scale.steps(pairs[i].cost));
  for (std::size_t i = 0; i < pairs.size(); ++i)
    to.try_emplace(std::uint64_t{ends[i].second} << 32 | ends[i].first, scale.steps(pairs[i].cost));
}

void fill_single(std::unordered_map<std::uint32_t, Cost>& to, const std::vector<LabelCost>& list,
                 const LabelTable& table, const char* what, const Scale& scale) {
  for (const LabelCost& l : list) to[cost_label(table, l.label, what)] = scale.steps(l.cost);
}

// `where` returns the file and the key; it is asked only for a message.
template <class Where>
double number_of(const nlohmann::json& value, Where&& where) {
  if (!value.is_number() || !(value.get<double>() >= 0.0) || value.get<double>() > kLargestCost)
    refuse("{} must be a number from 0 to {:g}, not {}", where(), kLargestCost, value.dump().substr(0, 40));
  return value.get<double>();
}

// `where` is the file and the key, here and below.
std::vector<PairCost> pairs_of(const nlohmann::json& list, const std::string& where) {
  if (!list.is_array()) refuse("{} must be a list such as [[\"C\", \"N\", 0.5]]", where);
  std::vector<PairCost> pairs;
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const auto& p : list) {
    if (!p.is_array() || p.size() != 3 || !p[0].is_string() || !p[1].is_string())
      refuse("{}: an entry must be [label, label, cost]", where);
    const auto &a = p[0].get_ref<const std::string&>(), &b = p[1].get_ref<const std::string&>();
    if (!known.emplace(a, b).second) refuse("{} has the pair {}, {} twice", where, p[0].dump(), p[1].dump());
    pairs.push_back({a, b, number_of(p[2], [&] {
                       return fmt::format("{}: the cost of {} and {}", where, p[0].dump(), p[1].dump());
                     })});
  }
  return pairs;
}

std::vector<LabelCost> singles_of(const nlohmann::json& table, const std::string& where) {
  std::vector<LabelCost> list;
  if (!table.is_object()) refuse("{} must be an object such as {{\"C\": 2}}", where);
  for (const auto& entry : table.items())
    list.push_back({entry.key(),
                    number_of(entry.value(), [&] { return fmt::format("{}: the cost of '{}'", where, entry.key()); })});
  return list;
}

}  // namespace

Costs uniform_costs() { return {}; }

Costs topology_costs() {
  Costs costs;
  costs.labels = Labels::ignore;
  return costs;
}

Result<Costs> parse_costs(std::string_view numbers) {
  double values[4];
  std::string_view rest = numbers;
  for (int i = 0; i < 4; ++i) {
    const std::size_t end = rest.find(',');
    if (!parse_number(rest.substr(0, end), values[i]) || !(values[i] >= 0.0) || !std::isfinite(values[i]) ||
        (end == std::string_view::npos) != (i == 3))
      return Error{ErrorCode::invalid_input,
                   fmt::format("'{}' is not four numbers >= 0: node_sub,node_indel,edge_sub,edge_indel, as in 1,1,1,1",
                               numbers)};
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  Costs costs;
  costs.node_sub = values[0];
  costs.node_delete = costs.node_insert = values[1];
  costs.edge_sub = values[2];
  costs.edge_delete = costs.edge_insert = values[3];
  return costs;
}

Result<Costs> parse_costs_json(std::string_view text, std::string_view source) {
  const auto object = parse_json(text, source);
  return object ? costs_of_json(*object, source) : object.error();
}

Result<Costs> costs_of_json(const nlohmann::json& object, std::string_view source) try {
  if (!object.is_object()) refuse("{}: this is not a JSON object with costs", source);
  Costs c;
  const std::vector<std::string> keys = {"labels",     "node_sub",     "node_indel",   "node_delete",  "node_insert",
                                         "edge_sub",   "edge_indel",   "edge_delete",  "edge_insert",  "node_pairs",
                                         "edge_pairs", "node_deletes", "node_inserts", "edge_deletes", "edge_inserts"};
  const auto at = [&](std::string_view key) { return fmt::format("{}: '{}'", source, key); };
  const auto number = [&](const std::string& key) { return number_of(object[key], [&] { return at(key); }); };
  if (object.contains("node_indel")) c.node_delete = c.node_insert = number("node_indel");
  if (object.contains("edge_indel")) c.edge_delete = c.edge_insert = number("edge_indel");
  for (const auto& [key, value] : object.items()) {
    if (key == "node_sub")
      c.node_sub = number(key);
    else if (key == "node_delete")
      c.node_delete = number(key);
    else if (key == "node_insert")
      c.node_insert = number(key);
    else if (key == "edge_sub")
      c.edge_sub = number(key);
    else if (key == "edge_delete")
      c.edge_delete = number(key);
    else if (key == "edge_insert")
      c.edge_insert = number(key);
    else if (key == "node_pairs")
      c.node_pairs = pairs_of(value, at(key));
    else if (key == "edge_pairs")
      c.edge_pairs = pairs_of(value, at(key));
    else if (key == "node_deletes")
      c.node_deletes = singles_of(value, at(key));
    else if (key == "node_inserts")
      c.node_inserts = singles_of(value, at(key));
    else if (key == "edge_deletes")
      c.edge_deletes = singles_of(value, at(key));
    else if (key == "edge_inserts")
      c.edge_inserts = singles_of(value, at(key));
    else if (key == "labels" && (value == "compare" || value == "ignore"))
      c.labels = value == "compare" ? Labels::compare : Labels::ignore;
    else if (key == "labels")
      refuse("{}: 'labels' must be \"compare\" or \"ignore\"", source);
    else if (key != "node_indel" && key != "edge_indel")
      refuse("{}: there is no cost '{}'; the nearest is '{}'", source, key, nearest_name(key, keys));
  }
  return c;
} catch (const Exception& e) {
  return e.error();
}

CostTable::CostTable(const Costs& costs, const LabelTable& node_labels, const LabelTable& edge_labels)
    : labels_(costs.labels) {
  if (costs.labels == Labels::ignore &&
      !(costs.node_pairs.empty() && costs.edge_pairs.empty() && costs.node_deletes.empty() &&
        costs.node_inserts.empty() && costs.edge_deletes.empty() && costs.edge_inserts.empty()))
    refuse("the costs ignore labels, but also list costs for some; remove one of the two");
  const Scale scale(costs);
  numerator_ = scale.numerator();
  denominator_ = scale.denominator();
  node_.replace = scale.steps(costs.node_sub);
  node_.erase = scale.steps(costs.node_delete);
  node_.insert = scale.steps(costs.node_insert);
  edge_.replace = scale.steps(costs.edge_sub);
  edge_.erase = scale.steps(costs.edge_delete);
  edge_.insert = scale.steps(costs.edge_insert);
  fill_pairs(node_.pairs, costs.node_pairs, node_labels, "node", scale);
  fill_pairs(edge_.pairs, costs.edge_pairs, edge_labels, "edge", scale);
  fill_single(node_.deletes, costs.node_deletes, node_labels, "node", scale);
  fill_single(node_.inserts, costs.node_inserts, node_labels, "node", scale);
  fill_single(edge_.deletes, costs.edge_deletes, edge_labels, "edge", scale);
  fill_single(edge_.inserts, costs.edge_inserts, edge_labels, "edge", scale);
  for_each_cost(costs, [&](double c) { largest_ = std::max(largest_, scale.steps(c)); });
}

Cost CostTable::steps_within(double given) const {
  constexpr Cost kMost = Cost{1} << 60;
  const double steps = given * denominator_ / numerator_;
  if (steps >= static_cast<double>(kMost)) return kMost;
  auto found = static_cast<Cost>(steps) & ~Cost{1};
  while (value(found + 2) <= given) found += 2;  // the division may have rounded
  while (found > 0 && value(found) > given) found -= 2;
  return found;
}

}  // namespace gradloom::ged
