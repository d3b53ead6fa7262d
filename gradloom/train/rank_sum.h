// RankSum: a gradient whose leaves were summed by several ranks, with the bits of one process.
//
// The leaves of a step (kernels/reduce/tree_sum.h) are cut into contiguous shares, one for each rank. A rank sums each
// maximal aligned range of its share. The trained elements of the flat array are cut into as many parts: their owner
// receives its part of all ranges, adds them as nodes of the tree, in the order of leaves, and returns to all either
// the sum or, where it can update its parameters by itself, those. With r ranges of N elements a rank sends at most (r
// + 1) (P - 1) / P N elements.
//
// Where a backward pass finishes some of its gradient long before the rest, that is cut into sections: each is an
// exchange of its own, which is started as soon as the last range of leaves has summed the section, and the pass goes
// on meanwhile. Every owner has a part of every section. With S sections a rank sends (S + 1) (P - 1) messages.
#pragma once

#include <algorithm>
#include <atomic>
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
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

  // `trained` are ranges of a flat array of `size` elements that do not overlap, in any order; the others are not sent.
  // Sections follow their order.
  enum class Cut { one_section, sections };
  RankSum(Comm& comm, std::size_t size, const Ranges& trained, Cut cut);

  Comm& comm() { return comm_; }
  std::size_t sections() const { return sections_.size(); }

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

  // Optional, before that, while the last range is summed. Elements of it, and of all ranges before, are final: any
  // thread says so, of each element once.
  void count_final(std::size_t begin, std::size_t end);
  // By the thread that owns the Comm: sends what is complete; never waits. The loss of the share may still be missing.
  void send_complete(const Call& call);

  // The same in two halves, for a call that is complete: the sum of the own part, in call.gradient; then the own part
  // of any array, to all.
  void finish_own(const Exec& ex, const Call& call);
  // In the order of the flat array. What a rank holds of its own part alone is an array of own_size() elements.
  const Ranges& own() const { return parts_[comm_.rank()].ranges; }
  std::size_t own_size() const { return parts_[comm_.rank()].size; }
  void share_own(std::span<T> values) { return_parts({&values, 1}); }
  // From such arrays whole ones, for rank 0 or for all ranks.
  enum class To { rank_0, all };
  void collect(std::span<const T> held, std::span<T> whole, To to);

 private:
  struct Part {
    Ranges ranges;
    std::size_t size = 0;  // elements
  };
  struct Section {
    Ranges ranges;
    std::size_t size = 0;
    std::vector<Part> parts;  // by owner
  };
  void cut_section(Ranges ranges);
  // Before the last section, which travels with the loss.
  bool has_more_to_send() const { return next_ + 1 < sections_.size(); }
  void start_section(std::size_t s, const Call& call);
  void send_nodes(const Call& call);
  std::size_t loss_bytes(std::size_t section, unsigned rank, const Call& call) const;
  void add_nodes(const Exec& ex, const Call& call);
  void return_sums(const Call& call);
  void return_parts(std::span<const std::span<T>> arrays);
  std::size_t nodes_of(unsigned rank, const Call& call) const;
  LeafShare share(unsigned rank, const Call& call) const {
    return share_of(rank, comm_.size(), call.leaves, call.unit);
  }

  Comm& comm_;
  std::size_t size_;
  std::vector<Part> parts_;  // by owner, of all sections
  std::vector<Section> sections_;
  std::vector<std::atomic<std::size_t>> left_;  // elements of each section that are not final
  std::size_t next_ = 0;                        // the first section that is not sent
  std::vector<Buffer<T>> sums_;
  std::vector<std::size_t> expected_;
  std::vector<std::span<T>> arrays_;
};

}  // namespace gradloom
