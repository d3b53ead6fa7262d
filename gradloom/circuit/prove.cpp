#include "gradloom/circuit/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/circuit/network.h"
#include "gradloom/circuit/program.h"
#include "gradloom/circuit/sat.h"
#include "gradloom/circuit/simulate.h"
#include "gradloom/circuit/validate.h"
#include "gradloom/exec/buffer.h"

namespace gradloom::circuit {
namespace {

using kernels::bits::BitInstruction;

constexpr std::size_t kStrip = 64;  // words tried at once: 4096 assignments
constexpr std::uint32_t kPlainInputs = 18;

bool is_set(const std::atomic<bool>* stop) { return stop && stop->load(std::memory_order_relaxed); }

// What one output depends on.
std::vector<bool> cone_of(const Circuit& c, std::uint32_t output) {
  std::vector<bool> needed(c.signals(), false);
  needed[output] = true;
  for (std::size_t g = c.gates.size(); g-- > 0;) {
    if (!needed[c.inputs + g]) continue;
    if (reads_a(c.gates[g].op)) needed[c.gates[g].a] = true;
    if (reads_b(c.gates[g].op)) needed[c.gates[g].b] = true;
  }
  return needed;
}

// The cone of some outputs, on the inputs listed.
Circuit restricted(const Circuit& c, const std::vector<bool>& cone, const std::vector<std::uint32_t>& inputs,
                   const std::vector<std::uint32_t>& outputs) {
  Circuit r;
  r.inputs = static_cast<std::uint32_t>(inputs.size());
  std::vector<std::uint32_t> to(c.signals(), 0);
  for (std::uint32_t i = 0; i < inputs.size(); ++i) to[inputs[i]] = i;
  for (std::uint32_t g = 0; g < c.gates.size(); ++g) {
    if (!cone[c.inputs + g]) continue;
    const Gate& gate = c.gates[g];
    r.gates.push_back({gate.op, reads_a(gate.op) ? to[gate.a] : 0, reads_b(gate.op) ? to[gate.b] : 0});
    to[c.inputs + g] = static_cast<std::uint32_t>(r.signals() - 1);
  }
  for (const std::uint32_t o : outputs) r.outputs.push_back(to[o]);
  return r;
}

// Gate by gate as it stands, so that a proof does not rest on the simplifier.
BitProgram plain_program(const Circuit& c) {
  BitProgram p;
  p.inputs = c.inputs;
  p.temporaries = static_cast<std::uint32_t>(c.gates.size());
  for (std::uint32_t g = 0; g < c.gates.size(); ++g)
    p.instructions.push_back(instruction_of(c.gates[g].op, c.inputs + g, c.gates[g].a, c.gates[g].b));
  p.outputs = c.outputs;
  return p;
}

// One circuit in a worker's memory.
struct Placed {
  std::vector<BitInstruction> program;
  std::uint32_t output = 0;
};

Placed placed(const BitProgram& p, std::uint32_t first_temporary) {
  std::vector<std::uint32_t> at;
  for (std::uint32_t i = 0; i < p.inputs; ++i) at.push_back(static_cast<std::uint32_t>(i * kStrip));
  for (std::uint32_t t = 0; t < p.temporaries; ++t)
    at.push_back(static_cast<std::uint32_t>((first_temporary + t) * kStrip));
  return {relocate(p, at), at[p.outputs[0]]};
}

// Compares the single outputs of a and b on words [0, words) of assignments, where input(i, word) gives the inputs.
// Returns the number of the first assignment that differs; after a stop, none that was not reached.
template <class Input>
std::optional<std::uint64_t> first_difference(const Exec& exec, const Circuit& a, const Circuit& b, std::uint64_t words,
                                              bool plain, const std::atomic<bool>* stop, Input&& input) {
  const BitProgram pa = plain ? plain_program(a) : compile(a), pb = plain ? plain_program(b) : compile(b);
  const Placed x = placed(pa, pa.inputs), y = placed(pb, pa.inputs + pa.temporaries);
  const std::size_t memory = (std::size_t{pa.inputs} + pa.temporaries + pb.temporaries) * kStrip;
  std::vector<Buffer<std::uint64_t>> buffers;
  for (unsigned w = 0; w < exec.threads(); ++w) buffers.emplace_back(memory + kStrip);
  constexpr std::uint64_t kStripsPerTask = 64;
  const std::uint64_t strips = divide_up(words, kStrip), tasks = divide_up(strips, kStripsPerTask);
  std::atomic<std::uint64_t> first{UINT64_MAX};
  exec.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    std::uint64_t* base = buffers[worker].data();
    for (std::uint64_t s = task * kStripsPerTask; s < std::min(strips, (task + 1) * kStripsPerTask); ++s) {
      const std::uint64_t start = s * kStrip;
      if (start * 64 > first.load(std::memory_order_relaxed) || is_set(stop)) return;
      for (std::uint32_t i = 0; i < a.inputs; ++i)
        for (std::size_t w = 0; w < kStrip; ++w) base[i * kStrip + w] = input(i, start + w);
      kernels::bits::run_bits(exec.variant(), x.program, base, kStrip);
      kernels::bits::run_bits(exec.variant(), y.program, base, kStrip);
      for (std::size_t w = 0; w < kStrip; ++w) {
        const std::uint64_t wrong = base[x.output + w] ^ base[y.output + w];
        if (wrong == 0) continue;
        std::uint64_t found = (start + w) * 64 + static_cast<unsigned>(__builtin_ctzll(wrong)), seen = first.load();
        while (found < seen && !first.compare_exchange_weak(seen, found)) {
        }
        return;
      }
    }
  });
  return first == UINT64_MAX ? std::nullopt : std::optional(first.load());
}

