// Backward of the automaton through time, step by step; docs/math/logic.md.
#include <fmt/format.h>

#include <algorithm>

#include "gradloom/exec/profile.h"
#include "gradloom/models/logic/automaton_shared.h"

namespace gradloom::logic {

namespace {

// Where the gradients of the patches of a wave lie: in planes (c, p), each `step` numbers after the one before.
struct PatchPlaces {
  gate::GridShape shape;
  gate::PatchPlanes planes;
  std::size_t first_sample;
  std::size_t step;

  PatchPlaces(const gate::GridShape& grid, std::size_t slots, std::size_t first)
      : shape(grid), planes{slots}, first_sample(first), step(slots * grid.width) {}
  std::size_t at(std::size_t sample, std::size_t row, std::size_t column) const {
    return (sample - first_sample) * shape.channels * gate::kPatch * step +
           planes.slot(row, shape.height) * shape.width + column;
  }
};

// Shards are added in a tree: 0 + 1, 2 + 3, ..., then these; the sum is in the place of the first.
template <class T>
void add_tree(T* sums, std::size_t shards, std::size_t numbers, std::size_t begin, std::size_t end) {
  for (std::size_t stride = 1; stride < shards; stride *= 2)
    for (std::size_t s = 0; s + stride < shards; s += 2 * stride)
      for (std::size_t n = begin; n < end; ++n)
        sums[s * numbers + n] = sums[s * numbers + n] + sums[(s + stride) * numbers + n];
}

}  // namespace

template <class T>
void Automaton<T>::rest_backward(const Wave& wave, std::span<const std::uint32_t> resting, Tape& tape) const {
  const gate::GridShape shape = grid_shape();
  const PatchPlaces places(shape, tape.slots_, wave.begin / cells());
  const T* dl_dnext = gradient_grid(tape, wave.t + 1);
  T* patches = tape.workspace_.template at<T>(tape.at_.patches);
  constexpr std::size_t kPiece = 512;
  std::size_t to[kPiece], from[kPiece];
  for (; !resting.empty(); resting = resting.subspan(std::min(kPiece, resting.size()))) {
    const std::size_t count = std::min(kPiece, resting.size());
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t sample = resting[n] / cells(), cell = resting[n] % cells();
      to[n] = places.at(sample, cell / options_.width, cell % options_.width);
      from[n] = sample * shape.sample_step() + shape.at(cell);
    }
    // The gradient goes to the cell itself, as if by the centre of its patch.
    for (std::size_t c = 0; c < shape.channels; ++c)
      for (std::size_t p = 0; p < gate::kPatch; ++p) {
        T* plane = patches + (c * gate::kPatch + p) * places.step;
        if (p == gate::kCentre)
          for (std::size_t n = 0; n < count; ++n) plane[to[n]] = dl_dnext[from[n] + c * shape.channel_step()];
        else
          for (std::size_t n = 0; n < count; ++n) plane[to[n]] = T(0);
      }
  }
}

// Shards are fixed: each finds its own firing cells, block by block.
template <class T>
void Automaton<T>::backward_wave(const Exec& ex, const Step& step, const Wave& wave, Tape& tape, bool inputs) const {
  const CellShards shards{tape.of_samples_ == 0 ? tape.batch_ : tape.of_samples_, cells()};
  const std::size_t first_cell = tape.first_sample_ * cells();
  const std::size_t first_shard = shards.first_of(tape.first_sample_);
  const bool all = whole(step, tape), banded = tape.band_ != options_.height;
  const std::uint8_t* dead = tape.some_dead_ ? tape.workspace_.template at<std::uint8_t>(tape.at_.dead) : nullptr;
  const std::size_t share = round_up(divide_up(wave.end - wave.begin, kShards), kTile);
  const auto bound = [&](std::size_t shard) {
    return banded ? std::min(wave.end, wave.begin + shard * share)
                  : std::clamp(shards.begin(first_shard + shard) - first_cell, wave.begin, wave.end);
  };
  ex.parallel_for(tape.used_shards_, [&](std::size_t shard, unsigned worker) {
    const ProfileScope scope(ex, tape.phases_.tiles, worker);
    T* sums = tape.workspace_.template at<T>(tape.at_.sums) + shard * gates_ * gate::kPartial;
    std::uint32_t firing[kBlock], resting[kBlock];
    std::uint8_t fire[kBlock];
    const std::size_t last = bound(shard + 1);
    for (std::size_t begin = bound(shard); begin < last; begin += kBlock) {
      const std::size_t size = std::min(kBlock, last - begin);
      if (!all) fire_mask(ex, step, wave.t, first_cell + begin, {fire, size});
      std::size_t count = 0, rests = 0;
      for (std::size_t n = 0; n < size; ++n) {
        // Written to both, kept in one: which is as good as random, and a branch would be guessed wrong.
        const bool yes = all || (fire[n] != 0 && !(dead && dead[begin + n]));
        firing[count] = resting[rests] = static_cast<std::uint32_t>(begin + n);
        count += yes, rests += !yes;
      }
      if (inputs && rests > 0) rest_backward(wave, {resting, rests}, tape);
      for (std::size_t n = 0; n < count; n += kTile)
        backward_tile(ex, wave, {firing + n, std::min(kTile, count - n)}, tape, worker, inputs, sums);
    }
  });
}

