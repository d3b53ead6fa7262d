// Forward and backward of the automaton, step by step; docs/math/logic.md.
#include <fmt/format.h>

#include <algorithm>

#include "gradloom/exec/profile.h"
#include "gradloom/kernels/elementary/arrays.h"
#include "gradloom/models/logic/automaton.h"

namespace gradloom::logic {

namespace gate = kernels::gate;

namespace {

constexpr std::size_t kTile = gate::kTile;
constexpr std::size_t kShards = 32;                         // at most: sums of gates exist this often
constexpr std::size_t kPatchBudget = std::size_t{4} << 20;  // bytes
constexpr std::size_t kBlock = 4096;                        // cells that are asked at a time whether they fire
constexpr std::size_t kForwardTasks = 128;

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// What a worker needs beside the scratch of a tile.
template <class T>
struct TileMemory {
  TileMemory(const CellShape& shape, T* memory)
      : patch(memory),
        out(patch + shape.channels * gate::kPatch * kTile),
        dl_dpatch(out + shape.channels * kTile),
        scratch(dl_dpatch + shape.channels * gate::kPatch * kTile) {}
  static std::size_t size(const CellShape& shape) {
    return shape.channels * (2 * gate::kPatch + 1) * kTile + shape.scratch();
  }
  T *patch, *out, *dl_dpatch, *scratch;
};

// The sums of a shard should stay in the cache for a few tiles; 8 of them still feed 8 threads on small grids.
std::size_t shards_for(std::size_t tiles) {
  return std::max(std::min<std::size_t>(tiles, 8), std::min(tiles / 4, kShards));
}

[[noreturn]] void fail(const std::string& message) { throw Exception(ErrorCode::invalid_input, message); }

}  // namespace

template <class T>
gate::GridShape Automaton<T>::grid_shape() const {
  return {options_.height, options_.width,
          options_.boundary == Boundary::periodic ? gate::Border::periodic : gate::Border::zero, plane_,
          options_.channels};
}

template <class T>
T* Automaton<T>::grid(Tape& tape, std::size_t t) const {
  const std::size_t which = tape.limits_.backward ? t : t % 2;
  return tape.workspace_.template at<T>(tape.at_.grids) + which * tape.limits_.batch * options_.channels * plane_;
}

template <class T>
T* Automaton<T>::gradient_grid(Tape& tape, std::size_t t) const {
  return tape.workspace_.template at<T>(tape.at_.gradients) + t % 2 * tape.limits_.batch * options_.channels * plane_;
}

template <class T>
T Automaton<T>::state(const Tape& tape, std::size_t sample, std::size_t t, std::size_t c, std::size_t cell) const {
  const std::size_t which = tape.limits_.backward ? t : t % 2;
  const std::size_t channels = options_.channels;
  return tape.workspace_.template at<T>(
      tape.at_.grids)[((which * tape.limits_.batch + sample) * channels + c) * plane_ + cell];
}

template <class T>
AutomatonTape<T> Automaton<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  const std::size_t batch = limits.batch, channels = options_.channels, height = options_.height;
  if (batch == 0) fail("a tape for batches of 0 samples was asked for");
  if (batch > (std::size_t{1} << 32) / cells() || batch > 65536)
    fail(fmt::format("a batch of {} grids of {} x {} cells is too large", batch, height, options_.width));
  Tape tape;
  tape.limits_ = limits;
  tape.workers_ = ex.threads();
  Workspace& w = tape.workspace_;
  const std::size_t one = batch * channels * plane_, kept = limits.backward ? options_.steps + 1 : 2;
  tape.grid_bytes_ = kept * one * sizeof(T);
  tape.at_.grids = w.reserve<T>(kept * one);
  tape.at_.gates = w.reserve<gate::Gate<T>>(gates_);
  if (options_.gate_noise > 0) tape.at_.logits = w.reserve<T>(parameters_.flat_size());
  // Workers write here all the time: no cache line belongs to two of them.
  const std::size_t scratch = divide_up(TileMemory<T>::size(shape_) * sizeof(T), kMemoryAlignment) * kMemoryAlignment;
  tape.scratch_bytes_ = scratch;
  tape.at_.scratch = w.reserve<std::byte>(scratch * tape.workers_);
  if (options_.masked == MaskedCells::dead) tape.at_.dead = w.reserve<std::uint8_t>(batch * cells());
  if (options_.fire_probability < 1.0 || options_.masked == MaskedCells::dead) {
    tape.at_.firing = w.reserve<std::uint32_t>(batch * cells());
    const std::size_t blocks = divide_up(batch * cells(), kBlock);
    tape.at_.block_cells = w.reserve<std::uint32_t>(blocks);
    tape.at_.block_tiles = w.reserve<std::uint32_t>(blocks + 1);
  }
  if (limits.backward) {
    tape.at_.gradients = w.reserve<T>(2 * one);
    const std::size_t row = channels * gate::kPatch * options_.width, row_bytes = row * sizeof(T);
    if (row_bytes * height <= kPatchBudget) {
      tape.group_ = std::min(batch, kPatchBudget / (row_bytes * height));
      tape.band_ = tape.slots_ = height;
    } else {
      const std::size_t slots = std::max<std::size_t>(5, kPatchBudget / row_bytes);
      tape.group_ = 1;
      tape.slots_ = std::min(slots, height);
      tape.band_ = tape.slots_ == height ? height : slots - 4;
    }
    tape.patch_bytes_ = tape.group_ * tape.slots_ * row_bytes;
    tape.at_.patches = w.reserve<T>(tape.group_ * tape.slots_ * row);
    // One tile more for each block of cells: the last of a block may be partly filled.
    const std::size_t wave = tape.group_ * tape.band_ * options_.width;
    tape.shards_ = shards_for(divide_up(wave, kTile) + divide_up(wave, kBlock));
    tape.at_.sums = w.reserve<T>(tape.shards_ * gates_ * gate::kPartial);
  }
  w.allocate();
  if (Profile* profile = ex.profile()) {
    tape.phases_ = {profile->phase("forward coefficients"), profile->phase("forward steps"),
                    profile->phase("backward tiles"), profile->phase("backward gather"),
                    profile->phase("backward logits")};
  }
  return tape;
}

