#include "gradloom/models/graph/pair_network.h"

#include "gradloom/base/error.h"
#include "gradloom/models/graph/ops/pair.h"

namespace gradloom::graph {

void validate(const PairOptions& o) {
  if (o.encoder.task != GraphTask::graph) throw_invalid("the encoder of a pair network must be for whole graphs");
  if (o.hidden == 0) throw_invalid("the head of a pair network has width 0");
  validate(o.encoder);
}

template <class T>
PairNetwork<T>::PairNetwork(PairOptions options)
    : Base((validate(options), options.encoder), "encoder."), options_(std::move(options)), encoder_(options_.encoder) {
  const Tensor code = this->last();
  const auto tensor = [&](std::size_t width) { return this->add_tensor(width, RowsAre::pairs); };
  Tensor h = this->template add<PairFeaturesOp>("pair.features", {.in = code, .out = tensor(2 * code.width)});
  h = this->add_dense("pair.weight_1", h, options_.hidden);
  h = this->add_activation("pair.bias_1", h, true, options_.encoder.activation, {});
  h = this->add_dense("pair.weight_2", h, 1, {}, "pair.bias_2");
  this->template add<SimilarityOp>("pair.similarity", {.in = h, .out = tensor(1)});
}

template <class T>
GraphTape<T> PairNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 pairs was asked for");
  const GraphLimits& l = options_.encoder.limits;
  const std::size_t known = std::max<std::size_t>(1, l.nodes.size() - 1);
  return this->make_tape_for(ex, limits, l.batch_of(std::min(2 * limits.batch, known), limits.batch),
                             l.batch_of(1, 0).nodes);
}

template class PairNetwork<float>;
template class PairNetwork<double>;

}  // namespace gradloom::graph
