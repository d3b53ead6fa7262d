// The norm of a gradient that a device's kernels add up while they compute it, against the gradient itself.
#include <cmath>

#include "gradloom/kernels/optimizer/device.h"
#include "gradloom/models/kan/device_network.h"
#include "tests/models/kan_support.h"
#include "tests/support/device.h"

namespace gradloom {
namespace {

using kan::DeviceNetwork;
using kan::NetworkOptions;
using test::KanFixture;

NetworkOptions norm_options(std::vector<std::size_t> widths, unsigned grid = 5, bool base = false) {
  NetworkOptions o;
  o.widths = std::move(widths);
  o.grid = grid;
  o.base = base;
  o.spline_noise = 0.5;
  return o;
}

template <class T>
class KeepsNorm final : public DeviceSink {
 public:
  explicit KeepsNorm(vulkan::Device& device) : device_(device) {}
  void finished(vulkan::Commands&, std::size_t, std::size_t) override {}
  vulkan::Binding norm(std::size_t shares) override {
    norm_ = kernels::make_norm<T>(device_, shares);
    return whole(norm_);
  }
  T squares() const {
    std::vector<std::byte> head(16);
    device_.read(norm_, 0, head);
    T value;
    std::memcpy(&value, head.data() + sizeof(T), sizeof(T));  // behind the counter, aligned
    return value;
  }

 private:
  vulkan::Device& device_;
  vulkan::DeviceBuffer norm_;
};

// Backward passes over one recording: the first overwrites the gradient, or all add to it. After each the squares must
// be those of the gradient, and the counter of groups as new.
template <class T>
void expect_norms(vulkan::Device& device, const KanFixture<T>& f, const Step& step = {}) {
  const DeviceNetwork<T> network(device, f.network);
  const auto upload = [&](std::span<const T> values) {
    vulkan::DeviceBuffer buffer = device.make_buffer(values.size_bytes(), vulkan::BufferUse::device);
    device.write(buffer, 0, std::as_bytes(values));
    return buffer;
  };
  const std::size_t in = f.network.input_width(), out = f.network.output_width(), out_padded = (out + 15) / 16 * 16;
  std::vector<T> x(f.batch * in), dl_dy(f.batch * out_padded);
  for (std::size_t s = 0; s < f.batch; ++s) {
    std::copy_n(f.rows().x.row(s), in, x.data() + s * in);
    std::copy_n(f.dl_dy.data() + s * f.stride, out, dl_dy.data() + s * out_padded);
  }
  const auto parameters = upload(f.parameters.span()), buffers = upload(f.buffers.span()), samples = upload(x);
  const auto gradient = device.make_buffer(f.parameters.size() * sizeof(T), vulkan::BufferUse::device);
  device.zero(gradient);
  const DeviceArrays arrays{&parameters, &buffers, &gradient};
  const DeviceTape tape = network.make_tape(f.batch, false);
  KeepsNorm<T> norm(device);
  vulkan::Commands commands(device);
  network.record_forward(commands, arrays, tape, f.batch, whole(samples));
  network.record_backward(commands, step, arrays, tape, f.batch, whole(samples), false, &norm);
  commands.finish();
  std::vector<T> values(f.parameters.size());
  for (int pass = 0; pass < 3; ++pass) {
    device.write(tape.memory, network.top_gradient(tape, f.batch).offset, std::as_bytes(std::span(dl_dy)));
    commands.submit();
    commands.wait();
    device.read(gradient, 0, std::as_writable_bytes(std::span(values)));
    double squares = 0.0;
    for (const T g : values) squares += static_cast<double>(g) * static_cast<double>(g);
    ASSERT_GT(squares, 0.0);
    const double digits = sizeof(T) == 8 ? 1e-14 : 1e-6;
    EXPECT_NEAR(std::sqrt(static_cast<double>(norm.squares())) / std::sqrt(squares), 1.0, digits) << "pass " << pass;
  }
}

using NormOnDevice = test::DeviceTest;

TEST_F(NormOnDevice, IsThatOfTheGradientForOneLayerAndForMany) {
  for (const auto& widths : {std::vector<std::size_t>{1, 1}, {8, 4}, {8, 16, 8, 4}, {21, 72, 24}, {130, 70}})
    for (std::size_t batch : {1, 40}) {
      SCOPED_TRACE(testing::Message() << widths[0] << " inputs, batch " << batch);
      expect_norms(device(), KanFixture<float>(norm_options(widths), batch));
    }
}

TEST_F(NormOnDevice, CountsEveryElementOnceInBatchesOfSeveralChunksAndWhenItAdds) {
  Step add;
  add.gradient = GradientMode::accumulate;
  for (unsigned grid : {5u, 100u}) {
    SCOPED_TRACE(testing::Message() << "grid " << grid);
    expect_norms(device(), KanFixture<float>(norm_options({3, 20, 2}, grid, true), 600));
    expect_norms(device(), KanFixture<float>(norm_options({3, 20, 2}, grid, true), 600), add);
    expect_norms(device(), KanFixture<float>(norm_options({3, 20, 2}, grid), 7), add);
  }
}

TEST_F(NormOnDevice, LeavesFrozenTensorsOut) {
  const KanFixture<float> f(norm_options({8, 16, 8, 4}), 20);
  std::vector<std::uint8_t> frozen(f.network.parameters().size(), 0);
  frozen[f.network.slices(0).weight] = frozen[f.network.slices(0).bias] = 1;
  frozen[f.network.slices(1).bias] = frozen[f.network.slices(2).weight] = 1;
  Step step;
  step.frozen = frozen;
  expect_norms(device(), f, step);
}

TEST_F(NormOnDevice, IsThatOfTheGradientWithTheTilesOfAGpu) {
  const auto gpu = own_device({.as_discrete = true});
  expect_norms(*gpu, KanFixture<float>(norm_options({5, 9, 3}), 70));
  expect_norms(*gpu, KanFixture<float>(norm_options({21, 72, 24}), 300));
}

TEST_F(NormOnDevice, IsThatOfTheGradientInDouble) {
  if (!device().info().float64) GTEST_SKIP() << "the device has no 64-bit floats";
  expect_norms(device(), KanFixture<double>(norm_options({8, 16, 4}), 30));
}

}  // namespace
}  // namespace gradloom