template <class T>
void Automaton<T>::check(const Exec& ex, const Step&, const Batch& batch, const Tape& tape) const {
  if (ex.threads() > tape.workers_)
    fail(fmt::format("{} threads with a tape that was made for {}", ex.threads(), tape.workers_));
  if (batch.size > tape.limits_.batch)
    fail(fmt::format("the batch has {} samples, the tape was made for {}", batch.size, tape.limits_.batch));
  if (batch.size > 0 && batch.x.extent(1) != input_width())
    fail(fmt::format("the batch has {} features, the automaton {} channels of {} x {} cells", batch.x.extent(1),
                     options_.channels, options_.height, options_.width));
}

template <class T>
void Automaton<T>::find_firing(const Exec& ex, const Step& step, const Wave& wave, Tape& tape,
                               FunctionRef<void(std::uint32_t cell)> rests) const {
  auto* firing = tape.workspace_.template at<std::uint32_t>(tape.at_.firing);
  auto* counts = tape.workspace_.template at<std::uint32_t>(tape.at_.block_cells);
  auto* first_tile = tape.workspace_.template at<std::uint32_t>(tape.at_.block_tiles);
  const std::uint8_t* dead = tape.some_dead_ ? tape.workspace_.template at<std::uint8_t>(tape.at_.dead) : nullptr;
  const std::size_t blocks = divide_up(wave.end - wave.begin, kBlock);
  ex.parallel_for(blocks, [&](std::size_t block, unsigned) {
    const std::size_t begin = wave.begin + block * kBlock, end = std::min(wave.end, begin + kBlock);
    std::uint32_t* list = firing + begin;
    std::uint32_t count = 0;
    for (std::size_t cell = begin; cell < end; ++cell) {
      const auto number = static_cast<std::uint32_t>(cell);
      if (!(dead && dead[cell]) && fires(step, cell / cells(), wave.t, cell % cells()))
        list[count++] = number;
      else
        rests(number);
    }
    counts[block] = count;
  });
  first_tile[0] = 0;
  for (std::size_t b = 0; b < blocks; ++b)
    first_tile[b + 1] = first_tile[b] + static_cast<std::uint32_t>(divide_up(counts[b], kTile));
}

