#include "gradloom/models/graph/pair_network.h"

#include <fmt/format.h>

#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/base/hash.h"
#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/models/graph/dual.h"
#include "gradloom/models/graph/pass.h"

namespace gradloom::graph {

using dense::Start;

namespace {

[[noreturn]] void fail(const std::string& message) { throw Exception(ErrorCode::invalid_input, message); }

constexpr std::size_t kPad = dense::kPad;

template <class T>
T softplus(T z) {
  return std::max(z, T(0)) + kernels::log1p(kernels::exp(-std::abs(z)));
}

}  // namespace

void validate(const PairOptions& o) {
  if (o.encoder.task != GraphTask::graph) fail("the encoder of a pair network must be for whole graphs");
  if (o.hidden == 0) fail("the head of a pair network has width 0");
  validate(o.encoder);
}

template <class T>
PairNetwork<T>::PairNetwork(PairOptions options)
    : options_((validate(options), std::move(options))),
      encoder_(options_.encoder),
      code_stride_(dense::padded(options_.encoder.outputs)),
      feature_stride_(dense::padded(2 * options_.encoder.outputs)),
      hidden_stride_(dense::padded(options_.hidden)) {
  // In the same order, so that the encoder finds its parameters where it expects them.
  for (const Slice& s : encoder_.parameters()) parameters_.add("encoder." + s.name, s.shape, s.stored_last, s.saved);
  head_ = parameters_.size();
  parameters_.add("pair.weight_1", {2 * code_width(), options_.hidden}, hidden_stride_);
  parameters_.add("pair.bias_1", {options_.hidden}, hidden_stride_);
  parameters_.add("pair.weight_2", {options_.hidden, 1}, kPad);
  parameters_.add("pair.bias_2", {1}, kPad);
}

template <class T>
void PairNetwork<T>::initialise(std::uint64_t seed, std::span<T> parameters, std::span<T> buffers) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  encoder_.initialise(seed, parameters.first(encoder_.parameters().flat_size()), buffers);
  for (const std::size_t k : {0, 2}) {
    const Slice& slice = parameters_[head_ + k];
    const RandomStream random(seed, RandomUse::initialise, 0, static_cast<std::uint32_t>(head_ + k));
    const double limit = std::sqrt(6.0 / static_cast<double>(slice.shape[0] + slice.shape[1]));
    std::uint32_t at = 0;
    for_each_logical(slice,
                     [&](std::size_t i) { parameters[i] = static_cast<T>(limit * (2 * random.uniform(at++) - 1)); });
  }
}

template <class T>
PairTape<T> PairNetwork<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  if (limits.batch == 0) fail("a tape for batches of 0 pairs was asked for");
  Tape t;
  t.limits_ = limits;
  const std::size_t known = std::max<std::size_t>(1, options_.encoder.limits.nodes.size() - 1), pairs = limits.batch;
  t.graphs_ = std::min(2 * pairs, known);
  TapeLimits inner = limits;
  inner.batch = t.graphs_;
  t.encoder_ = encoder_.make_tape(ex, inner);
  Workspace& w = t.workspace_;
  t.code_ = w.reserve<T>(t.graphs_ * code_stride_);
  t.features_ = w.reserve<T>(pairs * feature_stride_);
  t.sum_ = w.reserve<T>(pairs * hidden_stride_), t.hidden_ = w.reserve<T>(pairs * hidden_stride_);
  t.z_ = w.reserve<T>(pairs * kPad);
  if (limits.backward) {
    t.dcode_ = w.reserve<T>(t.graphs_ * code_stride_);
    t.dfeatures_ = w.reserve<T>(pairs * feature_stride_);
    t.dhidden_ = w.reserve<T>(pairs * hidden_stride_);
    t.dz_ = w.reserve<T>(pairs * kPad);
    const std::size_t largest = std::max(2 * code_width() * hidden_stride_, options_.hidden * kPad);
    t.blocks_ = w.reserve<T>(std::min<std::size_t>(64, pairs / 128 + 1) * largest);
    t.transposed_ = w.reserve<T>(std::max(options_.hidden * feature_stride_, hidden_stride_));
  }
  w.allocate();
  return t;
}

