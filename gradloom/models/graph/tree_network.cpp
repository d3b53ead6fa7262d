#include "gradloom/models/graph/tree_network.h"

#include <fmt/format.h>

#include <cmath>

#include "gradloom/base/error.h"

namespace gradloom::graph {

void validate(const TreeOptions& o) {
  if (o.width == 0 || o.width % dense::kPad != 0)
    throw_invalid(fmt::format("the width of a tree network is {}; it must be a multiple of {}", o.width, dense::kPad));
  if (o.layers == 0) throw_invalid("a tree network has no layers");
  if (o.symbols == 0 || o.outputs == 0 || o.most_nodes == 0)
    throw_invalid(fmt::format("a tree network with {} symbols, {} outputs, trees of {} nodes", o.symbols, o.outputs,
                              o.most_nodes));
}

// Consecutive trees that one worker computes. Rows of h and z are those of the batch, or of the part (`base` is then
// its first node).
template <class T>
struct TreeNetwork<T>::Part {
  std::size_t first_tree, last_tree, first, last, base;
  Tape& tape;
  unsigned worker;
  T* at(std::size_t offset) const { return tape.workspace_.template at<T>(offset); }
  // Without a backward pass a worker has two layers in turn.
  T* h(std::size_t l) const { return at(tape.limits_.backward ? tape.h_[l] : tape.h_[2 * worker + l % 2]); }
  T* z(std::size_t l) const { return at(tape.limits_.backward ? tape.z_[l] : tape.z_[worker]); }
  T* scratch() const { return at(tape.scratch_[worker]); }
  std::size_t nodes() const { return last - first; }
  T* rows(T* of, std::size_t width) const { return of + (first - base) * width; }
};

template <class T>
TreeNetwork<T>::TreeNetwork(TreeOptions options)
    : options_((validate(options), std::move(options))), out_stride_(dense::padded(options_.outputs)) {
  const std::size_t w = options_.width;
  parameters_.add("symbol.weight", {options_.symbols + kSides, w}, w);
  for (std::size_t l = 0; l < options_.layers; ++l) {
    parameters_.add(fmt::format("layer.{}.weight", l), {4 * w, w}, w);
    parameters_.add(fmt::format("layer.{}.bias", l), {w}, w);
  }
  parameters_.add("head.weight", {w, options_.outputs}, out_stride_);
  parameters_.add("head.bias", {options_.outputs}, out_stride_);
}

template <class T>
void TreeNetwork<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  std::fill(buffers.begin(), buffers.end(), T(0));
  for (std::size_t s = 0; s < parameters_.size(); ++s) {
    const Slice& slice = parameters_[s];
    if (slice.shape.size() < 2) continue;
    const RandomStream random(seed, RandomUse::initialise, 0, static_cast<std::uint32_t>(s));
    const double limit = std::sqrt(6.0 / static_cast<double>(slice.shape[0] + slice.shape[1]));
    std::uint32_t at = 0;
    for_each_logical(slice, [&](std::size_t i) {
      parameters[i] = static_cast<T>(s == 0 ? random.normal(at) : limit * (2 * random.uniform(at) - 1));
      ++at;
    });
  }
}

// At most 32 parts, of at least 8 trees.
template <class T>
std::size_t TreeNetwork<T>::part_trees(std::size_t trees) {
  return std::max<std::size_t>(8, (trees + 31) / 32);
}

template <class T>
TreeTape<T> TreeNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 trees was asked for");
  if (limits.input_gradient) throw_invalid("symbols are no numbers; a tree network has no dl_dx");
  Tape t;
  t.limits_ = limits, t.workers_ = ex.threads();
  const std::size_t w = options_.width, trees = limits.backward ? part_trees(limits.batch) : 8;
  t.part_nodes_ = std::min(trees, limits.batch) * options_.most_nodes;
  Workspace& space = t.workspace_;
  if (limits.backward) {
    const std::size_t nodes = limits.batch * options_.most_nodes;
    for (std::size_t l = 0; l <= options_.layers; ++l) t.h_.push_back(space.reserve<T>(nodes * w));
    for (std::size_t l = 0; l < options_.layers; ++l) t.z_.push_back(space.reserve<T>(nodes * w));
    for (std::size_t l = 0; l < options_.layers; ++l) t.transposed_.push_back(space.reserve<T>(w * 4 * w));
    t.transposed_.push_back(space.reserve<T>(options_.outputs * w));
    const std::size_t parts = (limits.batch + trees - 1) / trees;
    t.partials_ = space.reserve<T>(parts * parameters_.flat_size());
  }
  for (unsigned worker = 0; worker < t.workers_; ++worker) {
    if (!limits.backward) {
      for (int k = 0; k < 2; ++k) t.h_.push_back(space.reserve<T>(t.part_nodes_ * w));
      t.z_.push_back(space.reserve<T>(t.part_nodes_ * w));
    }
    // The collected rows; answers; and for backward the gradients of those, of h and of z.
    const std::size_t width = 4 * w + out_stride_ + (limits.backward ? 4 * w + out_stride_ + 2 * w : 0);
    t.scratch_.push_back(space.reserve<T>(t.part_nodes_ * width));
  }
  space.allocate();
  return t;
}