template <class T>
std::size_t Automaton<T>::tiles(const Step& step, const Wave& wave, const Tape& tape) const {
  if (whole(step, tape)) return divide_up(wave.end - wave.begin, kTile);
  const std::size_t blocks = divide_up(wave.end - wave.begin, kBlock);
  return tape.workspace_.template at<std::uint32_t>(tape.at_.block_tiles)[blocks];
}

template <class T>
std::size_t Automaton<T>::cells_of(const Step& step, const Wave& wave, std::size_t tile, const Tape& tape,
                                   std::uint32_t* to) const {
  if (whole(step, tape)) {
    const std::size_t first = wave.begin + tile * kTile, count = std::min(kTile, wave.end - first);
    for (std::size_t l = 0; l < count; ++l) to[l] = static_cast<std::uint32_t>(first + l);
    return count;
  }
  const auto* counts = tape.workspace_.template at<std::uint32_t>(tape.at_.block_cells);
  const auto* first_tile = tape.workspace_.template at<std::uint32_t>(tape.at_.block_tiles);
  const std::size_t blocks = divide_up(wave.end - wave.begin, kBlock);
  const auto block =
      static_cast<std::size_t>(std::upper_bound(first_tile, first_tile + blocks + 1, tile) - first_tile) - 1;
  const std::size_t first = (tile - first_tile[block]) * kTile, count = std::min(kTile, counts[block] - first);
  const auto* firing = tape.workspace_.template at<std::uint32_t>(tape.at_.firing);
  std::copy_n(firing + wave.begin + block * kBlock + first, count, to);
  return count;
}

template <class T>
void Automaton<T>::forward_step(const Exec& ex, const Step& step, std::size_t t, Tape& tape) const {
  const gate::GridShape shape = grid_shape();
  const T* from = grid(tape, t);
  T* to = grid(tape, t + 1);
  const Wave wave{t, 0, tape.batch_ * cells()};
  if (!whole(step, tape))
    find_firing(ex, step, wave, tape, [&](std::uint32_t cell) {
      const std::size_t at = cell / cells() * shape.sample() + cell % cells();
      for (std::size_t c = 0; c < shape.channels; ++c) to[at + c * plane_] = from[at + c * plane_];
    });
  const std::span<const gate::Gate<T>> gates(tape.workspace_.template at<gate::Gate<T>>(tape.at_.gates), gates_);
  const std::size_t count = tiles(step, wave, tape), tasks = std::min(kForwardTasks, count);
  ex.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    const ProfileScope scope(ex, tape.phases_.forward, worker);
    const TileMemory<T> memory(shape_, tape.workspace_.template at<T>(tape.at_.scratch + worker * tape.scratch_bytes_));
    for (std::size_t tile = task * count / tasks; tile < (task + 1) * count / tasks; ++tile) {
      std::uint32_t numbers[kTile];
      gate::PatchIndex index;
      gate::find_patches(shape, numbers, cells_of(step, wave, tile, tape, numbers), &index);
      gate::read_patches(shape, index, from, memory.patch);
      tile_forward(ex.variant(), shape_, gates, memory.patch, memory.scratch, memory.out);
      for (std::size_t c = 0; c < shape.channels; ++c)
        for (std::size_t l = 0; l < index.count; ++l) to[index.at[4][l] + c * plane_] = memory.out[c * kTile + l];
    }
  });
}

template <class T>
ModelArrays<T> Automaton<T>::seen(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, Tape& tape) const {
  if (!noisy(step)) return arrays;
  constexpr std::size_t kChunk = 2048;
  const std::size_t size = parameters_.flat_size();
  T* to = tape.workspace_.template at<T>(tape.at_.logits);
  const RandomStream random(step.seed, RandomUse::noise, step.epoch, step.index);
  const double grown = options_.noise_ramp == 0 ? 1.0 : std::min(1.0, (step.epoch + 1.0) / options_.noise_ramp);
  const T scale = static_cast<T>(options_.gate_noise * grown);
  ex.parallel_for(divide_up(size, kChunk), [&](std::size_t chunk, unsigned) {
    const std::size_t begin = chunk * kChunk, end = std::min(size, begin + kChunk);
    const std::span<T> some(to + begin, end - begin);
    // Never 0 or 1, in either precision.
    for (std::size_t i = begin; i < end; ++i)
      to[i] = static_cast<T>((random.bits(static_cast<std::uint32_t>(i)) >> 41) + 0.5) * T(0x1p-23);
    kernels::log<T>(ex.variant(), some, some);
    for (T& v : some) v = -v;
    kernels::log<T>(ex.variant(), some, some);
    for (std::size_t i = begin; i < end; ++i) to[i] = arrays.parameters.data()[i] - scale * to[i];
  });
  return {Array<const T>(std::span<const T>(to, size)), arrays.buffers};
}

