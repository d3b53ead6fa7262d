// A spline network with arrays, data and one forward + backward, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/models/kan/network.h"

namespace gradloom::test {

inline kan::NetworkOptions kan_options(std::vector<std::size_t> widths, unsigned grid = 5, unsigned degree = 3) {
  kan::NetworkOptions o;
  o.widths = std::move(widths);
  o.grid = grid;
  o.degree = degree;
  o.spline_noise = 0.5;
  return o;
}

template <class T>
struct KanFixture {
  kan::Network<T> network;
  Buffer<T> parameters, buffers, gradient;
  std::size_t batch, stride;
  Buffer<T> x, y, dl_dy, dl_dx;

  KanFixture(kan::NetworkOptions options, std::size_t samples, std::uint64_t seed = 7, double reach = 1.2)
      : network(std::move(options)),
        parameters(network.parameters().flat_size()),
        buffers(network.buffers().flat_size()),
        gradient(network.parameters().flat_size()),
        batch(samples),
        stride(padded(network.output_width())),
        x(samples * network.input_width()),
        y(samples * stride),
        dl_dy(samples * stride),
        dl_dx(samples * network.input_width()) {
    network.initialise(seed, parameters.span(), buffers.span());
    const RandomStream stream(seed, RandomUse::user);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<T>(reach * (2 * stream.uniform(static_cast<std::uint32_t>(i)) - 1));
    for (std::size_t s = 0; s < samples; ++s)
      for (std::size_t j = 0; j < network.output_width(); ++j)
        dl_dy[s * stride + j] = static_cast<T>(stream.normal(static_cast<std::uint32_t>(1'000'000 + s * stride + j)));
  }

  RowBatch<T> rows() const {
    RowBatch<T> b;
    b.size = batch;
    b.x = View<const T, 2>(x.data(), {batch, network.input_width()});
    return b;
  }
  ModelArrays<T> arrays() const { return {parameters, buffers}; }
  View<T, 2> y_view() { return {y.data(), {batch, network.output_width()}, {stride, 1}}; }

  void forward_backward(const Exec& ex, Step step = {}, GradientSink* sink = nullptr, bool inputs = true) {
    auto tape = network.make_tape(ex, {.batch = std::max<std::size_t>(1, batch), .input_gradient = inputs});
    network.forward(ex, step, arrays(), rows(), tape, y_view());
    Buffer<T> levels = gradient_levels(network, rows());
    network.backward(ex, {.step = step,
                          .arrays = arrays(),
                          .batch = rows(),
                          .tape = tape,
                          .dl_dy = View<const T, 2>(dl_dy.data(), {batch, network.output_width()}, {stride, 1}),
                          .gradient = gradient,
                          .dl_dx = inputs ? View<T, 2>(dl_dx.data(), {batch, network.input_width()}) : View<T, 2>(),
                          .sink = sink,
                          .levels = levels});
  }
};

template <class T>
::testing::AssertionResult same_bits(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0)
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
  return ::testing::AssertionSuccess();
}
template <class T>
::testing::AssertionResult same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  return same_bits<T>(a.span(), b.span());
}

}  // namespace gradloom::test
