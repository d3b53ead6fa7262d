// Predictor: a model's output for a whole data set, in batches of bounded memory.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "gradloom/base/rounding.h"
#include "gradloom/comm/comm.h"
#include "gradloom/data/batch.h"
#include "gradloom/models/shards.h"
#include "gradloom/train/rank_sum.h"

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
  std::span<std::byte> bytes_from(std::size_t first, std::size_t count) {
    return std::as_writable_bytes(values.span().subspan(first * stride, count * stride));
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
  // What an automaton draws depends on where a sample stands: ranks do not share it.
  static constexpr bool kShared = !HasShards<M>;

  // `comm`: ranks that call run() together, each of them computes a share of the samples; all get all outputs. Null:
  // this process alone.
  Predictor(const Exec& ex, const M& model, const D& data, Comm* comm = nullptr)
      : ex_(ex),
        model_(model),
        data_(data),
        comm_(kShared && comm && comm->size() > 1 ? comm : nullptr),
        share_(share_of_rank(comm_ ? comm_->rank() : 0)),
        tape_(model.make_tape(
            ex, {.batch = std::max<std::size_t>(1, kRows ? std::min(kPredictedAtOnce, share_.count) : share_.count),
                 .backward = false})),
        result_(data.size(), model.output_width()) {
    if (kRows || !comm_) return;
    rows_.resize(share_.count);
    std::iota(rows_.begin(), rows_.end(), static_cast<std::uint32_t>(share_.first));
    storage_.emplace(data.make_storage(std::max<std::size_t>(1, share_.count)));
  }

  const Predictions<T>& run(const ModelArrays<T>& arrays) override {
    Step step;
    step.mode = Mode::evaluate;
    if constexpr (kRows) {
      const typename M::Batch all = data_.all();
      const std::size_t end = share_.first + share_.count;
      for (std::size_t first = share_.first; first < end; first += kPredictedAtOnce) {
        typename M::Batch part;
        part.size = std::min(kPredictedAtOnce, end - first);
        part.x = View<const T, 2>(all.x.row(first), {part.size, all.x.extent(1)});
        model_.forward(ex_, step, arrays, part, tape_, result_.rows_from(first, part.size));
      }
    } else if (!comm_) {
      model_.forward(ex_, step, arrays, data_.all(), tape_, result_.view());
    } else if (share_.count > 0) {
      model_.forward(ex_, step, arrays, data_.gather(rows_, *storage_), tape_,
                     result_.rows_from(share_.first, share_.count));
    }
    if (comm_) tell_others();
    return result_;
  }

  const typename M::Tape& tape() const { return tape_; }

 private:
  LeafShare share_of_rank(unsigned rank) const { return share_of(rank, comm_ ? comm_->size() : 1, data_.size(), 1); }

  void tell_others() {
    comm_->share_parts([&](unsigned rank) {
      const LeafShare part = share_of_rank(rank);
      return result_.bytes_from(part.first, part.count);
    });
  }

  const Exec& ex_;
  const M& model_;
  const D& data_;
  Comm* comm_;
  LeafShare share_;
  typename M::Tape tape_;
  Predictions<T> result_;
  std::optional<typename D::Storage> storage_;  // of samples that are gathered for a share
  std::vector<std::uint32_t> rows_;
};

}  // namespace gradloom
