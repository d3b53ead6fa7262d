// Op<T>: one operation of a graph network. Everything about it is in its class: the memory that it keeps, both passes,
// the sums of its parameters, its kinks, and the same function on dual numbers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/hash.h"
#include "gradloom/models/graph/rows.h"
#include "gradloom/models/graph/tape.h"

namespace gradloom::graph {

using kernels::rowwise::Activation;
enum class Readout { sum, mean, max };

// The sums of a graph's rows are cut only when it has more rows than this.
inline constexpr std::size_t kGraphBlock = 2048;

// The most blocks over which a sum of so many rows is defined.
inline std::size_t most_blocks(std::size_t rows) { return std::min<std::size_t>(64, rows / dense::kBlock + 1); }

// How the gradients of parameters are summed over rows. Rows of pairs are always summed by `rows`.
enum class SumBy {
  rows,    // in dense::row_blocks of all rows; an operation finishes its own sums
  graphs,  // the rows of each graph, a leaf of the step's tree, behind the last operation
  parts,   // the rows of each part, then the parts as dense::add_blocks does, behind the last operation
};

// By parts: at most kMostParts of them, of at least kPartGraphs graphs. A function of the batch's size alone.
inline constexpr std::size_t kMostParts = 32, kPartGraphs = 8;
inline std::size_t part_graphs(std::size_t graphs) { return std::max(kPartGraphs, divide_up(graphs, kMostParts)); }

// What operations read and write: a matrix for each batch. Tensor 0 is the input.
struct Tensor {
  std::size_t id = kNone;
  RowsAre rows = RowsAre::nodes;
  std::size_t width = 0, stride = 0;
  // Shares its memory with all others of the kind. An operation without parameters writes it, the next one alone reads
  // it, and the backward pass computes it again.
  bool recomputed = false;
  explicit operator bool() const { return id != kNone; }
};

// Where a slice lies in the flat array of parameters or buffers; there may be none.
struct SliceRef {
  std::size_t index = kNone, offset = 0, size = 0, row = 0;  // size: with padding; row: the stored length of one
  explicit operator bool() const { return index != kNone; }
};

// Whole graphs, computed one operation after the other by one worker or, when they are large, by all of them.
struct Part {
  std::size_t first_node = 0, last_node = 0, first_graph = 0, last_graph = 0, pairs = 0;
  std::size_t number = 0;
  unsigned worker = 0;
  std::size_t begin(const Tensor& t) const {
    return t.rows == RowsAre::nodes ? first_node : t.rows == RowsAre::graphs ? first_graph : 0;
  }
  std::size_t end(const Tensor& t) const {
    return t.rows == RowsAre::nodes ? last_node : t.rows == RowsAre::graphs ? last_graph : pairs;
  }
};

template <class T>
BatchSizes sizes_of(const GraphBatch<T>& b) {
  return {b.nodes, b.graphs, b.size, b.arc_count(), b.feature_value.size()};
}
// For operations that meet no other batches.
template <class T>
const PairBatch<T>& pairs_of(const GraphBatch<T>& batch) {
  return static_cast<const PairBatch<T>&>(batch);
}
template <class T>
const TreeBatch<T>& trees_of(const GraphBatch<T>& batch) {
  return static_cast<const TreeBatch<T>&>(batch);
}

// What a forward pass left for one operation.
template <class T>
struct Seen {
  const GraphBatch<T>& batch;
  const ModelArrays<T>& arrays;
  const GraphTape<T>& tape;
  std::size_t op;
  std::ptrdiff_t shift = 0;  // where row 0 of a tensor of nodes would be, in rows of its memory

  std::size_t rows(const Tensor& t) const { return sizes_of(batch).rows(t.rows); }
  bool trained() const { return tape.trained_; }
  const T* value(const Tensor& t) const {
    return t.id == 0 ? tape.x_ : tape.workspace_.template at<T>(tape.value_[t.id]) + moved(t);
  }
  std::ptrdiff_t moved(const Tensor& t) const {
    return t.rows == RowsAre::nodes ? shift * static_cast<std::ptrdiff_t>(t.stride) : 0;
  }
  // Null when there is no such slice.
  const T* parameter(const SliceRef& s) const { return s ? arrays.parameters.data() + s.offset : nullptr; }
  // What the operation reserved.
  const T* numbers(std::size_t region) const { return tape.workspace_.template at<T>(tape.op_[op][region]); }
  const std::uint32_t* indices(std::size_t region) const {
    return tape.workspace_.template at<std::uint32_t>(tape.op_[op][region]);
  }
};

// Which rows have too many entries for one worker: arcs into or out of nodes, entries of features by row or column.
enum class Hubs { in, out, feature_in, feature_out };

// One operation of a pass, over the rows of one part.
template <class T>
struct Pass : Seen<T> {
  const Exec& ex;
  const Step& step;
  GraphTape<T>& memory;
  SumBy sum_by;
  Part part;
  // Backward only.
  reduce::TreeSum<T> tree = {};  // of the gradient of all parameters
  std::size_t leaves = 1;        // of the batch
  GradientSink* sink = nullptr;
  bool edges = false;  // gradients of what edges carry are asked for