class Prover {
 public:
  Prover(const Exec& exec, const Circuit& a, const Circuit& b, const ProveOptions& options)
      : exec_(exec), a_(a), b_(b), options_(options) {
    validate(a).or_throw();
    validate(b).or_throw();
    if (a.inputs != b.inputs || a.outputs.size() != b.outputs.size())
      throw_invalid(fmt::format("circuits with {} and {} inputs and with {} and {} outputs cannot be compared",
                                a.inputs, b.inputs, a.outputs.size(), b.outputs.size()));
    if (options.exhaustive_inputs > 32) throw_invalid("more than 32 inputs cannot be tried exhaustively");
  }

  Proof run() {
    proof_.outputs.resize(a_.outputs.size());
    std::vector<std::uint32_t> hard;
    for (std::uint32_t o = 0; o < a_.outputs.size(); ++o)
      if (!try_all(o)) hard.push_back(o);
    compare_structure(hard);
    for (const std::uint32_t o : hard) try_random(o);
    std::erase_if(hard, [&](std::uint32_t o) { return !proof_.outputs[o].equal; });
    if (!hard.empty()) solve(hard);
    return std::move(proof_);
  }

 private:
  std::vector<std::uint32_t> inputs_of(const std::vector<bool>& x, const std::vector<bool>& y) const {
    std::vector<std::uint32_t> inputs;
    for (std::uint32_t i = 0; i < a_.inputs; ++i)
      if (x[i] || y[i]) inputs.push_back(i);
    return inputs;
  }

  void differ(std::uint32_t output, const std::vector<std::uint32_t>& inputs, const std::vector<bool>& values) {
    proof_.outputs[output].equal = false;
    if (proof_.counter_example) return;
    CounterExample example{output, std::vector<bool>(a_.inputs, false)};
    for (std::size_t i = 0; i < inputs.size(); ++i) example.inputs[inputs[i]] = values[i];
    proof_.counter_example = std::move(example);
  }

  // False when the output depends on too many inputs, or after a stop.
  bool try_all(std::uint32_t o) {
    const auto x = cone_of(a_, a_.outputs[o]), y = cone_of(b_, b_.outputs[o]);
    const std::vector<std::uint32_t> inputs = inputs_of(x, y);
    const auto k = static_cast<std::uint32_t>(inputs.size());
    proof_.outputs[o].inputs = k;
    if (k > options_.exhaustive_inputs) return false;
    const Circuit ca = restricted(a_, x, inputs, {a_.outputs[o]}), cb = restricted(b_, y, inputs, {b_.outputs[o]});
    const std::uint64_t words = k > 6 ? std::uint64_t{1} << (k - 6) : 1;
    const auto at = first_difference(exec_, ca, cb, words, k <= kPlainInputs, options_.stop,
                                     [](std::uint32_t i, std::uint64_t w) { return variable_word(i, w); });
    if (!at && is_set(options_.stop)) return false;
    proof_.outputs[o] = {ProofMethod::exhaustive, k, std::uint64_t{1} << k, !at};
    if (at) {
      std::vector<bool> values;
      for (std::uint32_t i = 0; i < k; ++i) values.push_back(*at >> i & 1);
      differ(o, inputs, values);
    }
    return true;
  }

