#include "gradloom/kernels/compress/compress.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gradloom/base/float_mode.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/dispatch.h"

namespace gradloom::kernels::compress {
namespace {

std::uint32_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;  // rounding could make an infinity of a NaN
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

template <class T>
auto magnitude(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(std::abs(value));
}

void put_word(std::span<std::byte> to, std::size_t word, std::uint32_t value) {
  std::memcpy(to.data() + 4 * word, &value, 4);
}

std::uint32_t get_word(std::span<const std::byte> from, std::size_t word) {
  std::uint32_t value;
  std::memcpy(&value, from.data() + 4 * word, 4);
  return value;
}

// Where the places of top_k begin, and how many words a chunk has there.
template <class T>
struct TopKLayout {
  std::size_t kept, chunks, words, places_at;
  TopKLayout(double keep, std::size_t count)
      : kept(kept_of_chunk(keep)),
        chunks(divide_up(count, kCompressionChunk)),
        words(divide_up(kept, 4)),
        places_at(chunks * kept * sizeof(T)) {}
};

template <class T>
void compress_top_k(double keep, std::span<const T> gradient, std::span<T> residual, std::span<std::byte> to) {
  const TopKLayout<T> layout(keep, gradient.size());
  std::fill(to.begin(), to.end(), std::byte{0});
  std::array<std::uint32_t, kCompressionChunk> order{};
  for (std::size_t chunk = 0; chunk < layout.chunks; ++chunk) {
    const std::size_t first = chunk * kCompressionChunk;
    const std::size_t count = std::min(kCompressionChunk, gradient.size() - first);
    for (std::size_t n = 0; n < count; ++n) {
      residual[first + n] = gradient[first + n] + residual[first + n];
      order[n] = static_cast<std::uint32_t>(n);
    }
    std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](auto a, auto b) { return magnitude(residual[first + a]) > magnitude(residual[first + b]); });
    for (std::size_t rank = 0; rank < std::min(layout.kept, count); ++rank) {
      T& value = residual[first + order[rank]];
      std::memcpy(to.data() + (chunk * layout.kept + rank) * sizeof(T), &value, sizeof(T));
      value = T(0);
      to[layout.places_at + 4 * chunk * layout.words + rank] = static_cast<std::byte>(order[rank]);
    }
  }
}

}  // namespace

std::size_t kept_of_chunk(double keep) {
  const auto kept = static_cast<std::size_t>(std::lround(keep * static_cast<double>(kCompressionChunk)));
  return std::clamp<std::size_t>(kept, 1, kCompressionChunk);
}

template <class T>
std::size_t compressed_bytes(const CompressionOptions& options, std::size_t count) {
  if (options.kind == Compression::none) return count * sizeof(T);
  if (options.kind == Compression::half) return divide_up(count, 2) * 4;
  const TopKLayout<T> layout(options.keep, count);
  return layout.places_at + 4 * layout.chunks * layout.words;
}

template <class T>
void compress(const CompressionOptions& options, std::span<const T> gradient, std::span<T> residual,
              std::span<std::byte> to) {
  const FlushSubnormals flush;
  if (options.kind == Compression::none) {
    std::memcpy(to.data(), gradient.data(), gradient.size_bytes());
  } else if (options.kind == Compression::top_k) {
    compress_top_k(options.keep, gradient, residual, to);
  } else {
    for (std::size_t word = 0; 2 * word < gradient.size(); ++word) {
      const auto half = [&](std::size_t n) {
        return n < gradient.size() ? half_bits(static_cast<float>(gradient[n])) : 0u;
      };
      put_word(to, word, half(2 * word) | half(2 * word + 1) << 16);
    }
  }
}

template <class T>
void decompress(const CompressionOptions& options, std::span<const std::byte> from, std::span<T> gradient) {
  if (options.kind == Compression::none) {
    std::memcpy(gradient.data(), from.data(), gradient.size_bytes());
    return;
  }
  if (options.kind == Compression::half) {
    for (std::size_t n = 0; n < gradient.size(); ++n) {
      const std::uint32_t word = get_word(from, n / 2);
      gradient[n] = static_cast<T>(std::bit_cast<float>(n % 2 == 0 ? word << 16 : word & 0xffff0000u));
    }
    return;
  }
  const TopKLayout<T> layout(options.keep, gradient.size());
  std::fill(gradient.begin(), gradient.end(), T(0));
  for (std::size_t chunk = 0; chunk < layout.chunks; ++chunk) {
    const std::size_t first = chunk * kCompressionChunk;
    const std::size_t sent = std::min(layout.kept, gradient.size() - first);
    for (std::size_t rank = 0; rank < sent; ++rank) {
      const auto place = static_cast<std::size_t>(from[layout.places_at + 4 * chunk * layout.words + rank]);
      if (first + place < gradient.size())
        std::memcpy(&gradient[first + place], from.data() + (chunk * layout.kept + rank) * sizeof(T), sizeof(T));
    }
  }
}

GRADLOOM_INSTANTIATE(compressed_bytes);
GRADLOOM_INSTANTIATE(compress);
GRADLOOM_INSTANTIATE(decompress);

}  // namespace gradloom::kernels::compress