  bool training() const { return step.mode == Mode::train; }
  T* output(const Tensor& t) const { return at(memory.value_[t.id]) + this->moved(t); }
  T* numbers(std::size_t region) const { return at(memory.op_[this->op][region]); }
  std::uint32_t* indices(std::size_t region) const {
    return memory.workspace_.template at<std::uint32_t>(memory.op_[this->op][region]);
  }
  std::uint8_t* flags(std::size_t region) const {
    return memory.workspace_.template at<std::uint8_t>(memory.op_[this->op][region]);
  }
  // Memory that operations share: one row for each node or graph, at the widest stride; sums of blocks of rows; sums of
  // large graphs; gradients of edges.
  T* scratch() const { return at(memory.scratch_); }
  T* blocks() const { return at(memory.blocks_); }
  T* large() const { return at(memory.large_); }
  T* edge_weight_gradient() const { return at(memory.edge_weight_); }
  T* edge_feature_gradient() const { return at(memory.edge_x_); }

  // body(begin, end) for pieces of the part's rows of t; `work`: for each number of a row, or of each arc.
  template <class F>
  void for_rows(const Tensor& t, std::size_t work, F&& body) const {
    graph::for_rows(ex, part.begin(t), part.end(t), work * t.stride, body);
  }
  template <class F>
  void for_arcs(const Tensor& t, const std::uint32_t* ptr, std::size_t work, F&& body) const {
    graph::for_arcs(ex, ptr, part.begin(t), part.end(t), work * t.stride, body);
  }
  // Rows [first, last) of a gather; then(begin, end) for rows that are in the cache.
  using Rows = FunctionRef<void(std::size_t begin, std::size_t end)>;
  void gather(
      const kernels::message::Gather<T>& g, std::size_t first, std::size_t last, Hubs hubs,
      Rows then = [](std::size_t, std::size_t) {}) const;

  // The operation finishes its sums.
  bool whole(const Tensor& t) const { return sum_by == SumBy::rows || t.rows == RowsAre::pairs; }
  bool trains(const SliceRef& s) const { return s && !step.is_frozen(s.index); }
  bool needed(const Tensor& t) const { return memory.needed_[t.id]; }
  reduce::TreeSum<T> sum_of(const SliceRef& s) const { return tree.at(s.offset); }
  T* gradient(const Tensor& t) const { return at(memory.gradient_[t.id]); }
  // Another operation has already written a gradient of this tensor.
  bool graded(const Tensor& t) const { return memory.graded_[this->op * memory.value_.size() + t.id]; }
  // Where the gradient of a tensor is written: the tensor's own memory the first time, then scratch. When all rows of
  // the part are there, written() adds them.
  T* target(const Tensor& t) const { return graded(t) ? scratch_of(t) : gradient(t); }
  void written(const Tensor& t) const;

