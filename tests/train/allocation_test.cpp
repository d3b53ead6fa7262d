// A program of its own: it replaces the global operator new by one that counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/models/logic_support.h"
#include "tests/train/support.h"

namespace {

std::atomic<std::size_t> allocated_bytes{0}, allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocated_bytes += bytes;
  ++allocations;
  return std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
}

void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = counted(bytes, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kAlignment = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t bytes) { return counted_or_throw(bytes, kAlignment); }
void* operator new[](std::size_t bytes) { return counted_or_throw(bytes, kAlignment); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return counted_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return counted_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, kAlignment); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, kAlignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace gradloom {
namespace {

using test::smooth_rows;

template <class F>
std::size_t bytes_of(F&& work) {
  const std::size_t before = allocated_bytes;
  work();
  return allocated_bytes - before;
}

kan::Network<float> network() {
  kan::NetworkOptions o;
  o.widths = {3, 32, 32, 2};
  return kan::Network<float>(o);
}

TEST(Allocation, AStepOfAnAutomatonAllocatesNothing) {
  for (const double fire : {1.0, 0.6}) {
    logic::AutomatonOptions options = test::small_automaton(9, 11, 3);
    options.fire_probability = fire;
    test::LogicFixture<logic::Automaton<float>> f(logic::Automaton<float>(options), 2);
    const Exec ex({.threads = 2});
    auto tape = f.model.make_tape(ex, {.batch = 2});
    const auto step = [&] {
      f.model.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view());
      f.model.backward(
          ex, {.arrays = f.arrays(), .batch = f.rows(), .tape = tape, .dl_dy = f.dl_dy_view(), .gradient = f.gradient});
    };
    EXPECT_GT(bytes_of(step), 0u) << "the order of gates";
    EXPECT_EQ(bytes_of(step), 0u);
  }
}

TEST(Allocation, IsCounted) {
  EXPECT_EQ(bytes_of([] { ::operator delete(::operator new(1)); }), 1u);
  EXPECT_GE(bytes_of([] { const Buffer<float> buffer(100); }), 400u);
  EXPECT_GE(bytes_of([] { const std::vector<double> values(10); }), 80u);
}

TEST(Allocation, NoneInASteadyStateTrainingStepOnThreads) {
  const RowDataset<float> data = smooth_rows<float>(300);
  const kan::Network<float> model = network();
  for (unsigned threads : {1u, 2u})
    for (OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::sgd})
      for (double clip_norm : {0.0, 1.0}) {
        const Exec ex({.threads = threads});
        TrainOptions o;
        o.epochs = 100;
        o.batch = 64;  // the last batch of an epoch is smaller
        o.accumulate = clip_norm > 0 ? 2 : 1;
        o.optimizer = {.kind = kind, .lr = 1e-3, .momentum = 0.9, .clip_norm = clip_norm};
        TrainState<float> state = initial_state(model, 1);
        Trainer trainer(ex, model, data, o, state);
        const auto epoch = [&] {
          while (trainer.step()) {
          }
          state.position.batch = 0;
          ++state.position.run_epoch;  // another order
        };
        epoch();  // thread libraries make their memory at the first loops
        epoch();
        EXPECT_EQ(bytes_of([&] {
                    for (int i = 0; i < 5; ++i) epoch();
                  }),
                  0u)
            << threads << " threads, optimizer " << static_cast<int>(kind) << ", norm " << clip_norm;
      }
}

TEST(Allocation, NoneInASteadyStateEpochOnThreads) {
  const RowDataset<float> data = smooth_rows<float>(300);
  const kan::Network<float> model = network();
  for (unsigned threads : {1u, 2u}) {
    const Exec ex({.threads = threads});
    TrainState<float> state = initial_state(model, 1);
    state.best.emplace();
    Trainer trainer(ex, model, data, {.epochs = 20, .optimizer = {.lr = 1e-3}}, state);
    std::size_t at_third = 0;
    TrainHooks hooks;
    hooks.after_epoch = [&](const EpochReport& epoch) {
      if (epoch.position.epoch == 3) at_third = allocated_bytes;
      return Continue::yes;
    };
    trainer.run(hooks);
    EXPECT_EQ(allocated_bytes - at_third, 0u) << threads << " threads";
  }
}

TEST(Allocation, NoneInForwardOnThreads) {
  const RowDataset<float> data = smooth_rows<float>(300);
  const kan::Network<float> model = network();
  const TrainState<float> state = initial_state(model, 1);
  const ModelArrays<float> arrays{state.parameters, state.buffers};
  for (unsigned threads : {1u, 2u}) {
    const Exec ex({.threads = threads});
    auto tape = model.make_tape(ex, {.batch = 300, .backward = false});
    Buffer<float> y(300 * 16);
    const auto forward = [&] { model.forward(ex, {}, arrays, data.all(), tape, {y.data(), {300, 2}, {16, 1}}); };
    forward();
    EXPECT_EQ(bytes_of([&] {
                for (int i = 0; i < 20; ++i) forward();
              }),
              0u)
        << threads << " threads";
  }
}

TEST(Allocation, NoneInForwardOfASingleSampleNotEvenTheFirst) {
  const kan::Network<float> model = network();
  const TrainState<float> state = initial_state(model, 1);
  const ModelArrays<float> arrays{state.parameters, state.buffers};
  auto workspace = model.make_single_workspace();
  const float x[3] = {0.1f, -0.5f, 2.0f};
  float y[2] = {};
  for (Variant variant : {Variant::fast, Variant::reference})
    EXPECT_EQ(bytes_of([&] { model.forward_single(variant, arrays, x, workspace, y); }), 0u);
}

}  // namespace
}  // namespace gradloom
