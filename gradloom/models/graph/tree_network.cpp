#include "gradloom/models/graph/tree_network.h"

#include <fmt/format.h>

#include "gradloom/base/error.h"
#include "gradloom/models/graph/ops/tree.h"

namespace gradloom::graph {

void validate(const TreeOptions& o) {
  if (o.width == 0 || o.width % dense::kPad != 0)
    throw_invalid(fmt::format("the width of a tree network is {}; it must be a multiple of {}", o.width, dense::kPad));
  if (o.layers == 0) throw_invalid("a tree network has no layers");
  if (o.symbols == 0 || o.outputs == 0 || o.most_nodes == 0)
    throw_invalid(fmt::format("a tree network with {} symbols, {} outputs, trees of {} nodes", o.symbols, o.outputs,
                              o.most_nodes));
}

template <class T>
TreeNetwork<T>::TreeNetwork(TreeOptions options)
    : Base(SumBy::parts), options_((validate(options), std::move(options))) {
  const TreeOptions& o = options_;
  const auto tensor = [&](std::size_t width) { return this->add_tensor(width, RowsAre::nodes); };
  const SliceRef symbols = this->add_parameter("symbol.weight", {o.symbols + kSides, o.width}, {.normal = true});
  Tensor h = this->template add<EmbedOp>("symbol", {.out = tensor(o.width), .weight = symbols, .symbols = o.symbols});
  for (std::size_t l = 0; l < o.layers; ++l) {
    const std::string name = fmt::format("layer.{}", l);
    const Tensor near = this->template add<NeighboursOp>(
        name, {.in = h, .out = this->add_tensor(NeighboursOp<T>::kRows * o.width, RowsAre::nodes, true)});
    const Tensor z = this->add_dense(name + ".weight", near, o.width, {}, name + ".bias");
    h = this->add_activation(name, z, false, Activation::silu, h);
  }
  h = this->add_dense("head.weight", h, o.outputs, {}, "head.bias");
  this->template add<FlattenOp>("flatten",
                                {.in = h, .out = this->add_tensor(o.most_nodes * o.outputs, RowsAre::graphs)});
}

template <class T>
GraphTape<T> TreeNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 trees was asked for");
  if (limits.input_gradient) throw_invalid("symbols are not numbers; a tree network has no dl_dx");
  const std::size_t nodes = limits.batch * options_.most_nodes;
  return this->make_tape_for(ex, limits, {.nodes = nodes, .graphs = limits.batch}, options_.most_nodes);
}

template <class T>
void TreeNetwork<T>::forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                             Tape& tape, View<T, 2> y) const {
  for (std::size_t t = 0; t < batch.size; ++t)
    if (const std::size_t nodes = batch.graph_ptr[t + 1] - batch.graph_ptr[t]; nodes > options_.most_nodes)
      throw_invalid(fmt::format("tree {} has {} nodes; the network was made for {}", t, nodes, options_.most_nodes));
  this->run(ex, step, arrays, batch, tape, y);
}

template class TreeNetwork<float>;
template class TreeNetwork<double>;

}  // namespace gradloom::graph
