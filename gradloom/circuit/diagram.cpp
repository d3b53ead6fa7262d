#include "gradloom/circuit/diagram.h"

#include <algorithm>

#include "gradloom/base/error.h"

namespace gradloom::circuit {

std::size_t Diagrams::Hash::operator()(const std::array<std::uint32_t, 3>& key) const {
  std::uint64_t h = 0;
  for (const std::uint32_t part : key) h = (h ^ part) * 0x9e3779b97f4a7c15u + (h >> 29);
  return static_cast<std::size_t>(h);
}

Diagrams::Diagrams(const Circuit& circuit, const std::vector<std::uint32_t>& place) : nodes_(2) {
  std::vector<Ref> signals;
  for (std::uint32_t i = 0; i < circuit.inputs; ++i) signals.push_back(make(place[i], 0, 1));
  if (circuit.inputs == 0) signals.push_back(0);  // constant gates read signal 0
  for (std::size_t g = 0; g < circuit.gates.size(); ++g) {
    const Gate& gate = circuit.gates[g];
    const auto table = static_cast<unsigned>(gate.op);
    const Ref b = signals[gate.b], not_b = choose(b, 0, 1);
    const auto of_b = [&](unsigned zero, unsigned one) -> Ref { return zero == one ? zero : (one ? b : not_b); };
    const Ref value = choose(signals[gate.a], of_b(table >> 1 & 1, table & 1), of_b(table >> 3 & 1, table >> 2 & 1));
    if (circuit.inputs + g < signals.size())
      signals[circuit.inputs + g] = value;
    else
      signals.push_back(value);
  }
  for (const std::uint32_t o : circuit.outputs) outputs_.push_back(signals[o]);
}

Diagrams::Ref Diagrams::make(std::uint32_t variable, Ref low, Ref high) {
  if (low == high) return low;
  const auto [it, added] = unique_.emplace(std::array{variable, low, high}, static_cast<Ref>(nodes_.size()));
  if (!added) return it->second;
  if (nodes_.size() >= kMostNodes)
    throw Exception(ErrorCode::unsupported,
                    "the rule is too complex for a rule tree: its decision diagrams grow too large");
  nodes_.push_back({variable, low, high});
  return it->second;
}

Diagrams::Ref Diagrams::choose(Ref condition, Ref yes, Ref no) {
  if (condition == 1) return yes;
  if (condition == 0) return no;
  if (yes == no) return yes;
  if (yes == 1 && no == 0) return condition;
  const std::array key{condition, yes, no};
  if (const auto known = chosen_.find(key); known != chosen_.end()) return known->second;
  const std::uint32_t top = std::min({variable_of(condition), variable_of(yes), variable_of(no)});
  const Ref low = choose(after(condition, top, false), after(yes, top, false), after(no, top, false));
  const Ref high = choose(after(condition, top, true), after(yes, top, true), after(no, top, true));
  return chosen_.emplace(key, make(top, low, high)).first->second;
}

Diagrams::Ref Diagrams::after(Ref f, std::uint32_t variable, bool value) const {
  if (variable_of(f) != variable) return f;
  return value ? nodes_[f].high : nodes_[f].low;
}

}  // namespace gradloom::circuit
