#include "gradloom/data/grids.h"

#include <fmt/format.h>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/data/csv.h"
#include "gradloom/data/text_lines.h"

namespace gradloom {
namespace {

constexpr std::size_t kMostStates = 1 << 16;
// Cells between a dead block and the edge: one at the edge would look like another edge.
constexpr std::size_t kClearOfTheEdge = 3;

// Writes the target of the start x into `target`; both are 0 or 1.
template <class T>
void write_target(const GridTask& task, const T* x, T* target) {
  const std::size_t height = task.height, width = task.width;
  for (std::size_t r = 0; r < height; ++r)
    for (std::size_t c = 0; c < width; ++c) {
      T& t = target[r * width + c];
      if (task.kind == GridTaskKind::checkerboard) {
        t = static_cast<T>((r / task.square + c / task.square) % 2);
      } else if (task.kind == GridTaskKind::life) {
        std::size_t patch = 0, bit = 0;
        for (std::size_t dr : {height - 1, height, height + 1})
          for (std::size_t dc : {width - 1, width, width + 1})
            patch |= std::size_t{x[(r + dr) % height * width + (c + dc) % width] != T(0)} << bit++;
        t = static_cast<T>(task.rule[patch] ? 1 : 0);
      }
    }
  if (task.kind == GridTaskKind::picture)
    for (std::size_t i = 0; i < task.image.size(); ++i) target[i] = static_cast<T>(task.image[i]);
}

// How many states there are, or 0 when they are too many to count through.
std::size_t all_states(const GridTask& task) {
  const std::size_t cells = task.height * task.width * task.channels;
  return task.kind == GridTaskKind::life && cells <= 16 ? std::size_t{1} << cells : 0;
}

}  // namespace

Result<PatchTable> parse_patch_table(std::string text, std::string_view source) {
  auto table = parse_csv(std::move(text), {.comment = "#"}, source);
  if (!table) return table.error();
  const auto fail = [&](std::size_t row, const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: line {}: {}", source, table->lines[row], message)};
  };
  PatchTable rule, seen;
  constexpr std::size_t kPatch = 9;
  if (table->columns.size() != kPatch + 1)
    return fail(0, fmt::format("there are {} columns; a rule has ten: the 3 x 3 patch row by row, then the next state",
                               table->columns.size()));
  for (std::size_t r = 0; r < table->rows(); ++r) {
    std::size_t patch = 0;
    for (std::size_t c = 0; c <= kPatch; ++c) {
      const std::string_view cell = table->cell(r, c);
      if (cell != "0" && cell != "1")
        return fail(r, fmt::format("column {} is '{}'; states are 0 or 1", c + 1, TextLines::shown(cell)));
      if (c < kPatch) patch |= std::size_t{cell == "1"} << c;
    }
    if (seen[patch]) return fail(r, "this patch occurs twice");
    seen[patch] = true;
    rule[patch] = table->cell(r, kPatch) == "1";
  }
  if (!seen.all())
    return fail(table->rows() - 1, fmt::format("there are {} patches; a rule needs all 512", seen.count()));
  return rule;
}

std::size_t target_channels(const GridTask& task) {
  return task.kind == GridTaskKind::picture ? task.image.size() / (task.height * task.width) : 1;
}

std::vector<std::uint8_t> grid_target(const GridTask& task, std::span<const std::uint8_t> start) {
  std::vector<std::uint8_t> target(target_channels(task) * task.height * task.width);
  write_target(task, start.data(), target.data());
  return target;
}

template <class T>
GridDataset<T>::GridDataset(GridTask task, GridPart part, std::uint64_t seed, std::size_t size)
    : task_(std::move(task)), part_(part), seed_(seed), size_(size) {
  if (cells() == 0 || task_.channels == 0) throw_invalid("a grid needs at least one cell and one channel");
  if (size_ == 0) throw_invalid("a data set of grids needs at least one sample");
  if (task_.square == 0) throw_invalid("the squares of a checkerboard need at least one cell");
  if (task_.kind == GridTaskKind::checkerboard && task_.square > std::max(task_.height, task_.width))
    throw_invalid(fmt::format("squares of {} cells do not fit a grid of {} x {}; set data.square", task_.square,
                              task_.height, task_.width));
  // Positions of a random stream are 32 bits wide.
  if (features() > (std::size_t{1} << 31))
    throw_invalid(fmt::format("a grid of {} x {} cells with {} channels is too large to draw; the limit is 2^31 bits",
                              task_.height, task_.width, task_.channels));
  if (task_.kind == GridTaskKind::picture && (task_.image.empty() || task_.image.size() % cells() != 0))
    throw_invalid(fmt::format("the picture has {} bits, which does not fit {} x {} cells", task_.image.size(),
                              task_.height, task_.width));
  if (target_channels(task_) > task_.channels)
    throw_invalid(fmt::format("the target has {} channels, but a cell has only {} (model.channels)",
                              target_channels(task_), task_.channels));
  all_ = make_storage(size_);
  for (std::size_t row = 0; row < size_; ++row)
    make_sample(0, static_cast<std::uint32_t>(row), all_.x_.data() + row * features(),
                all_.target_.data() + row * outputs());
  for (std::size_t row = 0; has_mask() && row < size_; ++row)
    make_mask(0, static_cast<std::uint32_t>(row), all_.mask_.data() + row * outputs());
}

template <class T>
GridStorage<T> GridDataset<T>::make_storage(std::size_t max_size) const {
  Storage storage;
  storage.max_size_ = max_size;
  storage.x_.resize(max_size * features());
  storage.target_.resize(max_size * outputs());
  if (has_mask()) storage.mask_.resize(max_size * outputs());
  return storage;
}

template <class T>
void GridDataset<T>::make_sample(std::uint64_t epoch, std::uint32_t row, T* x, T* target) const {
  const std::size_t n = features(), states = all_states(task_);
  if (states != 0 && part_ != GridPart::train && size_ == states) {
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>((row >> i) & 1u);
  } else if (task_.start == GridStart::random) {
    const RandomStream random(seed_,
                              part_ == GridPart::train        ? RandomUse::data
                              : part_ == GridPart::validation ? RandomUse::split
                                                              : RandomUse::test,
                              static_cast<std::uint32_t>(epoch), row);
    for (std::size_t word = 0; word * 64 < n; ++word) {
      const std::uint64_t bits = random.bits(static_cast<std::uint32_t>(word));
      for (std::size_t i = word * 64; i < std::min(n, word * 64 + 64); ++i)
        x[i] = static_cast<T>((bits >> (i % 64)) & 1u);
    }
  } else {
    std::fill_n(x, n, T(0));
    if (task_.start == GridStart::centre)
      for (std::size_t c = 0; c < task_.channels; ++c)
        x[(c * task_.height + task_.height / 2) * task_.width + task_.width / 2] = T(1);
  }
  write_target(task_, x, target);
}

template <class T>
void GridDataset<T>::make_mask(std::uint64_t epoch, std::uint32_t row, T* mask) const {
  std::fill_n(mask, outputs(), T(1));
  const RandomStream random(seed_, RandomUse::damage, static_cast<std::uint32_t>(epoch), row);
  if (random.uniform(0) >= task_.damage) return;
  const std::size_t h = std::max<std::size_t>(1, task_.height / 4), w = std::max<std::size_t>(1, task_.width / 4);
  const auto place = [&](std::uint32_t position, std::size_t side, std::size_t block) {
    const std::size_t clear = std::min(kClearOfTheEdge, (side - block) / 2);
    return clear + random.below(position, static_cast<std::uint32_t>(side - block - 2 * clear + 1));
  };
  const std::size_t top = place(1, task_.height, h), left = place(2, task_.width, w);
  for (std::size_t i = 0; i < outputs(); ++i) {
    const std::size_t y = i % cells() / task_.width, x = i % task_.width;
    if (y - top < h && x - left < w) mask[i] = T(0);
  }
}

template <class T>
RowBatch<T> GridDataset<T>::batch_of(const Storage& storage, std::size_t count) const {
  RowBatch<T> batch;
  batch.size = count;
  batch.x = View<const T, 2>(storage.x_.data(), {count, features()});
  batch.target = View<const T, 2>(storage.target_.data(), {count, outputs()});
  if (has_mask()) batch.mask = View<const T, 2>(storage.mask_.data(), {count, outputs()});
  return batch;
}

template <class T>
RowBatch<T> GridDataset<T>::all() const {
  return batch_of(all_, size_);
}

template <class T>
RowBatch<T> GridDataset<T>::draw(std::uint64_t epoch, std::span<const std::uint32_t> rows, Storage& storage) const {
  if (rows.size() > storage.max_size_)
    throw_invalid(
        fmt::format("a batch of {} samples does not fit into a batch storage for {}", rows.size(), storage.max_size_));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    make_sample(epoch, rows[i], storage.x_.data() + i * features(), storage.target_.data() + i * outputs());
    if (has_mask()) make_mask(epoch, rows[i], storage.mask_.data() + i * outputs());
  }
  return batch_of(storage, rows.size());
}

template class GridDataset<float>;
template class GridDataset<double>;

}  // namespace gradloom