template <class T>
void PairNetwork<T>::forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                             Tape& tape, View<T, 2> y) const {
  if (batch.size > tape.limits_.batch || batch.graphs > tape.graphs_)
    fail(fmt::format("the batch has {} pairs of {} graphs; the tape was made for {} and {}", batch.size, batch.graphs,
                     tape.limits_.batch, tape.graphs_));
  const std::size_t width = code_width(), stride = feature_stride_, hidden = options_.hidden;
  T* code = tape.workspace_.template at<T>(tape.code_);
  encoder_.forward(ex, step, arrays, batch.graphs_alone(), tape.encoder_,
                   {code, {batch.graphs, width}, {code_stride_, 1}});
  tape.seen_ = batch;
  T *f = tape.workspace_.template at<T>(tape.features_), *sum = tape.workspace_.template at<T>(tape.sum_),
    *h = tape.workspace_.template at<T>(tape.hidden_), *z = tape.workspace_.template at<T>(tape.z_);
  for_rows(ex, 0, batch.size, 2 * width * hidden, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      const T *u = code + batch.first[p] * code_stride_, *v = code + batch.second[p] * code_stride_;
      T* to = f + p * stride;
      for (std::size_t c = 0; c < width; ++c) to[c] = std::abs(u[c] - v[c]), to[width + c] = u[c] + v[c];
    }
    dense::Product<T> first{.rows = end - begin, .inner = 2 * width, .width = hidden_stride_, .x = f + begin * stride};
    first.x_row = stride, first.w = weights(arrays, 0), first.w_stride = hidden_stride_;
    first.y = sum + begin * hidden_stride_, first.y_stride = hidden_stride_;
    dense::multiply<T>(ex.variant(), first);
    rowwise::activate<T>({begin, end, hidden, hidden_stride_}, options_.encoder.activation, sum, weights(arrays, 1),
                         nullptr, h);
    dense::Product<T> last{.rows = end - begin, .inner = hidden, .width = kPad, .x = h + begin * hidden_stride_};
    last.x_row = hidden_stride_, last.w = weights(arrays, 2), last.w_stride = kPad, last.bias = weights(arrays, 3);
    last.y = z + begin * kPad, last.y_stride = kPad, last.start = Start::bias;
    dense::multiply<T>(ex.variant(), last);
    for (std::size_t p = begin; p < end; ++p) y(p, 0) = kernels::exp(-softplus(z[p * kPad]) * batch.inverse_size[p]);
  });
}

// One call of backward().
template <class T>
struct PairNetwork<T>::Pass {
  const PairNetwork& network;
  const Exec& ex;
  const Step& step;
  const ModelArrays<T>& arrays;
  const Batch& batch;
  Tape& tape;
  std::span<T> gradient;
  GradientSink* sink;

  T* at(std::size_t offset) const { return tape.workspace_.template at<T>(offset); }
  bool trains(std::size_t k) const { return !step.is_frozen(network.head_ + k); }
  // dl_dw of a product of rows x (B, in) whose outputs have the gradient dl_dy (B, stride).
  void weight(std::size_t k, const T* x, std::size_t x_stride, std::size_t in, const T* dl_dy,
              std::size_t stride) const {
    if (!trains(k)) return;
    const std::size_t size = in * stride;
    for_blocks(ex, batch.size, [&](std::size_t b, std::size_t begin, std::size_t end) {
      dense::Product<T> p{.rows = in, .inner = end - begin, .width = stride, .x = x + begin * x_stride};
      p.x_row = 1, p.x_inner = x_stride, p.w = dl_dy + begin * stride, p.w_stride = stride;
      p.y = at(tape.blocks_) + b * size, p.y_stride = stride;
      dense::multiply<T>(ex.variant(), p);
    });
    finish(k, size);
  }
  void bias(std::size_t k, const T* dl_dy, std::size_t stride) const {
    if (!trains(k)) return;
    for_blocks(ex, batch.size, [&](std::size_t b, std::size_t begin, std::size_t end) {
      dense::column_sums<T>(dl_dy + begin * stride, end - begin, stride, stride, at(tape.blocks_) + b * stride);
    });
    finish(k, stride);
  }
  void finish(std::size_t k, std::size_t size) const {
    const Slice& s = network.parameters_[network.head_ + k];
    for_ranges(ex, s.stored_size(), [&](std::size_t begin, std::size_t end) {
      dense::add_blocks<T>(at(tape.blocks_), dense::row_blocks(batch.size), size, begin, end, step.gradient,
                           gradient.data() + s.offset);
    });
    if (sink) sink->finished(s.offset, s.end(), 0);
  }
};

