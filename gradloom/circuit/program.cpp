#include "gradloom/circuit/program.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gradloom/circuit/network.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

using kernels::bits::BitInstruction;
using kernels::bits::BitOp;

// A and B: the operand and itself.
BitOp bit_op(Op op) {
  constexpr BitOp kOps[16] = {BitOp::zero,        BitOp::a_and_b,    BitOp::a_and_not_b, BitOp::a_and_b,
                              BitOp::not_a_and_b, BitOp::a_and_b,    BitOp::a_xor_b,     BitOp::a_or_b,
                              BitOp::nor,         BitOp::xnor,       BitOp::not_a,       BitOp::a_or_not_b,
                              BitOp::not_a,       BitOp::not_a_or_b, BitOp::nand,        BitOp::one};
  return kOps[static_cast<unsigned>(op)];
}

Op with_swapped_operands(Op op) {
  const auto t = static_cast<unsigned>(op);
  return static_cast<Op>((t & 9) | (t & 2) << 1 | (t & 4) >> 1);
}

Op with_inverted_a(Op op) {
  const auto t = static_cast<unsigned>(op);
  return static_cast<Op>((t & 3) << 2 | t >> 2);
}

bool of_two(Op op) { return reads_a(op) && reads_b(op); }

// inner with at most one inverter inside and none behind it; the one behind moves into `outer`, which reads it as a.
struct Pair {
  Op inner, outer;
  bool swapped;  // operands of inner
};

Pair normalised(Op inner, Op outer) {
  const auto complement = [&] {
    inner = static_cast<Op>(15 - static_cast<unsigned>(inner));
    outer = with_inverted_a(outer);
  };
  if (inner == Op::nand || inner == Op::nor || inner == Op::xnor || inner == Op::a_or_not_b || inner == Op::not_a_or_b)
    complement();
  if (inner == Op::not_a_and_b) return {Op::a_and_not_b, outer, true};
  return {inner, outer, false};
}

class Compiler {
 public:
  explicit Compiler(const Circuit& circuit)
      : c_(Network::from(circuit).to_circuit()), uses_(c_.signals(), 0), absorbs_(c_.gates.size(), kNobody) {
    for (const Gate& gate : c_.gates) {
      if (reads_a(gate.op)) ++uses_[gate.a];
      if (reads_b(gate.op)) ++uses_[gate.b];
    }
    for (const std::uint32_t o : c_.outputs) uses_[o] += kKept;
    choose_pairs();
    order_gates();
  }

