#include "gradloom/train/rank_sum.h"

#include <algorithm>
#include <cstring>

#include "gradloom/base/rounding.h"

namespace gradloom {

using kernels::reduce::TreeSum;

LeafShare share_of(unsigned rank, unsigned ranks, std::size_t leaves, std::size_t unit) {
  const std::size_t units = divide_up(leaves, unit);
  const auto cut = [&](std::size_t r) { return std::min(leaves, units * r / ranks * unit); };
  return {cut(rank), cut(rank + 1) - cut(rank)};
}

template <class T>
RankSum<T>::RankSum(Comm& comm, std::size_t size, std::span<const std::pair<std::size_t, std::size_t>> trained)
    : comm_(comm), size_(size), parts_(comm.size()), lengths_(comm.size()), expected_(comm.size()) {
  std::size_t all = 0;
  for (const auto& [begin, end] : trained) all += end - begin;
  // In whole cache lines.
  const auto cut = [&](std::size_t r) { return r == comm.size() ? all : all * r / comm.size() / 16 * 16; };
  for (unsigned owner = 0; owner < comm.size(); ++owner) {
    lengths_[owner] = cut(owner + 1) - cut(owner);
    std::size_t before = 0;
    for (const auto& [begin, end] : trained) {
      const std::size_t from = std::max(cut(owner), before), to = std::min(cut(owner + 1), before + end - begin);
      if (from < to) parts_[owner].emplace_back(begin + from - before, begin + to - before);
      before += end - begin;
    }
  }
}

template <class T>
std::span<T> RankSum<T>::node_sum(std::size_t i) {
  while (sums_.size() <= i) sums_.emplace_back(size_);
  return sums_[i].span();
}

template <class T>
std::size_t RankSum<T>::nodes_of(unsigned rank, const Call& call) const {
  std::size_t nodes = 0;
  const LeafShare s = share(rank, call);
  each_node(call.leaf + s.first, s.count, [&](const LeafNode&) { ++nodes; });
  return nodes;
}

template <class T>
void RankSum<T>::finish(const Exec& ex, const Call& call) {
  send_nodes(call);
  add_nodes(ex, call);
  return_sums(call);
}

// To each owner: what this rank knows of the loss, then the owner's part of each of its ranges.
template <class T>
void RankSum<T>::send_nodes(const Call& call) {
  const std::span<const std::byte> loss = call.loss(share(comm_.rank(), call));
  const std::size_t nodes = nodes_of(comm_.rank(), call);
  if (nodes > 0) comm_.count_share();
  for (unsigned to = 0; to < comm_.size(); ++to) {
    if (to == comm_.rank()) continue;
    const auto message = comm_.outgoing(to, loss.size() + nodes * lengths_[to] * sizeof(T));
    std::copy(loss.begin(), loss.end(), message.begin());
    std::byte* at = message.data() + loss.size();
    for (std::size_t i = 0; i < nodes; ++i)
      for (const auto& [begin, end] : parts_[to]) {
        std::memcpy(at, sums_[i].data() + begin, (end - begin) * sizeof(T));
        at += (end - begin) * sizeof(T);
      }
    expected_[to] = call.loss(share(to, call)).size() + nodes_of(to, call) * lengths_[comm_.rank()] * sizeof(T);
  }
  comm_.exchange(expected_);
  for (unsigned from = 0; from < comm_.size(); ++from) {
    if (from == comm_.rank()) continue;
    const auto theirs = call.loss(share(from, call));
    std::copy_n(comm_.incoming(from).begin(), theirs.size(), theirs.begin());
  }
}

// The part of this rank: shares, and the ranges in them, come in the order of leaves.
template <class T>
void RankSum<T>::add_nodes(const Exec& ex, const Call& call) {
  constexpr std::size_t kTask = 8192;
  const unsigned own = comm_.rank();
  const TreeSum<T> stack{.root = call.gradient.data(), .upper = call.levels.data(), .stride = size_};
  std::size_t before = 0;  // elements of the part
  for (const auto& [begin, end] : parts_[own]) {
    const std::size_t first = begin, length = end - begin, offset = before;
    before += length;
    ex.parallel_for(divide_up(length, kTask), [&](std::size_t task, unsigned) {
      const std::size_t at = task * kTask, count = std::min(kTask, length - at);
      const TreeSum<T> sum = stack.at(first + at);
      for (unsigned from = 0; from < comm_.size(); ++from) {
        const LeafShare s = share(from, call);
        const T* message = nullptr;
        if (from != own)
          message = reinterpret_cast<const T*>(comm_.incoming(from).data() + call.loss(s).size()) + offset + at;
        std::size_t i = 0;
        each_node(call.leaf + s.first, s.count, [&](const LeafNode& node) {
          const T* values = from == own ? sums_[i].data() + first + at : message + i * lengths_[own];
          kernels::reduce::add_leaf(sum, node.number(), values, 0, count);
          ++i;
        });
      }
      if (call.complete) kernels::reduce::finish_levels(sum, call.leaf + call.leaves, 0, count);
    });
  }
}

// To all: the part of the sum, or of each level of an unfinished one.
template <class T>
void RankSum<T>::return_sums(const Call& call) {
  const std::size_t levels = call.complete ? 1 : kernels::reduce::tree_height(call.leaf + call.leaves);
  const TreeSum<T> stack{.root = call.gradient.data(), .upper = call.levels.data(), .stride = size_};
  arrays_.clear();
  for (unsigned level = 0; level < levels; ++level) arrays_.emplace_back(stack.level(level), size_);
  return_parts(arrays_);
}

template <class T>
void RankSum<T>::return_parts(std::span<const std::span<T>> arrays) {
  const auto each = [&](unsigned owner, auto&& f) {
    for (const std::span<T> array : arrays)
      for (const auto& [begin, end] : parts_[owner]) f(array.data() + begin, (end - begin) * sizeof(T));
  };
  const auto put = [&](std::span<std::byte> message) {
    std::byte* at = message.data();
    each(comm_.rank(), [&](const T* from, std::size_t length) {
      std::memcpy(at, from, length);
      at += length;
    });
  };
  const auto take = [&](unsigned owner, std::span<const std::byte> message) {
    const std::byte* at = message.data();
    each(owner, [&](T* to, std::size_t length) {
      std::memcpy(to, at, length);
      at += length;
    });
  };
  comm_.share_parts([&](unsigned owner) { return arrays.size() * lengths_[owner] * sizeof(T); }, put, take);
}

template <class T>
void RankSum<T>::finish_own(const Exec& ex, const Call& call) {
  send_nodes(call);
  add_nodes(ex, call);
}

template <class T>
void RankSum<T>::collect(std::span<const T> held, std::span<T> whole, To to) {
  const std::size_t first = own_hull().first;
  const bool takes = to == To::all || comm_.rank() == 0;
  for (unsigned other = 0; other < comm_.size(); ++other) {
    expected_[other] = takes ? lengths_[other] * sizeof(T) : 0;
    if (other == comm_.rank() || (to == To::rank_0 && other > 0)) continue;
    std::byte* at = comm_.outgoing(other, lengths_[comm_.rank()] * sizeof(T)).data();
    for (const auto& [begin, end] : own()) {
      std::memcpy(at, held.data() + (begin - first), (end - begin) * sizeof(T));
      at += (end - begin) * sizeof(T);
    }
  }
  comm_.exchange(expected_);
  if (!takes) return;
  for (unsigned from = 0; from < comm_.size(); ++from) {
    if (from == comm_.rank()) continue;
    std::size_t at = 0;
    for (const auto& [begin, end] : parts_[from]) {
      std::memcpy(whole.data() + begin, comm_.incoming(from).data() + at, (end - begin) * sizeof(T));
      at += (end - begin) * sizeof(T);
    }
  }
  for (const auto& [begin, end] : own()) std::copy_n(held.data() + (begin - first), end - begin, whole.data() + begin);
}

template class RankSum<float>;
template class RankSum<double>;

}  // namespace gradloom