// Gradients of inputs before those of weights: weights may be updated as soon as their gradient is told.
template <class T>
void PairNetwork<T>::head_backward(const Pass& pass, View<const T, 2> dl_dy) const {
  const PairBatch<T>& batch = pass.batch;
  Tape& tape = pass.tape;
  const Exec& ex = pass.ex;
  const std::size_t hidden = options_.hidden;
  const T *z = pass.at(tape.z_), *sum = pass.at(tape.sum_);
  T *dz = pass.at(tape.dz_), *dh = pass.at(tape.dhidden_), *transposed = pass.at(tape.transposed_);
  const T* last = weights(pass.arrays, 2);
  for_rows(ex, 0, batch.size, kPlain * hidden_stride_, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      const T s = batch.inverse_size[p], value = z[p * kPad];
      std::fill_n(dz + p * kPad, kPad, T(0));
      dz[p * kPad] = -dl_dy(p, 0) * kernels::exp(-softplus(value) * s) * s * kernels::sigmoid(value);
      for (std::size_t c = 0; c < hidden_stride_; ++c)
        dh[p * hidden_stride_ + c] = c < hidden ? dz[p * kPad] * last[c * kPad] : T(0);
    }
    rowwise::activate_gradient<T>({begin, end, hidden, hidden_stride_}, options_.encoder.activation, sum,
                                  weights(pass.arrays, 1), dh, dh);
  });
  pass.weight(2, pass.at(tape.hidden_), hidden_stride_, hidden, dz, kPad);
  pass.bias(3, dz, kPad);
  T* df = pass.at(tape.dfeatures_);
  dense::transpose<T>(weights(pass.arrays, 0), 2 * code_width(), hidden, hidden_stride_, transposed);
  for_rows(ex, 0, batch.size, hidden * feature_stride_, [&](std::size_t begin, std::size_t end) {
    dense::Product<T> p{.rows = end - begin, .inner = hidden, .width = feature_stride_};
    p.x = dh + begin * hidden_stride_, p.x_row = hidden_stride_, p.w = transposed, p.w_stride = feature_stride_;
    p.y = df + begin * feature_stride_, p.y_stride = feature_stride_;
    dense::multiply<T>(ex.variant(), p);
  });
  pass.weight(0, pass.at(tape.features_), feature_stride_, 2 * code_width(), dh, hidden_stride_);
  pass.bias(1, dh, hidden_stride_);
}

