#include "gradloom/models/logic/trial.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gradloom/base/random.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::logic {
namespace {

using circuit::Gate;
using circuit::Op;

constexpr std::uint32_t kZero = ~0u, kOne = ~0u - 1;  // signals that are constant

constexpr std::size_t kAlignment = 4;  // of rows, in words: what run_bits() needs

bool constant(std::uint32_t signal) { return signal >= kOne; }

// What remains of a gate: a constant, a signal, or (kept) a gate.
struct Folded {
  bool keep;
  std::uint32_t signal;
  Gate gate;
};

Folded unary(bool at_zero, bool at_one, std::uint32_t signal) {
  if (at_zero == at_one) return {false, at_one ? kOne : kZero, {}};
  if (at_one) return {false, signal, {}};
  return {true, 0, {Op::not_a, signal, signal}};
}

Folded fold_gate(Op op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case Op::always_false:
      return {false, kZero, {}};
    case Op::always_true:
      return {false, kOne, {}};
    case Op::a:
      return {false, a, {}};
    case Op::b:
      return {false, b, {}};
    default:
      break;
  }
  if (constant(a) && constant(b)) return {false, apply(op, a == kOne, b == kOne) ? kOne : kZero, {}};
  if (constant(a)) return unary(apply(op, a == kOne, false), apply(op, a == kOne, true), b);
  if (constant(b)) return unary(apply(op, false, b == kOne), apply(op, true, b == kOne), a);
  if (a == b) return unary(apply(op, false, false), apply(op, true, true), a);
  return {true, 0, {op, a, b}};
}

}  // namespace

std::uint32_t TrialCompiler::push(Op op, std::uint32_t a, std::uint32_t b) {
  const Folded f = fold_gate(op, a, b);
  if (!f.keep) return f.signal;
  nodes_.push_back(f.gate);
  return static_cast<std::uint32_t>(first_ + nodes_.size() - 1);
}

const TrialProgram& TrialCompiler::compile(const circuit::Circuit& circuit, std::span<const Mutation> mutations,
                                           std::span<const std::uint64_t> masks) {
  const std::uint32_t inputs = circuit.inputs;
  compiled_.masks.assign(masks.begin(), masks.end());
  first_ = static_cast<std::uint32_t>(inputs + masks.size());
  nodes_.clear();
  value_.resize(circuit.signals());
  for (std::uint32_t i = 0; i < inputs; ++i) value_[i] = i;
  std::size_t next = 0;
  for (std::size_t g = 0; g < circuit.gates.size(); ++g) {
    const Gate& gate = circuit.gates[g];
    const std::uint32_t a = value_[gate.a], b = value_[gate.b];
    std::uint32_t value = push(gate.op, a, b);
    for (; next < mutations.size() && mutations[next].gate == g; ++next) {
      // Where the mask is set, the bits in which the two functions differ are turned.
      const auto differ = static_cast<Op>(static_cast<unsigned>(gate.op) ^ static_cast<unsigned>(mutations[next].op));
      const std::uint32_t turned = push(Op::a_and_b, inputs + mutations[next].mask, push(differ, a, b));
      value = push(Op::a_xor_b, value, turned);
    }
    value_[inputs + g] = value;
  }
  // The last reader of each signal.
  constexpr std::uint32_t kNever = ~0u;
  last_use_.assign(first_ + nodes_.size(), kNever);
  for (const std::uint32_t o : circuit.outputs)
    if (!constant(value_[o])) last_use_[value_[o]] = static_cast<std::uint32_t>(nodes_.size());
  for (std::size_t n = nodes_.size(); n-- > 0;)
    if (last_use_[first_ + n] != kNever)
      for (const std::uint32_t signal : {nodes_[n].a, nodes_[n].b})
        if (last_use_[signal] == kNever) last_use_[signal] = static_cast<std::uint32_t>(n);
  circuit::BitProgram& program = compiled_.program;
  program.inputs = first_;
  program.temporaries = 0;
  program.instructions.clear();
  program.outputs.clear();
  program.reads.resize(first_);
  for (std::uint32_t i = 0; i < first_; ++i) program.reads[i] = last_use_[i] != kNever;
  row_.resize(first_ + nodes_.size());
  for (std::uint32_t i = 0; i < first_; ++i) row_[i] = i;
  free_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (last_use_[first_ + n] == kNever) continue;
    const Gate& gate = nodes_[n];
    const std::uint32_t a = row_[gate.a], b = row_[gate.b];
    if (free_.empty()) free_.push_back(first_ + program.temporaries++);
    const std::uint32_t to = row_[first_ + n] = free_.back();
    free_.pop_back();
    program.instructions.push_back(circuit::instruction_of(gate.op, to, a, b));
    if (a >= first_ && last_use_[gate.a] == n) free_.push_back(a);
    if (b >= first_ && b != a && last_use_[gate.b] == n) free_.push_back(b);
  }
  compiled_.gates = program.instructions.size();
  for (const std::uint32_t o : circuit.outputs) {
    if (!constant(value_[o])) {
      program.outputs.push_back(row_[value_[o]]);
      continue;
    }
    const std::uint32_t to = first_ + program.temporaries++;
    const Op op = value_[o] == kOne ? Op::always_true : Op::always_false;
    program.instructions.push_back(circuit::instruction_of(op, to, to, to));
    program.outputs.push_back(to);
  }
  return compiled_;
}

