#include "gradloom/app/ged/shared_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

namespace gradloom::app {
namespace {

// Blocks a <= b of graphs: the pairs between them, or within one.
struct BlockPair {
  std::size_t a = 0, b = 0;
  double cost = 0.0;
  unsigned rank = 0;
};

// Where the graphs are cut.
struct Blocks {
  std::size_t graphs, count;
  std::size_t begin(std::size_t block) const { return graphs * block / count; }
  std::size_t size(std::size_t block) const { return begin(block + 1) - begin(block); }
  std::size_t pairs(const BlockPair& p) const {
    return p.a == p.b ? size(p.a) * (size(p.a) - 1) / 2 : size(p.a) * size(p.b);
  }
};

std::vector<BlockPair> deal(const GraphSet& set, const Blocks& blocks, unsigned ranks) {
  std::vector<double> squares(
      blocks.count);  // a search visits about as many pairs of nodes, and more for larger graphs
  for (std::size_t block = 0; block < blocks.count; ++block)
    for (std::size_t g = blocks.begin(block); g < blocks.begin(block + 1); ++g)
      squares[block] += std::pow(set.graphs[g].nodes(), 2.0);
  std::vector<BlockPair> all;
  for (std::size_t a = 0; a < blocks.count; ++a)
    for (std::size_t b = a; b < blocks.count; ++b)
      all.push_back({a, b, squares[a] * squares[b] * (a == b ? 0.5 : 1.0)});
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return all[i].cost > all[j].cost; });
  std::vector<double> load(ranks);
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    all[i].rank = static_cast<unsigned>(least - load.begin());
    *least += all[i].cost;
  }
  return all;
}

// f(n, place) for each pair of two blocks: its number among them, and its place among all pairs.
template <class F>
void each_pair(const Blocks& blocks, const BlockPair& p, F&& f) {
  std::size_t n = 0;
  const std::size_t a = blocks.begin(p.a), b = blocks.begin(p.b);
  if (p.a == p.b)
    for (std::size_t i = 1; i < blocks.size(p.a); ++i)
      for (std::size_t j = 0; j < i; ++j) f(n++, ged::AllPairs::at(a + i, a + j));
  else
    for (std::size_t i = 0; i < blocks.size(p.a); ++i)
      for (std::size_t j = 0; j < blocks.size(p.b); ++j) f(n++, ged::AllPairs::at(b + j, a + i));
}

ged::PairDistances solve(const Exec& ex, const GraphSet& set, const ged::CostTable& costs,
                         const ged::AllPairsOptions& options, const Blocks& blocks, const BlockPair& p) {
  GraphSet some;  // costs know the labels
  const auto add = [&](std::size_t block) {
    for (std::size_t g = blocks.begin(block); g < blocks.begin(block + 1); ++g) some.graphs.push_back(set.graphs[g]);
  };
  add(p.a);
  if (p.a == p.b) return ged::all_pairs(ex, some, costs, options);
  add(p.b);
  return ged::cross_pairs(ex, some, blocks.size(p.a), costs, options);
}

// The answers of the other ranks, for rank 0: each(rank, f) calls f(place) for the pairs of a rank, in the same order
// on all ranks.
template <class Each>
void tell_rank_0(Comm& comm, ged::AllPairs& r, Each&& each) {
  constexpr std::size_t kBytes = 3 * sizeof(double);
  const auto bytes_of = [&](unsigned rank) {
    std::size_t bytes = 0;
    each(rank, [&](std::size_t) { bytes += kBytes; });
    return bytes;
  };
  std::vector<std::size_t> expected(comm.size(), 0);
  for (unsigned from = 1; comm.rank() == 0 && from < comm.size(); ++from) expected[from] = bytes_of(from);
  if (comm.rank() > 0) {
    std::byte* to = comm.outgoing(0, bytes_of(comm.rank())).data();
    each(comm.rank(), [&](std::size_t at) {
      std::memcpy(to, &r.lower[at], sizeof(double));
      std::memcpy(to + sizeof(double), &r.upper[at], sizeof(double));
      std::memcpy(to + 2 * sizeof(double), &r.expanded[at], sizeof(std::uint64_t));
      to += kBytes;
    });
  }
  comm.exchange(expected, Patience::unlimited);
  for (unsigned rank = 1; comm.rank() == 0 && rank < comm.size(); ++rank) {
    const std::byte* from = comm.incoming(rank).data();
    each(rank, [&](std::size_t at) {
      std::memcpy(&r.lower[at], from, sizeof(double));
      std::memcpy(&r.upper[at], from + sizeof(double), sizeof(double));
      std::memcpy(&r.expanded[at], from + 2 * sizeof(double), sizeof(std::uint64_t));
      from += kBytes;
    });
  }
}