  BitProgram run() {
    program_.inputs = c_.inputs;
    program_.reads.assign(c_.inputs, false);
    row_.resize(c_.signals());
    for (std::uint32_t i = 0; i < c_.inputs; ++i) {
      row_[i] = i;
      program_.reads[i] = uses_[i] > 0;
    }
    for (const std::uint32_t g : order_) emit(g);
    for (const std::uint32_t o : c_.outputs) program_.outputs.push_back(row_[o]);
    return std::move(program_);
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX, kKept = 1u << 24;

  bool is_gate(std::uint32_t signal) const { return signal >= c_.inputs; }

  void choose_pairs() {
    std::vector<bool> taken(c_.gates.size(), false);
    for (std::uint32_t g = 0; g < c_.gates.size(); ++g) {
      const Gate& gate = c_.gates[g];
      if (!of_two(gate.op) || gate.a == gate.b) continue;
      for (const std::uint32_t operand : {gate.a, gate.b}) {
        if (!is_gate(operand) || uses_[operand] != 1) continue;
        const std::uint32_t inner = operand - c_.inputs;
        if (taken[inner] || absorbs_[inner] != kNobody || !of_two(c_.gates[inner].op)) continue;
        absorbs_[g] = inner;
        taken[inner] = true;
        break;
      }
    }
    taken_ = std::move(taken);
  }

  // What instruction g reads: up to three signals.
  std::vector<std::uint32_t> operands(std::uint32_t g) const {
    const Gate& gate = c_.gates[g];
    std::vector<std::uint32_t> read;
    const auto add = [&](std::uint32_t s) {
      if (std::find(read.begin(), read.end(), s) == read.end()) read.push_back(s);
    };
    if (absorbs_[g] != kNobody) {
      const Gate& inner = c_.gates[absorbs_[g]];
      add(inner.a);
      add(inner.b);
      add(gate.a == c_.inputs + absorbs_[g] ? gate.b : gate.a);
      return read;
    }
    if (reads_a(gate.op)) add(gate.a);
    if (reads_b(gate.op)) add(gate.b);
    return read;
  }

  // Each instruction as late as its first reader allows: depth first from the outputs, larger cones first. So few
  // values wait at a time.
  void order_gates() {
    std::vector<std::uint32_t> level(c_.signals(), 0);
    for (std::uint32_t g = 0; g < c_.gates.size(); ++g)
      for (const std::uint32_t s : operands(g)) level[c_.inputs + g] = std::max(level[c_.inputs + g], level[s] + 1);
    std::vector<bool> done(c_.gates.size(), false);
    std::vector<std::pair<std::uint32_t, bool>> stack;
    for (auto o = c_.outputs.rbegin(); o != c_.outputs.rend(); ++o)
      if (is_gate(*o)) stack.emplace_back(*o - c_.inputs, false);
    while (!stack.empty()) {
      const auto [g, ready] = stack.back();
      stack.pop_back();
      if (done[g]) continue;
      if (ready) {
        done[g] = true;
        order_.push_back(g);
        continue;
      }
      stack.emplace_back(g, true);
      std::vector<std::uint32_t> read = operands(g);
      std::stable_sort(read.begin(), read.end(), [&](std::uint32_t x, std::uint32_t y) { return level[x] < level[y]; });
      for (const std::uint32_t s : read)
        if (is_gate(s) && !done[s - c_.inputs]) stack.emplace_back(s - c_.inputs, false);
    }
    left_.assign(c_.signals(), 0);
    for (const std::uint32_t g : order_)
      for (const std::uint32_t s : operands(g)) ++left_[s];
    for (const std::uint32_t o : c_.outputs) left_[o] += kKept;
  }

  void emit(std::uint32_t g) {
    const Gate& gate = c_.gates[g];
    BitInstruction i;
    if (const std::uint32_t inner = absorbs_[g]; inner != kNobody) {
      const bool first = gate.a == c_.inputs + inner;
      const Pair pair = normalised(c_.gates[inner].op, first ? gate.op : with_swapped_operands(gate.op));
      i.op = BitOp::pair;
      i.inner = bit_op(pair.inner);
      i.outer = bit_op(pair.outer);
      i.a = row_[pair.swapped ? c_.gates[inner].b : c_.gates[inner].a];
      i.b = row_[pair.swapped ? c_.gates[inner].a : c_.gates[inner].b];
      i.c = row_[first ? gate.b : gate.a];
    } else {
      i = instruction_of(gate.op, 0, row_[gate.a], row_[gate.b]);
    }
    for (const std::uint32_t s : operands(g))
      if (--left_[s] == 0 && is_gate(s)) free_.push_back(row_[s]);
    if (free_.empty()) free_.push_back(c_.inputs + program_.temporaries++);
    i.to = row_[c_.inputs + g] = free_.back();
    free_.pop_back();
    if (i.op == BitOp::zero || i.op == BitOp::one) i.a = i.b = i.to;
    if (i.op != BitOp::pair) i.c = i.a;
    program_.instructions.push_back(i);
  }

  Circuit c_;
  std::vector<std::uint32_t> uses_, absorbs_, order_, left_, row_, free_;
  std::vector<bool> taken_;
  BitProgram program_;
};

}  // namespace

BitInstruction instruction_of(Op op, std::uint32_t to, std::uint32_t a, std::uint32_t b) {
  BitInstruction i;
  i.op = bit_op(op);
  i.to = to;
  i.a = reads_a(op) ? a : reads_b(op) ? b : to;
  i.b = reads_b(op) ? b : i.a;
  i.c = i.a;
  return i;
}

BitProgram compile(const Circuit& circuit) { return Compiler(circuit).run(); }

std::vector<BitInstruction> relocate(const BitProgram& program, const std::vector<std::uint32_t>& at) {
  std::vector<BitInstruction> moved = program.instructions;
  for (BitInstruction& i : moved) {
    i.to = at[i.to];
    i.a = at[i.a];
    i.b = at[i.b];
    i.c = at[i.c];
  }
  return moved;
}

}  // namespace gradloom::circuit
