#include "gradloom/base/random.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace gradloom {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = std::uint64_t{kMultiplier0} * c[0];
    const std::uint64_t b = std::uint64_t{kMultiplier1} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

RandomStream::RandomStream(std::uint64_t seed, RandomUse use, std::uint32_t epoch, std::uint32_t sample)
    : counter_{0, sample, epoch, static_cast<std::uint32_t>(use)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

std::uint64_t RandomStream::bits(std::uint32_t position) const {
  auto counter = counter_;
  counter[0] = position;
  const auto words = philox4x32(counter, key_);
  return std::uint64_t{words[0]} << 32 | words[1];
}

double RandomStream::uniform(std::uint32_t position) const { return to_unit(bits(position)); }

double RandomStream::normal(std::uint32_t position) const {
  auto counter = counter_;
  counter[0] = position;
  const auto w = philox4x32(counter, key_);
  const double u = to_unit(std::uint64_t{w[0]} << 32 | w[1]) + 0x1.0p-54;  // never 0
  const double v = to_unit(std::uint64_t{w[2]} << 32 | w[3]);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint32_t RandomStream::below(std::uint32_t position, std::uint32_t n) const {
  return static_cast<std::uint32_t>((bits(position) >> 32) * n >> 32);
}

void random_permutation(const RandomStream& stream, std::span<std::uint32_t> order) {
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto j = stream.below(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i));
    std::swap(order[i - 1], order[j]);
  }
}

}  // namespace gradloom
