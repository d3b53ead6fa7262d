// The scale of norm clipping on a device, against the sums of reduce.h.
#include <cmath>
#include <cstring>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/kernels/optimizer/device.h"
#include "gradloom/kernels/reduce/reduce.h"
#include "gradloom/kernels/shader/step.h"
#include "tests/support/device.h"

namespace gradloom::kernels {
namespace {

using DeviceClip = test::DeviceTest;

// What the device should find: squares of each range, ranges in order, the root, all in T.
template <class T>
T expected_scale(const std::vector<T>& values, const std::vector<NormRange>& ranges, T limit) {
  const Exec ex({.threads = 1});
  T squares = 0;
  for (const NormRange& r : ranges) {
    std::vector<T> scratch(reduce_scratch(r.end - r.begin));
    squares = squares + sum_of_squares<T>(ex, std::span<const T>(values).subspan(r.begin, r.end - r.begin),
                                          std::span<T>(scratch));
  }
  const T norm = std::sqrt(squares);
  return norm > limit ? limit / norm : T(1);
}

// Many groups, of which any may be the last; the counter they share must be as new after each step.
template <class T>
void expect_scales(vulkan::Device& device, const std::vector<NormRange>& ranges, int steps) {
  std::vector<T> values(ranges.back().end);
  const vulkan::DeviceBuffer on_device = device.make_buffer(values.size() * sizeof(T), vulkan::BufferUse::device);
  const vulkan::DeviceBuffer head = device.make_buffer(kStepHeadBytes, vulkan::BufferUse::device);
  const NormClip<T> clip(device, on_device, ranges);
  vulkan::Commands commands(device);
  clip.record(commands, {&head, 0, kStepHeadBytes});
  commands.finish();
  for (int step = 0; step < steps; ++step) {
    const RandomStream random(7, RandomUse::data, static_cast<std::uint32_t>(step));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(random.uniform(static_cast<std::uint32_t>(i)) - 0.5);
    const T limit = step % 3 == 2 ? T(1e9) : T(0.25);
    std::vector<std::byte> bytes(kStepHeadBytes);
    std::memcpy(bytes.data() + kStepScalarsAt + static_cast<std::size_t>(StepScalar::clip_norm) * sizeof(T), &limit,
                sizeof(T));
    device.write(head, 0, bytes);
    device.write(on_device, 0, std::as_bytes(std::span(values)));
    commands.submit();
    commands.wait();
    T found = 0;
    device.read(*clip.scale().buffer, 0, std::as_writable_bytes(std::span(&found, 1)));
    EXPECT_EQ(found, expected_scale(values, ranges, limit)) << "step " << step;
  }
}

TEST_F(DeviceClip, HasTheBitsOfTheReductionWithOneGroupAndWithMany) {
  expect_scales<float>(device(), {{0, 64}}, 3);
  expect_scales<float>(device(), {{0, 4096}, {4096, 4100}, {4352, 30000}}, 6);
  expect_scales<float>(device(), {{0, 70000}, {70144, 300001}}, 12);
}

TEST_F(DeviceClip, HasTheBitsOfTheReductionInDouble) {
  if (!device().info().float64) GTEST_SKIP() << "the device has no 64-bit floats";
  expect_scales<double>(device(), {{0, 70000}, {70144, 100001}}, 6);
}

}  // namespace
}  // namespace gradloom::kernels
