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

namespace {

// A message costs about as much as some ten thousand bytes, and a section has one for each pair of ranks.
constexpr std::size_t kLeastSection = 65536, kLeastMessage = 16384;  // bytes of all numbers, of a message
constexpr std::size_t kMostSections = 8;
constexpr std::size_t kLine = 16;  // elements; parts and sections are cut into whole cache lines

}  // namespace

template <class T>
RankSum<T>::RankSum(Comm& comm, std::size_t size, const Ranges& trained, Cut cut)
    : comm_(comm), size_(size), parts_(comm.size()), expected_(comm.size()) {
  std::size_t all = 0;
  for (const auto& [begin, end] : trained) all += end - begin;
  std::size_t wanted = std::max(all, kLine);
  if (cut == Cut::sections)
    wanted = round_up(
        std::max({kLeastSection / sizeof(T), comm.size() * kLeastMessage / sizeof(T), divide_up(all, kMostSections)}),
        kLine);
  Ranges section;
  std::size_t held = 0, rest = all;  // elements of that, and with it of all that is not cut
  for (const auto& [first, end] : trained)
    for (std::size_t begin = first; begin < end;) {
      // What would be less than half a section belongs to the one before.
      const bool is_last = rest < wanted + wanted / 2;
      const std::size_t to = is_last ? end : std::min(end, begin + wanted - held);
      section.emplace_back(begin, to);
      held += to - begin, begin = to;
      if (is_last || held < wanted) continue;
      cut_section(std::exchange(section, {}));
      rest -= held, held = 0;
    }
  cut_section(std::move(section));
  left_ = std::vector<std::atomic<std::size_t>>(sections_.size());
  for (std::size_t s = 0; s < sections_.size(); ++s) left_[s] = sections_[s].size;
  for (Part& part : parts_) std::sort(part.ranges.begin(), part.ranges.end());
}

template <class T>
void RankSum<T>::cut_section(Ranges ranges) {
  Section section{.ranges = std::move(ranges), .parts = std::vector<Part>(comm_.size())};
  for (const auto& [begin, end] : section.ranges) section.size += end - begin;
  const std::size_t all = section.size;
  const auto cut = [&](std::size_t r) { return r == comm_.size() ? all : all * r / comm_.size() / kLine * kLine; };
  for (unsigned owner = 0; owner < comm_.size(); ++owner) {
    Part& part = section.parts[owner];
    part.size = cut(owner + 1) - cut(owner);
    parts_[owner].size += part.size;
    std::size_t before = 0;
    for (const auto& [begin, end] : section.ranges) {
      const std::size_t from = std::max(cut(owner), before), to = std::min(cut(owner + 1), before + end - begin);
      if (from < to) part.ranges.emplace_back(begin + from - before, begin + to - before);
      before += end - begin;
    }
    parts_[owner].ranges.insert(parts_[owner].ranges.end(), part.ranges.begin(), part.ranges.end());
  }
  sections_.push_back(std::move(section));
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

template <class T>
void RankSum<T>::count_final(std::size_t begin, std::size_t end) {
  for (std::size_t s = 0; s < sections_.size(); ++s)
    for (const auto& [first, last] : sections_[s].ranges) {
      const std::size_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to) left_[s].fetch_sub(to - from, std::memory_order_acq_rel);
    }
}

template <class T>
void RankSum<T>::send_complete(const Call& call) {
  comm_.progress();
  // The loss is known behind the pass.
  for (; has_more_to_send() && left_[next_].load(std::memory_order_acquire) == 0; ++next_) {
    start_section(next_, call);
    comm_.count_early();
  }
}

// Bytes in front of a message about a section, from a rank.
template <class T>
std::size_t RankSum<T>::loss_bytes(std::size_t section, unsigned rank, const Call& call) const {
  return section + 1 == sections_.size() ? call.loss(share(rank, call)).size() : 0;
}