// The hard pairs of all ranks, by their places among all pairs, from the largest graphs to the smallest.
std::vector<std::uint64_t> hard_of_all(Comm& comm, const GraphSet& set, const std::vector<std::uint64_t>& own) {
  std::vector<std::uint64_t> counts(comm.size());
  const std::uint64_t count = own.size();
  comm.allgather(std::as_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(counts)));
  std::vector<std::uint64_t> all = own;
  comm.share_parts([&](unsigned rank) { return counts[rank] * sizeof(std::uint64_t); },
                   [&](std::span<std::byte> message) {
                     if (!own.empty()) std::memcpy(message.data(), own.data(), message.size());
                   },
                   [&](unsigned, std::span<const std::byte> message) {
                     const std::size_t before = all.size();
                     all.resize(before + message.size() / sizeof(std::uint64_t));
                     if (!message.empty()) std::memcpy(all.data() + before, message.data(), message.size());
                   });
  std::sort(all.begin(), all.end());
  const auto cost = [&](std::uint64_t at) {
    const auto [first, second] = ged::AllPairs::of(at);
    return std::size_t{set.graphs[first].nodes()} * set.graphs[second].nodes();
  };
  std::stable_sort(all.begin(), all.end(), [&](auto a, auto b) { return cost(a) > cost(b); });
  return all;
}

// Hard pairs are dealt one by one, wherever they were found.
void solve_hard(Comm& comm, const Exec& ex, const GraphSet& set, const ged::CostTable& costs,
                const ged::AllPairsOptions& options, const std::vector<std::uint64_t>& found, ged::AllPairs& r) {
  const std::vector<std::uint64_t> hard = hard_of_all(comm, set, found);
  const auto each = [&](unsigned rank, auto&& f) {
    for (std::size_t n = rank; n < hard.size(); n += comm.size()) f(hard[n]);
  };
  std::vector<std::pair<double, double>> before;  // bounds, which rank 0 has of all pairs
  for (const std::uint64_t at : hard) before.emplace_back(r.lower[at], r.upper[at]);
  std::vector<ged::PairOfGraphs> own;
  each(comm.rank(), [&](std::size_t at) { own.push_back(ged::AllPairs::of(at)); });
  const ged::PairDistances solved = ged::hard_pairs(ex, set, own, costs, options);
  std::size_t n = 0;
  each(comm.rank(), [&](std::size_t at) {
    r.lower[at] = solved.lower[n], r.upper[at] = solved.upper[n], r.expanded[at] = solved.expanded[n];
    ++n;
  });
  tell_rank_0(comm, r, each);
  for (std::size_t i = 0; comm.rank() == 0 && i < hard.size(); ++i) {  // after a stop, the first search knows more
    r.lower[hard[i]] = std::max(r.lower[hard[i]], before[i].first);
    r.upper[hard[i]] = std::min(r.upper[hard[i]], before[i].second);
  }
}

}  // namespace

ged::AllPairs shared_pairs(Comm& comm, const Exec& ex, const GraphSet& set, const ged::CostTable& costs,
                           const ged::AllPairsOptions& given) {
  const auto wanted = static_cast<std::size_t>(std::ceil(std::sqrt(32.0 * comm.size())));
  const Blocks blocks{set.size(), std::min(wanted, set.size())};
  const std::vector<BlockPair> tasks = deal(set, blocks, comm.size());
  const auto each = [&](unsigned rank, auto&& f) {
    for (const BlockPair& p : tasks)
      if (p.rank == rank) each_pair(blocks, p, [&](std::size_t, std::size_t at) { f(at); });
  };
  std::size_t own = 0, done = 0;
  each(comm.rank(), [&](std::size_t) { ++own; });
  ged::AllPairsOptions options = given;
  options.leave_hard = true;
  if (given.progress) options.progress = [&](std::size_t more, std::size_t) { given.progress(done + more, own); };
  ged::AllPairs r;
  r.graphs = set.size();
  const std::size_t total = ged::AllPairs::at(set.size(), 0);
  r.lower.resize(total), r.upper.resize(total), r.expanded.resize(total);
  std::vector<std::uint64_t> hard;
  for (const BlockPair& p : tasks) {
    if (p.rank != comm.rank()) continue;
    const ged::PairDistances some = solve(ex, set, costs, options, blocks, p);
    auto next = some.hard.begin();
    each_pair(blocks, p, [&](std::size_t n, std::size_t at) {
      r.lower[at] = some.lower[n], r.upper[at] = some.upper[n], r.expanded[at] = some.expanded[n];
      if (next != some.hard.end() && *next == n) hard.push_back(at), ++next;
    });
    done += blocks.pairs(p);
  }
  tell_rank_0(comm, r, each);
  options = given;
  options.progress = {};
  solve_hard(comm, ex, set, costs, options, hard, r);
  for (std::size_t at = 0; at < total; ++at) r.exact += r.lower[at] == r.upper[at];
  return r;
}

}  // namespace gradloom::app
