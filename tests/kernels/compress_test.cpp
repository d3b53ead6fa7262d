// Compressed gradients: what is promised about them, and the device against the definition.
#include "gradloom/kernels/compress/compress.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gradloom/base/random.h"
#include "gradloom/kernels/compress/device.h"
#include "tests/support/device.h"

namespace gradloom::kernels::compress {
namespace {

const std::size_t kSizes[] = {1, 2, 255, 256, 257, 1000};

template <class T>
std::vector<T> random_values(std::size_t count, std::uint32_t stream = 0) {
  const RandomStream random(7, RandomUse::check, stream);
  std::vector<T> values(count);
  for (std::size_t n = 0; n < count; ++n)
    values[n] =
        static_cast<T>(random.normal(static_cast<std::uint32_t>(n)) * std::pow(10.0, static_cast<double>(n % 7)));
  for (std::size_t n = 5; n < count; n += 11) values[n] = -values[n - 1];  // ties in magnitude
  return values;
}

template <class T>
std::vector<std::byte> compressed(const CompressionOptions& o, const std::vector<T>& gradient,
                                  std::vector<T>& residual) {
  std::vector<std::byte> packed(compressed_bytes<T>(o, gradient.size()));
  compress<T>(o, gradient, residual, packed);
  return packed;
}

TEST(Compression, SixteenBitsKeepEightDigitsAndTheRange) {
  std::vector<float> none;
  for (std::size_t size : kSizes) {
    const auto values = random_values<float>(size);
    const auto packed = compressed<float>({.kind = Compression::half}, values, none);
    EXPECT_EQ(packed.size(), (size + 1) / 2 * 4);
    std::vector<float> back(size);
    decompress<float>({.kind = Compression::half}, packed, back);
    for (std::size_t n = 0; n < size; ++n)
      ASSERT_LE(std::abs(back[n] - values[n]), std::abs(values[n]) * 0x1p-8f) << values[n];
  }
}

TEST(Compression, SixteenBitsRoundToEven) {
  // 1 + 2^-8 is halfway between two neighbours; its upper neighbour is odd. 1 + 3 * 2^-8 goes up.
  const std::vector<float> values = {1 + 0x1p-8f, 1 + 0x3p-8f, std::numeric_limits<float>::infinity(), -0.0f,
                                     std::bit_cast<float>(0x7f800001u)};
  std::vector<float> none, back(values.size());
  decompress<float>({.kind = Compression::half}, compressed<float>({.kind = Compression::half}, values, none), back);
  EXPECT_EQ(back[0], 1.0f);
  EXPECT_EQ(back[1], 1 + 0x4p-8f);
  EXPECT_EQ(back[2], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(back[3]));
  EXPECT_TRUE(std::isnan(back[4]));
}

TEST(Compression, TheLargestOfEachChunkAreSentAndTheRestWaits) {
  const CompressionOptions o{.kind = Compression::top_k, .keep = 3.0 / 256};
  for (std::size_t size : kSizes) {
    const auto gradient = random_values<double>(size);
    auto residual = random_values<double>(size, 1);
    std::vector<double> total(size), sent(size);
    for (std::size_t n = 0; n < size; ++n) total[n] = gradient[n] + residual[n];
    decompress<double>(o, compressed<double>(o, gradient, residual), sent);
    for (std::size_t first = 0; first < size; first += kCompressionChunk) {
      std::size_t count = 0;
      double smallest = std::numeric_limits<double>::infinity(), waiting = 0.0;
      for (std::size_t n = first; n < std::min(size, first + kCompressionChunk); ++n) {
        EXPECT_EQ(sent[n] + residual[n], total[n]);
        EXPECT_TRUE(sent[n] == 0 || residual[n] == 0);
        count += sent[n] != 0;
        if (sent[n] != 0) smallest = std::min(smallest, std::abs(sent[n]));
        waiting = std::max(waiting, std::abs(residual[n]));
      }
      EXPECT_EQ(count, std::min<std::size_t>(3, size - first));
      EXPECT_GE(smallest, waiting);
    }
  }
}

TEST(Compression, NothingIsLostOverManySteps) {
  const CompressionOptions o{.kind = Compression::top_k, .keep = 0.02};
  constexpr std::size_t kCount = 300, kSteps = 200;
  std::vector<double> residual(kCount, 0.0), all(kCount, 0.0), arrived(kCount, 0.0), sent(kCount);
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const auto gradient = random_values<double>(kCount, 10 + step);
    decompress<double>(o, compressed<double>(o, gradient, residual), sent);
    for (std::size_t n = 0; n < kCount; ++n) all[n] += gradient[n], arrived[n] += sent[n];
  }
  for (std::size_t n = 0; n < kCount; ++n) EXPECT_NEAR(arrived[n] + residual[n], all[n], 1e-6);
}

TEST(Compression, KeepIsAPartOfAChunk) {
  EXPECT_EQ(kept_of_chunk(1e-9), 1u);
  EXPECT_EQ(kept_of_chunk(0.05), 13u);
  EXPECT_EQ(kept_of_chunk(1.0), 256u);
  EXPECT_EQ(compressed_bytes<float>({.kind = Compression::top_k, .keep = 0.05}, 1000), 4u * 13 * 4 + 4 * 16);
}

using CompressionOnDevice = test::DeviceTest;

template <class T>
void expect_parity(vulkan::Device& device, const CompressionOptions& o, std::size_t size) {
  const auto gradient = random_values<T>(size);
  auto residual = random_values<T>(size, 1);
  const auto buffer = [&](std::span<const std::byte> bytes) {
    auto made = device.make_buffer(bytes.size(), vulkan::BufferUse::device);
    device.write(made, 0, bytes);
    return made;
  };
  const auto on_gradient = buffer(std::as_bytes(std::span(gradient)));
  const auto on_residual = buffer(std::as_bytes(std::span(residual)));
  std::vector<std::byte> packed(compressed_bytes<T>(o, size), std::byte{0xff});
  const auto on_packed = buffer(packed);
  DeviceCompressionPass pass;
  pass.options = o;
  pass.count = size;
  pass.gradient = {&on_gradient, 0, on_gradient.bytes()};
  pass.residual = {&on_residual, 0, on_residual.bytes()};
  pass.packed = {&on_packed, 0, on_packed.bytes()};
  vulkan::Commands commands(device);
  record_compress<T>(device, commands, pass);
  commands.finish();
  commands.submit();
  commands.wait();
  std::vector<T> left(size);
  device.read(on_packed, 0, packed);
  device.read(on_residual, 0, std::as_writable_bytes(std::span(left)));
  EXPECT_EQ(packed, compressed<T>(o, gradient, residual));
  if (o.kind == Compression::top_k) {
    EXPECT_EQ(std::memcmp(left.data(), residual.data(), size * sizeof(T)), 0);
  }
}

TEST_F(CompressionOnDevice, HasTheBitsOfTheDefinition) {
  for (std::size_t size : kSizes) {
    SCOPED_TRACE(size);
    expect_parity<float>(device(), {.kind = Compression::half}, size);
    for (double keep : {0.001, 0.05, 0.5, 1.0}) expect_parity<float>(device(), {Compression::top_k, keep}, size);
  }
  if (!device().info().float64) return;
  for (std::size_t size : kSizes) {
    expect_parity<double>(device(), {.kind = Compression::half}, size);
    expect_parity<double>(device(), {Compression::top_k, 0.1}, size);
  }
}

}  // namespace
}  // namespace gradloom::kernels::compress