// To each owner: its part of each range of this rank; with the last section, before it, what this rank knows of the
// loss.
template <class T>
void RankSum<T>::start_section(std::size_t s, const Call& call) {
  const Section& section = sections_[s];
  const unsigned own = comm_.rank();
  const std::size_t before = loss_bytes(s, own, call), nodes = nodes_of(own, call);
  for (unsigned to = 0; to < comm_.size(); ++to) {
    if (to == own) continue;
    const Part& part = section.parts[to];
    const auto message = comm_.outgoing(to, before + nodes * part.size * sizeof(T), s);
    if (before > 0) std::ranges::copy(call.loss(share(own, call)), message.begin());
    std::byte* at = message.data() + before;
    for (std::size_t i = 0; i < nodes; ++i)
      for (const auto& [begin, end] : part.ranges) {
        std::memcpy(at, sums_[i].data() + begin, (end - begin) * sizeof(T));
        at += (end - begin) * sizeof(T);
      }
    expected_[to] = loss_bytes(s, to, call) + nodes_of(to, call) * section.parts[own].size * sizeof(T);
  }
  comm_.start(expected_, s);
}

template <class T>
void RankSum<T>::send_nodes(const Call& call) {
  if (nodes_of(comm_.rank(), call) > 0) comm_.count_share();
  comm_.progress();
  for (; next_ < sections_.size(); ++next_) start_section(next_, call);
  comm_.finish();
  next_ = 0;
  for (std::size_t s = 0; s < sections_.size(); ++s) left_[s] = sections_[s].size;
  for (unsigned from = 0; from < comm_.size(); ++from) {
    if (from == comm_.rank()) continue;
    const auto theirs = call.loss(share(from, call));
    std::copy_n(comm_.incoming(from, sections_.size() - 1).begin(), theirs.size(), theirs.begin());
  }
}

// The part of this rank: shares, and the ranges in them, come in the order of leaves.
template <class T>
void RankSum<T>::add_nodes(const Exec& ex, const Call& call) {
  constexpr std::size_t kTask = 8192;
  const unsigned own = comm_.rank();
  const TreeSum<T> stack{.root = call.gradient.data(), .upper = call.levels.data(), .stride = size_};
  for (std::size_t s = 0; s < sections_.size(); ++s) {
    const Part& part = sections_[s].parts[own];
    std::size_t before = 0;  // elements of the part
    for (const auto& [begin, end] : part.ranges) {
      const std::size_t first = begin, length = end - begin, offset = before;
      before += length;
      ex.parallel_for(divide_up(length, kTask), [&](std::size_t task, unsigned) {
        const std::size_t at = task * kTask, count = std::min(kTask, length - at);
        const TreeSum<T> sum = stack.at(first + at);
        for (unsigned from = 0; from < comm_.size(); ++from) {
          const LeafShare theirs = share(from, call);
          const T* message = nullptr;
          if (from != own)
            message =
                reinterpret_cast<const T*>(comm_.incoming(from, s).data() + loss_bytes(s, from, call)) + offset + at;
          std::size_t i = 0;
          each_node(call.leaf + theirs.first, theirs.count, [&](const LeafNode& node) {
            const T* values = from == own ? sums_[i].data() + first + at : message + i * part.size;
            kernels::reduce::add_leaf(sum, node.number(), values, 0, count);
            ++i;
          });
        }
        if (call.complete) kernels::reduce::finish_levels(sum, call.leaf + call.leaves, 0, count);
      });
    }
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
      for (const auto& [begin, end] : parts_[owner].ranges) f(array.data() + begin, (end - begin) * sizeof(T));
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
  comm_.share_parts([&](unsigned owner) { return arrays.size() * parts_[owner].size * sizeof(T); }, put, take);
}

template <class T>
void RankSum<T>::finish_own(const Exec& ex, const Call& call) {
  send_nodes(call);
  add_nodes(ex, call);
}

template <class T>
void RankSum<T>::collect(std::span<const T> held, std::span<T> whole, To to) {
  const bool takes = to == To::all || comm_.rank() == 0;
  for (unsigned other = 0; other < comm_.size(); ++other) {
    expected_[other] = takes ? parts_[other].size * sizeof(T) : 0;
    if (other == comm_.rank() || (to == To::rank_0 && other > 0)) continue;
    const auto message = comm_.outgoing(other, own_size() * sizeof(T));
    std::ranges::copy(std::as_bytes(held.first(own_size())), message.begin());
  }
  comm_.exchange(expected_);
  if (!takes) return;
  for (unsigned from = 0; from < comm_.size(); ++from) {
    const std::byte* at = from == comm_.rank() ? std::as_bytes(held).data() : comm_.incoming(from).data();
    for (const auto& [begin, end] : parts_[from].ranges) {
      std::memcpy(whole.data() + begin, at, (end - begin) * sizeof(T));
      at += (end - begin) * sizeof(T);
    }
  }
}

template class RankSum<float>;
template class RankSum<double>;

}  // namespace gradloom
