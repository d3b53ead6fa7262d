// Gradients made smaller for a transfer.
//
// half: a value is rounded to a float and that to its upper 16 bits, to the nearest, ties to even: the range of a float
// with 8 significant bits. NaN stays NaN. Two values share a word, the first in its lower half.
//
// top_k: values are cut into chunks of 256; the last may be shorter. With v = gradient + residual, each chunk sends the
// k values of largest magnitude (as bits; ties: the lowest index), largest first, and the others wait: residual = v
// where nothing was sent, 0 elsewhere. First all values, k per chunk, then all places: ceil(k / 4) words per chunk,
// four places of 8 bits each, the first in the lowest bits. A chunk of fewer than k values ends with zeros at place 0.
#pragma once

#include <cstddef>
#include <span>

#include "gradloom/base/choice.h"

namespace gradloom::kernels::compress {

enum class Compression { none, half, top_k };
inline constexpr Choice<Compression> kCompressions[] = {
    {Compression::none, "none", "not compressed"},
    {Compression::half, "16-bit", "16-bit floating-point numbers"},
    {Compression::top_k, "top-k", "the largest elements, with error feedback"},
};

inline constexpr std::size_t kCompressionChunk = 256;

struct CompressionOptions {
  Compression kind = Compression::none;
  double keep = 0.05;  // top_k: the part of a chunk that is sent, in (0, 1]
};

// Values that a chunk sends: keep of 256, rounded, at least one.
std::size_t kept_of_chunk(double keep);

// Bytes of `count` values; a multiple of 4.
template <class T>
std::size_t compressed_bytes(const CompressionOptions& options, std::size_t count);

// The definition, in plain loops. `residual` is as long as the gradient, and empty unless kind is top_k; `to` has
// compressed_bytes(). none copies.
template <class T>
void compress(const CompressionOptions& options, std::span<const T> gradient, std::span<T> residual,
              std::span<std::byte> to);

// Overwrites the gradient with what arrived; what was not sent is 0.
template <class T>
void decompress(const CompressionOptions& options, std::span<const std::byte> from, std::span<T> gradient);

}  // namespace gradloom::kernels::compress