template <class T>
void Automaton<T>::backward_tile(const Exec& ex, const Wave& wave, std::span<const std::uint32_t> numbers, Tape& tape,
                                 unsigned worker, bool inputs, T* sums) const {
  const gate::GridShape shape = grid_shape();
  const PatchPlaces places(shape, tape.slots_, wave.begin / this->cells());
  const CellCircuit<T> cell = circuit(tape);
  const TileMemory<T> memory(shape_, tape.workspace_.template at<T>(tape.at_.scratch + worker * tape.scratch_bytes_));
  const gate::TileCells cells = gate::find_cells(shape, numbers.data(), numbers.size());
  gate::read_patches(ex.variant(), shape, cells, grid(tape, wave.t), memory.patch);
  gate::read_centres(ex.variant(), shape, cells, gradient_grid(tape, wave.t + 1), memory.out);
  TileGradient<T> arrays{memory.patch, memory.out, memory.dl_dpatch, sums};
  if (!inputs) return tile_gradient(ex.variant(), shape_, cell, arrays, memory.scratch);
  T* patches = tape.workspace_.template at<T>(tape.at_.patches);
  std::size_t at[kTile];
  for (std::size_t l = 0; l < cells.count; ++l) at[l] = places.at(cells.sample[l], cells.row[l], cells.column[l]);
  // Cells that follow each other need no copy.
  bool direct = cells.count == kTile;
  for (std::size_t l = 1; l < kTile && direct; ++l) direct = at[l] == at[0] + l;
  if (direct) arrays.dl_dpatch = patches + at[0], arrays.dl_dpatch_step = places.step;
  tile_gradient(ex.variant(), shape_, cell, arrays, memory.scratch);
  if (direct) return;
  for (std::size_t plane = 0; plane < shape.channels * gate::kPatch; ++plane) {
    T* to = patches + plane * places.step;
    const T* row = memory.dl_dpatch + plane * kTile;
    for (std::size_t l = 0; l < cells.count; ++l) to[at[l]] = row[l];
  }
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
    const std::size_t sample = first_sample + plane / shape.channels, channel = plane % shape.channels;
    T* to = dl_dstate + sample * shape.sample_step() + channel * shape.channel_step();
    const std::size_t end = first_row + std::min(rows, (block + 1) * kRows);
    for (std::size_t row = first_row + block * kRows; row < end; ++row)
      gate::gather_row(shape, planes, from, row, to + shape.at(row, 0));
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
bool Automaton<T>::any_trains(const Step& step) const {
  for (std::size_t s = 0; s < parameters_.size(); ++s)
    if (!step.is_frozen(s)) return true;
  return false;
}

template <class T>
ShardLayout Automaton<T>::shards(std::size_t samples) const {
  const CellShards shards{samples, cells()};
  if (banded()) return {};
  return {.count = shards.count(), .per_sample = shards.parts(), .samples = shards.samples_of()};
}

template <class T>
void Automaton<T>::backward(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  sum_shards(ex, call);
  if (!any_trains(call.step)) return;
  Tape& tape = call.tape;
  constexpr std::size_t kChunk = 4096;
  const std::size_t numbers = shard_numbers();
  T* sums = tape.workspace_.template at<T>(tape.at_.sums);
  ex.parallel_for(divide_up(numbers, kChunk), [&](std::size_t chunk, unsigned) {
    add_tree(sums, tape.used_shards_, numbers, chunk * kChunk, std::min(numbers, (chunk + 1) * kChunk));
  });
  finish_shards(ex, call, {sums, numbers});
}

template <class T>
void Automaton<T>::add_shards(Tape& tape, std::size_t first, std::size_t count, std::span<T> to) const {
  const std::size_t numbers = shard_numbers();
  T* sums = tape.workspace_.template at<T>(tape.at_.sums) + first * numbers;
  add_tree(sums, count, numbers, 0, numbers);
  std::copy_n(sums, numbers, to.data());
}

template <class T>
void Automaton<T>::sum_shards(const Exec& ex, const BackwardCall<T, Batch, Tape>& call) const {
  const Step& step = call.step;
  const Batch& batch = call.batch;
  Tape& tape = call.tape;
  check(ex, step, batch, tape);
  if (!tape.limits_.backward) refuse("the tape was made for forward passes only");
  if (tape.batch_ == kNoPass) refuse("backward was called before forward, or after a forward pass that failed");
  if (tape.batch_ != batch.size)
    refuse(fmt::format("backward of {} samples after a forward pass of {}", batch.size, tape.batch_));
  if (!any_trains(step) && call.dl_dx.empty()) return;

  const gate::GridShape shape = grid_shape();
  const std::size_t channels = options_.channels, numbers = gates_ * gate::kPartial;
  T* sums = tape.workspace_.template at<T>(tape.at_.sums);
  const CellShards shards{tape.of_samples_ == 0 ? batch.size : tape.of_samples_, cells()};
  const std::size_t own = shards.first_of(tape.first_sample_ + batch.size) - shards.first_of(tape.first_sample_);
  tape.used_shards_ = tape.band_ != options_.height ? kShards : std::max<std::size_t>(1, own);
  ex.parallel_for(tape.used_shards_,
                  [&](std::size_t shard, unsigned) { std::fill_n(sums + shard * numbers, numbers, T(0)); });
  ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
    T* to = gradient_grid(tape, options_.steps) + s * shape.sample_step();
    std::fill_n(to, shape.sample_step(), T(0));
    for (std::size_t c = 0; c < options_.target_channels; ++c)
      copy_to_state(shape, call.dl_dy.row(s) + c * cells(), to + c * shape.channel_step());
  });
  for (std::size_t t = options_.steps; t-- > 0;) backward_step(ex, step, t, tape, t > 0 || !call.dl_dx.empty());
  if (!call.dl_dx.empty())
    ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
      for (std::size_t c = 0; c < channels; ++c)
        copy_from_state(shape, gradient_grid(tape, 0) + s * shape.sample_step() + c * shape.channel_step(),
                        call.dl_dx.row(s) + c * cells());
      if (!tape.some_dead_) return;
      const std::uint8_t* dead = tape.workspace_.template at<std::uint8_t>(tape.at_.dead) + s * cells();
      for (std::size_t i = 0; i < channels * cells(); ++i)
        if (dead[i % cells()]) call.dl_dx(s, i) = T(0);
    });
}

