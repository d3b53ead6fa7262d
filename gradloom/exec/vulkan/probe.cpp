// What a device does and no property of it tells.
#include <cmath>
#include <cstring>
#include <limits>

#include "gradloom/exec/vulkan/internal.h"

namespace gradloom::vulkan {
namespace {

#include <gradloom_exec_shaders/words.inc>

constexpr std::size_t kCases = 64;  // the group of fma.comp

// A product of which rounding loses a digit that decides: a fused operation keeps it, and neither a rounded product nor
// a sum with twice the digits, rounded twice, does. The product of `odd` and `other` is one more than a power of two
// that has all digits of T; `small` breaks the tie. Then cases without design, of which half differ.
template <class T>
std::vector<T> cases(T odd, T other, T small) {
  std::vector<T> all = {odd, other, small, -odd, other, -small, odd, -other, -small};
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return T(1) + static_cast<T>(state >> 8) / static_cast<T>(1 << 24) + std::numeric_limits<T>::epsilon();
  };
  while (all.size() < 3 * kCases) {
    const T a = next(), b = next();
    all.insert(all.end(), {a, b, -a * b + next() / 1024});
  }
  return all;
}

template <class T>
bool rounds_once(Device& device, std::span<const std::uint32_t> spirv, const std::vector<T>& factors) {
  const std::size_t up_bytes = factors.size() * sizeof(T), down_bytes = kCases * sizeof(T);
  const DeviceBuffer up = device.make_buffer(up_bytes, BufferUse::upload);
  const DeviceBuffer down = device.make_buffer(down_bytes, BufferUse::download);
  const DeviceBuffer from = device.make_buffer(up_bytes, BufferUse::device);
  const DeviceBuffer to = device.make_buffer(down_bytes, BufferUse::device);
  std::memcpy(up.host(), factors.data(), up_bytes);
  const Binding bindings[] = {{&from, 0, up_bytes}, {&to, 0, down_bytes}};
  Commands commands(device);
  commands.copy(up, 0, from, 0, up_bytes);
  commands.barrier();
  commands.dispatch({&device.kernel({"fma", spirv}, {}), bindings, {}, 1, "fma"});
  commands.barrier();
  commands.copy(to, 0, down, 0, down_bytes);
  commands.finish();
  commands.submit();
  commands.wait();
  for (std::size_t n = 0; n < kCases; ++n) {
    const T expected = std::fma(factors[3 * n], factors[3 * n + 1], factors[3 * n + 2]);
    if (std::memcmp(down.host() + n * sizeof(T), &expected, sizeof(T)) != 0) return false;
  }
  return true;
}

}  // namespace

bool fma_rounds_once(Device& device) {
  // 2^24 + 1, 2^53 + 1
  return rounds_once<float>(device, vulkan_fma_f32, cases<float>(24929, 673, 0x1p-40f)) &&
         (!device.info().float64 ||
          rounds_once<double>(device, vulkan_fma_f64, cases<double>(321, 28059810762433, 0x1p-80)));
}

}  // namespace gradloom::vulkan
