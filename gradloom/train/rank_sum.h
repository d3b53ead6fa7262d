// RankSum: a gradient whose leaves were summed by several ranks, with the bits of one process.
//
// The leaves of a step (kernels/reduce/tree_sum.h) are cut into contiguous shares, one for each rank. A rank sums each
// maximal aligned range of its share. The trained elements of the flat array are cut into as many parts: their owner
// receives its part of all ranges, adds them as nodes of the tree, in the order of leaves, and returns to all either
// the sum or, where it can update its parameters by itself, those. With r ranges of N elements a rank sends at most (r
// + 1) (P - 1) / P N elements in 2 (P - 1) messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/comm/comm.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/exec/exec.h"
#include "gradloom/kernels/reduce/tree_sum.h"

namespace gradloom {

// Leaves [first, first + 2^log_size) of a step, an aligned range.
struct LeafNode {
  std::size_t first = 0;
  unsigned log_size = 0;
  std::size_t size() const { return std::size_t{1} << log_size; }
  std::size_t number() const { return first >> log_size; }  // as a leaf of a tree of such ranges
};

// The maximal aligned ranges of leaves [first, first + count), in order.
template <class F>
void each_node(std::size_t first, std::size_t count, F&& f) {
  while (count > 0) {
    const unsigned most = static_cast<unsigned>(std::bit_width(count)) - 1;
    const unsigned aligned = first == 0 ? most : static_cast<unsigned>(std::countr_zero(first));
    const LeafNode node{first, std::min(most, aligned)};
    f(node);
    first += node.size(), count -= node.size();
  }
}

// Leaves of a piece: `first` counts from its beginning.
struct LeafShare {
  std::size_t first = 0, count = 0;
};

// The share of a rank of `leaves` leaves, cut at multiples of `unit`. Ranks differ by one unit at most.
LeafShare share_of(unsigned rank, unsigned ranks, std::size_t leaves, std::size_t unit);

template <class T>
class RankSum {
 public:
  // `trained` are ranges of a flat array of `size` elements, in order; the others are not sent.
  RankSum(Comm& comm, std::size_t size, std::span<const std::pair<std::size_t, std::size_t>> trained);

  Comm& comm() { return comm_; }

  // A piece of a step: so many leaves behind those that were summed before.
  struct Call {
    std::size_t leaf = 0, leaves = 0, unit = 1;
    bool complete = true;  // the sum is finished with them
    // Level 0 and the upper levels of the stack (TreeSum); all ranks hold what was summed before, and what comes out.
    std::span<T> gradient, levels;
    // What else each rank knows of its share and tells the others: loss(first, count) are the bytes of so many leaves.
    FunctionRef<std::span<std::byte>(LeafShare)> loss;
  };

  // The array for the sum of this rank's i-th range, zeroed when it is new.
  std::span<T> node_sum(std::size_t i);
  void finish(const Exec& ex, const Call& call);

  // The same in two halves, for a call that is complete: the sum of the own part, in call.gradient; then the own part
  // of any array, to all.
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  void finish_own(const Exec& ex, const Call& call);
  const Ranges& own() const { return parts_[comm_.rank()]; }
  // From the first element of the own part to the last.
  std::pair<std::size_t, std::size_t> own_hull() const {
    return own().empty() ? std::pair<std::size_t, std::size_t>() : std::pair(own().front().first, own().back().second);
  }
  void share_own(std::span<T> values) { return_parts({&values, 1}); }
  // Arrays over the own hull, and from all of them whole ones for rank 0, or for all ranks.
  enum class To { rank_0, all };
  void collect(std::span<const T> held, std::span<T> whole, To to);

 private:
  void send_nodes(const Call& call);
  void add_nodes(const Exec& ex, const Call& call);
  void return_sums(const Call& call);
  void return_parts(std::span<const std::span<T>> arrays);
  std::size_t nodes_of(unsigned rank, const Call& call) const;
  LeafShare share(unsigned rank, const Call& call) const {
    return share_of(rank, comm_.size(), call.leaves, call.unit);
  }

  Comm& comm_;
  std::size_t size_;
  std::vector<Ranges> parts_;         // by owner
  std::vector<std::size_t> lengths_;  // elements of each part
  std::vector<Buffer<T>> sums_;
  std::vector<std::size_t> expected_;
  std::vector<std::span<T>> arrays_;
};

}  // namespace gradloom