std::vector<std::uint8_t> TrialCompiler::reached(const circuit::Circuit& circuit) {
  const std::uint32_t inputs = circuit.inputs;
  std::vector<std::uint8_t> reached(circuit.gates.size(), 0);
  const auto reach = [&](std::uint32_t signal) {
    if (signal >= inputs) reached[signal - inputs] = 1;
  };
  for (const std::uint32_t o : circuit.outputs) reach(o);
  for (std::size_t g = circuit.gates.size(); g-- > 0;) {
    if (!reached[g]) continue;
    const Gate& gate = circuit.gates[g];
    if (circuit::reads_a(gate.op)) reach(gate.a);
    if (circuit::reads_b(gate.op)) reach(gate.b);
  }
  return reached;
}

TrialRunner::TrialRunner(Trial trial) : trial_(std::move(trial)) {
  const std::size_t h = trial_.height, w = trial_.width;
  stride_ = w + 2;
  first_ = stride_ + 1;
  words_ = (h - 1) * stride_ + w;
  row_ = (words_ + kAlignment - 1) / kAlignment * kAlignment;
  plane_ = (h + 2) * stride_;
  inside_.assign(plane_, 0);
  alive_.assign(plane_, 0);
  const auto at = [&](std::size_t cell) { return (cell / w + 1) * stride_ + cell % w + 1; };
  for (std::size_t cell = 0; cell < h * w; ++cell) {
    inside_[at(cell)] = ~std::uint64_t{0};
    alive_[at(cell)] = trial_.dead.empty() ? ~std::uint64_t{0} : ~trial_.dead[cell];
  }
  const auto planes = [&](const std::vector<std::uint64_t>& from) {
    std::vector<std::uint64_t> to(from.size() / (h * w) * plane_, 0);
    for (std::size_t i = 0; i < from.size(); ++i) to[i / (h * w) * plane_ + at(i % (h * w))] = from[i];
    return to;
  };
  start_ = planes(trial_.start);
  target_ = planes(trial_.target);
  const std::size_t steps = trial_.looks.empty() ? 0 : trial_.looks.back().step;
  if (trial_.asynchronous == 0) return;
  firing_.assign(steps * words_, 0);
  for (std::size_t s = 0; s < steps; ++s) {
    const RandomStream random(trial_.seed, RandomUse::fire, 1, static_cast<std::uint32_t>(s));
    for (std::size_t i = 0; i < words_; ++i) {
      // Compares eight random bits with `fire`, from the lowest bit on, in all starts at once.
      std::uint64_t below = 0;
      for (unsigned bit = 0; bit < 8; ++bit) {
        const std::uint64_t r = random.bits(static_cast<std::uint32_t>(8 * i + bit));
        below = trial_.fire >> bit & 1u ? ~r | below : ~r & below;
      }
      if (trial_.fire >= 256) below = ~std::uint64_t{0};
      firing_[s * words_ + i] = below | ~trial_.asynchronous;
    }
  }
}

std::uint64_t* TrialRunner::aligned_rows() {
  const std::size_t word = reinterpret_cast<std::uintptr_t>(rows_.data()) / sizeof(std::uint64_t);
  return rows_.data() + (kAlignment - word % kAlignment) % kAlignment;
}

void TrialRunner::wrap() {
  const std::size_t h = trial_.height, w = trial_.width;
  for (std::size_t c = 0; c < trial_.channels; ++c) {
    std::uint64_t* p = now_.data() + c * plane_;
    for (std::size_t y = 1; y <= h; ++y) {
      p[y * stride_] = p[y * stride_ + w];
      p[y * stride_ + w + 1] = p[y * stride_ + 1];
    }
    std::copy_n(p + h * stride_, stride_, p);
    std::copy_n(p + stride_, stride_, p + (h + 1) * stride_);
  }
}

