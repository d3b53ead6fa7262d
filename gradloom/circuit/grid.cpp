#include "gradloom/circuit/grid.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

#include "gradloom/base/error.h"

namespace gradloom::circuit {
namespace {

constexpr std::uint64_t kMaxCells = std::uint64_t{1} << 32;
// Between channels: without it the same cell of all channels of a grid of 2^k cells falls into one set of the cache.
constexpr std::size_t kSkewWords = 72;

// Linux grants memory that it does not have and ends the program later, so the size is compared with what there is.
std::uint64_t physical_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
                               : ~std::uint64_t{0};
}

}  // namespace

Grid::Grid(std::uint32_t channels, std::size_t height, std::size_t width)
    : channels_(channels), height_(height), width_(width), words_((width + 63) / 64) {
  if (channels == 0 || height == 0 || width == 0)
    throw_invalid(fmt::format("a grid of {} x {} cells and {} channels is empty", width, height, channels));
  if (height > kMaxCells || width > kMaxCells || height > kMaxCells / width)
    throw_invalid(fmt::format("a grid of {} x {} cells is too large; it may have at most 2^32 cells", width, height));
  // height * words_ < 2^38, so channels of less than 2^26 do not overflow.
  const Exception too_large(
      ErrorCode::out_of_memory,
      fmt::format("a grid of {} x {} cells and {} channels does not fit into memory", width, height, channels));
  if (channels >= 1u << 26) throw too_large;
  plane_ = height * words_ + (channels > 1 ? kSkewWords : 0);
  const std::uint64_t words = std::uint64_t{channels} * plane_;
  if (words > physical_bytes() / 8) throw too_large;
  try {
    bits_ = Buffer<std::uint64_t>(words);
  } catch (const std::bad_alloc&) {
    throw too_large;
  }
}

Grid Grid::copy() const {
  if (channels_ == 0) return {};
  Grid g(channels_, height_, width_);
  std::copy_n(bits_.data(), bits_.size(), g.bits_.data());
  return g;
}

void Grid::set(std::uint32_t c, std::size_t y, std::size_t x, bool value) {
  const std::uint64_t bit = std::uint64_t{1} << x % 64;
  std::uint64_t& word = row(c, y)[x / 64];
  word = value ? word | bit : word & ~bit;
}

std::uint64_t Grid::population(std::uint32_t channel) const {
  std::uint64_t n = 0;
  const std::uint64_t* words = row(channel, 0);
  for (std::size_t w = 0; w < height_ * words_; ++w) n += static_cast<std::uint64_t>(std::popcount(words[w]));
  return n;
}

bool operator==(const Grid& a, const Grid& b) {
  return a.channels_ == b.channels_ && a.height_ == b.height_ && a.width_ == b.width_ &&
         std::equal(a.bits_.data(), a.bits_.data() + a.bits_.size(), b.bits_.data());
}

RandomStream stream_of_cells(std::uint64_t seed, RandomUse use, std::uint64_t piece, std::uint32_t number) {
  return RandomStream(seed, use, static_cast<std::uint32_t>(piece), number);
}

void fill_random(Grid& grid, double density, std::uint64_t seed, RowsOf strip) {
  if (!(density >= 0.0 && density <= 1.0))
    throw_invalid(fmt::format("a density of {} is not between 0 and 1", density));
  for (std::uint32_t c = 0; c < grid.channels(); ++c)
    for (std::size_t y = 0; y < grid.height(); ++y)
      for (std::size_t x = 0; x < grid.width(); ++x) {
        const std::uint64_t cell = std::uint64_t{strip.row(y)} * grid.width() + x;
        const RandomStream random = stream_of_cells(seed, RandomUse::data, cell / kCellsOfStream, c);
        grid.set(c, y, x, random.uniform(static_cast<std::uint32_t>(cell % kCellsOfStream)) < density);
      }
}

}  // namespace gradloom::circuit
