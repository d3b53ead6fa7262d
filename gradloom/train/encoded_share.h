// EncodedShare: what a rank computes of a batch whose samples have parts in common (HasEncoder): codes and gradients of
// its share of the parts, and the head of all samples.
#pragma once

#include <algorithm>
#include <vector>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/models/shards.h"
#include "gradloom/train/rank_sum.h"

namespace gradloom {

// Model and data belong to the caller and outlive it. Shares are ranges of the parts of a batch.
template <class M, class D>
class EncodedShare {
 public:
  using T = typename M::Scalar;
  using Batch = typename M::Batch;
  using Encoder = typename M::Encoder;

  // For batches of up to `parts` parts, of which a rank encodes up to `own`.
  EncodedShare(const Exec& ex, const M& model, const D& data, std::size_t parts, std::size_t own)
      : ex_(ex),
        model_(model),
        data_(data),
        tape_(model.encoder().make_tape(ex, {.batch = std::max<std::size_t>(1, own)})),
        storage_(data.graphs().make_storage(std::max<std::size_t>(1, own))),
        stride_(padded(model.encoder().output_width())),
        codes_(parts * stride_),
        dl_dcodes_(parts * stride_),
        head_(model.parameters().flat_size()) {}

  // The bytes of the codes of a share.
  std::span<std::byte> codes_of(LeafShare of) {
    return std::as_writable_bytes(codes_.span().subspan(of.first * stride_, of.count * stride_));
  }

  void encode(const Step& step, const ModelArrays<T>& arrays, const Batch& batch, LeafShare of) {
    encoded_ = of;
    if (of.count == 0) return;
    rows_.resize(of.count);
    for (std::size_t i = 0; i < of.count; ++i) rows_[i] = batch.sample_of(of.first + i);
    part_ = data_.graphs().gather(rows_, storage_);
    model_.encoder().forward(ex_, step, arrays, part_, tape_, rows_of(codes_, of));
  }

  // With the codes of all parts: y; then, from dl_dy, the gradients of all codes and of the head.
  void head_forward(const Step& step, const ModelArrays<T>& arrays, const Batch& batch, typename M::Tape& tape,
                    View<T, 2> y) {
    model_.head_forward(ex_, step, arrays, batch, tape, rows_of(codes_, {0, batch.graphs}), y);
  }
  void head_backward(const Step& step, const ModelArrays<T>& arrays, const Batch& batch, typename M::Tape& tape,
                     View<const T, 2> dl_dy) {
    model_.head_backward(
        ex_, {.step = step, .arrays = arrays, .batch = batch, .tape = tape, .dl_dy = dl_dy, .gradient = head_.span()},
        rows_of(dl_dcodes_, {0, batch.graphs}));
  }

  // The sum of an aligned range of leaves, in `gradient`: `of` are its parts.
  void sum_part(const Step& step, const ModelArrays<T>& arrays, const Batch& batch, LeafShare of, std::span<T> gradient,
                std::span<T> levels) {
    if (of.first != encoded_.first || of.count != encoded_.count) encode(step, arrays, batch, of);
    const std::size_t size = model_.encoder().parameters().flat_size();
    model_.encoder().backward(ex_, {.step = step,
                                    .arrays = arrays,
                                    .batch = part_,
                                    .tape = tape_,
                                    .dl_dy = rows_of(dl_dcodes_, of),
                                    .gradient = gradient.first(size),
                                    .levels = levels});
    if (of.first == 0)
      std::copy(head_.data() + size, head_.data() + gradient.size(), gradient.data() + size);
    else
      std::fill(gradient.begin() + static_cast<std::ptrdiff_t>(size), gradient.end(), -T(0));
  }

 private:
  View<T, 2> rows_of(Buffer<T>& values, LeafShare of) const {
    return {values.data() + of.first * stride_, {of.count, model_.encoder().output_width()}, {stride_, 1}};
  }

  const Exec& ex_;
  const M& model_;
  const D& data_;
  typename Encoder::Tape tape_;
  typename std::decay_t<decltype(std::declval<const D&>().graphs())>::Storage storage_;
  typename Encoder::Batch part_;
  std::size_t stride_;
  Buffer<T> codes_, dl_dcodes_;  // (parts, stride)
  Buffer<T> head_;               // a gradient of all parameters, of which the encoder's are not used
  LeafShare encoded_;            // what the tape holds
  std::vector<std::uint32_t> rows_;
};

}  // namespace gradloom