// From the sums over cells to the gradient of the logits that the gates were made of.
template <class T>
void Automaton<T>::finish_shards(const Exec& ex, const BackwardCall<T, Batch, Tape>& call, std::span<T> sums) const {
  Tape& tape = call.tape;
  const auto tree = tree_of(call, 1);
  const T* logits = noisy(call.step) ? tape.workspace_.template at<T>(tape.at_.logits) : call.arrays.parameters.data();
  // One task for each kernel of each layer of perception, one for each layer of the update.
  const std::size_t kernels = options_.kernels, perception_tasks = perception_.size() * kernels;
  ex.parallel_for(perception_tasks + update_.size(), [&](std::size_t task, unsigned worker) {
    const bool perceives = task < perception_tasks;
    const std::size_t l = perceives ? task / kernels : task - perception_tasks + perception_.size();
    const Layer& now = layer(l);
    if (call.step.is_frozen(now.parameter)) return;
    const std::size_t k = perceives ? task % kernels : 0, size = now.gates * gate::kFunctions;
    const std::size_t at = parameters_[now.parameter].offset + k * size;
    {
      const ProfileScope scope(ex, tape.phases_.logits, worker);
      const auto place = kernels::reduce::place_of(tree.leaf);
      gate::logit_gradient<T>(ex.variant(), {logits + at, size}, tape.planned_.layers()[l].position.data() + k,
                              now.kernels, sums.data() + now.first * gate::kPartial,
                              place.store ? GradientMode::overwrite : GradientMode::accumulate,
                              tree.level(place.level) + at);
      kernels::reduce::merge_levels(tree, tree.leaf, at, at + size);
      if (tree.complete) kernels::reduce::finish_levels(tree, tree.leaf + 1, at, at + size);
    }
    if (call.sink) call.sink->finished(at, at + size, worker);
  });
}

template class Automaton<float>;
template class Automaton<double>;

}  // namespace gradloom::logic
