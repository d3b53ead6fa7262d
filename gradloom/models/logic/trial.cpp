#include "gradloom/models/logic/trial.h"

#include <algorithm>
#include <bit>

#include "gradloom/base/random.h"
#include "gradloom/circuit/simulate.h"

namespace gradloom::logic {
namespace {

using circuit::Gate;
using circuit::Op;

constexpr std::uint32_t kZero = LiveCircuit::kZero, kOne = LiveCircuit::kOne;

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

bool reads_a(Op op) { return op != Op::b && op != Op::not_b && op != Op::always_false && op != Op::always_true; }
bool reads_b(Op op) { return op != Op::a && op != Op::not_a && op != Op::always_false && op != Op::always_true; }

template <class F>
void each(std::size_t words, const std::uint64_t* a, const std::uint64_t* b, std::uint64_t* to, F f) {
  for (std::size_t i = 0; i < words; ++i) to[i] = f(a[i], b[i]);
}

void run_gate(Op op, std::size_t n, const std::uint64_t* a, const std::uint64_t* b, std::uint64_t* to) {
  using W = std::uint64_t;
  switch (op) {
    case Op::a_and_b:
      return each(n, a, b, to, [](W x, W y) { return x & y; });
    case Op::a_and_not_b:
      return each(n, a, b, to, [](W x, W y) { return x & ~y; });
    case Op::not_a_and_b:
      return each(n, a, b, to, [](W x, W y) { return ~x & y; });
    case Op::a_xor_b:
      return each(n, a, b, to, [](W x, W y) { return x ^ y; });
    case Op::a_or_b:
      return each(n, a, b, to, [](W x, W y) { return x | y; });
    case Op::nor:
      return each(n, a, b, to, [](W x, W y) { return ~(x | y); });
    case Op::xnor:
      return each(n, a, b, to, [](W x, W y) { return ~(x ^ y); });
    case Op::a_or_not_b:
      return each(n, a, b, to, [](W x, W y) { return x | ~y; });
    case Op::not_a_or_b:
      return each(n, a, b, to, [](W x, W y) { return ~x | y; });
    case Op::nand:
      return each(n, a, b, to, [](W x, W y) { return ~(x & y); });
    case Op::not_a:
      return each(n, a, a, to, [](W x, W) { return ~x; });
    case Op::not_b:
      return each(n, b, b, to, [](W x, W) { return ~x; });
    default:
      return each(n, a, b, to, [op](W x, W y) { return circuit::apply_bits(op, x, y); });
  }
}

}  // namespace

std::uint32_t Folder::push(Op op, std::uint32_t a, std::uint32_t b) {
  const Folded f = fold_gate(op, a, b);
  if (!f.keep) return f.signal;
  nodes_.push_back(f.gate);
  return static_cast<std::uint32_t>(first_ + nodes_.size() - 1);
}

const LiveCircuit& Folder::fold(const circuit::Circuit& circuit, std::span<const Mutation> mutations,
                                std::span<const std::uint64_t> masks) {
  const std::uint32_t inputs = circuit.inputs;
  live_.inputs = inputs;
  live_.masks.assign(masks.begin(), masks.end());
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
  live_.rows = first_;
  live_.instructions.clear();
  row_.resize(first_ + nodes_.size());
  for (std::uint32_t i = 0; i < first_; ++i) row_[i] = i;
  free_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (last_use_[first_ + n] == kNever) continue;
    const Gate& gate = nodes_[n];
    const std::uint32_t a = row_[gate.a], b = row_[gate.b];
    if (free_.empty()) free_.push_back(live_.rows++);
    const std::uint32_t to = row_[first_ + n] = free_.back();
    free_.pop_back();
    live_.instructions.push_back({gate.op, to, a, b});
    if (a >= first_ && last_use_[gate.a] == n) free_.push_back(a);
    if (b >= first_ && b != a && last_use_[gate.b] == n) free_.push_back(b);
  }
  live_.outputs.clear();
  for (const std::uint32_t o : circuit.outputs)
    live_.outputs.push_back(constant(value_[o]) ? value_[o] : row_[value_[o]]);
  return live_;
}

