#include "gradloom/app/circuit/strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gradloom/base/error.h"

namespace gradloom::app {
namespace {

// Steps between two exchanges: a strip computes 64 rows in vain, and sends messages every 32 steps.
constexpr std::size_t kHalo = 32;

std::size_t first_row(std::size_t height, unsigned rank, unsigned ranks) { return height * rank / ranks; }

circuit::RunOptions in_strip(circuit::RunOptions options, const Strip& strip) {
  options.strip = strip.rows_of();
  return options;
}

// Bytes of `rows` rows of all channels.
std::size_t bytes_of(const circuit::Grid& grid, std::size_t rows) {
  return grid.channels() * rows * grid.words_per_row() * sizeof(std::uint64_t);
}

std::byte* pack(const circuit::Grid& grid, std::size_t first, std::size_t rows, std::byte* to) {
  const std::size_t row = grid.words_per_row() * sizeof(std::uint64_t);
  for (std::uint32_t c = 0; c < grid.channels(); ++c)
    for (std::size_t y = first; y < first + rows; ++y, to += row) std::memcpy(to, grid.row(c, y), row);
  return to;
}

const std::byte* unpack(const std::byte* from, circuit::Grid& grid, std::size_t first, std::size_t rows) {
  const std::size_t row = grid.words_per_row() * sizeof(std::uint64_t);
  for (std::uint32_t c = 0; c < grid.channels(); ++c)
    for (std::size_t y = first; y < first + rows; ++y, from += row) std::memcpy(grid.row(c, y), from, row);
  return from;
}

}  // namespace

Strip strip_of(const Comm* comm, std::size_t height, circuit::Boundary boundary) {
  if (!comm) return {.height = height, .count = height};
  const unsigned rank = comm->rank(), ranks = comm->size();
  if (height < ranks) throw_invalid(fmt::format("{} rows are too few for {} ranks; start fewer ranks", height, ranks));
  Strip s{.height = height, .first = first_row(height, rank, ranks)};
  s.count = first_row(height, rank + 1, ranks) - s.first;
  const std::size_t halo = std::min(kHalo, height / ranks);  // the rows of a neighbour are enough
  const bool round = boundary == circuit::Boundary::periodic;
  s.above = round || rank > 0 ? halo : 0;
  s.below = round || rank + 1 < ranks ? halo : 0;
  return s;
}

circuit::Grid cut_strip(const circuit::Grid& whole, const Strip& strip) {
  circuit::Grid grid(whole.channels(), strip.rows(), whole.width());
  for (std::uint32_t c = 0; c < whole.channels(); ++c)
    for (std::size_t y = 0; y < strip.rows(); ++y)
      std::copy_n(whole.row(c, strip.rows_of().row(y)), whole.words_per_row(), grid.row(c, y));
  return grid;
}

StripRunner::StripRunner(const Exec& ex, Comm* comm, const circuit::CellRule& rule, circuit::Grid start,
                         const Strip& strip, circuit::RunOptions options)
    : comm_(comm), strip_(strip), runner_(ex, rule, std::move(start), in_strip(options, strip)) {}

void StripRunner::step(std::uint64_t steps) {
  if (!comm_) return runner_.step(steps);
  const std::uint64_t at_once = std::max(strip_.above, strip_.below);
  while (steps > 0) {
    const std::uint64_t now = std::min(steps, at_once);
    runner_.step(now);
    steps -= now;
    exchange_halos();
  }
}

// To the rank above go the first own rows, to the rank below the last ones; with two ranks both are the same.
void StripRunner::exchange_halos() {
  const unsigned ranks = comm_->size(), up = (comm_->rank() + ranks - 1) % ranks, down = (comm_->rank() + 1) % ranks;
  circuit::Grid grid = runner_.grid().copy();
  const std::size_t halo = std::max(strip_.above, strip_.below), bytes = bytes_of(grid, halo);
  std::vector<std::size_t> sizes(ranks, 0);
  if (strip_.above > 0) sizes[up] += bytes;
  if (strip_.below > 0) sizes[down] += bytes;
  std::vector<std::byte*> to(ranks, nullptr);
  for (const unsigned other : {up, down})
    if (sizes[other] > 0 && !to[other]) to[other] = comm_->outgoing(other, sizes[other]).data();
  if (strip_.above > 0) to[up] = pack(grid, strip_.above, halo, to[up]);
  if (strip_.below > 0) to[down] = pack(grid, strip_.above + strip_.count - halo, halo, to[down]);
  comm_->exchange(sizes);
  std::vector<const std::byte*> from(ranks, nullptr);
  for (const unsigned other : {up, down}) from[other] = comm_->incoming(other).data();
  if (strip_.below > 0) from[down] = unpack(from[down], grid, strip_.above + strip_.count, halo);
  if (strip_.above > 0) from[up] = unpack(from[up], grid, 0, halo);
  runner_.set_grid(std::move(grid));
}

std::vector<std::uint64_t> StripRunner::summed(std::vector<std::uint64_t> own) const {
  if (!comm_) return own;
  std::vector<std::uint64_t> all(own.size() * comm_->size());
  comm_->allgather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  std::fill(own.begin(), own.end(), 0);
  for (std::size_t i = 0; i < all.size(); ++i) own[i % own.size()] += all[i];
  return own;
}

std::vector<std::uint64_t> StripRunner::populations() const {
  const circuit::Grid& grid = runner_.grid();
  std::vector<std::uint64_t> counts(grid.channels(), 0);
  for (std::uint32_t c = 0; c < grid.channels(); ++c)
    for (std::size_t y = strip_.above; y < strip_.above + strip_.count; ++y)
      for (std::size_t w = 0; w < grid.words_per_row(); ++w)
        counts[c] += static_cast<std::uint64_t>(std::popcount(grid.row(c, y)[w]));
  return summed(std::move(counts));
}

double StripRunner::tiles_computed_share() const {
  const auto all = summed({runner_.tiles_computed(), runner_.steps() * runner_.tiles()});
  return all[1] == 0 ? 0.0 : static_cast<double>(all[0]) / static_cast<double>(all[1]);
}

circuit::Grid StripRunner::whole() const {
  const circuit::Grid& grid = runner_.grid();
  if (!comm_) return grid.copy();
  std::string own(bytes_of(grid, strip_.count), '\0');
  pack(grid, strip_.above, strip_.count, reinterpret_cast<std::byte*>(own.data()));
  const auto all = comm_->gather(own);
  circuit::Grid result(grid.channels(), comm_->rank() == 0 ? strip_.height : strip_.count, grid.width());
  if (all.empty()) unpack(reinterpret_cast<const std::byte*>(own.data()), result, 0, strip_.count);
  for (unsigned rank = 0; rank < all.size(); ++rank) {
    const std::size_t first = first_row(strip_.height, rank, comm_->size());
    unpack(reinterpret_cast<const std::byte*>(all[rank].data()), result, first,
           first_row(strip_.height, rank + 1, comm_->size()) - first);
  }
  return result;
}

}  // namespace gradloom::app
