// The tape and the forward pass of a spline network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/float_mode.h"
#include "gradloom/base/hash.h"
#include "gradloom/base/rounding.h"
#include "gradloom/exec/profile.h"
#include "gradloom/kernels/product/product.h"
#include "gradloom/models/kan/network.h"
#include "gradloom/models/kan/panels.h"

namespace gradloom::kan {

namespace {

// Writing is slow while another core holds the line in its cache. When several threads share a step, tapes up to
// kSmallTape bytes are double-buffered: with every other step in the same copy, the lines have time to leave that
// cache. Room for kApart samples behind each input keeps what a core fetches in advance off the samples of another
// thread (docs/decisions/0009-threads-of-our-own.md).
constexpr std::size_t kSmallTape = std::size_t{4} << 20, kApart = 64;

// No multiple of a large power of two, for the reason of best_stride.
std::size_t stride_apart(std::size_t batch) {
  const std::size_t stride = spline::best_stride(batch) + kApart;
  return stride % 64 == 0 ? stride + 4 : stride;
}

}  // namespace

template <class T>
std::size_t Tape<T>::outside(std::size_t layer) const {
  std::size_t n = 0;
  for (std::size_t tile = 0; tile < tiles_; ++tile) n += outside_[layer * tiles_ + tile];
  return n;
}

template <class T>
void Network<T>::lay_out(Tape& tape, std::size_t stride) const {
  const TapeLimits& limits = tape.limits_;
  tape.workspace_ = {};
  tape.layers_.clear();
  tape.stride_ = stride;
  Workspace& w = tape.workspace_;
  for (std::size_t l = 0; l < layers(); ++l) {
    const spline::Shape& s = shapes_[l];
    const std::size_t q = spline::basis_stride(s.degree);
    const bool slopes = limits.backward && (l > 0 || limits.input_gradient);
    typename Tape::Offsets at{};
    at.x = w.reserve<T>(s.in_padded() * stride);
    at.span = w.reserve<std::uint16_t>(s.in * stride);
    at.value = w.reserve<T>(s.in * stride * q);
    at.slope = w.reserve<T>(slopes ? s.in * stride * q : 0);
    at.base_value = w.reserve<T>(s.base ? s.in * stride : 0);
    at.base_slope = w.reserve<T>(s.base && slopes ? s.in * stride : 0);
    at.gradient = w.reserve<T>(limits.backward ? s.out_padded() * stride : 0);
    const bool multiplies = nodes(l).products > 0;
    at.sums = w.reserve<T>(multiplies ? s.out_padded() * stride : 0);
    at.node_gradient = w.reserve<T>(multiplies && limits.backward ? padded(nodes(l).nodes) * stride : 0);
    const std::size_t penalised = limits.backward && options_.sparsity > 0 ? s.in : 0;
    at.mean = w.reserve<T>(penalised * s.out_lanes());
    at.strength = w.reserve<T>(penalised * s.out_lanes());
    at.logarithm = w.reserve<T>(penalised * s.out_lanes());
    at.node = w.reserve<double>(penalised);
    at.weighted = w.reserve<double>(penalised);
    at.log_node = w.reserve<double>(penalised);
    at.common = w.reserve<T>(penalised);
    tape.layers_.push_back(at);
  }
  tape.y_ = w.reserve<T>(padded(output_width()) * stride);
  tape.dl_dx_ = w.reserve<T>(limits.input_gradient ? padded(input_width()) * stride : 0);
}

template <class T>
Tape<T> Network<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) throw_invalid("a tape for batches of 0 samples was asked for");
  Tape tape;
  tape.limits_ = limits;
  bool twice = ex.threads() > 1 && limits.backward;
  if (twice) {
    lay_out(tape, stride_apart(limits.batch));
    twice = tape.workspace_.reserved() <= kSmallTape;
  }
  if (!twice) lay_out(tape, spline::best_stride(limits.batch));
  tape.workspace_.allocate(twice ? 2 : 1);
  for (std::size_t l = 0; l < layers(); ++l)
    if (Profile* profile = ex.profile())
      tape.phases_.push_back({profile->phase(fmt::format("forward layer {}", l)),
                              profile->phase(fmt::format("backward layer {} inputs", l)),
                              profile->phase(fmt::format("backward layer {} weights", l))});
    else
      tape.phases_.push_back({});
  tape.penalties_.resize(layers());
  tape.outside_.assign(layers() * divide_up(limits.batch, kSmallTile), 0);
  return tape;
}

template <class T>
spline::LayerTape<T> Network<T>::layer_tape(std::size_t l, Tape& tape) const {
  const auto& at = tape.layers_[l];
  const bool slopes = tape.limits_.backward && (l > 0 || tape.limits_.input_gradient);
  Workspace& w = tape.workspace_;
  spline::LayerTape<T> t;
  t.batch = tape.batch_;
  t.stride = tape.stride_;
  t.x = w.at<T>(at.x);
  t.span = w.at<std::uint16_t>(at.span);
  t.value = w.at<T>(at.value);
  if (slopes) t.slope = w.at<T>(at.slope);
  if (shapes_[l].base) t.base_value = w.at<T>(at.base_value);
  if (shapes_[l].base && slopes) t.base_slope = w.at<T>(at.base_slope);
  return t;
}

