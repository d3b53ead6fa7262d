#include "gradloom/models/graph/pair_network.h"

#include "gradloom/base/error.h"
#include "gradloom/models/graph/ops/activate.h"
#include "gradloom/models/graph/ops/dense.h"
#include "gradloom/models/graph/ops/pair.h"

namespace gradloom::graph {

void validate(const PairOptions& o) {
  if (o.encoder.task != GraphTask::graph) throw_invalid("the encoder of a pair network must be for whole graphs");
  if (o.hidden == 0) throw_invalid("the head of a pair network has width 0");
  validate(o.encoder);
}

template <class T>
PairNetwork<T>::PairNetwork(PairOptions options)
    : Base((validate(options), options.encoder), "encoder."), options_(std::move(options)) {
  const auto tensor = [&](std::size_t width) { return this->add_tensor(width, RowsAre::pairs); };
  const Tensor code = this->last();
  const std::size_t hidden = options_.hidden;
  const SliceRef weight_1 = this->add_parameter("pair.weight_1", {2 * code.width, hidden}, {.glorot = true});
  const SliceRef bias_1 = this->add_parameter("pair.bias_1", {hidden});
  const SliceRef weight_2 = this->add_parameter("pair.weight_2", {hidden, 1}, {.glorot = true});
  const SliceRef bias_2 = this->add_parameter("pair.bias_2", {1});
  const Tensor f = this->template add<PairFeaturesOp>("pair.features", {.in = code, .out = tensor(2 * code.width)});
  const Tensor sum = this->template add<DenseOp>("pair.weight_1", {.in = f, .out = tensor(hidden), .weight = weight_1});
  const Tensor h = this->template add<ActivateOp>(
      "pair.bias_1", {.in = sum, .out = tensor(hidden), .bias = bias_1, .activation = options_.encoder.activation});
  const Tensor z = this->template add<DenseOp>(
      "pair.weight_2", {.in = h, .out = tensor(1), .weight = weight_2, .bias = bias_2, .start = dense::Start::bias});
  this->template add<SimilarityOp>("pair.similarity", {.in = z, .out = tensor(1)});
}

template <class T>
GraphTape<T> PairNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 pairs was asked for");
  const std::size_t known = std::max<std::size_t>(1, options_.encoder.limits.nodes.size() - 1);
  return this->make_tape_for(ex, limits, std::min(2 * limits.batch, known), limits.batch);
}

template <class T>
void PairNetwork<T>::forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                             Tape& tape, View<T, 2> y) const {
  this->run_forward({.ex = ex, .step = step, .arrays = arrays, .batch = batch, .pairs = &batch, .tape = tape}, y);
}

template class PairNetwork<float>;
template class PairNetwork<double>;

}  // namespace gradloom::graph
