#include "gradloom/circuit/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"
#include "gradloom/circuit/validate.h"
#include "gradloom/kernels/random/random.h"

namespace gradloom::circuit {
namespace {

constexpr std::size_t kTileHeight = 64;
constexpr std::size_t kHalo = 4;  // words around a centre row; one is read, four keep the alignment
// The rows of a strip that instructions write should stay in the first-level cache, all of them in the second.
constexpr std::size_t kTemporaryBytes = 24 * 1024, kCacheBytes = 100 * 1024;
constexpr std::size_t kMinStrip = 16, kMaxStrip = 128;

void check(const CellRule& rule, const Grid& grid, const RunOptions& options) {
  validate(rule).or_throw();
  if (grid.channels() != rule.channels)
    throw_invalid(fmt::format("the grid has {} channels, the rule {}", grid.channels(), rule.channels));
  if (!(options.fire >= 0.0 && options.fire <= 1.0))
    throw_invalid(fmt::format("a firing probability of {} is not between 0 and 1", options.fire));
}

RandomStream fire_stream(const RunOptions& options, std::uint64_t step, std::uint64_t cell) {
  return stream_of_cells(options.seed, RandomUse::fire, cell / kCellsOfStream, static_cast<std::uint32_t>(step));
}

bool fires(const RunOptions& options, std::uint64_t step, std::uint64_t cell) {
  return options.fire >= 1.0 ||
         fire_stream(options, step, cell).uniform(static_cast<std::uint32_t>(cell % kCellsOfStream)) < options.fire;
}

// fires() of cells one after another.
void draw_fires(Variant variant, const RunOptions& options, std::uint64_t step, std::uint64_t cell,
                std::span<std::uint8_t> yes) {
  while (!yes.empty()) {
    const std::uint64_t at = cell % kCellsOfStream;
    const std::size_t n = std::min<std::uint64_t>(yes.size(), kCellsOfStream - at);
    kernels::random::draws(variant, fire_stream(options, step, cell), static_cast<std::uint32_t>(at), options.fire,
                           yes.first(n));
    cell += n, yes = yes.subspan(n);
  }
}

}  // namespace

Grid step_reference(const CellRule& rule, const Grid& grid, const RunOptions& options, std::uint32_t step) {
  check(rule, grid, options);
  const auto height = static_cast<std::ptrdiff_t>(grid.height()), width = static_cast<std::ptrdiff_t>(grid.width());
  const auto cell = [&](std::uint32_t c, std::ptrdiff_t y, std::ptrdiff_t x) {
    if (rule.boundary == Boundary::zero && (y < 0 || y >= height || x < 0 || x >= width)) return false;
    return grid.get(c, static_cast<std::size_t>((y + height) % height), static_cast<std::size_t>((x + width) % width));
  };
  Grid next(grid.channels(), grid.height(), grid.width());
  std::vector<unsigned char> signal(rule.circuit.signals());
  for (std::ptrdiff_t y = 0; y < height; ++y) {
    const std::uint64_t before = std::uint64_t{options.strip.row(static_cast<std::size_t>(y))} * grid.width();
    for (std::ptrdiff_t x = 0; x < width; ++x) {
      const bool fire = fires(options, step, before + static_cast<std::size_t>(x));
      for (std::uint32_t i = 0; i < rule.circuit.inputs; ++i) signal[i] = cell(i / 9, y + i % 9 / 3 - 1, x + i % 3 - 1);
      for (std::size_t g = 0; g < rule.circuit.gates.size(); ++g) {
        const Gate& gate = rule.circuit.gates[g];
        signal[rule.circuit.inputs + g] = apply(gate.op, signal[gate.a], signal[gate.b]);
      }
      for (std::uint32_t c = 0; c < rule.channels; ++c)
        next.set(c, static_cast<std::size_t>(y), static_cast<std::size_t>(x),
                 fire ? signal[rule.circuit.outputs[c]] : cell(c, y, x));
    }
  }
  return next;
}

Runner::Runner(const Exec& exec, const CellRule& rule, Grid start, RunOptions options)
    : exec_(exec), channels_(rule.channels), boundary_(rule.boundary), options_(options) {
  check(rule, start, options);
  program_ = compile(rule.circuit);
  next_ = Grid(start.channels(), start.height(), start.width());
  now_ = std::move(start);
  lay_out();
  for (unsigned w = 0; w < exec.threads(); ++w) memory_.emplace_back(memory_words_);
  changed_.assign(tiles(), 1);
  changes_.assign(tiles(), 1);
}

void Runner::set_grid(Grid grid) {
  if (grid.channels() != now_.channels() || grid.height() != now_.height() || grid.width() != now_.width())
    throw_invalid("the grids differ in size");
  now_ = std::move(grid);
  changed_.assign(tiles(), 1);
}

void Runner::lay_out() {
  uses_channel_.assign(channels_, 0);
  uses_sides_.assign(channels_, 0);
  std::size_t rows = program_.temporaries;
  for (std::uint32_t i = 0; i < program_.inputs; ++i) {
    if (!program_.reads[i]) continue;
    uses_channel_[i / 9] = 1;
    if (i % 3 != 1) uses_sides_[i / 9] = 1;
  }
  for (std::uint32_t c = 0; c < channels_; ++c) rows += uses_channel_[c] ? (uses_sides_[c] ? 9 : 3) : 0;
  const auto fitting = [](std::size_t bytes, std::size_t n) { return bytes / 8 / std::max<std::size_t>(n, 1); };
  strip_ = std::min(fitting(kTemporaryBytes, program_.temporaries), fitting(kCacheBytes, rows));
  strip_ = std::clamp(strip_ / kMinStrip * kMinStrip, kMinStrip, kMaxStrip);
  strip_ = std::min(strip_, round_up(now_.words_per_row(), 4));
  tile_rows_ = divide_up(now_.height(), kTileHeight);
  tile_columns_ = divide_up(now_.words_per_row(), strip_);

  std::size_t end = kHalo;
  const auto take = [&](std::size_t words) {
    const std::size_t at = end;
    end += words;
    return static_cast<std::uint32_t>(at);
  };
  for (unsigned ring = 0; ring < 3; ++ring)
    for (std::uint32_t c = 0; c < channels_; ++c) {
      centre_at_[ring].push_back(uses_channel_[c] ? take(strip_ + kHalo) : 0);
      west_at_[ring].push_back(uses_sides_[c] ? take(strip_) : 0);
      east_at_[ring].push_back(uses_sides_[c] ? take(strip_ + kHalo) : 0);
    }
  std::vector<std::uint32_t> temporaries;
  for (std::uint32_t t = 0; t < program_.temporaries; ++t) temporaries.push_back(take(strip_));
  fire_at_ = take(strip_);
  memory_words_ = end;
  if (memory_words_ > UINT32_MAX) throw_invalid("the circuit has too many signals to run");

  // Row y - 1 of the patch of the tile's k-th row is in ring k % 3.
  for (unsigned phase = 0; phase < 3; ++phase) {
    std::vector<std::uint32_t> at;
    for (std::uint32_t i = 0; i < program_.inputs; ++i) {
      const unsigned ring = (phase + i % 9 / 3) % 3;
      const auto& column = i % 3 == 0 ? west_at_ : i % 3 == 1 ? centre_at_ : east_at_;
      at.push_back(column[ring][i / 9]);
    }
    at.insert(at.end(), temporaries.begin(), temporaries.end());
    programs_[phase] = relocate(program_, at);
    for (const std::uint32_t row : program_.outputs) output_at_[phase].push_back(at[row]);
  }
}

Runner::Tile Runner::tile(std::size_t index) const {
  const std::size_t y = index / tile_columns_ * kTileHeight, w = index % tile_columns_ * strip_;
  return {y, std::min(y + kTileHeight, now_.height()), w, std::min(w + strip_, now_.words_per_row())};
}

// Whether the tile or one beside it changed in the step before. At a zero boundary, wrapping only wakes a few tiles in
// vain.
bool Runner::awake(std::size_t index) const {
  if (options_.tiles == RunOptions::Tiles::all) return true;
  const std::size_t row = index / tile_columns_, column = index % tile_columns_;
  for (const std::size_t r : {row + tile_rows_ - 1, row, row + 1})
    for (const std::size_t c : {column + tile_columns_ - 1, column, column + 1})
      if (changed_[r % tile_rows_ * tile_columns_ + c % tile_columns_]) return true;
  return false;
}

void Runner::load_row(std::uint64_t* memory, const Tile& t, std::ptrdiff_t y, unsigned ring) const {
  const auto height = static_cast<std::ptrdiff_t>(now_.height());
  const bool outside = y < 0 || y >= height;
  const std::size_t n = t.w_end - t.w, padded = round_up(n, 4), words = now_.words_per_row(), tail = now_.width() % 64;
  for (std::uint32_t c = 0; c < channels_; ++c) {
    if (!uses_channel_[c]) continue;
    std::uint64_t* centre = memory + centre_at_[ring][c];
    if (outside && boundary_ == Boundary::zero) {
      std::fill_n(centre - 1, padded + 2, std::uint64_t{0});
    } else {
      const std::uint64_t* row = now_.row(c, static_cast<std::size_t>((y + height) % height));
      std::memcpy(centre, row + t.w, n * sizeof(std::uint64_t));
      const bool wraps = boundary_ == Boundary::periodic;
      const std::uint64_t last = row[words - 1] >> (now_.width() - 1) % 64 & 1, first = row[0] & 1;
      centre[-1] = t.w > 0 ? row[t.w - 1] : wraps ? last << 63 : 0;
      centre[n] = t.w_end < words ? row[t.w_end] : wraps && tail == 0 ? first : 0;
      // The cell after the last one is in the same word unless the word is full.
      if (t.w_end == words && wraps && tail != 0) centre[n - 1] |= first << tail;
    }
    if (uses_sides_[c])
      kernels::bits::shift_bits(exec_.variant(), centre, memory + west_at_[ring][c], memory + east_at_[ring][c],
                                padded);
  }
}

bool Runner::store_row(std::uint64_t* memory, const Tile& t, std::size_t y, unsigned phase) {
  const std::size_t n = t.w_end - t.w;
  const bool last = t.w_end == now_.words_per_row(), asynchronous = options_.fire < 1.0;
  std::uint64_t* fire = memory + fire_at_;
  if (asynchronous) {
    for (std::size_t w = 0; w < n; ++w) {
      fire[w] = 0;
      const std::size_t x = (t.w + w) * 64, end = std::min<std::size_t>(64, now_.width() - x);
      std::uint8_t yes[64];
      draw_fires(exec_.variant(), options_, steps_, std::uint64_t{options_.strip.row(y)} * now_.width() + x,
                 {yes, end});
      for (std::size_t k = 0; k < end; ++k) fire[w] |= std::uint64_t{yes[k]} << k;
    }
  }
  bool changed = false;
  for (std::uint32_t c = 0; c < channels_; ++c) {
    const std::uint64_t* fresh = memory + output_at_[phase][c];
    const std::uint64_t* old = now_.row(c, y) + t.w;
    std::uint64_t* to = next_.row(c, y) + t.w;
    if (asynchronous) {
      for (std::size_t w = 0; w < n; ++w) to[w] = (fresh[w] & fire[w]) | (old[w] & ~fire[w]);
      changed = true;
      continue;
    }
    const std::size_t whole = last ? n - 1 : n;
    if (kernels::bits::store_bits(exec_.variant(), fresh, old, to, whole)) changed = true;
    if (!last) continue;
    to[whole] = fresh[whole] & now_.last_word_mask();
    if (to[whole] != old[whole]) changed = true;
  }
  return changed;
}

bool Runner::compute(const Tile& t, std::uint64_t* memory) {
  const std::size_t padded = round_up(t.w_end - t.w, 4);
  const auto top = static_cast<std::ptrdiff_t>(t.y);
  load_row(memory, t, top - 1, 0);
  load_row(memory, t, top, 1);
  bool changed = false;
  for (std::size_t y = t.y; y < t.y_end; ++y) {
    const auto phase = static_cast<unsigned>((y - t.y) % 3);
    load_row(memory, t, static_cast<std::ptrdiff_t>(y) + 1, (phase + 2) % 3);
    kernels::bits::run_bits(exec_.variant(), programs_[phase], memory, padded);
    if (store_row(memory, t, y, phase)) changed = true;
  }
  return changed;
}

void Runner::step(std::uint64_t steps) {
  for (std::uint64_t s = 0; s < steps; ++s) {
    exec_.parallel_for(tiles(), [&](std::size_t index, unsigned worker) {
      // What a sleeping tile holds two steps later is still in the other grid.
      changes_[index] = awake(index) ? 2 : 0;
      if (changes_[index] != 0) changes_[index] = compute(tile(index), memory_[worker].data()) ? 3 : 2;
    });
    for (unsigned char& change : changes_) {
      tiles_computed_ += change >> 1;
      change &= 1;
    }
    std::swap(changed_, changes_);
    std::swap(now_, next_);
    ++steps_;
  }
}

}  // namespace gradloom::circuit
