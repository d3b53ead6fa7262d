// Forward of the automaton, step by step; docs/math/logic.md.
#include <fmt/format.h>

#include <algorithm>

#include "gradloom/exec/profile.h"
#include "gradloom/kernels/elementary/arrays.h"
#include "gradloom/kernels/random/random.h"
#include "gradloom/models/logic/automaton_shared.h"

namespace gradloom::logic {

namespace {
constexpr std::size_t kPatchBudget = std::size_t{4} << 20;  // bytes
constexpr std::size_t kForwardTasks = 128;
}  // namespace

template <class T>
gate::GridShape Automaton<T>::grid_shape() const {
  return {options_.height, options_.width,
          options_.boundary == Boundary::periodic ? gate::Border::periodic : gate::Border::zero, options_.channels};
}

template <class T>
bool Automaton<T>::banded() const {
  const std::size_t row_bytes = options_.channels * gate::kPatch * options_.width * sizeof(T);
  return options_.height > std::max<std::size_t>(5, kPatchBudget / row_bytes);
}

template <class T>
CellCircuit<T> Automaton<T>::circuit(const Tape& tape) const {
  return {{tape.workspace_.template at<gate::Gate<T>>(tape.at_.gates), gates_}, tape.planned_.layers()};
}

template <class T>
T* Automaton<T>::grid(Tape& tape, std::size_t t) const {
  const std::size_t which = tape.limits_.backward ? t : t % 2;
  return tape.workspace_.template at<T>(tape.at_.grids) + which * tape.limits_.batch * grid_shape().sample_step();
}

template <class T>
T* Automaton<T>::gradient_grid(Tape& tape, std::size_t t) const {
  return tape.workspace_.template at<T>(tape.at_.gradients) + t % 2 * tape.limits_.batch * grid_shape().sample_step();
}

template <class T>
T Automaton<T>::state(const Tape& tape, std::size_t sample, std::size_t t, std::size_t c, std::size_t cell) const {
  const std::size_t which = tape.limits_.backward ? t : t % 2;
  const gate::GridShape shape = grid_shape();
  return tape.workspace_.template at<T>(tape.at_.grids)[(which * tape.limits_.batch + sample) * shape.sample_step() +
                                                        c * shape.channel_step() + shape.at(cell)];
}

template <class T>
AutomatonTape<T> Automaton<T>::make_tape(const Exec& ex, const TapeLimits& limits) const {
  const std::size_t batch = limits.batch, channels = options_.channels, height = options_.height;
  if (batch == 0) refuse("a tape for batches of 0 samples was asked for");
  if (batch > (std::size_t{1} << 32) / cells() || batch > 65536)
    refuse(fmt::format("a batch of {} grids of {} x {} cells is too large", batch, height, options_.width));
  Tape tape;
  tape.limits_ = limits;
  tape.workers_ = ex.threads();
  Workspace& w = tape.workspace_;
  const std::size_t one = batch * grid_shape().sample_step(), kept = limits.backward ? options_.steps + 1 : 2;
  tape.grid_bytes_ = kept * one * sizeof(T);
  tape.at_.grids = w.reserve<T>(kept * one);
  tape.at_.gates = w.reserve<gate::Gate<T>>(gates_);
  if (options_.gate_noise > 0) tape.at_.logits = w.reserve<T>(parameters_.flat_size());
  // Workers write here all the time: no cache line belongs to two of them.
  const std::size_t scratch = round_up(TileMemory<T>::size(shape_) * sizeof(T), kMemoryAlignment);
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
    tape.shards_ = kShards;
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
    refuse(fmt::format("{} threads with a tape that was made for {}", ex.threads(), tape.workers_));
  if (batch.size > tape.limits_.batch)
    refuse(fmt::format("the batch has {} samples, the tape was made for {}", batch.size, tape.limits_.batch));
  if (batch.size > 0 && batch.x.extent(1) != input_width())
    refuse(fmt::format("the batch has {} features, the automaton {} channels of {} x {} cells", batch.x.extent(1),
                       options_.channels, options_.height, options_.width));
}

template <class T>
void Automaton<T>::fire_mask(const Exec& ex, const Step& step, std::size_t t, std::size_t first,
                             std::span<std::uint8_t> fire) const {
  if (synchronous(step)) {
    std::fill(fire.begin(), fire.end(), std::uint8_t{1});
    return;
  }
  for (std::size_t n = 0; n < fire.size();) {
    const std::size_t sample = (first + n) / cells(), cell = (first + n) % cells();
    const std::size_t count = std::min(fire.size() - n, cells() - cell);
    kernels::random::draws(ex.variant(), fire_stream(step, sample), static_cast<std::uint32_t>(t * cells() + cell),
                           options_.fire_probability, fire.subspan(n, count));
    n += count;
  }
}

template <class T>
void Automaton<T>::find_firing(const Exec& ex, const Step& step, const Wave& wave, Tape& tape,
                               FunctionRef<void(std::span<const std::uint32_t> cells)> rest) const {
  auto* firing = tape.workspace_.template at<std::uint32_t>(tape.at_.firing);
  auto* counts = tape.workspace_.template at<std::uint32_t>(tape.at_.block_cells);
  auto* first_tile = tape.workspace_.template at<std::uint32_t>(tape.at_.block_tiles);
  const std::uint8_t* dead = tape.some_dead_ ? tape.workspace_.template at<std::uint8_t>(tape.at_.dead) : nullptr;
  const std::size_t blocks = divide_up(wave.end - wave.begin, kBlock);
  ex.parallel_for(blocks, [&](std::size_t block, unsigned) {
    const std::size_t begin = wave.begin + block * kBlock, size = std::min(wave.end, begin + kBlock) - begin;
    std::uint8_t fire[kBlock];
    fire_mask(ex, step, wave.t, tape.first_sample_ * cells() + begin, {fire, size});
    std::uint32_t* list = firing + begin;
    std::uint32_t resting[kBlock], count = 0, rests = 0;
    for (std::size_t n = 0; n < size; ++n) {
      // Written to both, kept in one: which is as good as random, and a branch would be guessed wrong.
      const bool yes = fire[n] != 0 && !(dead && dead[begin + n]);
      list[count] = resting[rests] = static_cast<std::uint32_t>(begin + n);
      count += yes, rests += !yes;
    }
    counts[block] = count;
    if (rests > 0) rest({resting, rests});
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
void Automaton<T>::close_frames(const Exec& ex, const Tape& tape, T* state) const {
  const gate::GridShape shape = grid_shape();
  if (shape.border == gate::Border::zero) return;
  ex.parallel_for(tape.batch_, [&](std::size_t s, unsigned worker) {
    const ProfileScope scope(ex, tape.phases_.forward, worker);
    gate::close_frame(shape, state + s * shape.sample_step());
  });
}

template <class T>
void Automaton<T>::forward_step(const Exec& ex, const Step& step, std::size_t t, Tape& tape) const {
  const gate::GridShape shape = grid_shape();
  const T* from = grid(tape, t);
  T* to = grid(tape, t + 1);
  const Wave wave{t, 0, tape.batch_ * cells()};
  if (!whole(step, tape))
    find_firing(ex, step, wave, tape, [&](std::span<const std::uint32_t> resting) {
      for (const std::uint32_t cell : resting) {
        std::size_t at = cell / cells() * shape.sample_step() + shape.at(cell % cells());
        for (std::size_t c = 0; c < shape.channels; ++c, at += shape.channel_step()) to[at] = from[at];
      }
    });
  const CellCircuit<T> cell = circuit(tape);
  const std::size_t count = tiles(step, wave, tape), tasks = std::min(kForwardTasks, count);
  ex.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    const ProfileScope scope(ex, tape.phases_.forward, worker);
    const TileMemory<T> memory(shape_, tape.workspace_.template at<T>(tape.at_.scratch + worker * tape.scratch_bytes_));
    for (std::size_t tile = task * count / tasks; tile < (task + 1) * count / tasks; ++tile) {
      std::uint32_t numbers[kTile];
      const gate::TileCells cells = gate::find_cells(shape, numbers, cells_of(step, wave, tile, tape, numbers));
      gate::read_patches(ex.variant(), shape, cells, from, memory.patch);
      tile_forward(ex.variant(), shape_, cell, memory.patch, memory.scratch, memory.out);
      gate::write_centres(shape, cells, memory.out, to);
    }
  });
  if (t + 1 < options_.steps) close_frames(ex, tape, to);
}

template <class T>
ModelArrays<T> Automaton<T>::noisy_logits(const Exec& ex, const Step& step, const ModelArrays<T>& arrays,
                                          Tape& tape) const {
  if (!noisy(step)) return arrays;
  constexpr std::size_t kChunk = 2048;
  const std::size_t size = parameters_.flat_size();
  T* to = tape.workspace_.template at<T>(tape.at_.logits);
  const RandomStream random(step.seed, RandomUse::noise, step.epoch, step.index);
  const std::uint32_t epoch = options_.noise_again == 0 ? step.epoch : step.epoch % options_.noise_again;
  const double grown = options_.noise_ramp == 0 ? 1.0 : std::min(1.0, (epoch + 1.0) / options_.noise_ramp);
  const T scale = static_cast<T>(options_.gate_noise * grown);
  ex.parallel_for(divide_up(size, kChunk), [&](std::size_t chunk, unsigned) {
    const std::size_t begin = chunk * kChunk, end = std::min(size, begin + kChunk);
    const std::span<T> some(to + begin, end - begin);
    kernels::random::open_uniform<T>(ex.variant(), random, static_cast<std::uint32_t>(begin), some);
    kernels::elementary::log<T>(ex.variant(), some, some);
    for (T& v : some) v = -v;
    kernels::elementary::log<T>(ex.variant(), some, some);
    for (std::size_t i = begin; i < end; ++i) to[i] = arrays.parameters.data()[i] - scale * to[i];
  });
  return {std::span<const T>(to, size), arrays.buffers};
}

template <class T>
void Automaton<T>::start(const Exec& ex, const Batch& batch, Tape& tape) const {
  const gate::GridShape shape = grid_shape();
  const std::size_t channels = options_.channels;
  tape.some_dead_ = options_.masked == MaskedCells::dead && !batch.mask.empty();
  std::uint8_t* dead = tape.some_dead_ ? tape.workspace_.template at<std::uint8_t>(tape.at_.dead) : nullptr;
  ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
    T* to = grid(tape, 0) + s * shape.sample_step();
    for (std::size_t c = 0; c < channels; ++c)
      copy_to_state(shape, batch.x.row(s) + c * cells(), to + c * shape.channel_step());
    if (!dead) return;
    for (std::size_t cell = 0; cell < cells(); ++cell) {
      dead[s * cells() + cell] = batch.mask(s, cell) == T(0);
      if (dead[s * cells() + cell])
        for (std::size_t c = 0; c < channels; ++c) to[c * shape.channel_step() + shape.at(cell)] = T(0);
    }
  });
  close_frames(ex, tape, grid(tape, 0));
}

