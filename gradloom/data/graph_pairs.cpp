#include "gradloom/data/graph_pairs.h"

#include <fmt/format.h>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

// Everything that follows from first and second; a counting sort keeps pairs ascending.
template <class T>
void index_uses(PairArrays<T>& a, std::size_t pairs, std::size_t graphs) {
  std::fill_n(a.use_ptr.begin(), graphs + 1, 0u);
  for (std::size_t p = 0; p < pairs; ++p) ++a.use_ptr[a.first[p] + 1], ++a.use_ptr[a.second[p] + 1];
  for (std::size_t g = 0; g < graphs; ++g) a.use_ptr[g + 1] += a.use_ptr[g];
  std::copy_n(a.use_ptr.begin(), graphs, a.next.begin());
  for (std::size_t p = 0; p < pairs; ++p)
    for (const std::uint8_t side : {0, 1}) {
      const std::uint32_t at = a.next[side == 0 ? a.first[p] : a.second[p]]++;
      a.use_pair[at] = static_cast<std::uint32_t>(p);
      a.use_side[at] = side;
    }
}

template <class T>
PairBatch<T> batch_of_pairs(const GraphBatch<T>& graphs, const PairArrays<T>& a, std::size_t pairs) {
  PairBatch<T> b;
  static_cast<GraphBatch<T>&>(b) = graphs;
  b.size = pairs;
  b.label = {};
  b.target = View<const T, 2>(a.target.data(), {pairs, 1});
  b.first = {a.first.data(), pairs}, b.second = {a.second.data(), pairs};
  b.inverse_size = {a.inverse_size.data(), pairs};
  b.use_ptr = {a.use_ptr.data(), graphs.graphs + 1};
  b.use_pair = {a.use_pair.data(), 2 * pairs}, b.use_side = {a.use_side.data(), 2 * pairs};
  return b;
}

template <class T>
T inverse_size(const GraphArrays<T>& a, const GraphPair& p) {
  const std::uint32_t nodes =
      a.graph_ptr[p.first + 1] - a.graph_ptr[p.first] + a.graph_ptr[p.second + 1] - a.graph_ptr[p.second];
  return static_cast<T>(2.0 / nodes);
}

}  // namespace

template <class T>
void PairArrays<T>::resize(std::size_t pairs, std::size_t graphs) {
  first.resize(pairs), second.resize(pairs), target.resize(pairs), inverse_size.resize(pairs);
  use_pair.resize(2 * pairs), use_side.resize(2 * pairs), use_ptr.resize(graphs + 1), next.resize(graphs + 1);
}

template <class T>
PairDataset<T>::PairDataset(std::shared_ptr<const GraphArrays<T>> arrays, std::vector<GraphPair> pairs)
    : graphs_(std::move(arrays), {}), pairs_(std::move(pairs)) {
  const GraphArrays<T>& a = graphs_.arrays();
  if (a.task != GraphTask::graph) throw_invalid("pairs are made of the graphs of a graph task");
  if (pairs_.empty()) throw_invalid("there are no pairs of graphs");
  if (pairs_.size() > 0x7fffffffu) throw_invalid("more than 2^31 pairs in one data set");
  all_.resize(pairs_.size(), a.graphs);
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    const GraphPair& pair = pairs_[p];
    for (const std::uint32_t g : {pair.first, pair.second})
      if (g >= a.graphs || a.graph_ptr[g] == a.graph_ptr[g + 1])
        throw_invalid(fmt::format("pair {} names graph {}, which does not exist or has no nodes", p, g));
    all_.first[p] = pair.first, all_.second[p] = pair.second;
    all_.target[p] = static_cast<T>(pair.target), all_.inverse_size[p] = inverse_size(a, pair);
  }
  index_uses(all_, pairs_.size(), a.graphs);
}

template <class T>
PairBatch<T> PairDataset<T>::all() const {
  return batch_of_pairs(graphs_.all(), all_, pairs_.size());
}

template <class T>
PairBatchStorage<T>::PairBatchStorage(const PairDataset<T>& data, std::size_t max_size)
    : max_size_(max_size), graphs_(data.graphs(), std::min(2 * max_size, data.graphs().size())) {
  const std::size_t graphs = std::min(2 * max_size, data.graphs().size());
  pairs_.resize(max_size, graphs);
  number_.assign(data.graphs().size(), kUnlabelled);
  which_.resize(graphs);
}

template <class T>
PairBatch<T> PairDataset<T>::gather(std::span<const std::uint32_t> pairs, PairBatchStorage<T>& s) const {
  if (pairs.size() > s.max_size_)
    throw_invalid(fmt::format("{} pairs do not fit into storage for {}", pairs.size(), s.max_size_));
  std::uint32_t graphs = 0;
  const auto number = [&](std::uint32_t g) {
    if (s.number_[g] == kUnlabelled) s.which_[graphs] = g, s.number_[g] = graphs++;
    return s.number_[g];
  };
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    if (pairs[k] >= pairs_.size()) throw_invalid(fmt::format("pair {} of {} does not exist", pairs[k], pairs_.size()));
    const GraphPair& p = pairs_[pairs[k]];
    s.pairs_.first[k] = number(p.first), s.pairs_.second[k] = number(p.second);
    s.pairs_.target[k] = static_cast<T>(p.target), s.pairs_.inverse_size[k] = inverse_size(graphs_.arrays(), p);
  }
  const std::span<const std::uint32_t> which(s.which_.data(), graphs);
  for (const std::uint32_t g : which) s.number_[g] = kUnlabelled;
  index_uses(s.pairs_, pairs.size(), graphs);
  return batch_of_pairs(graphs_.gather(which, s.graphs_), s.pairs_, pairs.size());
}

#define GRADLOOM_INSTANTIATE(T)       \
  template struct PairArrays<T>;      \
  template class PairBatchStorage<T>; \
  template class PairDataset<T>;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom
