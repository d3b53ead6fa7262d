#include "gradloom/models/logic/classifier_shared.h"

namespace gradloom::logic {

template <class T>
void GateClassifier<T>::prepare(const Exec& ex, const ModelArrays<T>& arrays, Tape& tape) const {
  gate::Gate<T>* gates = tape.workspace_.template at<gate::Gate<T>>(tape.gates_);
  const std::span<const T> buffers(arrays.buffers.data(), buffers_.flat_size());
  tape.planned_.update(buffers, [&] { return plan(buffers, gates); });
  ex.parallel_for(divide_up(gates_, kGates), [&](std::size_t task, unsigned) {
    each_layer(task * kGates, std::min(gates_, (task + 1) * kGates),
               [&](std::size_t l, std::size_t n, std::size_t end) {
                 const T* z = arrays.parameters.data() + parameters_[l].offset + n * gate::kFunctions;
                 gate::coefficients<T>(ex.variant(), {z, (end - n) * gate::kFunctions},
                                       tape.planned_.layers()[l].position.data() + n, 1,
                                       gates + starts_[l + 1] - options_.inputs);
               });
  });
}

template <class T>
gate::Layer<T> GateClassifier<T>::layer(const Tape& tape, std::size_t l) const {
  const gate::Gate<T>* gates = tape.workspace_.template at<gate::Gate<T>>(tape.gates_);
  return {{gates + starts_[l + 1] - options_.inputs, options_.layers[l]}, &tape.planned_.layers()[l]};
}

template <class T>
const T* GateClassifier<T>::run_tile(const Exec& ex, const Batch& batch, std::size_t tile, const Tape& tape,
                                     T* signals) const {
  const std::size_t first = tile * kTile, count = std::min(kTile, batch.size - first);
  for (std::size_t i = 0; i < options_.inputs; ++i)
    for (std::size_t l = 0; l < kTile; ++l) signals[i * kTile + l] = l < count ? batch.x(first + l, i) : T(0);
  const T* in = signals;
  for (std::size_t l = 0; l < options_.layers.size(); ++l) {
    T* out = signals + starts_[l + 1] * kTile;
    gate::forward<T>(ex.variant(), layer(tape, l), in, out);
    in = out;
  }
  return in;
}

template <class T>
void GateClassifier<T>::forward(const Exec& ex, const Step&, const ModelArrays<T>& arrays, const Batch& batch,
                                Tape& tape, View<T, 2> y) const {
  check(ex, batch, tape);
  tape.batch_ = kNoPass;  // until wires are known to be good
  prepare(ex, arrays, tape);
  tape.batch_ = batch.size;
  const std::size_t classes = options_.classes, votes = options_.layers.back() / classes;
  const T scale = static_cast<T>(1 / options_.tau);
  ex.parallel_for(divide_up(batch.size, kTile), [&](std::size_t tile, unsigned worker) {
    T* memory = tape.workspace_.template at<T>(tape.scratch_ + worker * tape.scratch_bytes_);
    const T* out = run_tile(ex, batch, tile, tape, memory);
    T* sum = memory + (starts_.back() + 2 * widest_) * kTile;
    std::fill_n(sum, classes * kTile, T(0));
    for (std::size_t k = 0; k < classes; ++k)
      for (std::size_t v = 0; v < votes; ++v)
        for (std::size_t l = 0; l < kTile; ++l)
          sum[k * kTile + l] = sum[k * kTile + l] + out[(k * votes + v) * kTile + l];
    const std::size_t first = tile * kTile, count = std::min(kTile, batch.size - first);
    for (std::size_t l = 0; l < count; ++l)
      for (std::size_t k = 0; k < classes; ++k) y(first + l, k) = sum[k * kTile + l] * scale;
  });
}

template class GateClassifier<float>;
template class GateClassifier<double>;

}  // namespace gradloom::logic
