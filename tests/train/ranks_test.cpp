#include "tests/support/ranks.h"

#include <gmock/gmock.h>

#include <memory>
#include <mutex>

#include "tests/support/sanitized.h"
#include "tests/train/support.h"

namespace gradloom {
namespace {

using test::run_ranks;
using test::same_state;
using test::small_network;
using test::smooth_rows;
using ::testing::Each;
using ::testing::StrEq;

template <class T>
struct Outcome {
  TrainState<T> state;
  std::vector<double> losses;
};

template <class M, class D>
Outcome<typename M::Scalar> train(const M& model, const D& data, TrainOptions options, unsigned threads) {
  const Exec ex({.threads = threads});
  Outcome<typename M::Scalar> outcome{initial_state(model, 3), {}};
  Trainer trainer(ex, model, data, std::move(options), outcome.state);
  TrainHooks hooks;
  hooks.after_epoch = [&](const EpochReport& epoch) {
    outcome.losses.push_back(epoch.loss);
    return Continue::yes;
  };
  trainer.run(hooks);
  trainer.collect_state(EpochLoop::StateOf::all_ranks);
  return outcome;
}

// Every rank ends with the state of one process; every rank has sent something.
template <class M, class D>
void expect_same_on_ranks(const M& model, const D& data, const TrainOptions& options, unsigned ranks,
                          unsigned threads) {
  using T = typename M::Scalar;
  const Outcome<T> expected = train(model, data, options, 1);
  const auto failures = run_ranks(ranks, [&](Comm& comm) {
    TrainOptions shared = options;
    shared.comm = &comm;
    const Outcome<T> found = train(model, data, shared, threads);
    EXPECT_TRUE(same_state(found.state, expected.state)) << "rank " << comm.rank() << " of " << ranks;
    EXPECT_EQ(found.losses, expected.losses) << "rank " << comm.rank() << " of " << ranks;
    EXPECT_GT(comm.counters().bytes, 0u);
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

// Of 60,000 numbers, which ranks send in sections.
template <class T>
kan::Network<T> wide_network() {
  kan::NetworkOptions o;
  o.widths = {24, 64, 64, 16};
  return kan::Network<T>(o);
}

template <class T>
RowDataset<T> wide_rows(std::size_t samples) {
  RowParts<T> parts;
  parts.size = samples;
  parts.features = 24;
  parts.targets = 16;
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t i = 0; i < 24; ++i) parts.x.push_back(static_cast<T>(std::sin(0.37 * ((s * 24 + i) % 977))));
    for (std::size_t j = 0; j < 16; ++j) parts.target.push_back(parts.x[s * 24 + j] * parts.x[s * 24 + 23 - j]);
  }
  return RowDataset<T>(std::move(parts));
}

// Into which rank_sum.cpp cuts its gradient.
double sections_of(unsigned ranks) { return ranks < 5 ? 4 : 2; }

TrainOptions options_of(OptimizerKind kind) {
  TrainOptions o;
  o.epochs = 3;
  o.batch = 2048;
  o.optimizer.kind = kind;
  o.optimizer.lr = kind == OptimizerKind::lbfgs ? 1.0 : 0.02;
  if (kind == OptimizerKind::lbfgs) o.optimizer.iterations = 3, o.optimizer.evaluations = 5, o.epochs = 2;
  return o;
}

TEST(Ranks, SplinesHaveTheBitsOfOneProcess) {
  const RowDataset<float> data = smooth_rows<float>(5000);  // 8, 8 and 4 leaves
  for (const unsigned ranks : test::thinned<unsigned>({2, 3, 4, 7}))
    for (const unsigned threads : {1u, 2u})
      expect_same_on_ranks(small_network<float>(), data, options_of(OptimizerKind::adam), ranks, threads);
}

// With one thread, every section but the last is sent while the pass goes on.
TEST(Ranks, SectionsThatAreSentDuringThePassHaveTheBitsOfOneProcess) {
  const RowDataset<float> data = wide_rows<float>(4096);
  const auto network = wide_network<float>();
  TrainOptions o = options_of(OptimizerKind::adam);
  o.epochs = 2;  // 4 steps of 8 leaves
  const Outcome<float> expected = train(network, data, o, 1);
  for (const unsigned ranks : test::thinned<unsigned>({1, 2, 3, 4, 7}))
    for (const unsigned threads : {1u, 2u}) {
      const auto failures = run_ranks(ranks, [&](Comm& comm) {
        TrainOptions shared = o;
        shared.comm = &comm;
        const Exec ex({.threads = threads});
        TrainState<float> state = initial_state(network, 3);
        Trainer trainer(ex, network, data, shared, state);
        trainer.run();
        const CommCounters sent = comm.counters();
        trainer.collect_state(EpochLoop::StateOf::all_ranks);
        EXPECT_TRUE(same_state(state, expected.state)) << "rank " << comm.rank() << " of " << ranks;
        if (ranks == 1) return;
        EXPECT_EQ(sent.messages, 4 * (sections_of(ranks) + 1) * (ranks - 1));
        EXPECT_LE(sent.early, 4 * (sections_of(ranks) - 1));
        if (threads == 1) {
          EXPECT_EQ(sent.early, 4 * (sections_of(ranks) - 1)) << "rank " << comm.rank() << " of " << ranks;
        }
      });
      EXPECT_THAT(failures, Each(StrEq("")));
    }
}

TEST(Ranks, SectionsHaveTheBitsOfOneProcessInEverySortOfStep) {
  const RowDataset<float> data = wide_rows<float>(700);
  TrainOptions accumulated = options_of(OptimizerKind::adam);
  accumulated.batch = 350, accumulated.accumulate = 2;  // 2 leaves each
  TrainOptions frozen = options_of(OptimizerKind::adamw);
  frozen.freeze = {"layer1.weight"}, frozen.decay = {"layer0.*"}, frozen.optimizer.weight_decay = 0.1;
  TrainOptions clipped = options_of(OptimizerKind::lion);
  clipped.optimizer.clip_norm = 0.01;
  frozen.batch = clipped.batch = 700;
  for (const TrainOptions& o : {accumulated, frozen, clipped, options_of(OptimizerKind::lbfgs)})
    for (const unsigned ranks : {2u, 3u}) expect_same_on_ranks(wide_network<float>(), data, o, ranks, 2);
}

TEST(Ranks, EveryOptimizerHasTheBitsOfOneProcess) {
  const RowDataset<double> data = smooth_rows<double>(3000);
  for (const auto& choice : kOptimizers)
    for (const double clip : {0.0, 0.1}) {
      TrainOptions o = options_of(choice.value);
      o.optimizer.clip_norm = choice.value == OptimizerKind::lbfgs ? 0.0 : clip;
      o.optimizer.clip_value = clip / 10;
      expect_same_on_ranks(small_network<double>(), data, o, 3, 1);
    }
}

TEST(Ranks, AccumulationPiecesFreezingAndTheWholeSetHaveTheBitsOfOneProcess) {
  const RowDataset<float> data = smooth_rows<float>(4000);
  TrainOptions accumulated = options_of(OptimizerKind::adam);
  accumulated.batch = 800, accumulated.accumulate = 3;  // 4 leaves each, the last of 32 rows
  TrainOptions pieces = options_of(OptimizerKind::sgd);
  pieces.batch = 2000, pieces.parallel_examples = 768;
  TrainOptions frozen = options_of(OptimizerKind::adamw);
  frozen.freeze = {small_network<float>().parameters()[0].name};
  TrainOptions whole = options_of(OptimizerKind::lion);
  whole.batch = 0;
  for (const TrainOptions& o : {accumulated, pieces, frozen, whole})
    for (const unsigned ranks : {2u, 3u}) expect_same_on_ranks(small_network<float>(), data, o, ranks, 1);
}

TEST(Ranks, MoreRanksThanLeavesHaveTheBitsOfOneProcess) {
  TrainOptions o = options_of(OptimizerKind::adam);
  o.batch = 300;  // 2 leaves
  expect_same_on_ranks(small_network<float>(), smooth_rows<float>(300), o, 5, 1);
}

TEST(Ranks, AStateInTheMiddleOfAnAccumulatedStepIsThatOfOneProcess) {
  const RowDataset<float> data = smooth_rows<float>(4000);
  TrainOptions o = options_of(OptimizerKind::adam);
  o.batch = 800, o.accumulate = 5;
  const auto network = small_network<float>();
  const auto three_batches = [&](Comm* comm) {
    const Exec ex({.threads = 1});
    TrainState<float> state = initial_state(network, 3);
    TrainOptions shared = o;
    shared.comm = comm;
    Trainer trainer(ex, network, data, shared, state);
    for (int i = 0; i < 3; ++i) trainer.step();
    return state;
  };
  const TrainState<float> expected = three_batches(nullptr);
  EXPECT_EQ(expected.leaves, 12u);
  const std::size_t live = kernels::reduce::tree_height(expected.leaves) - 1;
  const auto failures = run_ranks(3, [&](Comm& comm) {
    const TrainState<float> found = three_batches(&comm);
    EXPECT_EQ(found.leaves, expected.leaves);
    EXPECT_TRUE(test::same_bits(found.gradient, expected.gradient));
    ASSERT_GE(found.levels.size(), live * expected.gradient.size());
    EXPECT_EQ(std::memcmp(found.levels.data(), expected.levels.data(), live * expected.gradient.size() * sizeof(float)),
              0);
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Ranks, HoldAPartOfTheOptimizersMemoryUntilItIsCollected) {
  const RowDataset<float> data = wide_rows<float>(512);
  const auto network = wide_network<float>();
  const auto ten_steps = [&](Comm* comm) {
    const Exec ex({.threads = 1});
    TrainState<float> state = initial_state(network, 3);
    TrainOptions o = options_of(OptimizerKind::adam);
    o.epochs = 10, o.batch = 512, o.comm = comm;
    Trainer trainer(ex, network, data, o, state);
    const std::size_t all = state.parameters.size();
    std::size_t steps = 0;
    trainer.run({.after_step =
                     [&](const TrainPosition&) {
                       if (comm) {
                         EXPECT_LE(state.optimizer[0].values.size(), all / comm->size() + 256);
                       }
                       if (++steps == 4) trainer.collect_state(EpochLoop::StateOf::rank_0);
                       if (steps == 4 && comm) {
                         EXPECT_EQ(state.optimizer[0].values.size() == all, comm->rank() == 0);
                       }
                       return Continue::yes;
                     },
                 .validate = {},
                 .after_epoch = {}});
    trainer.collect_state(EpochLoop::StateOf::all_ranks);
    return state;
  };
  const TrainState<float> expected = ten_steps(nullptr);
  const auto failures =
      run_ranks(3, [&](Comm& comm) { EXPECT_TRUE(same_state(ten_steps(&comm), expected)) << comm.rank(); });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Ranks, SendNoMoreThanTheFormulaSays) {
  const auto expect_bytes = [](const auto& network, const RowDataset<float>& data, bool is_wide) {
    const double n = static_cast<double>(network.parameters().flat_size());
    for (const unsigned ranks : test::thinned<unsigned>({2, 3, 4})) {
      TrainOptions o = options_of(OptimizerKind::adam);
      o.batch = 4096, o.epochs = 5;  // 16 leaves
      const auto failures = run_ranks(ranks, [&](Comm& comm) {
        TrainOptions shared = o;
        shared.comm = &comm;
        const Exec ex({.threads = 1});
        TrainState<float> state = initial_state(network, 3);
        Trainer(ex, network, data, shared, state).run();
        double nodes = 0;
        const LeafShare share = share_of(comm.rank(), ranks, 16, 1);
        each_node(share.first, share.count, [&](const LeafNode&) { ++nodes; });
        if (std::has_single_bit(ranks)) {
          EXPECT_EQ(nodes, 1.0);
        }
        const double p = ranks, most = (nodes + 1) * (p - 1) / p * n * 4;
        EXPECT_EQ(comm.counters().messages, 5 * (1 + (is_wide ? sections_of(ranks) : 1)) * (ranks - 1));
        EXPECT_LE(static_cast<double>(comm.counters().bytes) / 5, most * 1.1 + 1024);
        EXPECT_GT(static_cast<double>(comm.counters().bytes) / 5, most * 0.9);
      });
      EXPECT_THAT(failures, Each(StrEq("")));
    }
  };
  expect_bytes(small_network<float>(), smooth_rows<float>(4096), false);
  expect_bytes(wide_network<float>(), wide_rows<float>(4096), true);
}

TEST(Ranks, ALossThatIsNotFiniteFailsOnAllRanksAlike) {
  const auto failures = run_ranks(3, [&](Comm& comm) {
    TrainOptions o = options_of(OptimizerKind::sgd);
    o.comm = &comm, o.optimizer.lr = 1e30, o.epochs = 20;
    train(small_network<float>(), smooth_rows<float>(5000), o, 1);
  });
  for (const std::string& failure : failures) {
    EXPECT_THAT(failure, ::testing::HasSubstr("training diverged"));
    EXPECT_EQ(failure, failures[0]);
  }
}

TEST(LeafNodes, AreTheMaximalAlignedRangesOfAnySplit) {
  for (std::size_t leaves = 0; leaves < 40; ++leaves)
    for (unsigned ranks = 1; ranks < 9; ++ranks)
      for (std::size_t unit : {1, 2})
        for (std::size_t offset : {0, 3, 8}) {
          std::size_t next = offset;
          for (unsigned rank = 0; rank < ranks; ++rank) {
            const LeafShare share = share_of(rank, ranks, leaves, unit);
            ASSERT_EQ(share.first % unit == 0 || share.first == leaves, true);
            each_node(offset + share.first, share.count, [&](const LeafNode& node) {
              ASSERT_EQ(node.first, next);
              ASSERT_EQ(node.first % node.size(), 0u);
              next += node.size();
            });
          }
          ASSERT_EQ(next, offset + leaves);
        }
}

}  // namespace
}  // namespace gradloom
