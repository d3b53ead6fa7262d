// GridDataset: start states and targets of cellular automata, drawn anew for every epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/life_rule.h"
#include "gradloom/base/result.h"
#include "gradloom/data/batch.h"

namespace gradloom {

enum class GridTaskKind {
  life,          // one step of the game of life, or of another rule of a cell and its neighbours, on a torus
  checkerboard,  // squares of `square` cells, whatever the start
  picture,       // `image`, whatever the start
};
inline constexpr Choice<GridTaskKind> kGridTasks[] = {
    {GridTaskKind::life, "life", "one step of data.rule"},
    {GridTaskKind::checkerboard, "checkerboard", "a checkerboard from any start"},
    {GridTaskKind::picture, "picture", "a picture from any start"},
};

enum class GridStart {
  random,  // every bit of every channel by a toss
  centre,  // all channels of the cell (H / 2, W / 2) are 1, all others 0
  zeros,
};
inline constexpr Choice<GridStart> kGridStarts[] = {
    {GridStart::random, "random", "random bits"},
    {GridStart::centre, "centre", "one cell of ones in the centre"},
    {GridStart::zeros, "zeros", "zeros"},
};

struct GridTask {
  GridTaskKind kind = GridTaskKind::checkerboard;
  std::size_t height = 16, width = 16;  // H, W
  std::size_t channels = 8;             // C
  std::size_t square = 2;
  GridStart start = GridStart::random;
  double damage = 0.0;  // share of training samples with a dead block, a quarter of each side: its cells have mask 0
  std::vector<std::uint8_t> image;                                                   // (Ct, H, W) bits, for `picture`
  PatchTable rule = patch_table({.birth = {0, 0, 0, 1}, .survival = {0, 0, 1, 1}});  // for `life`
};

// A rule as a table of text: 512 rows of ten columns, the patch of a cell row by row and its next state, 0 or 1, with a
// header or without. Fails with invalid_input, naming line and column.
Result<PatchTable> parse_patch_table(std::string text, std::string_view source);

// Ct: the leading channels that have a target.
std::size_t target_channels(const GridTask& task);

// The bits that the task asks for after `start` (C, H, W): (Ct, H, W).
std::vector<std::uint8_t> grid_target(const GridTask& task, std::span<const std::uint8_t> start);

enum class GridPart { train, validation, test };

template <class T>
class GridDataset;

// Memory for batches of up to `max_size` samples.
template <class T>
class GridStorage {
 private:
  friend class GridDataset<T>;
  std::size_t max_size_ = 0;
  std::vector<T> x_, target_, mask_;
};

// A sample is a start x (C, H, W) and a target (Ct, H, W), both 0 or 1, flattened. A function of (seed, part, epoch,
// row) alone. A rule (`life`) on at most 16 cells counts through all states instead outside of training, where it has
// as many samples. Immutable. Instantiated for float and double.
template <class T>
class GridDataset {
 public:
  using Storage = GridStorage<T>;

  // Throws when the grid is empty, too large for the samples, or the image has another size.
  GridDataset(GridTask task, GridPart part, std::uint64_t seed, std::size_t size);

  std::size_t size() const { return size_; }
  std::size_t features() const { return task_.channels * cells(); }
  std::size_t outputs() const { return target_channels(task_) * cells(); }
  std::size_t cells() const { return task_.height * task_.width; }
  const GridTask& task() const { return task_; }

  Storage make_storage(std::size_t max_size) const;
  // The samples of epoch 0.
  RowBatch<T> all() const;
  RowBatch<T> gather(std::span<const std::uint32_t> rows, Storage& storage) const { return draw(0, rows, storage); }
  // Never allocates. Throws when there are more rows than the storage holds. epoch < 2^24.
  RowBatch<T> draw(std::uint64_t epoch, std::span<const std::uint32_t> rows, Storage& storage) const;

 private:
  void make_sample(std::uint64_t epoch, std::uint32_t row, T* x, T* target) const;
  void make_mask(std::uint64_t epoch, std::uint32_t row, T* mask) const;
  bool has_mask() const { return task_.damage > 0 && part_ == GridPart::train; }
  RowBatch<T> batch_of(const Storage& storage, std::size_t count) const;

  GridTask task_;
  GridPart part_;
  std::uint64_t seed_;
  std::size_t size_;
  Storage all_;
};

}  // namespace gradloom