template <class T>
typename TreeNetwork<T>::Part TreeNetwork<T>::part_of(const Batch& batch, Tape& tape, std::size_t part,
                                                      unsigned worker) const {
  const std::size_t trees = tape.limits_.backward ? part_trees(batch.size) : 8;
  const std::size_t first_tree = part * trees, last_tree = std::min(batch.size, (part + 1) * trees);
  const std::size_t first = batch.tree_ptr[first_tree];
  const std::size_t base = tape.limits_.backward ? 0 : first;
  return {first_tree, last_tree, first, batch.tree_ptr[last_tree], base, tape, worker};
}

// to (nodes, 4 width): each node's own row, its parent's, and its children's.
template <class T>
void TreeNetwork<T>::collect(const Batch& batch, const Part& part, const T* h, T* to) const {
  const std::size_t w = options_.width;
  for (std::size_t v = part.first; v < part.last; ++v, to += 4 * w) {
    const std::uint32_t from[] = {static_cast<std::uint32_t>(v), batch.parent[v], batch.left[v], batch.right[v]};
    for (std::size_t k = 0; k < 4; ++k) {
      if (from[k] == kNoNode)
        std::fill_n(to + k * w, w, T(0));
      else
        std::copy_n(h + (from[k] - part.base) * w, w, to + k * w);
    }
  }
}

template <class T>
DenseRows<T> TreeNetwork<T>::dense_rows(const Exec& ex, std::size_t layer) const {
  const std::size_t w = options_.width;
  if (layer == options_.layers) return {ex.variant(), w, w, options_.outputs, out_stride_};
  return {ex.variant(), 4 * w, 4 * w, w, w};
}

template <class T>
void TreeNetwork<T>::forward_part(const Exec& ex, const ModelArrays<T>& arrays, const Batch& batch, const Part& part,
                                  View<T, 2> y) const {
  const std::size_t w = options_.width, n = part.nodes();
  T* rows = part.scratch();
  const T* symbols = weights(arrays, 0);
  const auto weights_of = [&](std::size_t layer) -> typename DenseRows<T>::Weights {
    return {weights(arrays, weight_slice(layer)), weights(arrays, weight_slice(layer) + 1), dense::Start::bias};
  };
  for (std::size_t v = part.first; v < part.last; ++v) {
    const T *symbol = symbols + batch.symbol[v] * w, *side = symbols + (options_.symbols + side_of(batch, v)) * w;
    T* to = part.h(0) + (v - part.base) * w;
    for (std::size_t c = 0; c < w; ++c) to[c] = symbol[c] + side[c];
  }
  for (std::size_t l = 0; l < options_.layers; ++l) {
    collect(batch, part, part.h(l), rows);
    T *z = part.rows(part.z(l), w), *to = part.rows(part.h(l + 1), w);
    const T* h = part.rows(part.h(l), w);
    dense_rows(ex, l).forward(n, rows, weights_of(l), z);
    rowwise::activate<T>({0, n, w, w}, rowwise::Activation::silu, z, nullptr, h, to);
  }
  T* answers = rows + n * 4 * w;
  dense_rows(ex, options_.layers)
      .forward(n, part.rows(part.h(options_.layers), w), weights_of(options_.layers), answers);
  for (std::size_t tree = part.first_tree; tree < part.last_tree; ++tree) {
    const std::size_t first = batch.tree_ptr[tree], count = batch.tree_ptr[tree + 1] - first;
    T* row = y.row(tree);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(answers + (first + i - part.first) * out_stride_, options_.outputs, row + i * options_.outputs);
    std::fill(row + count * options_.outputs, row + output_width(), T(0));
  }
}

template <class T>
void TreeNetwork<T>::forward(const Exec& ex, const Step&, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
                             View<T, 2> y) const {
  if (batch.size > tape.limits_.batch)
    throw_invalid(fmt::format("the batch has {} trees; the tape was made for {}", batch.size, tape.limits_.batch));
  if (ex.threads() > tape.workers_) throw_invalid("the tape was made for fewer threads");
  for (std::size_t t = 0; t < batch.size; ++t)
    if (batch.tree_ptr[t + 1] - batch.tree_ptr[t] > options_.most_nodes)
      throw_invalid(fmt::format("tree {} has {} nodes; the network was made for {}", t,
                                batch.tree_ptr[t + 1] - batch.tree_ptr[t], options_.most_nodes));
  tape.seen_trees_ = batch.size, tape.seen_nodes_ = batch.nodes();
  const std::size_t trees = tape.limits_.backward ? part_trees(batch.size) : 8;
  ex.parallel_for((batch.size + trees - 1) / trees, [&](std::size_t part, unsigned worker) {
    forward_part(ex, arrays, batch, part_of(batch, tape, part, worker), y);
  });
}