template <class T>
void Automaton<T>::start(const Exec& ex, const Batch& batch, Tape& tape) const {
  const std::size_t channels = options_.channels;
  tape.some_dead_ = options_.masked == MaskedCells::dead && !batch.mask.empty();
  std::uint8_t* dead = tape.some_dead_ ? tape.workspace_.template at<std::uint8_t>(tape.at_.dead) : nullptr;
  ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
    T* to = grid(tape, 0) + s * channels * plane_;
    for (std::size_t c = 0; c < channels; ++c) std::copy_n(batch.x.row(s) + c * cells(), cells(), to + c * plane_);
    if (!dead) return;
    for (std::size_t cell = 0; cell < cells(); ++cell) {
      dead[s * cells() + cell] = batch.mask(s, cell) == T(0);
      if (dead[s * cells() + cell])
        for (std::size_t c = 0; c < channels; ++c) to[c * plane_ + cell] = T(0);
    }
  });
}

template <class T>
void Automaton<T>::forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                           Tape& tape, View<T, 2> y) const {
  check(ex, step, batch, tape);
  tape.batch_ = batch.size;
  const std::size_t channels = options_.channels;
  {
    const ProfileScope scope(ex, tape.phases_.coefficients);
    prepare(ex, seen(ex, step, arrays, tape), {tape.workspace_.template at<gate::Gate<T>>(tape.at_.gates), gates_});
  }
  start(ex, batch, tape);
  for (std::size_t t = 0; t < options_.steps; ++t) forward_step(ex, step, t, tape);
  ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
    for (std::size_t c = 0; c < options_.target_channels; ++c)
      std::copy_n(grid(tape, options_.steps) + (s * channels + c) * plane_, cells(), y.row(s) + c * cells());
  });
}

template <class T>
void Automaton<T>::backward_wave(const Exec& ex, const Step& step, const Wave& wave, Tape& tape, bool inputs) const {
  const gate::GridShape shape = grid_shape();
  const T* from = grid(tape, wave.t);
  const T* dl_dnext = gradient_grid(tape, wave.t + 1);
  T* patches = tape.workspace_.template at<T>(tape.at_.patches);
  const gate::PatchPlanes planes{tape.slots_};
  const std::size_t first_sample = wave.begin / cells(), patch_plane = tape.slots_ * options_.width;
  const auto patch_at = [&](std::size_t sample, std::size_t row, std::size_t column) {
    return (sample - first_sample) * shape.channels * gate::kPatch * patch_plane +
           planes.slot(row, options_.height) * options_.width + column;
  };
  if (!whole(step, tape))
    find_firing(ex, step, wave, tape, [&](std::uint32_t number) {
      if (!inputs) return;
      // It keeps its state: the gradient goes to the cell itself, as if by the centre of its patch.
      const std::size_t sample = number / cells(), cell = number % cells();
      const std::size_t at = patch_at(sample, cell / options_.width, cell % options_.width);
      for (std::size_t c = 0; c < shape.channels; ++c)
        for (std::size_t p = 0; p < gate::kPatch; ++p)
          patches[at + (c * gate::kPatch + p) * patch_plane] =
              p == 4 ? dl_dnext[sample * shape.sample() + c * plane_ + cell] : T(0);
    });
  const std::span<const gate::Gate<T>> gates(tape.workspace_.template at<gate::Gate<T>>(tape.at_.gates), gates_);
  const std::size_t count = tiles(step, wave, tape), shards = shards_for(count);
  ex.parallel_for(shards, [&](std::size_t shard, unsigned worker) {
    const ProfileScope scope(ex, tape.phases_.tiles, worker);
    const TileMemory<T> memory(shape_, tape.workspace_.template at<T>(tape.at_.scratch + worker * tape.scratch_bytes_));
    T* sums = tape.workspace_.template at<T>(tape.at_.sums) + shard * gates_ * gate::kPartial;
    for (std::size_t tile = shard * count / shards; tile < (shard + 1) * count / shards; ++tile) {
      std::uint32_t numbers[kTile];
      gate::PatchIndex index;
      gate::find_patches(shape, numbers, cells_of(step, wave, tile, tape, numbers), &index);
      gate::read_patches(shape, index, from, memory.patch);
      for (std::size_t c = 0; c < shape.channels; ++c)
        for (std::size_t l = 0; l < kTile; ++l)
          memory.out[c * kTile + l] = l < index.count ? dl_dnext[index.at[4][l] + c * plane_] : T(0);
      tile_gradient(ex.variant(), shape_, gates, {memory.patch, memory.out, memory.dl_dpatch, sums}, memory.scratch);
      if (!inputs) continue;
      std::size_t at[kTile];
      for (std::size_t l = 0; l < index.count; ++l) at[l] = patch_at(index.sample[l], index.row[l], index.column[l]);
      bool adjacent = index.count == kTile;
      for (std::size_t l = 1; l < kTile && adjacent; ++l) adjacent = at[l] == at[0] + l;
      for (std::size_t plane = 0; plane < shape.channels * gate::kPatch; ++plane) {
        T* to = patches + plane * patch_plane;
        const T* row = memory.dl_dpatch + plane * kTile;
        if (adjacent)
          std::copy_n(row, kTile, to + at[0]);
        else
          for (std::size_t l = 0; l < index.count; ++l) to[at[l]] = row[l];
      }
    }
  });
}