template <class T>
void Network<T>::forward(const Exec& ex, const Step&, const ModelArrays<T>& arrays, const Batch& batch, Tape& tape,
                         View<T, 2> y) const {
  if (batch.size > tape.limits_.batch)
    throw_invalid(fmt::format("the batch has {} samples, the tape was made for {}", batch.size, tape.limits_.batch));
  if (batch.size > 0 && batch.x.extent(1) != input_width())
    throw_invalid(fmt::format("the batch has {} features, the network {} inputs", batch.x.extent(1), input_width()));
  tape.batch_ = batch.size;
  tape.workspace_.turn();
  const std::size_t size = batch.size, tile = tile_size(ex, options_.grid, size), stride = tape.stride_;
  tape.tiles_ = divide_up(size, tile);
  const T* mean = arrays.buffers.data() + buffers_[affine_.input_mean].offset;
  const T* scale = arrays.buffers.data() + buffers_[affine_.input_scale].offset;
  const T* out_mean = arrays.buffers.data() + buffers_[affine_.output_mean].offset;
  const T* out_std = arrays.buffers.data() + buffers_[affine_.output_std].offset;

  ex.parallel_for(tape.tiles_, [&](std::size_t index, unsigned worker) {
    const spline::Range samples{index * tile, std::min(size, (index + 1) * tile)};
    to_panels(
        samples, input_width(), stride, tape.workspace_.template at<T>(tape.layers_[0].x),
        [&](std::size_t s) { return batch.x.row(s); }, [=](T v, std::size_t i) { return (v - mean[i]) * scale[i]; });
    for (std::size_t l = 0; l < layers(); ++l) {
      const ProfileScope scope(ex, tape.phases_[l].forward, worker);
      const spline::Layer<T> now = layer(l, arrays);
      const spline::LayerTape<T> t = layer_tape(l, tape);
      tape.outside_[l * tape.tiles_ + index] = spline::evaluate_basis(ex.variant(), now, t, samples);
      T* next = tape.workspace_.template at<T>(l + 1 < layers() ? tape.layers_[l + 1].x : tape.y_);
      const LayerNodes shape = nodes(l);
      T* sums = shape.products > 0 ? tape.workspace_.template at<T>(tape.layers_[l].sums) : next;
      spline::forward(ex.variant(), now, t, samples, sums);
      if (shape.products > 0) kernels::product::forward<T>(ex.variant(), shape, stride, samples, sums, next);
    }
    from_panels(
        samples, output_width(), stride, tape.workspace_.template at<T>(tape.y_),
        [&](std::size_t s) { return y.row(s); }, [=](T v, std::size_t j) { return out_mean[j] + out_std[j] * v; });
  });
}

template <class T>
SingleWorkspace<T> Network<T>::make_single_workspace() const {
  std::size_t widest = 0;
  for (const spline::Shape& s : shapes_) widest = std::max({widest, s.in_padded(), s.out_padded()});
  return SingleWorkspace<T>(widest);
}

template <class T>
void Network<T>::forward_single(Variant variant, const ModelArrays<T>& arrays, std::span<const T> x,
                                SingleWorkspace<T>& workspace, std::span<T> y) const {
  if (x.size() != input_width() || y.size() != output_width())
    throw_invalid(
        fmt::format("one sample of {} inputs and {} outputs was given to a network of "
                    "{} and {}",
                    x.size(), y.size(), input_width(), output_width()));
  const FlushSubnormals flush;
  const std::size_t half = workspace.memory_.size() / 2;
  T* now = workspace.memory_.data();
  T* next = now + half;
  const T* mean = arrays.buffers.data() + buffers_[affine_.input_mean].offset;
  const T* scale = arrays.buffers.data() + buffers_[affine_.input_scale].offset;
  for (std::size_t i = 0; i < x.size(); ++i) now[i] = (x[i] - mean[i]) * scale[i];
  for (std::size_t i = x.size(); i < padded(x.size()); ++i) now[i] = T(0);
  for (std::size_t l = 0; l < layers(); ++l) {
    spline::forward_single(variant, layer(l, arrays), now, next);
    if (const LayerNodes shape = nodes(l); shape.products > 0)
      kernels::product::forward<T>(variant, shape, 1, {0, 1}, next, now);
    else
      std::swap(now, next);
  }
  const T* out_mean = arrays.buffers.data() + buffers_[affine_.output_mean].offset;
  const T* out_std = arrays.buffers.data() + buffers_[affine_.output_std].offset;
  for (std::size_t j = 0; j < y.size(); ++j) y[j] = out_mean[j] + out_std[j] * now[j];
}

template <class T>
T Network<T>::layer_input(const Tape& tape, std::size_t l, std::size_t s, std::size_t i) const {
  const T* panel = tape.workspace_.template at<T>(tape.layers_[l].x);
  return panel[(i / kPanel * tape.stride_ + s) * kPanel + i % kPanel];
}

template <class T>
std::uint64_t Network<T>::branches(const Tape& tape) const {
  Hash hash;
  for (std::size_t l = 0; l < layers(); ++l) {
    const std::uint16_t* span = tape.workspace_.template at<std::uint16_t>(tape.layers_[l].span);
    // An extended grid has no branch at its ends, but straight pieces meet in corners, some of them where the span no
    // longer changes.
    const bool slopes = tape.limits_.backward && (l > 0 || tape.limits_.input_gradient);
    const bool corners = slopes && shapes_[l].degree == 1 && shapes_[l].outside == OutOfGrid::extend;
    const T* slope = tape.workspace_.template at<T>(tape.layers_[l].slope);
    for (std::size_t i = 0; i < shapes_[l].in; ++i, span += tape.stride_)
      for (std::size_t s = 0; s < tape.batch_; ++s) {
        hash.mix(span[s]);
        if (!corners) continue;
        const T* point = slope + (i * tape.stride_ + s) * spline::basis_stride(1);
        hash.mix((point[0] != 0 ? 1u : 0u) | (point[1] != 0 ? 2u : 0u));
      }
    if (shapes_[l].outside != OutOfGrid::extend) hash.mix(tape.outside(l));
  }
  return hash.value();
}

template class Tape<float>;
template class Tape<double>;
template class Network<float>;
template class Network<double>;

}  // namespace gradloom::kan
