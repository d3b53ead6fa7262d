// A spline network on a device against the same network on the CPU: bits, not tolerances.
#include "gradloom/models/kan/device_network.h"

#include <cmath>

#include "gradloom/models/device_runner.h"
#include "tests/models/kan_support.h"
#include "tests/support/device.h"

namespace gradloom {
namespace {

using kan::DeviceNetwork;
using kan::Knots;
using kan::NetworkOptions;
using kan::OutOfGrid;
using test::kan_options;
using test::KanFixture;
using test::same_bits;

template <class T>
void give_normalisation(KanFixture<T>& f) {
  for (std::size_t i = 0; i < f.network.input_width(); ++i) {
    f.buffers[f.network.buffers()[f.network.affine().input_mean].offset + i] = T(0.3) - T(0.1) * static_cast<T>(i);
    f.buffers[f.network.buffers()[f.network.affine().input_std].offset + i] = T(0.7) + T(0.2) * static_cast<T>(i);
  }
  for (std::size_t j = 0; j < f.network.output_width(); ++j) {
    f.buffers[f.network.buffers()[f.network.affine().output_mean].offset + j] = T(0.5) * static_cast<T>(j);
    f.buffers[f.network.buffers()[f.network.affine().output_std].offset + j] = T(1.5) + T(0.25) * static_cast<T>(j);
  }
  f.network.derive(f.buffers.span()).or_throw();
}

// Uneven knots of each input's own.
template <class T>
void give_free_knots(KanFixture<T>& f) {
  const RandomStream random(3, RandomUse::check);
  std::uint32_t at = 0;
  for (std::size_t l = 0; l < f.network.layers(); ++l) {
    const auto& shape = f.network.shape(l);
    T* knots = f.buffers.data() + f.network.buffers()[f.network.slices(l).knots].offset;
    for (std::size_t i = 0; i < shape.in; ++i, knots += shape.grid + 1)
      for (std::size_t k = 1; k < shape.grid; ++k)
        knots[k] += T(0.6) / static_cast<T>(shape.grid) * static_cast<T>(random.uniform(at++) - 0.5);
  }
  f.network.derive(f.buffers.span()).or_throw();
}

template <class T>
struct DeviceResult {
  Buffer<T> y, gradient, dl_dx;
};

template <class T>
DeviceResult<T> run_on(vulkan::Device& device, const KanFixture<T>& f, DeviceRunner<DeviceNetwork<T>>* runner = nullptr,
                       const Step& step = {}) {
  const DeviceNetwork<T> network(device, f.network);
  std::unique_ptr<DeviceRunner<DeviceNetwork<T>>> own;
  if (!runner) {
    own = std::make_unique<DeviceRunner<DeviceNetwork<T>>>(network);
    runner = own.get();
  }
  DeviceResult<T> r{Buffer<T>(f.y.size()), Buffer<T>(f.gradient.size()), Buffer<T>(f.dl_dx.size())};
  const std::size_t out = f.network.output_width();
  runner->upload(f.parameters.span(), f.buffers.span());
  runner->forward(f.rows(), {r.y.data(), {f.batch, out}, {f.stride, 1}});
  runner->backward(step, {f.dl_dy.data(), {f.batch, out}, {f.stride, 1}}, r.gradient.span(),
                   {r.dl_dx.data(), {f.batch, f.network.input_width()}});
  return r;
}

template <class T>
void expect_parity(vulkan::Device& device, KanFixture<T>& f) {
  const DeviceResult<T> r = run_on(device, f);
  f.forward_backward(Exec(test::exec_like(device)));
  EXPECT_TRUE(same_bits(r.y, f.y)) << "y";
  EXPECT_TRUE(same_bits(r.gradient, f.gradient)) << "gradient";
  EXPECT_TRUE(same_bits(r.dl_dx, f.dl_dx)) << "dl_dx";
}

using KanOnDevice = test::DeviceTest;

TEST_F(KanOnDevice, HasTheBitsOfTheCpuForOneAndThreeLayers) {
  for (const auto& widths : {std::vector<std::size_t>{8, 4}, {8, 16, 8, 4}, {4, 3}, {8, 12, 4}, {1, 1}}) {
    for (std::size_t batch : {1, 7, 16, 64, 128}) {
      KanFixture<float> f(kan_options(widths), batch);
      SCOPED_TRACE(testing::Message() << widths.size() - 1 << " layers, batch " << batch);
      expect_parity(device(), f);
      EXPECT_TRUE(std::any_of(f.dl_dx.span().begin(), f.dl_dx.span().end(), [](float v) { return v != 0; }));
    }
  }
}

TEST_F(KanOnDevice, HasTheBitsOfTheCpuForEveryDegreeAndGrid) {
  const auto check = [&](unsigned degree, unsigned grid) {
    NetworkOptions o = kan_options({5, 9, 3}, grid, degree);
    o.base = degree % 2 == 0;
    o.bias = grid % 3 != 0;
    KanFixture<float> f(o, 33);
    SCOPED_TRACE(testing::Message() << "degree " << degree << ", grid " << grid);
    expect_parity(device(), f);
  };
  for (unsigned degree = 1; degree <= 7; ++degree)
    for (unsigned grid : {1u, 3u, 5u, 8u, 12u, 16u, 64u}) check(degree, grid);
  for (unsigned grid : {17u, 61u, 65u}) check(3, grid);
}

TEST_F(KanOnDevice, HasTheBitsOfTheCpuOutsideTheGridAndWithNormalisation) {
  for (const OutOfGrid outside : {OutOfGrid::linear, OutOfGrid::clamp, OutOfGrid::extend, OutOfGrid::zero})
    for (const Knots knots : {Knots::uniform, Knots::free})
      for (unsigned degree : {1u, 3u}) {
        NetworkOptions o = kan_options({6, 10, 3}, 5, degree);
        o.outside = outside;
        o.knots = knots;
        KanFixture<float> f(o, 40, 11, 3.0);
        give_normalisation(f);
        if (knots == Knots::free) give_free_knots(f);
        SCOPED_TRACE(testing::Message() << "policy " << static_cast<int>(outside) << ", degree " << degree);
        expect_parity(device(), f);
      }
}

TEST_F(KanOnDevice, HasTheBitsOfTheCpuForBatchesOfSeveralLeaves) {
  for (unsigned grid : {5u, 100u})
    for (std::size_t batch : {300, 512, 600, 1024, 3528}) {
      KanFixture<float> f(kan_options({3, 20, 2}, grid), batch);
      SCOPED_TRACE(testing::Message() << "grid " << grid << ", batch " << batch);
      expect_parity(device(), f);
    }
}

TEST_F(KanOnDevice, HasTheBitsOfTheCpuWithMultiplicationNodes) {
  const auto check = [&](std::vector<std::size_t> widths, std::vector<std::size_t> multiply, std::size_t batch) {
    NetworkOptions o = kan_options(widths);
    o.multiply = multiply;
    KanFixture<float> f(o, batch);
    SCOPED_TRACE(testing::Message() << widths[1] << " nodes, " << multiply[0] << " multiply, batch " << batch);
    expect_parity(device(), f);
  };
  for (const std::size_t batch : {1, 7, 64, 600}) {
    check({2, 1, 1}, {1}, batch);
    check({3, 5, 2}, {2}, batch);
    check({8, 17, 16, 4}, {15, 9}, batch);
    check({3, 4, 16, 2}, {0, 16}, batch);
  }
}

TEST_F(KanOnDevice, FrozenLayersBelowProductsSkipTheirWork) {
  NetworkOptions o = kan_options({8, 16, 8, 4});
  o.multiply = {5, 8};
  KanFixture<float> f(o, 20);
  std::vector<std::uint8_t> frozen(f.network.parameters().size(), 0);
  frozen[f.network.slices(0).weight] = frozen[f.network.slices(0).bias] = 1;
  Step step;
  step.frozen = frozen;
  const DeviceNetwork<float> network(device(), f.network);
  DeviceRunner<DeviceNetwork<float>> runner(network);
  const auto r = run_on(device(), f, &runner, step);
  f.forward_backward(Exec(test::exec_like(device())), step);
  for (const std::size_t l : {1, 2})
    for_each_logical(f.network.parameters()[f.network.slices(l).weight],
                     [&](std::size_t i) { ASSERT_EQ(r.gradient[i], f.gradient[i]); });
}

// Grids so fine that leaves leave rows empty; a last leaf of a few samples.
TEST_F(KanOnDevice, AnySplitOfTheLeavesGivesTheBitsOfTheCpu) {
  for (const bool bias : {true, false}) {
    NetworkOptions o = kan_options({3, 9, 2}, 300);
    o.bias = bias;
    KanFixture<float> f(o, 7 * 256 + 3);
    f.forward_backward(Exec(test::exec_like(device())), {}, nullptr, false);
    const std::size_t out = f.network.output_width(), in = f.network.input_width();
    const DeviceNetwork<float> network(device(), f.network);
    DeviceRunner<DeviceNetwork<float>> runner(network);
    runner.upload(f.parameters.span(), f.buffers.span());
    Buffer<float> y(f.y.size()), gradient(f.gradient.size());
    for (const std::size_t piece : {256, 512, 768, 1280, 1795}) {
      for (std::size_t first = 0; first < f.batch; first += piece) {
        RowBatch<float> rows;
        rows.size = std::min(piece, f.batch - first);
        rows.x = View<const float, 2>(f.x.data() + first * in, {rows.size, in});
        Step step;
        step.leaf = first / 256;
        step.gradient = first == 0 ? GradientMode::overwrite : GradientMode::accumulate;
        step.gradient_is = first + piece >= f.batch ? GradientIs::complete : GradientIs::partial;
        runner.forward(rows, {y.data(), {rows.size, out}, {f.stride, 1}});
        runner.backward(step, {f.dl_dy.data() + first * f.stride, {rows.size, out}, {f.stride, 1}}, gradient.span(),
                        {});
      }
      EXPECT_TRUE(same_bits(gradient, f.gradient)) << "pieces of " << piece << ", bias " << bias;
    }
  }
}

TEST_F(KanOnDevice, HasTheBitsOfTheCpuForWideLayers) {
  const auto check = [&](const std::vector<std::size_t>& widths, std::size_t batch) {
    KanFixture<float> f(kan_options(widths), batch);
    SCOPED_TRACE(testing::Message() << widths[0] << " inputs, batch " << batch);
    expect_parity(device(), f);
  };
  check({32, 256}, 16);
  check({32, 256}, 64);
  check({21, 72, 24}, 70);
  check({21, 72}, 300);
  check({1024, 1024}, 16);
}

// The software driver stops loops after 65535 turns: batches of any size stay below, layers of too many inputs are
// refused.
TEST_F(KanOnDevice, LoopsStayWithinWhatTheDriverRuns) {
  if (device().info().kind != vulkan::DeviceKind::software) GTEST_SKIP() << "for software devices";
  {
    KanFixture<float> f(kan_options({33, 2}), 7000);
    expect_parity(device(), f);
  }
  {
    KanFixture<float> f(kan_options({1, 1}), 70000);
    expect_parity(device(), f);
  }
  KanFixture<float> f(kan_options({15000, 1}), 1);
  EXPECT_THROW(run_on(device(), f), Exception);
}

// Tiles depend on the kind of a device; a software device can run those of the others too.
TEST_F(KanOnDevice, HasTheBitsOfTheCpuWithTheTilesOfAGpu) {
  const auto gpu = own_device({.as_discrete = true});
  for (const auto& widths : {std::vector<std::size_t>{5, 9, 3}, {21, 72, 24}})
    for (std::size_t batch : {7, 70}) {
      KanFixture<float> f(kan_options(widths), batch);
      SCOPED_TRACE(testing::Message() << widths[0] << " inputs, batch " << batch);
      expect_parity(*gpu, f);
    }
  for (std::size_t batch : {70, 700}) {
    KanFixture<float> f(kan_options({5, 9}, 100), batch);
    expect_parity(*gpu, f);
  }
  // Enough invocations for several samples and inputs in each.
  KanFixture<float> f(kan_options({130, 130}), 400);
  expect_parity(*gpu, f);
}

TEST_F(KanOnDevice, HasTheBitsOfTheCpuInDoublePrecision) {
  if (!device().info().float64) GTEST_SKIP() << device().info().name << " has no 64-bit numbers";
  for (unsigned degree : {2u, 3u}) {
    NetworkOptions o = kan_options({8, 16, 4}, 5, degree);
    if (degree == 3) o.multiply = {6};
    KanFixture<double> f(o, 30);
    give_normalisation(f);
    expect_parity(device(), f);
  }
}

TEST_F(KanOnDevice, GradientsOfZeroAreExactlyZero) {
  KanFixture<float> f(kan_options({32, 256}), 64);
  std::fill_n(f.dl_dy.data(), f.dl_dy.size(), 0.0f);
  const auto r = run_on(device(), f);
  for (float g : r.gradient.span()) ASSERT_EQ(g, 0.0f);
  for (float g : r.dl_dx.span()) ASSERT_EQ(g, 0.0f);
}

TEST_F(KanOnDevice, BiasGradientIsTheSumOverTheBatch) {
  KanFixture<float> f(kan_options({4, 3}), 8);
  const auto r = run_on(device(), f);
  const Slice& bias = f.network.parameters()[f.network.slices(0).bias];
  for (std::size_t j = 0; j < 3; ++j) {
    float sum = 0;
    for (std::size_t s = 0; s < 8; ++s) sum += f.dl_dy[s * f.stride + j];
    EXPECT_EQ(r.gradient[bias.offset + j], sum);
  }
}

TEST_F(KanOnDevice, EveryGradientIsNearThatInDouble) {
  KanFixture<float> single(kan_options({8, 16, 8, 4}), 16);
  KanFixture<double> wide(kan_options({8, 16, 8, 4}), 16);
  const auto widen = [](const Buffer<float>& from, Buffer<double>& to) {
    std::copy_n(from.data(), from.size(), to.data());
  };
  // Slices start at multiples of 256 bytes, so they lie elsewhere in double.
  for (std::size_t s = 0; s < single.network.parameters().size(); ++s) {
    const Slice &a = single.network.parameters()[s], &b = wide.network.parameters()[s];
    for (std::size_t n = 0; n < a.stored_size(); ++n) wide.parameters[b.offset + n] = single.parameters[a.offset + n];
  }
  widen(single.x, wide.x);
  widen(single.dl_dy, wide.dl_dy);
  const auto r = run_on(device(), single);
  wide.forward_backward(Exec(test::exec_like(device())));
  double norm = 0.0, largest = 0.0;
  for (double g : wide.gradient.span()) norm += g * g;
  std::size_t checked = 0;
  for (std::size_t s = 0; s < single.network.parameters().size(); ++s) {
    const Slice &a = single.network.parameters()[s], &b = wide.network.parameters()[s];
    for (std::size_t n = 0; n < a.stored_size(); ++n, ++checked)
      largest = std::max(largest, std::abs(r.gradient[a.offset + n] - wide.gradient[b.offset + n]));
  }
  EXPECT_LE(largest, 1e-6 * std::sqrt(norm));
  EXPECT_GE(checked, single.network.parameters().logical_size());
}

TEST_F(KanOnDevice, BackwardStartsAfreshOrAddsAsItIsAsked) {
  KanFixture<float> f(kan_options({8, 16, 4}), 20);
  const DeviceNetwork<float> network(device(), f.network);
  DeviceRunner<DeviceNetwork<float>> runner(network);
  const auto first = run_on(device(), f, &runner), second = run_on(device(), f, &runner);
  EXPECT_TRUE(same_bits(first.gradient, second.gradient));
  Step add;
  add.gradient = GradientMode::accumulate, add.leaf = 1;
  const auto sum = run_on(device(), f, &runner, add);
  const Exec ex(test::exec_like(device()));
  f.forward_backward(ex);
  f.forward_backward(ex, add);
  EXPECT_TRUE(same_bits(sum.gradient, f.gradient));
}

TEST_F(KanOnDevice, GrowsFromASmallBatchToALargeOneAndBack) {
  const KanFixture<float> model(kan_options({8, 16, 4}), 1);
  const DeviceNetwork<float> network(device(), model.network);
  DeviceRunner<DeviceNetwork<float>> runner(network);
  for (std::size_t batch : {1, 7, 16, 64, 128, 5}) {
    KanFixture<float> f(kan_options({8, 16, 4}), batch);
    const auto r = run_on(device(), f, &runner);
    f.forward_backward(Exec(test::exec_like(device())));
    EXPECT_TRUE(same_bits(r.y, f.y)) << batch;
    EXPECT_TRUE(same_bits(r.gradient, f.gradient)) << batch;
  }
}

TEST_F(KanOnDevice, FrozenLayersSkipTheirWork) {
  KanFixture<float> f(kan_options({8, 16, 8, 4}), 20);
  std::vector<std::uint8_t> frozen(f.network.parameters().size(), 0);
  frozen[f.network.slices(0).weight] = frozen[f.network.slices(0).bias] = 1;
  frozen[f.network.slices(2).weight] = 1;
  Step step;
  step.frozen = frozen;
  const DeviceNetwork<float> network(device(), f.network);
  DeviceRunner<DeviceNetwork<float>> runner(network);
  Buffer<float> y(f.y.size()), gradient(f.gradient.size());
  runner.upload(f.parameters.span(), f.buffers.span());
  const auto before = device().counters().dispatches;
  runner.forward(f.rows(), {y.data(), {f.batch, 4}, {f.stride, 1}});
  runner.backward(step, {f.dl_dy.data(), {f.batch, 4}, {f.stride, 1}}, gradient.span(), {});
  EXPECT_EQ(device().counters().dispatches - before,
            3u + 1 + 1 + 3);  // forward, output, dl_dy, two layers and one dl_dx
  f.forward_backward(Exec(test::exec_like(device())), step, nullptr, false);
  EXPECT_TRUE(same_bits(gradient, f.gradient));
}

TEST_F(KanOnDevice, MistakesAreNamed) {
  KanFixture<float> f(kan_options({8, 4}), 4);
  const DeviceNetwork<float> network(device(), f.network);
  DeviceRunner<DeviceNetwork<float>> runner(network);
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Exception& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_input);
      return e.what();
    }
    return "";
  };
  RowBatch<float> none;
  EXPECT_NE(message([&] { runner.forward(none, f.y_view()); }).find("0 samples"), std::string::npos);
  RowBatch<float> narrow = f.rows();
  narrow.x = View<const float, 2>(f.x.data(), {4, 5});
  EXPECT_NE(message([&] { runner.forward(narrow, f.y_view()); }).find("5 features"), std::string::npos);
  EXPECT_NE(message([&] {
              runner.backward({}, {f.dl_dy.data(), {4, 4}, {f.stride, 1}}, f.gradient.span(), {});
            }).find("before forward"),
            std::string::npos);
  EXPECT_NE(message([&] { runner.upload(f.buffers.span(), f.parameters.span()); }).find("another shape"),
            std::string::npos);
}

TEST_F(KanOnDevice, LayersBeyondTheDevicesLimitsAreRefused) {
  const auto small = own_device({.max_buffer_range = 4096});
  const kan::Network<float> network(kan_options({64, 64}));
  try {
    const DeviceNetwork<float> on_device(*small, network);
    FAIL() << "a layer that does not fit was accepted";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsuitable_device);
    EXPECT_NE(std::string(e.what()).find("layer 0"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace gradloom
