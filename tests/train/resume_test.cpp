#include <gtest/gtest.h>

#include "gradloom/train/checkpoint.h"
#include "tests/support/scratch.h"
#include "tests/train/support.h"

namespace gradloom {
namespace {

using test::same_state;
using test::Scratch;
using test::small_network;
using test::smooth_rows;

struct Losses {
  std::vector<double> training, validation;
};

// A validation loss that depends on the parameters, so that `best` is part of what must survive.
template <class T>
TrainHooks hooks_for(const TrainState<T>& state, Losses& losses) {
  TrainHooks hooks;
  hooks.validate = [&state] {
    double sum = 0.0;
    for (T p : state.parameters.span()) sum += std::abs(static_cast<double>(p));
    return std::abs(std::sin(40 * sum));  // neither rising nor falling
  };
  hooks.after_epoch = [&losses](const EpochReport& epoch) {
    losses.training.push_back(epoch.loss);
    losses.validation.push_back(epoch.validation);
    return Continue::yes;
  };
  return hooks;
}

// Runs in pieces: after every `piece` steps the state goes to a file and comes back in a fresh process, as it were:
// other network, state, trainer and number of threads.
template <class T>
void expect_resume_changes_nothing(const TrainOptions& options, std::size_t samples, std::uint64_t piece) {
  const RowDataset<T> data = smooth_rows<T>(samples);
  const kan::Network<T> network = small_network<T>();
  TrainState<T> whole = initial_state(network, 3);
  whole.best.emplace();
  Losses expected;
  {
    const Exec ex({.threads = 1});
    Trainer(ex, network, data, options, whole).run(hooks_for(whole, expected));
  }

  const Scratch scratch;
  const std::filesystem::path path = scratch / "last.safetensors";
  TrainState<T> state = initial_state(network, 3);
  state.best.emplace();
  Losses losses;
  std::size_t resumes = 0;
  for (StageEnd end = StageEnd::stopped; end == StageEnd::stopped;) {
    const kan::Network<T> again = small_network<T>();
    if (resumes > 0) {
      const TensorFile file = read_safetensors(path).or_throw();
      state = load_checkpoint<T>(file, path, again.parameters(), again.buffers()).or_throw();
      again.derive(state.buffers.span()).or_throw();
    }
    const Exec ex({.threads = 1 + static_cast<unsigned>(resumes % 3)});
    Trainer trainer(ex, again, data, options, state);
    TrainHooks hooks = hooks_for(state, losses);
    std::uint64_t steps = 0;
    hooks.after_step = [&](const TrainPosition&) { return ++steps == piece ? Continue::stop : Continue::yes; };
    end = trainer.run(hooks);
    const bool accumulating = state.position.batch % options.accumulate != 0;
    ASSERT_TRUE(save_checkpoint<T>(path, again.parameters(), again.buffers(), state,
                                   accumulating ? GradientIn::checkpoint : GradientIn::nowhere)
                    .ok());
    ++resumes;
  }
  EXPECT_GT(resumes, 3u);
  EXPECT_TRUE(same_state(whole, state)) << resumes << " pieces of " << piece;
  EXPECT_EQ(expected.training, losses.training);
  EXPECT_EQ(expected.validation, losses.validation);
}

TEST(Resume, InTheMiddleOfAnAccumulatedStepOfAdamOnThreads) {
  TrainOptions o;
  o.epochs = 4;
  o.batch = 4;
  o.accumulate = 3;  // 7 micro-batches: groups of 3, 3, 1
  o.schedule.kind = ScheduleKind::cosine;
  o.optimizer.kind = OptimizerKind::adamw;
  o.optimizer.weight_decay = 0.01;
  for (std::uint64_t piece : {1u, 2u, 5u}) {
    expect_resume_changes_nothing<float>(o, 27, piece);
    expect_resume_changes_nothing<double>(o, 27, piece);
  }
}

// So many that partial sums wait in upper levels of the stack, where sums follow the tree.
TEST(Resume, InTheMiddleOfAStepOfManyMicroBatchesOnThreads) {
  TrainOptions o;
  o.epochs = 4;
  o.batch = 2;
  o.accumulate = 8;  // 14 micro-batches: groups of 8 and 6
  for (std::uint64_t piece : {1u, 3u, 7u}) expect_resume_changes_nothing<float>(o, 27, piece);
}

TEST(Resume, InTheMiddleOfAnEpochOfSgdWithMomentumOnThreads) {
  TrainOptions o;
  o.epochs = 4;
  o.batch = 5;
  o.optimizer = {.kind = OptimizerKind::sgd, .lr = 0.05, .momentum = 0.9, .nesterov = true, .clip_norm = 0.5};
  for (std::uint64_t piece : {1u, 4u}) expect_resume_changes_nothing<float>(o, 27, piece);
}

TEST(Resume, WithAnLbfgsHistoryThatHasWrappedAroundOnThreads) {
  TrainOptions o;
  o.epochs = 9;
  o.optimizer = {.kind = OptimizerKind::lbfgs, .lr = 1.0, .history = 4, .iterations = 3, .evaluations = 6};
  for (std::uint64_t piece : {1u, 2u}) {
    expect_resume_changes_nothing<double>(o, 40, piece);
    expect_resume_changes_nothing<float>(o, 40, piece);
  }
}

TEST(Resume, EarlyStoppingRemembersTheEpochsWithoutProgressOnThreads) {
  TrainOptions o;
  o.epochs = 50;
  o.batch = 14;
  o.patience = 4;
  expect_resume_changes_nothing<float>(o, 27, 3);
}

}  // namespace
}  // namespace gradloom
