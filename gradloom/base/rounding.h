// Whole numbers rounded up, and the padding of rows.
#pragma once

#include <cstddef>

namespace gradloom {

constexpr std::size_t divide_up(std::size_t n, std::size_t by) { return (n + by - 1) / by; }
constexpr std::size_t round_up(std::size_t n, std::size_t to) { return divide_up(n, to) * to; }

// Elements of a row in memory for `width` elements, where rows are padded: whole vectors on every instruction set.
inline constexpr std::size_t kRowPadding = 16;
constexpr std::size_t padded(std::size_t width) { return round_up(width, kRowPadding); }

}  // namespace gradloom