  void compare_structure(std::vector<std::uint32_t>& hard) {
    if (hard.empty()) return;
    Network net(a_.inputs);
    const auto literals = [&](const Circuit& c) {
      std::vector<Literal> of(c.signals(), kFalse);
      for (std::uint32_t i = 0; i < c.inputs; ++i) of[i] = net.input(i);
      for (std::size_t g = 0; g < c.gates.size(); ++g)
        of[c.inputs + g] = net.gate(c.gates[g].op, of[c.gates[g].a], of[c.gates[g].b]);
      return of;
    };
    const std::vector<Literal> x = literals(a_), y = literals(b_);
    std::erase_if(hard, [&](std::uint32_t o) {
      if (x[a_.outputs[o]] != y[b_.outputs[o]]) return false;
      proof_.outputs[o] = {ProofMethod::structural, proof_.outputs[o].inputs, 0, true};
      return true;
    });
  }

  void try_random(std::uint32_t o) {
    const auto x = cone_of(a_, a_.outputs[o]), y = cone_of(b_, b_.outputs[o]);
    const std::vector<std::uint32_t> inputs = inputs_of(x, y);
    const Circuit ca = restricted(a_, x, inputs, {a_.outputs[o]}), cb = restricted(b_, y, inputs, {b_.outputs[o]});
    const std::uint64_t words = (options_.random_assignments + 4095) / 4096 * kStrip;
    const auto word = [&](std::uint32_t i, std::uint64_t w) {
      return RandomStream(options_.seed, RandomUse::check, 1, i).bits(static_cast<std::uint32_t>(w));
    };
    const auto at = first_difference(exec_, ca, cb, words, true, nullptr, word);
    proof_.outputs[o] = {ProofMethod::random, static_cast<std::uint32_t>(inputs.size()), words * 64, !at};
    if (!at) return;
    std::vector<bool> values;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) values.push_back(word(i, *at / 64) >> *at % 64 & 1);
    differ(o, inputs, values);
  }

  void solve(const std::vector<std::uint32_t>& hard) {
    if (options_.solver == Solver::off) {
      proof_.note = "no solver was requested";
      return;
    }
    std::vector<bool> x(a_.signals(), false), y(b_.signals(), false);
    std::vector<std::uint32_t> of_a, of_b;
    for (const std::uint32_t o : hard) {
      const auto cx = cone_of(a_, a_.outputs[o]), cy = cone_of(b_, b_.outputs[o]);
      for (std::size_t s = 0; s < x.size(); ++s) x[s] = x[s] || cx[s];
      for (std::size_t s = 0; s < y.size(); ++s) y[s] = y[s] || cy[s];
      of_a.push_back(a_.outputs[o]);
      of_b.push_back(b_.outputs[o]);
    }
    const std::vector<std::uint32_t> inputs = inputs_of(x, y);
    const std::vector<SatOutput> answers = compare_by_sat(
        restricted(a_, x, inputs, of_a), restricted(b_, y, inputs, of_b), options_.conflicts, options_.stop);
    for (std::size_t k = 0; k < hard.size(); ++k) {
      if (answers[k].answer == SatAnswer::unknown) {
        proof_.note = is_set(options_.stop) ? "the proof was stopped"
                                            : fmt::format("the solver gave up after {} conflicts", options_.conflicts);
        continue;
      }
      OutputProof& output = proof_.outputs[hard[k]];
      output = {ProofMethod::sat, output.inputs, 0, true};
      if (answers[k].answer == SatAnswer::different) differ(hard[k], inputs, answers[k].inputs);
    }
  }

  const Exec& exec_;
  const Circuit& a_;
  const Circuit& b_;
  const ProveOptions& options_;
  Proof proof_;
};

}  // namespace

const char* method_name(ProofMethod method) {
  switch (method) {
    case ProofMethod::exhaustive:
      return "exhaustive";
    case ProofMethod::structural:
      return "structural";
    case ProofMethod::sat:
      return "sat";
    case ProofMethod::random:
      break;
  }
  return "random";
}

bool Proof::equal() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const OutputProof& o) { return o.equal; });
}

bool Proof::proved() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const OutputProof& o) { return o.proved(); });
}

std::string describe(const CounterExample& example, const Circuit& expected, const Circuit& actual) {
  std::vector<std::uint64_t> inputs;
  std::vector<std::size_t> ones;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    inputs.push_back(example.inputs[i] ? 1 : 0);
    if (example.inputs[i]) ones.push_back(i);
  }
  const auto bit = [&](const Circuit& c) { return outputs_for(c, inputs)[example.output] & 1; };
  return fmt::format("output {} is {} instead of {} when {}", example.output, bit(actual), bit(expected),
                     ones.empty() ? "all inputs are 0"
                                  : fmt::format("input{} {} {} 1 and all others are 0", ones.size() == 1 ? "" : "s",
                                                fmt::join(ones, ", "), ones.size() == 1 ? "is" : "are"));
}

Proof prove_equal(const Exec& exec, const Circuit& a, const Circuit& b, const ProveOptions& options) {
  return Prover(exec, a, b, options).run();
}

}  // namespace gradloom::circuit
