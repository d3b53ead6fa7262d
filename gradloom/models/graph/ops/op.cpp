#include "gradloom/models/graph/ops/op.h"

namespace gradloom::graph {
namespace {

// A leaf whose sum is that of `blocks` arrays (dense::add_blocks).
template <class T>
void add_partials(const reduce::TreeSum<T>& sum, std::size_t leaf, T* partials, std::size_t blocks, std::size_t size,
                  std::size_t begin, std::size_t end) {
  const reduce::LeafPlace place = reduce::place_of(leaf);
  dense::add_blocks<T>(partials, blocks, size, begin, end,
                       place.store ? GradientMode::overwrite : GradientMode::accumulate, sum.level(place.level));
  reduce::merge_levels(sum, leaf, begin, end);
}

}  // namespace

template <class T>
void Pass<T>::gather(const message::Gather<T>& g, std::size_t first, std::size_t last, Hubs which, Rows then) const {
  const auto& hubs = memory.hubs_[static_cast<std::size_t>(which)];
  const std::uint32_t* hub = memory.workspace_.template at<std::uint32_t>(hubs.rows);
  const auto before = [&](std::size_t row) {
    return static_cast<std::size_t>(std::lower_bound(hub, hub + hubs.count, row) - hub);
  };
  if (const std::size_t from = before(first), to = before(last); from < to) {
    const std::uint32_t* starts = memory.workspace_.template at<std::uint32_t>(hubs.starts);
    T* sums = memory.workspace_.template at<T>(memory.segments_);
    ex.parallel_for(starts[to] - starts[from], [&](std::size_t t, unsigned) {
      const std::size_t s = starts[from] + t;
      const std::size_t k = static_cast<std::size_t>(std::upper_bound(starts, starts + hubs.count, s) - starts) - 1;
      T* own = sums + starts[k] * memory.widest_;
      message::gather_segment<T>(ex.variant(), g, hub[k], s - starts[k], own + (s - starts[k]) * g.width);
    });
    ex.parallel_for(to - from, [&](std::size_t t, unsigned) {
      message::finish_hub<T>(g, hub[from + t], sums + starts[from + t] * memory.widest_);
    });
  }
  graph::for_arcs(ex, g.ptr, first, last, kGathered * g.width, [&](std::size_t begin, std::size_t end) {
    message::gather_rows<T>(ex.variant(), g, begin, end);
    then(begin, end);
  });
}

template <class T>
void Pass<T>::written(const Tensor& t) const {
  if (!graded(t)) return;
  T* to = gradient(t);
  for_rows(t, kElementwise, [&](std::size_t begin, std::size_t end) {
    rowwise::add<T>({begin, end, t.width, t.stride}, scratch_of(t), to);
  });
}

template <class T>
void Pass<T>::for_sums(const Tensor& t, T* sums, std::size_t size, SumRows body) const {
  if (whole(t)) return for_leaves(ex, this->rows(t), sums, size, body);
  if (sum_by == SumBy::parts) return body(sums + part.number * size, part.begin(t), part.end(t));
  const std::uint32_t* first_block = blocks_of_graphs();
  for (std::size_t g = part.first_graph; g < part.last_graph; ++g) {
    const std::size_t first = this->batch.graph_ptr[g];
    const auto own = [&](std::size_t b, std::size_t begin, std::size_t end) {
      body(sums + (first_block[g] + b) * size, first + begin, first + end);
    };
    for_blocks(ex, this->batch.graph_ptr[g + 1] - first, own, kGraphBlock);
  }
}

template <class T>
void Pass<T>::column_sums(const Tensor& t, const T* dl_dz, T* sums, Rows make_rows) const {
  for_sums(t, sums, t.stride, [&](T* to, std::size_t begin, std::size_t end) {
    make_rows(begin, end);
    dense::column_sums<T>(dl_dz + begin * t.stride, end - begin, t.stride, t.stride, to);
  });
}

// fill(begin, end) completes pieces of a slice's gradient, and the sink is told of each.
template <class T>
void Pass<T>::finish_ranges(const SliceRef& s, Rows fill) const {
  constexpr std::size_t kRange = 2048;
  ex.parallel_for((s.size + kRange - 1) / kRange, [&](std::size_t t, unsigned worker) {
    const std::size_t begin = t * kRange, end = std::min(s.size, begin + kRange);
    fill(begin, end);
    tell(s, begin, end, worker);
  });
}

// A sum over the whole batch is its first leaf; where graphs are leaves, the others are empty.
template <class T>
void Pass<T>::finish_piece(const SliceRef& s, std::size_t begin, std::size_t end) const {
  const reduce::TreeSum<T> sum = sum_of(s);
  reduce::add_empty_leaves(sum, sum.leaf + 1, leaves - 1, begin, end);
  if (sum.complete) reduce::finish_levels(sum, sum.leaf + leaves, begin, end);
}

template <class T>
void Pass<T>::finish_blocks(const SliceRef& s, const Tensor& t, T* from, std::size_t size) const {
  finish_ranges(s, [&](std::size_t begin, std::size_t end) {
    add_partials(sum_of(s), tree.leaf, from, dense::row_blocks(this->rows(t)), size, begin, end);
    finish_piece(s, begin, end);
  });
}

template <class T>
void Pass<T>::finish(const SliceRef& s, const T* from) const {
  finish_ranges(s, [&](std::size_t begin, std::size_t end) {
    if (from) reduce::add_leaf(sum_of(s), tree.leaf, from, begin, end);
    finish_piece(s, begin, end);
  });
}

template <class T>
void Pass<T>::fold(const SliceRef& s, T* from, std::size_t size, std::size_t begin, std::size_t end,
                   unsigned worker) const {
  if (!trains(s)) return;
  if (this->batch.graphs > 0 && sum_by == SumBy::parts) {
    add_partials(sum_of(s), tree.leaf, from, memory.pack_count_, size, begin, end);
    finish_piece(s, begin, end);
    return tell(s, begin, end, worker);
  }
  const std::uint32_t* first_block = blocks_of_graphs();
  sum_graphs(s, begin, end, worker, [&](std::size_t g, bool store, T* to) {
    dense::add_blocks<T>(from + first_block[g] * size, first_block[g + 1] - first_block[g], size, begin, end,
                         store ? GradientMode::overwrite : GradientMode::accumulate, to);
  });
}

template struct Pass<float>;
template struct Pass<double>;

}  // namespace gradloom::graph
