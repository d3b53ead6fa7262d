// Predictor: a model's output for a whole data set, in batches of bounded memory.
#pragma once

#include <algorithm>

#include "gradloom/base/rounding.h"
#include "gradloom/data/batch.h"
#include "gradloom/models/model.h"

namespace gradloom {

// Row-major (N, Out) with padded rows.
template <class T>
struct Predictions {
  Predictions(std::size_t n, std::size_t out) : values(n * padded(out)), rows(n), width(out), stride(padded(out)) {}

  Buffer<T> values;
  std::size_t rows = 0, width = 0, stride = 0;
  View<T, 2> view() { return {values.data(), {rows, width}, {stride, 1}}; }
  View<const T, 2> view() const { return {values.data(), {rows, width}, {stride, 1}}; }
  View<T, 2> rows_from(std::size_t first, std::size_t count) {
    return {values.data() + first * stride, {count, width}, {stride, 1}};
  }
};

inline constexpr std::size_t kPredictedAtOnce = 1024;  // rows

// Keeps tape and output for repeated use (validation after each epoch), wherever it runs.
template <class T>
class AnyPredictor {
 public:
  virtual ~AnyPredictor() = default;
  virtual const Predictions<T>& run(const ModelArrays<T>& arrays) = 0;
};

template <class M, class D>
class Predictor final : public AnyPredictor<typename M::Scalar> {
 public:
  using T = typename M::Scalar;
  // Rows can be cut anywhere; batches of another kind (graphs) are predicted as a whole.
  static constexpr bool kRows = std::is_same_v<typename M::Batch, RowBatch<T>>;

  Predictor(const Exec& ex, const M& model, const D& data)
      : ex_(ex),
        model_(model),
        data_(data),
        tape_(model.make_tape(
            ex, {.batch = std::max<std::size_t>(1, kRows ? std::min(kPredictedAtOnce, data.size()) : data.size()),
                 .backward = false})),
        result_(data.size(), model.output_width()) {}

  const Predictions<T>& run(const ModelArrays<T>& arrays) override {
    const typename M::Batch all = data_.all();
    Step step;
    step.mode = Mode::evaluate;
    if constexpr (!kRows) {
      model_.forward(ex_, step, arrays, all, tape_, result_.view());
      return result_;
    }
    for (std::size_t first = 0; first < all.size; first += kPredictedAtOnce) {
      typename M::Batch part;
      part.size = std::min(kPredictedAtOnce, all.size - first);
      part.x = View<const T, 2>(all.x.row(first), {part.size, all.x.extent(1)});
      model_.forward(ex_, step, arrays, part, tape_, result_.rows_from(first, part.size));
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
