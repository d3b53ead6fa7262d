// Who computes what: graphs dealt to workers.
#include "gradloom/models/graph/network.h"

namespace gradloom::graph {

namespace {
// Work (multiplications of a forward pass) that is worth a task of its own, and from which on a graph that is a good
// share of its batch is cut itself.
constexpr std::size_t kPackWork = std::size_t{1} << 16, kWideWork = std::size_t{1} << 21;
constexpr std::size_t kMostPacks = 256, kWideShare = 16;
}  // namespace

template <class T>
void GraphNetwork<T>::plan(const Batch& batch, Tape& tape) const {
  std::uint32_t* wide = tape.workspace_.template at<std::uint32_t>(tape.wide_);
  std::uint32_t* packs = tape.workspace_.template at<std::uint32_t>(tape.packs_);
  std::uint32_t* first_block = tape.workspace_.template at<std::uint32_t>(tape.first_block_);
  tape.wide_count_ = tape.pack_count_ = tape.large_count_ = 0;
  if (sum_by_ == SumBy::rows) {
    wide[0] = 0, wide[1] = static_cast<std::uint32_t>(batch.graphs);
    tape.wide_count_ = 1;
    return;
  }
  std::uint32_t first = 0;
  const auto end_pack = [&](std::uint32_t last) {
    if (first == last) return;
    packs[2 * tape.pack_count_] = first, packs[2 * tape.pack_count_ + 1] = last;
    ++tape.pack_count_;
    first = last;
  };
  if (sum_by_ == SumBy::parts) {
    const std::size_t trained = tape.part_graphs_ > 0 ? tape.part_graphs_ : part_graphs(batch.graphs);
    const std::size_t size = tape.workers_ > 0 ? kPartGraphs : trained;
    for (std::size_t g = 0; g < batch.graphs; g += size)
      end_pack(static_cast<std::uint32_t>(std::min(batch.graphs, g + size)));
    return;
  }
  const auto work = [&](std::size_t from, std::size_t to) {
    const std::size_t a = batch.graph_ptr[from], b = batch.graph_ptr[to];
    return (b - a) * node_work_ + (batch.arcs.ptr[b] - batch.arcs.ptr[a]) * arc_work_;
  };
  const std::size_t all = work(0, batch.graphs), enough = std::max(kPackWork, all / kMostPacks);
  first_block[0] = 0;
  for (std::uint32_t g = 0; g < batch.graphs; ++g) {
    const std::size_t blocks = dense::row_blocks(batch.graph_ptr[g + 1] - batch.graph_ptr[g], kGraphBlock);
    first_block[g + 1] = first_block[g] + static_cast<std::uint32_t>(blocks);
    tape.large_count_ += blocks > 1;
    const std::size_t own = work(g, g + 1);
    if (own > kWideWork && own > all / kWideShare) {
      end_pack(g);
      wide[2 * tape.wide_count_] = g, wide[2 * tape.wide_count_ + 1] = g + 1;
      ++tape.wide_count_;
      first = g + 1;
    } else if (work(first, g + 1) >= enough) {
      end_pack(g + 1);
    }
  }
  end_pack(static_cast<std::uint32_t>(batch.graphs));
}

template <class T>
Part GraphNetwork<T>::part_of(const Batch& batch, const Tape& tape, std::size_t list, std::size_t k) const {
  const std::uint32_t* pair = tape.workspace_.template at<std::uint32_t>(list) + 2 * k;
  if (sum_by_ == SumBy::rows) return whole_part(batch);
  return {batch.graph_ptr[pair[0]], batch.graph_ptr[pair[1]], pair[0], pair[1], 0, k};
}

template <class T>
void GraphNetwork<T>::run_ops(const Exec& ex, const Batch& batch, const Tape& tape, Order order, RunOp run) const {
  const Exec alone({.threads = 1, .variant = ex.variant()});
  const std::size_t count = ops_.size();
  const auto op = [&](std::size_t k) -> const Op<T>& { return *ops_[order == Order::forwards ? k : count - 1 - k]; };
  for (std::size_t at = 0; at < count;) {
    if (op(at).is_barrier()) {
      run(ex, whole_part(batch), op(at++));
      continue;
    }
    std::size_t end = at;
    while (end < count && !op(end).is_barrier()) ++end;
    for (std::size_t p = 0; p < tape.wide_count_; ++p)
      for (std::size_t k = at; k < end; ++k) run(ex, part_of(batch, tape, tape.wide_, p), op(k));
    ex.parallel_for(tape.pack_count_, [&](std::size_t p, unsigned worker) {
      Part part = part_of(batch, tape, tape.packs_, p);
      part.worker = worker;
      for (std::size_t k = at; k < end; ++k) run(alone, part, op(k));
    });
    at = end;
  }
}

template class GraphNetwork<float>;
template class GraphNetwork<double>;

}  // namespace gradloom::graph
