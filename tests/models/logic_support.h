// A logic model with arrays, data and one forward + backward, for tests.
#pragma once

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/models/logic/automaton.h"
#include "gradloom/models/logic/classifier.h"
#include "tests/models/kan_support.h"

namespace gradloom::test {

enum class Logits {
  initial,  // plus noise of size 1: gate A still wins by far, and few gates have a gradient that matters
  mixed,    // noise of size 3 alone: all 16 functions win somewhere, and still pass gradients on
};

template <class M>
struct LogicFixture {
  using T = typename M::Scalar;
  M model;
  Buffer<T> parameters, buffers, gradient;
  std::size_t batch, stride;
  Buffer<T> x, y, dl_dy, dl_dx;

  LogicFixture(M m, std::size_t samples, Logits logits = Logits::mixed, std::uint64_t seed = 7)
      : model(std::move(m)),
        parameters(model.parameters().flat_size()),
        buffers(model.buffers().flat_size()),
        gradient(model.parameters().flat_size()),
        batch(samples),
        stride(padded(model.output_width())),
        x(samples * model.input_width()),
        y(samples * stride),
        dl_dy(samples * stride),
        dl_dx(samples * model.input_width()) {
    model.initialise(seed, parameters.span(), buffers.span());
    if (logits == Logits::mixed) std::fill_n(parameters.data(), parameters.size(), T(0));
    const double noise = logits == Logits::mixed ? 3.0 : 1.0;
    const RandomStream stream(seed, RandomUse::user);
    std::uint32_t at = 0;
    for (const Slice& slice : model.parameters())
      for_each_logical(slice, [&](std::size_t i) { parameters[i] += static_cast<T>(noise * stream.normal(at++)); });
    for (T& v : x.span()) v = static_cast<T>(stream.uniform(at++));
    for (std::size_t s = 0; s < samples; ++s)
      for (std::size_t j = 0; j < model.output_width(); ++j)
        dl_dy[s * stride + j] = static_cast<T>(stream.normal(at++));
  }

  RowBatch<T> rows() const {
    RowBatch<T> b;
    b.size = batch;
    b.x = View<const T, 2>(x.data(), {batch, model.input_width()});
    return b;
  }
  ModelArrays<T> arrays() const { return {parameters, buffers}; }
  View<T, 2> y_view() { return {y.data(), {batch, model.output_width()}, {stride, 1}}; }
  View<const T, 2> dl_dy_view() const { return {dl_dy.data(), {batch, model.output_width()}, {stride, 1}}; }

  void forward_backward(const Exec& ex, Step step = {}, GradientSink* sink = nullptr, bool inputs = true) {
    auto tape = model.make_tape(ex, {.batch = std::max<std::size_t>(1, batch), .input_gradient = inputs});
    model.forward(ex, step, arrays(), rows(), tape, y_view());
    Buffer<T> levels = gradient_levels(model, rows());
    model.backward(ex, {.step = step,
                        .arrays = arrays(),
                        .batch = rows(),
                        .tape = tape,
                        .dl_dy = dl_dy_view(),
                        .gradient = gradient,
                        .dl_dx = inputs ? View<T, 2>(dl_dx.data(), {batch, model.input_width()}) : View<T, 2>(),
                        .sink = sink,
                        .levels = levels});
  }
};

template <class M>
void expect_same(const LogicFixture<M>& a, const LogicFixture<M>& b, const std::string& what) {
  EXPECT_TRUE(same_bits(a.y, b.y)) << what;
  EXPECT_TRUE(same_bits(a.gradient, b.gradient)) << what;
  EXPECT_TRUE(same_bits(a.dl_dx, b.dl_dx)) << what;
}

// Two channels, three kernels of 8-4-2 gates, an update of 8-4-2: 42 + 14 gates.
inline logic::AutomatonOptions small_automaton(std::size_t height, std::size_t width, std::size_t steps) {
  logic::AutomatonOptions o;
  o.channels = 2, o.kernels = 3;
  o.perception = {8, 4, 2};
  o.update = {8, 4, 2};
  o.height = height, o.width = width, o.steps = steps;
  return o;
}

}  // namespace gradloom::test