  // body(to, begin, end) stores sums over rows of this part to `size` numbers. In the end the sums over the blocks of
  // rows for which they are defined lie at `sums`; blocks are numbered through the batch. t: nodes or pairs.
  using SumRows = FunctionRef<void(T* to, std::size_t begin, std::size_t end)>;
  void for_sums(const Tensor& t, T* sums, std::size_t size, SumRows body) const;
  // Sums of dl_dz into blocks of t's stride at `sums`; before the rows of a block are summed, make_rows fills them.
  void column_sums(
      const Tensor& t, const T* dl_dz, T* sums, Rows make_rows = [](std::size_t, std::size_t) {}) const;
  // A slice whose sums over blocks of all rows of t lie `size` apart at `from`; the sink is told, range by range.
  void finish_blocks(const SliceRef& s, const Tensor& t, T* from, std::size_t size) const;
  // A slice whose sum over all rows is in `from`, or in its place when `from` is null; that is for the first leaf.
  void finish(const SliceRef& s, const T* from) const;
  // Numbers [begin, end) of a slice from its sums over the blocks of rows of each graph or part, `size` apart at
  // `from`.
  void fold(const SliceRef& s, T* from, std::size_t size, std::size_t begin, std::size_t end, unsigned worker) const;
  void fold(const SliceRef& s, T* from, std::size_t size, unsigned worker) const {
    fold(s, from, size, 0, s.size, worker);
  }
  // Numbers [begin, end) of a slice, graph after graph, each of which is a leaf: add(graph, store, to) stores the sum
  // of one to this place of the slice or adds it there.
  template <class F>
  void sum_graphs(const SliceRef& s, std::size_t begin, std::size_t end, unsigned worker, F&& add) const {
    const reduce::TreeSum<T> sum = sum_of(s);
    const std::size_t graphs = this->batch.graphs;
    if (graphs == 0 && sum.leaf == 0) std::fill(sum.root + begin, sum.root + end, T(0));
    if (graphs == 0 && sum.leaf > 0) reduce::add_empty_leaves(sum, sum.leaf, leaves, begin, end);
    for (std::size_t g = 0; g < graphs; ++g) {
      const reduce::LeafPlace place = reduce::place_of(sum.leaf + g);
      add(g, place.store, sum.level(place.level));
      reduce::merge_levels(sum, sum.leaf + g, begin, end);
    }
    if (sum.complete) reduce::finish_levels(sum, sum.leaf + leaves, begin, end);
    tell(s, begin, end, worker);
  }
  void tell(const SliceRef& s, std::size_t begin, std::size_t end, unsigned worker) const {
    if (sink) sink->finished(s.offset + begin, s.offset + end, worker);
  }

 private:
  T* at(std::size_t offset) const { return memory.workspace_.template at<T>(offset); }
  const std::uint32_t* blocks_of_graphs() const {
    return memory.workspace_.template at<std::uint32_t>(memory.first_block_);
  }
  void finish_ranges(const SliceRef& s, Rows fill) const;
  void finish_piece(const SliceRef& s, std::size_t begin, std::size_t end) const;
  // Row r of a tensor is r strides behind this. Workers are at tensors of different strides at the same time; each
  // stays within the rows of its part at the widest stride.
  T* scratch_of(const Tensor& t) const { return scratch() + part.begin(t) * (memory.widest_ - t.stride); }
};

// The memory of a tape, while it is reserved.
template <class T>
struct Reservation {
  TapeLimits limits;
  SumBy sum_by;
  BatchSizes most;  // of the largest batch
  Workspace& workspace;
  unsigned workers = 1;
  OpMemory* memory = nullptr;           // of the operation whose turn it is
  std::size_t blocks = 0, largest = 0;  // what blocks() must hold; the largest weight that is summed graph by graph

  std::size_t rows(const Tensor& t) const { return most.rows(t.rows); }
  template <class U>
  void keep(std::size_t region, std::size_t count) {
    (*memory)[region] = workspace.reserve<U>(count);
  }
  // `size` numbers for every block of rows over which sums are defined; a graph's own row needs none.
  void keep_sums(std::size_t region, const Tensor& t, std::size_t size) {
    if (!limits.backward || t.rows == RowsAre::graphs) return;
    const bool whole = sum_by == SumBy::rows || t.rows == RowsAre::pairs;
    keep<T>(region, size * (whole                    ? block_sums(t)
                            : sum_by == SumBy::parts ? std::min(kMostParts, divide_up(most.graphs, kPartGraphs))
                                                     : most.graphs + most.nodes / kGraphBlock));
  }
  void share_blocks(const Tensor& t, std::size_t size) { blocks = std::max(blocks, block_sums(t) * size); }
  std::size_t block_sums(const Tensor& t) const { return most_blocks(rows(t)) + spare_sums(rows(t), workers); }
};

// Multiplications of a forward pass for one number of the output: in every row, and for every arc into it.
struct OpCost {
  std::size_t row = 0, arc = 0;
};

// An operation reads tensors; backward gives their gradients when they are needed, some always.
struct OpInput {
  Tensor tensor;
  bool always_graded = false;
};

template <class T>
class Op;

// Part of the sums that follow a backward pass: rows of a weight; none: all small parameters of the operation.
template <class T>
struct SumTask {
  const Op<T>* op;
  std::size_t begin = 0, end = 0;
};

struct DualPass;

// A const description; what belongs to a batch is in the tape. An operation runs over all rows of a part, but the
// pieces of rows that several workers compute at once are its own choice; no piece changes a bit.
template <class T>
class Op {
 public:
  virtual ~Op() = default;

  std::string_view kind() const { return kind_; }
  const std::string& name() const { return name_; }  // for profiles
  std::size_t index() const { return index_; }       // in the network
  const Tensor& out() const { return out_; }
  const std::vector<OpInput>& inputs() const { return inputs_; }
  const std::vector<SliceRef>& parameters() const { return parameters_; }  // some may be none
  // Needs all rows of the batch at once, so it ends what a part can do alone.
  virtual bool is_barrier() const { return out_.rows == RowsAre::pairs; }
  virtual OpCost cost() const { return {}; }