template <class T>
void Automaton<T>::forward(const Exec& ex, const Step& step, const ModelArrays<T>& arrays, const Batch& batch,
                           Tape& tape, View<T, 2> y) const {
  check(ex, step, batch, tape);
  tape.batch_ = kNoPass;  // until wires and logits are known to be good
  const gate::GridShape shape = grid_shape();
  {
    const ProfileScope scope(ex, tape.phases_.coefficients);
    const std::span<gate::Gate<T>> gates(tape.workspace_.template at<gate::Gate<T>>(tape.at_.gates), gates_);
    const std::span<const T> buffers(arrays.buffers.data(), buffers_.flat_size());
    tape.planned_.update(buffers, [&] { return plan(buffers, gates); });
    prepare(ex, noisy_logits(ex, step, arrays, tape), tape.planned_.layers(), gates);
  }
  tape.batch_ = batch.size;
  start(ex, batch, tape);
  for (std::size_t t = 0; t < options_.steps; ++t) forward_step(ex, step, t, tape);
  ex.parallel_for(batch.size, [&](std::size_t s, unsigned) {
    for (std::size_t c = 0; c < options_.target_channels; ++c)
      copy_from_state(shape, grid(tape, options_.steps) + s * shape.sample_step() + c * shape.channel_step(),
                      y.row(s) + c * cells());
  });
}

template class AutomatonTape<float>;
template class AutomatonTape<double>;
template class Automaton<float>;
template class Automaton<double>;

}  // namespace gradloom::logic
