// The norm of a gradient that a device's kernels add up while they compute it, against the gradient itself.
#include <cmath>
#include <limits>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/optimizer/device.h"
#include "gradloom/kernels/shader/step.h"
#include "gradloom/models/kan/device_network.h"
#include "tests/models/kan_support.h"
#include "tests/support/device.h"

namespace gradloom {
namespace {

using kan::DeviceNetwork;
using kan::NetworkOptions;
using test::kan_options;
using test::KanFixture;

NetworkOptions with_base(NetworkOptions o) {
  o.base = true;
  return o;
}

template <class T>
class KeepsNorm final : public DeviceSink {
 public:
  explicit KeepsNorm(vulkan::Device& device) : device_(device) {}
  void finished(vulkan::Commands&, std::size_t, std::size_t) override {}
  vulkan::Binding norm(std::size_t shares) override {
    norm_ = kernels::optimizer::make_norm<T>(device_, shares);
    return whole(norm_);
  }
  struct Head {
    std::uint32_t done;  // of the groups
    std::uint32_t not_finite;
    T squares;
  };
  Head read() const {
    Head head;
    device_.read(norm_, 0, std::as_writable_bytes(std::span(&head, 1)));
    return head;
  }

 private:
  vulkan::Device& device_;
  vulkan::DeviceBuffer norm_;
};

// Backward passes over one recording, each with another dl_dy. After each the squares must be those of the gradient,
// and the counter of groups as new.
template <class T>
void expect_norms(vulkan::Device& device, const KanFixture<T>& f, const Step& step = {}) {
  const DeviceNetwork<T> network(device, f.network);
  const auto upload = [&](std::span<const T> values) {
    vulkan::DeviceBuffer buffer = device.make_buffer(values.size_bytes(), vulkan::BufferUse::device);
    device.write(buffer, 0, std::as_bytes(values));
    return buffer;
  };
  const std::size_t in = f.network.input_width(), out = f.network.output_width(), out_padded = padded(out);
  std::vector<T> x(f.batch * in), dl_dy(f.batch * out_padded);
  for (std::size_t s = 0; s < f.batch; ++s) {
    std::copy_n(f.rows().x.row(s), in, x.data() + s * in);
    std::copy_n(f.dl_dy.data() + s * f.stride, out, dl_dy.data() + s * out_padded);
  }
  const auto parameters = upload(f.parameters.span()), buffers = upload(f.buffers.span()), samples = upload(x);
  const auto gradient = device.make_buffer(f.parameters.size() * sizeof(T), vulkan::BufferUse::device);
  device.zero(gradient);
  const auto head = device.make_buffer(kernels::kStepHeadBytes, vulkan::BufferUse::device);
  device.zero(head);
  const DeviceTree tree = network.make_tree(f.batch, divide_up(f.batch, network.leaf_samples()));
  const DeviceArrays arrays{&parameters, &buffers, &gradient, &tree, &head};
  const DeviceTape tape = network.make_tape(f.batch, false);
  KeepsNorm<T> norm(device);
  vulkan::Commands commands(device);
  network.record_forward(commands, arrays, tape, f.batch, whole(samples));
  network.record_backward(commands, step, arrays, tape, f.batch, whole(samples), false, &norm);
  commands.finish();
  std::vector<T> values(f.parameters.size());
  // Roundings by optimizer/device.h: no case here has more than 52 blocks and 20 shares in an invocation.
  const double tolerance = (48 + 52 + 20) / 2 * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  for (int pass = 0; pass < 3; ++pass) {
    for (T& v : dl_dy) v *= T(1.5);
    device.write(tape.memory, network.top_gradient(tape, f.batch).offset, std::as_bytes(std::span(dl_dy)));
    commands.submit();
    commands.wait();
    device.read(gradient, 0, std::as_writable_bytes(std::span(values)));
    double squares = 0.0;
    for (const T g : values) squares += static_cast<double>(g) * static_cast<double>(g);
    ASSERT_GT(squares, 0.0);
    const auto kept = norm.read();
    EXPECT_NEAR(std::sqrt(static_cast<double>(kept.squares)) / std::sqrt(squares), 1.0, tolerance) << "pass " << pass;
    EXPECT_EQ(kept.done, 0u);
  }
}

// The gradient of a network by one recording with this memory.
Buffer<float> gradient_with(vulkan::Device& device, const DeviceNetwork<float>& network, const KanFixture<float>& f,
                            const DeviceTree& tree) {
  const auto upload = [&](std::span<const float> values) {
    vulkan::DeviceBuffer buffer = device.make_buffer(values.size_bytes(), vulkan::BufferUse::device);
    device.write(buffer, 0, std::as_bytes(values));
    return buffer;
  };
  const std::size_t out = f.network.output_width(), out_padded = padded(out);
  std::vector<float> dl_dy(f.batch * out_padded);
  for (std::size_t s = 0; s < f.batch; ++s)
    std::copy_n(f.dl_dy.data() + s * f.stride, out, dl_dy.data() + s * out_padded);
  const auto parameters = upload(f.parameters.span()), buffers = upload(f.buffers.span()), samples = upload(f.x.span());
  const auto gradient = upload(Buffer<float>(f.parameters.size()).span());
  const auto head = device.make_buffer(kernels::kStepHeadBytes, vulkan::BufferUse::device);
  device.zero(head);
  const DeviceArrays arrays{&parameters, &buffers, &gradient, &tree, &head};
  const DeviceTape tape = network.make_tape(f.batch, false);
  device.write(tape.memory, network.top_gradient(tape, f.batch).offset, std::as_bytes(std::span(dl_dy)));
  vulkan::Commands commands(device);
  network.record_forward(commands, arrays, tape, f.batch, whole(samples));
  network.record_backward(commands, {}, arrays, tape, f.batch, whole(samples), false, nullptr);
  commands.finish();
  commands.submit();
  commands.wait();
  Buffer<float> result(f.parameters.size());
  device.read(gradient, 0, std::as_writable_bytes(result.span()));
  return result;
}

using NormOnDevice = test::DeviceTest;

TEST_F(NormOnDevice, IsThatOfTheGradientForOneLayerAndForMany) {
  for (const auto& widths : {std::vector<std::size_t>{1, 1}, {8, 4}, {8, 16, 8, 4}, {21, 72, 24}, {130, 70}})
    for (std::size_t batch : {1, 40}) {
      SCOPED_TRACE(testing::Message() << widths[0] << " inputs, batch " << batch);
      expect_norms(device(), KanFixture<float>(kan_options(widths), batch));
    }
}

TEST_F(NormOnDevice, CountsEveryElementOnceInBatchesOfSeveralChunksAndWhenItAdds) {
  Step add;
  add.gradient = GradientMode::accumulate, add.leaf = 1;
  for (unsigned grid : {5u, 100u}) {
    SCOPED_TRACE(testing::Message() << "grid " << grid);
    expect_norms(device(), KanFixture<float>(with_base(kan_options({3, 20, 2}, grid)), 600));
    expect_norms(device(), KanFixture<float>(with_base(kan_options({3, 20, 2}, grid)), 200), add);
    expect_norms(device(), KanFixture<float>(kan_options({3, 20, 2}, grid), 7), add);
  }
}

TEST_F(NormOnDevice, LeavesFrozenTensorsOut) {
  for (std::size_t batch : {20, 700}) {
    const KanFixture<float> f(kan_options({8, 16, 8, 4}), batch);
    std::vector<std::uint8_t> frozen(f.network.parameters().size(), 0);
    frozen[f.network.slices(0).weight] = frozen[f.network.slices(0).bias] = 1;
    frozen[f.network.slices(1).bias] = frozen[f.network.slices(2).weight] = 1;
    Step step;
    step.frozen = frozen;
    expect_norms(device(), f, step);
  }
}

// Sums of leaves stand side by side as far as there is room; the rest comes later.
TEST_F(NormOnDevice, TheMemoryForLeavesChangesNoBitOfTheGradient) {
  KanFixture<float> f(kan_options({3, 20, 2}), 6 * 256 + 10);
  f.forward_backward(Exec(test::exec_like(device())), {}, nullptr, false);
  const DeviceNetwork<float> network(device(), f.network);
  DeviceTree tree = network.make_tree(f.batch, 7);
  const std::uint64_t one = tree.leaves.bytes() / 7;
  for (const std::uint64_t at_once : {1, 2, 4, 5}) {
    tree.leaves = device().make_buffer(at_once * one, vulkan::BufferUse::device);
    const Buffer<float> gradient = gradient_with(device(), network, f, tree);
    EXPECT_TRUE(test::same_bits(gradient, f.gradient)) << at_once << " leaves at once";
  }
}

TEST_F(NormOnDevice, IsThatOfTheGradientWithTheTilesOfAGpu) {
  const auto gpu = own_device({.as_discrete = true});
  expect_norms(*gpu, KanFixture<float>(kan_options({5, 9, 3}), 70));
  expect_norms(*gpu, KanFixture<float>(kan_options({21, 72, 24}), 300));
}

TEST_F(NormOnDevice, IsThatOfTheGradientInDouble) {
  if (!device().info().float64) GTEST_SKIP() << "the device has no 64-bit floats";
  expect_norms(device(), KanFixture<double>(kan_options({8, 16, 4}), 30));
}

}  // namespace
}  // namespace gradloom
