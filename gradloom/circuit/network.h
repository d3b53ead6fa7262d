// Network: a circuit as conjunctions and parities with inverters on the edges, each function of two edges only once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// 2 * node + 1 if inverted. Node 0 is the constant false, nodes 1..inputs are the inputs.
using Literal = std::uint32_t;
inline constexpr Literal kFalse = 0, kTrue = 1;
constexpr Literal literal(std::uint32_t node, bool inverted = false) { return 2 * node + (inverted ? 1 : 0); }
constexpr std::uint32_t node_of(Literal l) { return l >> 1; }
constexpr bool inverted(Literal l) { return l & 1; }

struct NetworkNode {
  enum class Kind : std::uint8_t { leaf, conjunction, parity };
  Kind kind = Kind::leaf;
  Literal a = 0, b = 0;  // a < b; of nodes with a smaller number; never inverted in a parity
};

// Every two-input gate but the constants, A and B is one node, whatever inverters stand around it, so nodes count
// gates. Building folds constants, pass-throughs and what two neighbouring nodes show (a & (a & b), a ^ (a ^ b), ...).
class Network {
 public:
  explicit Network(std::uint32_t inputs);
  // Precondition: validate(circuit) succeeds. Dead gates are left out.
  static Network from(const Circuit& circuit);

  Literal input(std::uint32_t i) const { return literal(1 + i); }
  Literal conjunction(Literal a, Literal b);
  Literal parity(Literal a, Literal b);
  Literal gate(Op op, Literal a, Literal b);
  void add_output(Literal l) { outputs_.push_back(l); }

  std::uint32_t inputs() const { return inputs_; }
  std::uint32_t first_gate() const { return inputs_ + 1; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::size_t gates() const { return nodes_.size() - first_gate(); }
  const NetworkNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  const std::vector<Literal>& outputs() const { return outputs_; }

  // The nodes that an output depends on, renumbered in the same order.
  Network without_dead() const;
  // Inverters vanish into the gates. Only an output that needs the inverse of an input, or of a node whose other
  // polarity is an output too, costs a gate of its own; so does a constant output.
  Circuit to_circuit() const;

 private:
  Literal intern(NetworkNode::Kind kind, Literal a, Literal b);

  std::uint32_t inputs_;
  std::vector<NetworkNode> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_[2];
  std::vector<Literal> outputs_;
};

}  // namespace gradloom::circuit