void TrialRunner::step(const TrialProgram& rule, std::size_t number) {
  if (trial_.boundary == circuit::Boundary::periodic) wrap();
  // A plane with its border is one row: the neighbour of every cell is a constant distance away.
  std::uint64_t* rows = aligned_rows();
  for (std::size_t r = 0; r < 9 * trial_.channels; ++r)
    if (rule.program.reads[r])
      std::copy_n(now_.data() + r / 9 * plane_ + r % 9 / 3 * stride_ + r % 3, words_, rows + r * row_);
  kernels::bits::run_bits(Variant::fast, instructions_, rows, row_);
  const bool repaired = trial_.dead.empty() || number >= trial_.repaired;
  const std::uint64_t* alive = (repaired ? inside_ : alive_).data() + first_;
  const std::uint64_t* fires = firing_.empty() ? nullptr : firing_.data() + number * words_;
  for (std::size_t c = 0; c < trial_.channels; ++c) {
    std::uint64_t* to = now_.data() + c * plane_ + first_;
    const std::uint64_t* from = rows + rule.program.outputs[c] * row_;
    if (fires)
      for (std::size_t i = 0; i < words_; ++i) to[i] = ((from[i] & fires[i]) | (to[i] & ~fires[i])) & alive[i];
    else
      for (std::size_t i = 0; i < words_; ++i) to[i] = from[i] & alive[i];
  }
}

template <class Count>
void TrialRunner::compare(const Trial::Look& look, Count count) const {
  const bool repaired = trial_.dead.empty() || look.step > trial_.repaired;
  const std::vector<std::uint64_t>& counted = repaired ? inside_ : alive_;
  for (std::size_t c = 0; c * plane_ < target_.size(); ++c)
    for (std::size_t i = first_; i < first_ + words_; ++i)
      count((now_[c * plane_ + i] ^ target_[c * plane_ + i]) & counted[i] & look.starts);
}

void TrialRunner::begin(const TrialProgram& rule) {
  now_ = start_;
  std::vector<std::uint32_t> at(rule.program.inputs + rule.program.temporaries);
  for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<std::uint32_t>(r * row_);
  instructions_ = circuit::relocate(rule.program, at);
  rows_.resize(at.size() * row_ + kAlignment);
  std::uint64_t* masks = aligned_rows() + (rule.program.inputs - rule.masks.size()) * row_;
  for (std::size_t m = 0; m < rule.masks.size(); ++m) std::fill_n(masks + m * row_, row_, rule.masks[m]);
  if (!trial_.dead.empty())
    for (std::size_t i = 0; i < now_.size(); ++i) now_[i] &= alive_[i % plane_];
}

std::uint64_t TrialRunner::wrong(const TrialProgram& rule, std::uint64_t most) {
  begin(rule);
  std::uint64_t wrong = 0;
  std::size_t done = 0;
  for (const Trial::Look& look : trial_.looks) {
    for (; done < look.step; ++done) step(rule, done);
    compare(look, [&](std::uint64_t starts) { wrong += static_cast<std::uint64_t>(std::popcount(starts)); });
    if (wrong > most) break;
  }
  return wrong;
}

bool TrialRunner::wrong_by_group(const TrialProgram& rule, std::uint64_t most, std::span<std::uint64_t> wrong) {
  begin(rule);
  std::fill(wrong.begin(), wrong.end(), 0);
  const std::size_t width = 64 / wrong.size();
  const std::uint64_t one = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  std::size_t done = 0;
  for (const Trial::Look& look : trial_.looks) {
    for (; done < look.step; ++done) step(rule, done);
    compare(look, [&](std::uint64_t starts) {
      if (starts == 0) return;
      for (std::size_t g = 0; g < wrong.size(); ++g)
        wrong[g] += static_cast<std::uint64_t>(std::popcount(starts >> (g * width) & one));
    });
    if (std::none_of(wrong.begin() + 1, wrong.end(), [&](std::uint64_t w) { return w <= most; })) return false;
  }
  return true;
}

TrialRunner TrialRunner::repeat(std::span<const unsigned> lanes) const {
  TrialRunner result = *this;
  const auto again = [&](std::uint64_t& word) {
    std::uint64_t to = 0;
    for (std::size_t k = 0; k < lanes.size(); ++k) to |= (word >> lanes[k] & 1) << k;
    for (std::size_t width = lanes.size(); width < 64; width *= 2) to |= to << width;
    word = to;
  };
  for (auto* words : {&result.start_, &result.target_, &result.alive_, &result.firing_})
    for (std::uint64_t& word : *words) again(word);
  for (Trial::Look& look : result.trial_.looks) again(look.starts);
  return result;
}

}  // namespace gradloom::logic
