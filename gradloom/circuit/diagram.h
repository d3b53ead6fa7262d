// Binary decision diagrams of a circuit's outputs: equal functions have equal numbers.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

class Diagrams {
 public:
  using Ref = std::uint32_t;  // 0: false, 1: true, else a node
  static constexpr std::size_t kMostNodes = 1 << 20;

  // Input i of the circuit is variable place[i]; places differ. Throws Exception(unsupported) above kMostNodes.
  Diagrams(const Circuit& circuit, const std::vector<std::uint32_t>& place);

  const std::vector<Ref>& outputs() const { return outputs_; }
  // The function once its variable `variable`, which comes before all others that it depends on, has this value.
  Ref after(Ref f, std::uint32_t variable, bool value) const;

 private:
  struct Node {
    std::uint32_t variable;
    Ref low, high;
    bool operator==(const Node&) const = default;
  };
  struct Hash {
    std::size_t operator()(const std::array<std::uint32_t, 3>& key) const;
  };
  Ref make(std::uint32_t variable, Ref low, Ref high);
  Ref choose(Ref condition, Ref yes, Ref no);  // condition ? yes : no
  std::uint32_t variable_of(Ref f) const { return f < 2 ? 0xffffffffu : nodes_[f].variable; }

  std::vector<Node> nodes_;
  std::unordered_map<std::array<std::uint32_t, 3>, Ref, Hash> unique_, chosen_;
  std::vector<Ref> outputs_;
};

}  // namespace gradloom::circuit