template <class T>
void TreeNetwork<T>::backward_part(const Exec& ex, const Batch& batch, const Part& part, View<const T, 2> dl_dy,
                                   T* gradient) const {
  const std::size_t w = options_.width, n = part.nodes(), layers = options_.layers;
  T *rows = part.scratch(), *drows = rows + n * 4 * w, *dy = drows + n * 4 * w, *dh = dy + n * out_stride_,
    *dz = dh + n * w;
  const auto slice = [&](std::size_t s) { return gradient + parameters_[s].offset; };
  const auto weight_gradient = [&](std::size_t layer, const T* x, const T* d) {
    const DenseRows<T> of = dense_rows(ex, layer);
    of.weight_gradient(n, x, d, slice(weight_slice(layer)));
    dense::column_sums<T>(d, n, of.out_stride, of.out_stride, slice(weight_slice(layer) + 1));
  };
  const auto back = [&](std::size_t layer, const T* d, T* to) {
    dense_rows(ex, layer).input_gradient(n, d, part.at(part.tape.transposed_[layer]), to);
  };
  for (std::size_t tree = part.first_tree; tree < part.last_tree; ++tree) {
    const std::size_t first = batch.tree_ptr[tree], count = batch.tree_ptr[tree + 1] - first;
    for (std::size_t i = 0; i < count; ++i) {
      T* to = dy + (first + i - part.first) * out_stride_;
      std::copy_n(dl_dy.row(tree) + i * options_.outputs, options_.outputs, to);
      std::fill(to + options_.outputs, to + out_stride_, T(0));
    }
  }
  weight_gradient(layers, part.rows(part.h(layers), w), dy);
  back(layers, dy, dh);
  for (std::size_t l = layers; l-- > 0;) {
    rowwise::activate_gradient<T>({0, n, w, w}, rowwise::Activation::silu, part.rows(part.z(l), w), nullptr, dh, dz);
    collect(batch, part, part.h(l), rows);
    weight_gradient(l, rows, dz);
    back(l, dz, drows);
    // A node is read by itself, by its children as their parent, and by its parent as a child of one side.
    for (std::size_t v = part.first; v < part.last; ++v) {
      T* to = dh + (v - part.first) * w;
      const auto add = [&](std::uint32_t reader, std::size_t k) {
        if (reader == kNoNode) return;
        const T* from = drows + (reader - part.first) * 4 * w + k * w;
        for (std::size_t c = 0; c < w; ++c) to[c] = to[c] + from[c];
      };
      add(static_cast<std::uint32_t>(v), 0);
      add(batch.left[v], 1);
      add(batch.right[v], 1);
      add(batch.parent[v], 1 + side_of(batch, v));
    }
  }
  std::fill_n(slice(0), parameters_[0].stored_size(), T(0));
  for (std::size_t v = part.first; v < part.last; ++v) {
    T *symbol = slice(0) + batch.symbol[v] * w, *side = slice(0) + (options_.symbols + side_of(batch, v)) * w;
    const T* from = dh + (v - part.first) * w;
    for (std::size_t c = 0; c < w; ++c) symbol[c] = symbol[c] + from[c], side[c] = side[c] + from[c];
  }
}

template <class T>
void TreeNetwork<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  if (!tape.limits_.backward) throw_invalid("the tape was made for forward passes only");
  if (!call.dl_dx.empty()) throw_invalid("symbols are no numbers; a tree network has no dl_dx");
  if (tape.seen_trees_ != batch.size || tape.seen_nodes_ != batch.nodes())
    throw_invalid("backward needs the tape of the forward pass of the same batch");
  const std::size_t size = parameters_.flat_size();
  ex.parallel_for(options_.layers + 1, [&](std::size_t l, unsigned) {
    const DenseRows<T> of = dense_rows(ex, l);
    dense::transpose<T>(weights(call.arrays, weight_slice(l)), of.in, of.out, of.out_stride,
                        tape.workspace_.template at<T>(tape.transposed_[l]));
  });
  const std::size_t trees = part_trees(batch.size), parts = (batch.size + trees - 1) / trees;
  T* partials = tape.workspace_.template at<T>(tape.partials_);
  ex.parallel_for(parts, [&](std::size_t part, unsigned worker) {
    backward_part(ex, batch, part_of(batch, tape, part, worker), call.dl_dy, partials + part * size);
  });
  constexpr std::size_t kRange = 2048;
  for (std::size_t s = 0; s < parameters_.size(); ++s) {
    if (call.step.is_frozen(s)) continue;
    const Slice& slice = parameters_[s];
    ex.parallel_for((slice.stored_size() + kRange - 1) / kRange, [&](std::size_t t, unsigned worker) {
      const std::size_t begin = slice.offset + t * kRange, end = std::min(slice.end(), begin + kRange);
      dense::add_blocks<T>(partials, parts, size, begin, end, call.step.gradient, call.gradient.data());
      if (call.sink) call.sink->finished(begin, end, worker);
    });
  }
}

template class TreeNetwork<float>;
template class TreeNetwork<double>;

}  // namespace gradloom::graph
