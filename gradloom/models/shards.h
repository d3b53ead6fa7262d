// Models whose batch is one leaf of the step's tree, but itself the sum of shards: ranks share a batch by shards.
#pragma once

#include "gradloom/models/model.h"

namespace gradloom {

// The shards of a batch, which are added in a tree of their own (kernels/reduce/tree_sum.h). Several shards may be
// parts of one sample, or several samples one shard.
struct ShardLayout {
  std::size_t count = 0;  // 0: the batch cannot be cut between samples
  std::size_t per_sample = 1, samples = 1;

  // The first sample of a shard that begins one, and the end of the last.
  std::size_t sample_at(std::size_t shard, std::size_t of) const {
    return shard == count ? of : shard / per_sample * samples;
  }
};

// shards(B) of a batch; place() says of which batch the samples of the next passes are a part, from which sample on (of
// 0: they are whole); sum_shards() is a backward pass that leaves the sums of its shards in the tape; add_shards()
// gives the sum of an aligned range of them, counted from the first of the pass; finish_shards() makes the gradient of
// all.
template <class M>
concept HasShards = requires(const M& m, const Exec& ex, typename M::Tape& tape, std::size_t n,
                             const BackwardCall<typename M::Scalar, typename M::Batch, typename M::Tape>& call,
                             std::span<typename M::Scalar> sums) {
  { m.shards(n) } -> std::same_as<ShardLayout>;
  { m.shard_numbers() } -> std::convertible_to<std::size_t>;  // of the sums of a shard
  m.place(tape, n, n);
  m.sum_shards(ex, call);
  m.add_shards(tape, n, n, sums);
  m.finish_shards(ex, call, sums);
};

// A model whose batch is one leaf, but itself the sum of parts of whole samples, added in a tree: a pass over an
// aligned range of them gives their sum. parts(B) of a batch; place() says of how many samples the batch is, of which
// the next passes have some (0: all).
template <class M>
concept HasParts = requires(const M& m, typename M::Tape& tape, std::size_t n) {
  { m.parts(n) } -> std::same_as<ShardLayout>;
  m.place(tape, n);
};

// A model of samples that have parts in common, such as the graphs of pairs: an encoder, itself a model, whose samples
// are the parts and whose parameters are the first of all, and a head on what it gives of the parts of a batch (their
// codes). Parts are the leaves of a batch; the gradient of the head is in the first of them. head_backward() overwrites
// the head's part of the gradient, and dl_dcodes unless the encoder learns nothing.
template <class M>
concept HasEncoder = requires(const M& m, const Exec& ex, const Step& step,
                              const ModelArrays<typename M::Scalar>& arrays, const typename M::Batch& batch,
                              typename M::Tape& tape, View<const typename M::Scalar, 2> codes,
                              View<typename M::Scalar, 2> y,
                              const BackwardCall<typename M::Scalar, typename M::Batch, typename M::Tape>& call) {
  { m.encoder() } -> std::convertible_to<const typename M::Encoder&>;
  m.head_forward(ex, step, arrays, batch, tape, codes, y);
  m.head_backward(ex, call, y);  // y: dl_dcodes
};

// Whether ranks can share the parts of a batch: statistics of a batch would tie them together.
template <class M>
bool shares_parts(const M& model) {
  if constexpr (HasEncoder<M>) return model.buffers().flat_size() == 0;
  return false;
}

}  // namespace gradloom
