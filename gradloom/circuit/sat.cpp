#include "gradloom/circuit/sat.h"

#include <algorithm>
#include <array>
#include <cadical.hpp>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <map>

#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

constexpr int kSatisfiable = 10, kUnsatisfiable = 20;  // as in the competitions

class Asked : public CaDiCaL::Terminator {
 public:
  explicit Asked(const std::atomic<bool>* stop) : stop_(stop) {}
  bool terminate() override { return stop_ && stop_->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* stop_;
};

// Tseitin's encoding: a variable per gate, and clauses that tie it to its operands. Literals are the solver's, numbers
// with a sign; equal gates of equal literals share a variable.
class Encoder {
 public:
  explicit Encoder(std::uint32_t inputs) : variables_(static_cast<int>(inputs) + 1), true_(variables_) {
    solver_.set("quiet", 1);
    clause({true_});
  }

  CaDiCaL::Solver& solver() { return solver_; }

  // The literals of the outputs. Input i is variable i + 1 of every circuit.
  std::vector<int> encode(const Circuit& circuit) {
    std::vector<int> literals;
    for (std::uint32_t i = 0; i < circuit.inputs; ++i) literals.push_back(static_cast<int>(i) + 1);
    for (const Gate& g : circuit.gates)
      literals.push_back(gate(g.op, reads_a(g.op) ? literals[g.a] : true_, reads_b(g.op) ? literals[g.b] : true_));
    std::vector<int> outputs;
    for (const std::uint32_t o : circuit.outputs) outputs.push_back(literals[o]);
    return outputs;
  }

  int gate(Op op, int a, int b) {
    if (!reads_a(op)) return unary(apply(op, true, false), apply(op, true, true), b);
    if (!reads_b(op)) return unary(apply(op, false, true), apply(op, true, true), a);
    if (std::abs(a) == std::abs(b)) return unary(apply(op, false, a != b), apply(op, true, a == b), a);
    int& y = known_[{static_cast<int>(op), a, b}];
    if (y != 0) return y;
    y = fresh();
    const auto value = [&](bool x, bool z) { return apply(op, x, z) ? y : -y; };
    for (const bool x : {false, true}) {
      if (value(x, false) == value(x, true)) clause({x ? -a : a, value(x, false)});
      if (value(false, x) == value(true, x)) clause({x ? -b : b, value(false, x)});
      for (const bool z : {false, true}) clause({x ? -a : a, z ? -b : b, value(x, z)});
    }
    return y;
  }

  int fresh() { return ++variables_; }

  void clause(std::initializer_list<int> literals) {
    for (const int literal : literals) solver_.add(literal);
    solver_.add(0);
  }

 private:
  int unary(bool at_false, bool at_true, int literal) const {
    if (at_false == at_true) return at_true ? true_ : -true_;
    return at_true ? literal : -literal;
  }

  CaDiCaL::Solver solver_;
  int variables_, true_;
  std::map<std::array<int, 3>, int> known_;
};

}  // namespace

std::vector<SatOutput> compare_by_sat(const Circuit& a, const Circuit& b, std::uint32_t conflicts,
                                      const std::atomic<bool>* stop) {
  Asked asked(stop);
  Encoder encoder(a.inputs);
  CaDiCaL::Solver& solver = encoder.solver();
  solver.connect_terminator(&asked);
  const std::vector<int> x = encoder.encode(a), y = encoder.encode(b);
  std::vector<int> differs;
  for (std::size_t o = 0; o < x.size(); ++o) differs.push_back(encoder.gate(Op::a_xor_b, x[o], y[o]));
  const int limit = static_cast<int>(std::min<std::uint32_t>(conflicts, std::numeric_limits<int>::max()));

  // All outputs at once: does any differ?
  const int any = encoder.fresh();
  solver.add(-any);
  for (const int d : differs) solver.add(d);
  solver.add(0);
  std::vector<SatOutput> outputs(x.size());
  solver.assume(any);
  solver.limit("conflicts", limit);
  if (solver.solve() == kUnsatisfiable) {
    for (SatOutput& o : outputs) o.answer = SatAnswer::equal;
    return outputs;
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    solver.assume(differs[o]);
    solver.limit("conflicts", limit);
    const int answer = solver.solve();
    if (answer == kUnsatisfiable) outputs[o].answer = SatAnswer::equal;
    if (answer != kSatisfiable) continue;
    outputs[o].answer = SatAnswer::different;
    for (std::uint32_t i = 0; i < a.inputs; ++i) outputs[o].inputs.push_back(solver.val(static_cast<int>(i) + 1) > 0);
  }
  return outputs;
}

}  // namespace gradloom::circuit