std::vector<std::uint8_t> Folder::reached(const circuit::Circuit& circuit) {
  const std::uint32_t inputs = circuit.inputs;
  std::vector<std::uint8_t> reached(circuit.gates.size(), 0);
  const auto reach = [&](std::uint32_t signal) {
    if (signal >= inputs) reached[signal - inputs] = 1;
  };
  for (const std::uint32_t o : circuit.outputs) reach(o);
  for (std::size_t g = circuit.gates.size(); g-- > 0;) {
    if (!reached[g]) continue;
    const Gate& gate = circuit.gates[g];
    if (reads_a(gate.op)) reach(gate.a);
    if (reads_b(gate.op)) reach(gate.b);
  }
  return reached;
}

TrialRunner::TrialRunner(Trial trial) : trial_(std::move(trial)) {
  const std::size_t h = trial_.height, w = trial_.width;
  stride_ = w + 2;
  first_ = stride_ + 1;
  words_ = (h - 1) * stride_ + w;
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

void TrialRunner::step(const LiveCircuit& rule, std::size_t number) {
  if (trial_.boundary == circuit::Boundary::periodic) wrap();
  // A plane with its border is one row: the neighbour of every cell is a constant distance away.
  const auto row = [&](std::uint32_t r) -> const std::uint64_t* {
    if (r >= rule.inputs) return rows_.data() + (r - rule.inputs) * words_;
    const std::size_t channel = r / 9, dy = r % 9 / 3, dx = r % 3;
    return now_.data() + channel * plane_ + dy * stride_ + dx;
  };
  for (const LiveCircuit::Instruction& i : rule.instructions)
    run_gate(i.op, words_, row(i.a), row(i.b), rows_.data() + (i.to - rule.inputs) * words_);
  const bool repaired = trial_.dead.empty() || number >= trial_.repaired;
  const std::uint64_t* alive = (repaired ? inside_ : alive_).data() + first_;
  const std::uint64_t* fires = firing_.empty() ? nullptr : firing_.data() + number * words_;
  for (std::size_t c = 0; c < trial_.channels; ++c) {
    std::uint64_t* to = next_.data() + c * plane_ + first_;
    const std::uint64_t* old = now_.data() + c * plane_ + first_;
    const std::uint32_t o = rule.outputs[c];
    if (o == kZero || o == kOne) {
      const std::uint64_t v = o == kOne ? ~std::uint64_t{0} : 0;
      if (fires)
        for (std::size_t i = 0; i < words_; ++i) to[i] = ((v & fires[i]) | (old[i] & ~fires[i])) & alive[i];
      else
        for (std::size_t i = 0; i < words_; ++i) to[i] = v & alive[i];
      continue;
    }
    const std::uint64_t* from = row(o);
    if (fires)
      for (std::size_t i = 0; i < words_; ++i) to[i] = ((from[i] & fires[i]) | (old[i] & ~fires[i])) & alive[i];
    else
      for (std::size_t i = 0; i < words_; ++i) to[i] = from[i] & alive[i];
  }
  std::swap(now_, next_);
}

template <class Count>
void TrialRunner::compare(const Trial::Look& look, Count count) const {
  const bool repaired = trial_.dead.empty() || look.step > trial_.repaired;
  const std::vector<std::uint64_t>& counted = repaired ? inside_ : alive_;
  for (std::size_t c = 0; c * plane_ < target_.size(); ++c)
    for (std::size_t i = first_; i < first_ + words_; ++i)
      count((now_[c * plane_ + i] ^ target_[c * plane_ + i]) & counted[i] & look.starts);
}

void TrialRunner::begin(const LiveCircuit& rule) {
  now_ = start_;
  next_.assign(now_.size(), 0);
  rows_.resize((rule.rows - rule.inputs) * words_);
  for (std::size_t m = 0; m < rule.masks.size(); ++m) std::fill_n(rows_.data() + m * words_, words_, rule.masks[m]);
  if (!trial_.dead.empty())
    for (std::size_t i = 0; i < now_.size(); ++i) now_[i] &= alive_[i % plane_];
}

std::uint64_t TrialRunner::wrong(const LiveCircuit& rule, std::uint64_t most) {
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

bool TrialRunner::wrong_by_group(const LiveCircuit& rule, std::uint64_t most, std::span<std::uint64_t> wrong) {
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
