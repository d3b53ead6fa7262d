// Predictor: a model's output for a whole data set, in batches of bounded memory.
#pragma once

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/data/batch.h"
#include "gradloom/models/model.h"

namespace gradloom {

// Row-major (N, Out) with rows padded to 16.
template <class T>
struct Predictions {
  Buffer<T> values;
  std::size_t rows = 0, width = 0, stride = 0;
  View<T, 2> view() { return {values.data(), {rows, width}, {stride, 1}}; }
  View<const T, 2> view() const { return {values.data(), {rows, width}, {stride, 1}}; }
};

// Keeps tape and output for repeated use (validation after each epoch).
template <class M, class D>
class Predictor {
 public:
  using T = typename M::Scalar;
  static constexpr std::size_t kBatch = 1024;
  // Rows can be cut anywhere; batches of another kind (graphs) are predicted as a whole.
  static constexpr bool kRows = std::is_same_v<typename M::Batch, RowBatch<T>>;

  Predictor(const Exec& ex, const M& model, const D& data)
      : ex_(ex),
        model_(model),
        data_(data),
        tape_(
            model.make_tape(ex, {.batch = std::max<std::size_t>(1, kRows ? std::min(kBatch, data.size()) : data.size()),
                                 .backward = false})) {
    result_.rows = data.size();
    result_.width = model.output_width();
    result_.stride = padded(result_.width);
    result_.values = Buffer<T>(result_.rows * result_.stride);
  }

  const Predictions<T>& run(const ModelArrays<T>& arrays) {
    const typename M::Batch all = data_.all();
    Step step;
    step.mode = Mode::evaluate;
    if constexpr (!kRows) {
      model_.forward(ex_, step, arrays, all, tape_, result_.view());
      return result_;
    }
    for (std::size_t first = 0; first < all.size; first += kBatch) {
      const std::size_t count = std::min(kBatch, all.size - first);
      typename M::Batch part;
      part.size = count;
      part.x = View<const T, 2>(all.x.row(first), {count, all.x.extent(1)});
      model_.forward(ex_, step, arrays, part, tape_,
                     {result_.values.data() + first * result_.stride, {count, result_.width}, {result_.stride, 1}});
    }
    return result_;
  }

  const typename M::Tape& tape() const { return tape_; }

 private:
  const Exec& ex_;
  const M& model_;
  const D& data_;
  typename M::Tape tape_;
  Predictions<T> result_;
};

}  // namespace gradloom
