// The order of samples and the rate of every step.
#include <gmock/gmock.h>

#include <cmath>

#include "gradloom/train/trainer.h"
#include "tests/train/support.h"

namespace gradloom {
namespace {

using test::copy_of;
using test::LinearLog;
using test::LinearModel;
using test::smooth_rows;

// The first feature tells samples apart.
std::vector<double> order_of(std::uint64_t seed, std::uint64_t epoch, std::size_t batch, bool shuffle = true) {
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(23);
  LinearLog log;
  const LinearModel<double> model(3, 2, log);
  TrainState<double> state = initial_state(model, 0);
  state.position.run_epoch = epoch;
  Trainer trainer(ex, model, data, {.seed = seed, .batch = batch, .shuffle = shuffle}, state);
  while (trainer.step()) {
  }
  std::vector<double> order;
  for (const auto& b : log.batches) order.insert(order.end(), b.begin(), b.end());
  return order;
}

TEST(Trainer, DataOrderIsAFunctionOfSeedAndEpoch) {
  const std::vector<double> order = order_of(1, 4, 5);
  EXPECT_EQ(order, order_of(1, 4, 5));
  EXPECT_EQ(order, order_of(1, 4, 8));  // however it is cut into batches
  EXPECT_NE(order, order_of(2, 4, 5));
  EXPECT_NE(order, order_of(1, 5, 5));
  const std::vector<double> plain = order_of(1, 4, 5, false);
  EXPECT_NE(order, plain);
  EXPECT_EQ(plain, order_of(2, 7, 6, false));
  EXPECT_THAT(order, ::testing::UnorderedElementsAreArray(plain));

  // The same when the epoch is reached by training.
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(23);
  LinearLog log;
  const LinearModel<double> model(3, 2, log);
  TrainState<double> state = initial_state(model, 0);
  Trainer(ex, model, data, {.seed = 1, .epochs = 5, .batch = 23 / 4}, state).run();
  std::vector<double> last;
  for (std::size_t b = log.batches.size() - 5; b < log.batches.size(); ++b)
    last.insert(last.end(), log.batches[b].begin(), log.batches[b].end());
  EXPECT_EQ(last, order);
}

TEST(Trainer, EveryStepHasTheRateOfTheSchedule) {
  // Split, so that the plain expression below has the bits of an update.
  const Exec ex({.threads = 1, .variant = Variant(Variant::fast, Arithmetic::split)});
  const RowDataset<double> data = smooth_rows<double>(22);  // 6 micro-batches, 3 steps per epoch
  LinearLog log;
  const LinearModel<double> model(3, 2, log);
  for (const ScheduleOptions& schedule :
       {ScheduleOptions{.kind = ScheduleKind::cosine, .warmup = 0.25, .final_factor = 0.1},
        ScheduleOptions{.kind = ScheduleKind::step, .every = 0.5, .factor = 0.1}, ScheduleOptions{.warmup = 0.5}}) {
    TrainOptions o;
    o.epochs = 4;
    o.batch = 4;
    o.accumulate = 2;
    o.optimizer = {.kind = OptimizerKind::sgd, .lr = 0.3};
    o.schedule = schedule;
    TrainState<double> state = initial_state(model, 0);
    Trainer trainer(ex, model, data, o, state);
    Buffer<double> before = copy_of(state.parameters);
    std::uint64_t steps = 0;
    TrainHooks hooks;
    hooks.after_step = [&](const TrainPosition& at) {
      if (at.step == steps) return Continue::yes;  // a micro-batch without a step
      const double lr = 0.3 * schedule_factor(schedule, steps, 12);
      for (const Slice& slice : model.parameters())
        for_each_logical(slice,
                         [&](std::size_t i) { EXPECT_EQ(state.parameters[i], before[i] - lr * state.gradient[i]); });
      before = copy_of(state.parameters);
      steps = at.step;
      return Continue::yes;
    };
    trainer.run(hooks);
    EXPECT_EQ(steps, 12u);
  }
}

// With a forgotten memory Adam's next step is a first step: the rate in the direction of the sign.
TEST(Trainer, ResettingTheOptimizerStartsAdamAnew) {
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(20);
  LinearLog log;
  const LinearModel<double> model(3, 2, log);
  TrainState<double> state = initial_state(model, 0);
  Trainer trainer(ex, model, data, {.epochs = 9, .batch = 0, .optimizer = {.lr = 0.01}}, state);
  trainer.run();
  state.position.batch = 0;
  trainer.reset_optimizer();
  const Buffer<double> before = copy_of(state.parameters);
  trainer.step();
  for (const Slice& slice : model.parameters())
    for_each_logical(slice, [&](std::size_t i) {
      EXPECT_NEAR(state.parameters[i], before[i] - std::copysign(0.01, state.gradient[i]), 1e-6) << slice.name;
    });
  EXPECT_EQ(state.position.step, 10u);  // the schedule goes on
}

}  // namespace
}  // namespace gradloom