  virtual void reserve(Reservation<T>&) const {}
  virtual void forward(const Pass<T>& p) const = 0;
  // What backward wants of the parameters; they may change as soon as the sink is told of any gradient.
  virtual void prepare_backward(const Pass<T>&) const {}
  // Called when the gradient of out() is needed, and complete.
  virtual void backward(const Pass<T>& p) const = 0;

  // In graph tasks the gradients of parameters are summed when those of all rows are there, graph after graph.
  virtual void list_sums(std::vector<SumTask<T>>&) const {}
  // Before the tasks, when the batch has graphs of more than kGraphBlock nodes: these are cut into blocks of rows.
  virtual void sum_large_graphs(const Pass<T>&) const {}
  virtual void sum(const Pass<T>&, const SumTask<T>&, unsigned /*worker*/) const {}

  virtual void initialise_buffers(std::span<T> /*buffers*/) const {}  // that are not zero
  virtual void update_buffers(const Seen<T>&, std::span<T> /*buffers*/) const {}
  virtual void branches(const Seen<T>&, Hash&) const {}
  virtual void dual(DualPass& p) const = 0;

 protected:
  Op(std::string_view kind, std::string name, Tensor out, std::vector<OpInput> inputs,
     std::vector<SliceRef> parameters = {})
      : out_(out),
        kind_(kind),
        name_(std::move(name)),
        inputs_(std::move(inputs)),
        parameters_(std::move(parameters)) {}

  virtual void run_rows(const Pass<T>&, std::size_t /*begin*/, std::size_t /*end*/) const {}
  void next_rows(const Pass<T>& p, std::size_t begin, std::size_t end) const {
    if (next_) next_->run_rows(p, begin, end);
  }

  const Tensor out_;
  bool gives_rows_ = false, takes_rows_ = false;
  bool follows_ = false;  // the operation before has run this one

 private:
  friend class GraphNetwork<T>;
  // As operation `index` of a network. When it works row by row on what the one before gives, that one lets it work on
  // rows that are still in the cache.
  void place(std::size_t index, Op* before) {
    index_ = index;
    follows_ = before && before->gives_rows_ && takes_rows_ && inputs_[0].tensor.id == before->out_.id;
    if (follows_) before->next_ = this;
  }

  std::string_view kind_;
  std::string name_;
  std::vector<OpInput> inputs_;
  std::vector<SliceRef> parameters_;
  std::size_t index_ = 0;
  const Op* next_ = nullptr;
};

// From one tensor to another.
template <class T>
class UnaryOp : public Op<T> {
 public:
  struct Fields {
    Tensor in, out;
  };

 protected:
  UnaryOp(std::string_view kind, std::string name, const Fields& f)
      : Op<T>(kind, std::move(name), f.out, {{f.in}}), in_(f.in) {}
  const Tensor in_;
};

// With small parameters: backward leaves their gradients, one behind the other in each block of rows over which sums
// are defined, sum_size() numbers in all, in region kSums, and calls finish_sums().
template <class T>
class SmallSumsOp : public Op<T> {
 public:
  void reserve(Reservation<T>& r) const override { r.keep_sums(kSums, this->out(), sum_size()); }
  void list_sums(std::vector<SumTask<T>>& tasks) const override {
    if (sum_size() > 0 && this->out().rows == RowsAre::nodes) tasks.push_back({this});
  }
  void sum(const Pass<T>& p, const SumTask<T>&, unsigned worker) const override {
    each(p, [&](const SliceRef& s, T* sums) { p.fold(s, sums, sum_size(), worker); });
  }

 protected:
  using Op<T>::Op;
  enum { kSums, kFirst };  // kFirst: the first region of the operation's own

  std::size_t sum_size() const {
    std::size_t size = 0;
    for (const SliceRef& s : this->parameters()) size += s.size;
    return size;
  }
  void finish_sums(const Pass<T>& p) const {
    if (!p.whole(this->out())) return;
    each(p, [&](const SliceRef& s, T* sums) { p.finish_blocks(s, this->out(), sums, sum_size()); });
  }

 private:
  template <class F>
  void each(const Pass<T>& p, F&& body) const {
    T* sums = p.numbers(kSums);
    for (const SliceRef& s : this->parameters()) {
      if (p.trains(s)) body(s, sums);
      sums += s.size;
    }
  }
};

}  // namespace gradloom::graph