template <class T>
void PairNetwork<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  if (!tape.limits_.backward) fail("the tape was made for forward passes only");
  if (tape.seen_.size != batch.size || tape.seen_.first.data() != batch.first.data())
    fail("backward needs the tape of the forward pass of the same batch");
  const Pass pass{*this, ex, call.step, call.arrays, batch, tape, call.gradient, call.sink};
  head_backward(pass, call.dl_dy);
  const std::size_t width = code_width();
  const T *code = pass.at(tape.code_), *df = pass.at(tape.dfeatures_);
  T* dcode = pass.at(tape.dcode_);
  const std::size_t tasks = std::min(batch.graphs, task_count(kPlain * batch.size * width));
  ex.parallel_for(tasks, [&](std::size_t t, unsigned) {
    for (std::size_t g = batch.graphs * t / tasks; g < batch.graphs * (t + 1) / tasks; ++g) {
      T* to = dcode + g * code_stride_;
      std::fill_n(to, code_stride_, T(0));
      for (std::size_t e = batch.use_ptr[g]; e < batch.use_ptr[g + 1]; ++e) {
        const std::size_t p = batch.use_pair[e];
        const T *u = code + batch.first[p] * code_stride_, *v = code + batch.second[p] * code_stride_;
        const T* from = df + p * feature_stride_;
        const bool first = batch.use_side[e] == 0;
        for (std::size_t c = 0; c < width; ++c) {
          const T d = first ? u[c] - v[c] : v[c] - u[c];
          const T sign = d > 0 ? from[c] : d < 0 ? -from[c] : T(0);
          to[c] = to[c] + (sign + from[width + c]);
        }
      }
    }
  });
  const View<const T, 2> view(dcode, {batch.graphs, width}, {code_stride_, 1});
  encoder_.backward(ex, {.step = call.step,
                         .arrays = call.arrays,
                         .batch = batch.graphs_alone(),
                         .tape = tape.encoder_,
                         .dl_dy = view,
                         .gradient = call.gradient,
                         .dl_dx = call.dl_dx,
                         .sink = call.sink});
}

template <class T>
std::uint64_t PairNetwork<T>::branches(const Tape& tape) const {
  Hash hash(encoder_.branches(tape.encoder_));
  const T *code = tape.workspace_.template at<T>(tape.code_), *h = tape.workspace_.template at<T>(tape.hidden_);
  for (std::size_t p = 0; p < tape.seen_.size; ++p) {
    const T *u = code + tape.seen_.first[p] * code_stride_, *v = code + tape.seen_.second[p] * code_stride_;
    for (std::size_t c = 0; c < code_width(); ++c) hash.mix(u[c] > v[c] ? 2 : u[c] < v[c] ? 1 : 0);
    if (options_.encoder.activation == Activation::relu)
      for (std::size_t c = 0; c < options_.hidden; ++c) hash.mix(h[p * hidden_stride_ + c] > T(0) ? 2 : 1);
  }
  return hash.value();
}

double dual_derivative(const PairNetwork<double>& network, const Step& step, const ModelArrays<double>& arrays,
                       const PairBatch<double>& batch, View<const double, 2> dl_dy, std::size_t index) {
  using Number = kernels::Dual<double>;
  const auto code =
      dual_outputs(network.encoder(), step, arrays, batch.graphs_alone(), {DualDirection::What::parameter, index});
  const auto parameter = [&](std::size_t k, std::size_t row, std::size_t column) {
    const Slice& s = network.parameters()[network.head_slice(k)];
    const std::size_t at = s.offset + row * s.stored_last + column;
    return Number(arrays.parameters[at], at == index ? 1.0 : 0.0);
  };
  const std::size_t width = network.code_width();
  double derivative = 0.0;
  for (std::size_t p = 0; p < batch.size; ++p) {
    const auto &u = code[batch.first[p]], &v = code[batch.second[p]];
    Number z = parameter(3, 0, 0);
    for (std::size_t j = 0; j < network.options().hidden; ++j) {
      Number sum = parameter(1, 0, j);
      for (std::size_t c = 0; c < width; ++c) {
        sum += (u[c] > v[c] ? u[c] - v[c] : v[c] - u[c]) * parameter(0, c, j);
        sum += (u[c] + v[c]) * parameter(0, width + c, j);
      }
      const Number h = network.options().encoder.activation == Activation::silu ? kernels::silu(sum).value
                       : sum > Number(0.0)                                      ? sum
                                                                                : Number(0.0);
      z += h * parameter(2, j, 0);
    }
    const Number soft(std::log1p(std::exp(z.v)), z.d / (1 + std::exp(-z.v)));
    const double y = std::exp(-soft.v * batch.inverse_size[p]);
    derivative += dl_dy(p, 0) * -y * batch.inverse_size[p] * soft.d;
  }
  return derivative;
}

template class PairNetwork<float>;
template class PairNetwork<double>;

}  // namespace gradloom::graph