template <class T>
void Automaton<T>::gather(const Exec& ex, const Wave& wave, std::size_t first_row, std::size_t rows, Tape& tape) const {
  constexpr std::size_t kRows = 16;  // of one task
  const gate::GridShape shape = grid_shape();
  const gate::PatchPlanes planes{tape.slots_};
  const std::size_t first_sample = wave.begin / cells(), samples = divide_up(wave.end, cells()) - first_sample;
  const std::size_t blocks = divide_up(rows, kRows);
  const T* patches = tape.workspace_.template at<T>(tape.at_.patches);
  T* dl_dstate = gradient_grid(tape, wave.t);
  ex.parallel_for(samples * shape.channels * blocks, [&](std::size_t task, unsigned worker) {
    const ProfileScope scope(ex, tape.phases_.gather, worker);
    const std::size_t block = task % blocks, plane = task / blocks;  // of (samples, C)
    const T* from = patches + plane * gate::kPatch * tape.slots_ * options_.width;
    T* to = dl_dstate + (first_sample * shape.channels + plane) * plane_;
    const std::size_t end = first_row + std::min(rows, (block + 1) * kRows);
    for (std::size_t row = first_row + block * kRows; row < end; ++row)
      gate::gather_row(shape, planes, from, row, to + row * options_.width);
  });
}

template <class T>
void Automaton<T>::backward_step(const Exec& ex, const Step& step, std::size_t t, Tape& tape, bool inputs) const {
  const std::size_t height = options_.height, width = options_.width;
  for (std::size_t s = 0; s < tape.batch_; s += tape.group_) {
    const std::size_t first = s * cells(), last = std::min(tape.batch_, s + tape.group_) * cells();
    if (tape.band_ == height) {
      const Wave wave{t, first, last};
      backward_wave(ex, step, wave, tape, inputs);
      if (inputs) gather(ex, wave, 0, height, tape);
      continue;
    }
    // Bands of rows, one sample at a time: a row is collected when its neighbours are there; row 0 and the last row,
    // which are neighbours of each other on a periodic grid, at the end.
    std::size_t collected = 1;
    for (std::size_t row = 0; row < height; row += tape.band_) {
      const std::size_t end = std::min(height, row + tape.band_);
      const Wave wave{t, first + row * width, first + end * width};
      backward_wave(ex, step, wave, tape, inputs);
      if (!inputs) continue;
      const std::size_t ready = end == height ? height : end - 1;
      if (ready > collected) gather(ex, wave, collected, ready - collected, tape);
      collected = std::max(collected, ready);
      if (end == height) gather(ex, wave, 0, 1, tape);
    }
  }
}

