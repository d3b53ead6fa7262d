#include "gradloom/kernels/gate/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gradloom/base/error.h"

namespace gradloom::kernels::gate {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};  // no gate
constexpr std::size_t kShortestChain = 4;           // shorter ones cost more to begin and to end than they save
constexpr std::size_t kShortestShared = 4;          // of gates that read the same rows, and of fans

// Who reads a row.
struct Readers {
  std::uint32_t count = 0, as_a = kNone, as_b = kNone;  // of several gates on one side, the last
};

bool is_same(const GateRows& x, const GateRows& y) { return x.a == y.a && x.b == y.b && x.a != x.b; }

// Which gates are in which kind of run.
class Sorter {
 public:
  Sorter(std::span<const GateRows> gates, std::size_t rows, std::uint32_t given)
      : gates_(gates), given_(given), readers_(rows), plain_(gates.size(), false), next_(gates.size(), kNone) {
    for (std::uint32_t n = 0; n < gates.size(); ++n) {
      Readers &a = readers_[gates[n].a], &b = readers_[gates[n].b];
      ++a.count, a.as_a = n;
      ++b.count, b.as_b = n;
    }
    for (std::uint32_t n = 0; n < gates.size(); ++n)
      plain_[n] = gates[n].a == gates[n].b || !may_share(gates[n].a) || !may_share(gates[n].b);
    link();
  }

  std::vector<std::uint32_t> plain() const {
    std::vector<std::uint32_t> list;
    for (std::uint32_t n = 0; n < gates_.size(); ++n)
      if (plain_[n]) list.push_back(n);
    return list;
  }
  // Nobody else reads its row a, which backward can write.
  bool may_fan(std::uint32_t n) const {
    const GateRows& gate = gates_[n];
    return gate.a != gate.b && gate.a != given_ && readers_[gate.a].count == 1;
  }
  const std::vector<std::uint32_t>& pairs() const { return pairs_; }
  const std::vector<std::vector<std::uint32_t>>& chains() const { return chains_; }

 private:
  // Not given; one reader, or two of which one takes it as a and the other as b.
  bool may_share(std::uint32_t row) const {
    const Readers& r = readers_[row];
    return row != given_ && (r.count == 1 || (r.count == 2 && r.as_a != kNone && r.as_b != kNone));
  }

  std::uint32_t follower(std::uint32_t n) const {
    const Readers& r = readers_[gates_[n].b];
    return r.count == 2 && !plain_[r.as_a] ? r.as_a : kNone;
  }

  void link() {
    std::vector<bool> follows(gates_.size(), false), taken(gates_.size(), false);
    for (std::uint32_t n = 0; n < gates_.size(); ++n)
      if (!plain_[n] && (next_[n] = follower(n)) != kNone) follows[next_[n]] = true;
    const auto take = [&](std::uint32_t first) {
      std::vector<std::uint32_t> chain;
      for (std::uint32_t n = first; n != kNone && !taken[n]; n = next_[n]) taken[n] = true, chain.push_back(n);
      keep(chain);
    };
    for (std::uint32_t n = 0; n < gates_.size(); ++n)
      if (!plain_[n] && !follows[n]) take(n);
    // What is left goes round in circles. One gate of each is set aside, and the circle is a chain.
    for (std::uint32_t n = 0; n < gates_.size(); ++n)
      if (!plain_[n] && !taken[n]) plain_[n] = taken[n] = true, take(next_[n]);
    std::sort(pairs_.begin(), pairs_.end(), [&](auto x, auto y) { return gates_[x].a < gates_[y].a; });
  }

  void keep(std::vector<std::uint32_t>& chain) {
    if (chain.size() >= kShortestChain) {
      chains_.push_back(std::move(chain));
      return;
    }
    for (std::size_t n = 0; n < chain.size(); ++n)
      if (n % 2 == 0)
        pairs_.push_back(chain[n]);
      else
        plain_[chain[n]] = true;
  }

  std::span<const GateRows> gates_;
  std::uint32_t given_;
  std::vector<Readers> readers_;
  std::vector<bool> plain_;
  std::vector<std::uint32_t> next_, pairs_;
  std::vector<std::vector<std::uint32_t>> chains_;
};

}  // namespace

LayerPlan plan_layer(std::span<const GateRows> gates, std::size_t rows, std::uint32_t given) {
  for (const GateRows& gate : gates)
    if (gate.a >= rows || gate.b >= rows)
      throw_invalid("a gate reads row " + std::to_string(std::max(gate.a, gate.b)) + " of " + std::to_string(rows));
  if (given != kNoRow && given >= rows)
    throw_invalid("row " + std::to_string(given) + " of " + std::to_string(rows) + " is given");
  LayerPlan plan;
  plan.rows = rows;
  plan.given = given;
  plan.position.resize(gates.size());
  std::uint32_t position = 0;
  std::vector<bool> written(rows, false);
  const auto append = [&](Visit visit, std::span<const std::uint32_t> list) {
    if (list.empty()) return;
    for (const std::uint32_t n : list) {
      plan.position[n] = position++;
      if (visit == Visit::pairs || visit == Visit::chain) written[gates[n].a] = written[gates[n].b] = true;
      if (visit == Visit::fan) written[gates[n].a] = true;
    }
    const auto count = static_cast<std::uint32_t>(list.size());
    if (!plan.runs.empty() && visit == plan.runs.back().visit && (visit == Visit::plain || visit == Visit::pairs))
      plan.runs.back().count += count;
    else
      plan.runs.push_back({visit, count});
  };
  const Sorter sorted(gates, rows, given);
  const auto fans = [&](std::uint32_t x, std::uint32_t y) {
    return gates[x].b == gates[y].b && sorted.may_fan(x) && sorted.may_fan(y);
  };
  const auto append_plain = [&](std::span<const std::uint32_t> list) {
    for (std::size_t n = 0; n < list.size();) {
      std::size_t same = n + 1, fan = n + 1;
      while (same < list.size() && is_same(gates[list[n]], gates[list[same]])) ++same;
      while (fan < list.size() && fans(list[n], list[fan])) ++fan;
      const bool is_fan = fan - n >= kShortestShared, is_same_run = same - n >= kShortestShared;
      const std::size_t end = is_fan ? fan : same;
      append(is_fan ? Visit::fan : is_same_run ? Visit::same : Visit::plain, list.subspan(n, end - n));
      n = end;
    }
  };
  append_plain(sorted.plain());
  append(Visit::pairs, sorted.pairs());
  for (const auto& chain : sorted.chains()) append(Visit::chain, chain);
  for (std::uint32_t row = 0; row < rows; ++row)
    if (!written[row] && row != given) plan.unwritten.push_back(row);
  return plan;
}

}  // namespace gradloom::kernels::gate