template <class T>
void Automaton<T>::backward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                            Tape& tape, View<const T, 2> dl_dy, Array<T> gradient, View<T, 2> dl_dx,
                            GradientSink* sink) const {
  check(ex, step, batch, tape);
  if (!tape.limits_.backward) fail("the tape was made for forward passes only");
  if (tape.batch_ != batch.size)
    fail(fmt::format("backward of {} samples after a forward pass of {}", batch.size, tape.batch_));
  bool trainable = false;
  for (std::size_t s = 0; s < parameters_.size(); ++s) trainable = trainable || !step.is_frozen(s);
  if (!trainable && dl_dx.empty()) return;

  const std::size_t channels = options_.channels, numbers = gates_ * gate::kPartial;
  T* sums = tape.workspace_.template at<T>(tape.at_.sums);
  ex.parallel_for(tape.shards_,
                  [&](std::size_t shard, unsigned) { std::fill_n(sums + shard * numbers, numbers, T(0)); });
  ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
    for (std::size_t c = 0; c < channels; ++c) {
      T* to = gradient_grid(tape, options_.steps) + (s * channels + c) * plane_;
      if (c < options_.target_channels)
        std::copy_n(dl_dy.row(s) + c * cells(), cells(), to);
      else
        std::fill_n(to, cells(), T(0));
    }
  });
  for (std::size_t t = options_.steps; t-- > 0;) backward_step(ex, step, t, tape, t > 0 || !dl_dx.empty());
  if (!dl_dx.empty())
    ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
      for (std::size_t c = 0; c < channels; ++c)
        std::copy_n(gradient_grid(tape, 0) + (s * channels + c) * plane_, cells(), dl_dx.row(s) + c * cells());
      if (!tape.some_dead_) return;
      const std::uint8_t* dead = tape.workspace_.template at<std::uint8_t>(tape.at_.dead) + s * cells();
      for (std::size_t i = 0; i < channels * cells(); ++i)
        if (dead[i % cells()]) dl_dx(s, i) = T(0);
    });
  ModelArrays<T> logits = arrays;
  if (noisy(step))
    logits.parameters =
        Array<const T>(std::span<const T>(tape.workspace_.template at<T>(tape.at_.logits), parameters_.flat_size()));
  finish(ex, step, logits, tape, gradient, sink);
}

template <class T>
void Automaton<T>::finish(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, Tape& tape, Array<T> gradient,
                          GradientSink* sink) const {
  constexpr std::size_t kChunk = 4096;
  const std::size_t numbers = gates_ * gate::kPartial;
  T* sums = tape.workspace_.template at<T>(tape.at_.sums);
  ex.parallel_for(divide_up(numbers, kChunk), [&](std::size_t chunk, unsigned) {
    const std::size_t begin = chunk * kChunk, end = std::min(numbers, begin + kChunk);
    for (std::size_t stride = 1; stride < tape.shards_; stride *= 2)
      for (std::size_t s = 0; s + stride < tape.shards_; s += 2 * stride)
        for (std::size_t n = begin; n < end; ++n)
          sums[s * numbers + n] = sums[s * numbers + n] + sums[(s + stride) * numbers + n];
  });
  // One task for each kernel of each layer of perception, one for each layer of the update.
  const std::size_t kernels = options_.kernels, perception_tasks = perception_.size() * kernels;
  ex.parallel_for(perception_tasks + update_.size(), [&](std::size_t task, unsigned worker) {
    const bool perceives = task < perception_tasks;
    const Layer& layer = perceives ? perception_[task / kernels] : update_[task - perception_tasks];
    if (step.is_frozen(layer.parameter)) return;
    const std::size_t k = perceives ? task % kernels : 0, size = layer.gates * gate::kFunctions;
    const std::size_t at = parameters_[layer.parameter].offset + k * size;
    {
      const ProfileScope scope(ex, tape.phases_.logits, worker);
      gate::logit_gradient<T>(ex.variant(), {arrays.parameters.data() + at, size},
                              sums + (layer.first + k) * gate::kPartial, layer.kernels, step.gradient,
                              gradient.data() + at);
    }
    if (sink) sink->finished(at, at + size, worker);
  });
}

template class AutomatonTape<float>;
template class AutomatonTape<double>;
template class Automaton<float>;
template class Automaton<double>;

}  // namespace gradloom::logic
