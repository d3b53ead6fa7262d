#include "gradloom/train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>

#include "tests/train/support.h"

namespace gradloom {
namespace {

using test::copy_of;
using test::LinearLog;
using test::LinearModel;
using test::message_of;
using test::same_bits;
using test::same_state;
using test::small_network;
using test::smooth_rows;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainHooks record_losses(std::vector<double>& losses) {
  TrainHooks hooks;
  hooks.after_epoch = [&losses](const EpochReport& epoch) {
    losses.push_back(epoch.loss);
    return Continue::yes;
  };
  return hooks;
}

OptimizerOptions optimizer(OptimizerKind kind) {
  OptimizerOptions o;
  o.kind = kind;
  o.lr = kind == OptimizerKind::lbfgs ? 1.0 : 0.02;
  o.momentum = kind == OptimizerKind::sgd ? 0.9 : 0.0;
  return o;
}

template <class M>
TrainState<typename M::Scalar> trained(const Exec& ex, const M& model, TrainOptions options,
                                       std::vector<double>* losses = nullptr, std::size_t samples = 50) {
  using T = typename M::Scalar;
  const RowDataset<T> data = smooth_rows<T>(samples);
  TrainState<T> state = initial_state(model, 3);
  Trainer trainer(ex, model, data, std::move(options), state);
  std::vector<double> ignored;
  trainer.run(record_losses(losses ? *losses : ignored));
  return state;
}

template <class T>
void expect_fused_equals_unfused() {
  const Exec ex({.threads = 2});
  for (OptimizerKind kind : test::element_optimizers())
    for (double clip : {0.0, 1e-3}) {
      TrainOptions o;
      o.epochs = 4;
      o.batch = 16;
      o.optimizer = optimizer(kind);
      o.optimizer.clip_value = clip;
      o.optimizer.weight_decay = 0.01;
      const kan::Network<T> network = small_network<T>();
      LinearLog log, other_log;
      const auto fused = trained(ex, network, o);
      const auto fused_linear = trained(ex, LinearModel<T>(3, 2, log), o);
      o.fused = FusedUpdate::off;
      const auto unfused = trained(ex, network, o);
      const auto unfused_linear = trained(ex, LinearModel<T>(3, 2, other_log), o);
      EXPECT_TRUE(same_state(fused, unfused)) << "optimizer " << static_cast<int>(kind) << " clip " << clip;
      EXPECT_TRUE(same_state(fused_linear, unfused_linear))
          << "optimizer " << static_cast<int>(kind) << " clip " << clip;
      EXPECT_THAT(log.fused, ::testing::Each(true));
      EXPECT_THAT(other_log.fused, ::testing::Each(false));
    }
}

TEST(Trainer, FusedUpdatesOnThreadsGiveTheBitsOfOneUpdateAtTheEnd) {
  expect_fused_equals_unfused<float>();
  expect_fused_equals_unfused<double>();
}

// One step of plain gradient descent with rate 1 from the same start, with and without clipping.
TEST(Trainer, NormClippingScalesTheWholeGradientAndIsNeverFused) {
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(20);
  LinearLog log;
  const LinearModel<double> model(3, 2, log);
  TrainOptions o;
  o.batch = 0;
  o.optimizer = {.kind = OptimizerKind::sgd, .lr = 1.0};
  const auto step_of = [&](double clip_norm) {
    o.optimizer.clip_norm = clip_norm;
    TrainState<double> state = initial_state(model, 3);
    const Buffer<double> before = copy_of(state.parameters);
    Trainer(ex, model, data, o, state).step();
    std::vector<double> moved;
    for (const Slice& slice : model.parameters())
      for_each_logical(slice, [&](std::size_t at) { moved.push_back(before[at] - state.parameters[at]); });
    return moved;
  };
  const std::vector<double> plain = step_of(0.0);
  const double norm = std::sqrt(std::inner_product(plain.begin(), plain.end(), plain.begin(), 0.0));
  ASSERT_GT(norm, 0.1);
  const std::vector<double> clipped = step_of(0.5 * norm), loose = step_of(2.0 * norm);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(clipped[i], 0.5 * plain[i], 1e-15);
    EXPECT_NEAR(loose[i], plain[i], 1e-15);
  }
  EXPECT_THAT(log.fused, ElementsAre(true, false, false));
}

// The definition: an optimizer step follows the gradient of the mean over all samples of its batches.
TEST(Trainer, AccumulationFollowsTheMeanOverAllSamplesOfAStep) {
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(21);  // batches of 4, 4, 4, 4, 4, 1; groups of two
  LinearLog log;
  const LinearModel<double> model(3, 2, log);
  TrainOptions o;
  o.batch = 4;
  o.accumulate = 2;
  o.epochs = 1;
  o.shuffle = false;
  o.optimizer = {.kind = OptimizerKind::sgd, .lr = 0.1};
  TrainState<double> state = initial_state(model, 3);
  Buffer<double> expected = copy_of(state.parameters);
  double loss_sum = 0.0;
  const auto gradient_of = [&](std::size_t first, std::size_t count, std::vector<double>& g, double share) {
    const double* w = expected.data() + model.parameters()[0].offset;
    const double* b = expected.data() + model.parameters()[1].offset;
    for (std::size_t s = first; s < first + count; ++s)
      for (std::size_t j = 0; j < 2; ++j) {
        const auto x = data.all().x;
        double e = b[j] - data.all().target(s, j);
        for (std::size_t i = 0; i < 3; ++i) e += w[i * 2 + j] * x(s, i);
        loss_sum += e * e / 2;
        const double scale = share * 2 * e / static_cast<double>(2 * count);
        for (std::size_t i = 0; i < 3; ++i) g[i * 2 + j] += scale * x(s, i);
        g[6 + j] += scale;
      }
  };
  std::vector<double> losses;
  Trainer trainer(ex, model, data, o, state);
  trainer.run(record_losses(losses));
  for (auto [first, sizes] : {std::pair<std::size_t, std::vector<std::size_t>>{0, {4, 4}}, {8, {4, 4}}, {16, {4, 1}}}) {
    std::vector<double> g(8, 0.0);
    for (std::size_t size : sizes) {
      gradient_of(first, size, g, static_cast<double>(size) / static_cast<double>(sizes[0] + sizes[1]));
      first += size;
    }
    for (std::size_t i = 0; i < 6; ++i) expected[model.parameters()[0].offset + i] -= 0.1 * g[i];
    for (std::size_t j = 0; j < 2; ++j) expected[model.parameters()[1].offset + j] -= 0.1 * g[6 + j];
  }
  for (const Slice& slice : model.parameters())
    for_each_logical(slice,
                     [&](std::size_t at) { EXPECT_NEAR(state.parameters[at], expected[at], 1e-14) << slice.name; });
  EXPECT_EQ(state.position.step, 3u);
  EXPECT_THAT(log.fused, ElementsAre(false, true, false, true, false, true));
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_NEAR(losses[0], loss_sum / 21, 1e-14);  // the loss of an epoch is per sample, however samples were grouped
}

TEST(Trainer, FrozenSlicesKeepTheirBits) {
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(30);
  const kan::Network<double> network = small_network<double>();
  for (OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lbfgs}) {
    TrainOptions o;
    o.epochs = 3;
    o.batch = 8;
    o.optimizer = optimizer(kind);
    o.optimizer.weight_decay = 0.1;
    TrainState<double> state = initial_state(network, 3);
    Trainer(ex, network, data, o, state).run();  // leaves gradients of all slices in the state
    const Buffer<double> before = copy_of(state.parameters);
    state.position = {};
    o.freeze = {"layer0.*", "layer1.bias"};
    Trainer(ex, network, data, o, state).run();
    for (const Slice& slice : network.parameters()) {
      std::size_t changed = 0;
      for_each_logical(slice, [&](std::size_t at) { changed += before[at] != state.parameters[at]; });
      if (slice.name == "layer1.weight")
        EXPECT_GT(changed, slice.logical_size() / 2);
      else
        EXPECT_EQ(changed, 0u) << slice.name << ", optimizer " << static_cast<int>(kind);
    }
  }
}

TEST(Trainer, FreezingAnUnknownNameNamesTheSlicesThereAre) {
  const kan::Network<float> network = small_network<float>();
  for (const char* name : {"layer7.weight", "layr*", "layer0", ""}) {
    const std::string message = message_of([&] {
      match_slices(network.parameters(), {"layer0.weight", name}, "freeze");
    });
    EXPECT_THAT(message, HasSubstr(fmt::format("'{}'", name)));
    for (const Slice& slice : network.parameters()) EXPECT_THAT(message, HasSubstr(slice.name));
  }
  EXPECT_THAT(match_slices(network.parameters(), {"layer1.*"}, "freeze"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(match_slices(network.parameters(), {"*"}, "freeze"), ElementsAre(1, 1, 1, 1));
}

TEST(Trainer, PatienceEndsTheStageAndTheBestParametersAreKept) {
  const Exec ex({.threads = 1});
  const RowDataset<float> data = smooth_rows<float>(20);
  const kan::Network<float> network = small_network<float>();
  const std::vector<double> validation{5, 4, 4, 2, 3, 2, NAN, 1, 1, 1, 1};
  TrainOptions o;
  o.epochs = 100;
  o.patience = 3;
  o.batch = 10;
  TrainState<float> state = initial_state(network, 3);
  state.position.run_epoch = 10;  // as in a later stage
  Trainer trainer(ex, network, data, o, state);
  Buffer<float> best;
  std::vector<bool> improved;
  TrainHooks hooks;
  hooks.validate = [&] { return validation.at(state.position.epoch); };
  hooks.after_epoch = [&](const EpochReport& epoch) {
    improved.push_back(epoch.improved);
    if (epoch.improved) best = copy_of(state.parameters);
    return Continue::yes;
  };
  EXPECT_EQ(trainer.run(hooks), StageEnd::finished);
  EXPECT_THAT(improved, ElementsAre(true, true, false, true, false, false, false));
  EXPECT_EQ(state.position.epoch, 7u);  // three without progress after the fourth
  EXPECT_TRUE(state.position.stage_done);
  ASSERT_TRUE(state.best.has_value());
  EXPECT_EQ(state.best->loss, 2.0);
  EXPECT_EQ(state.best->run_epoch, 13u);
  EXPECT_TRUE(same_bits(state.best->parameters, best));
  EXPECT_FALSE(same_bits(state.parameters, best));
  EXPECT_EQ(trainer.run(hooks), StageEnd::finished);  // a stage that is done stays done
  EXPECT_EQ(state.position.epoch, 7u);
}

TEST(Trainer, AHookCanStopAndRunGoesOn) {
  const Exec ex({.threads = 1});
  const RowDataset<float> data = smooth_rows<float>(20);
  const kan::Network<float> network = small_network<float>();
  TrainOptions o;
  o.epochs = 3;
  o.batch = 8;
  TrainState<float> whole = initial_state(network, 3), parts = initial_state(network, 3);
  Trainer(ex, network, data, o, whole).run();
  Trainer trainer(ex, network, data, o, parts);
  TrainHooks hooks;
  hooks.after_step = [](const TrainPosition&) { return Continue::stop; };
  hooks.after_epoch = [](const EpochReport&) { return Continue::stop; };
  std::size_t stops = 0;
  while (trainer.run(hooks) == StageEnd::stopped) ++stops;
  EXPECT_EQ(stops, 3u * (3 + 1));
  EXPECT_TRUE(same_state(whole, parts));
}

TEST(Trainer, ALossThatIsNotFiniteIsAnErrorAndChangesNothing) {
  const Exec ex({.threads = 1});
  const RowDataset<double> data = smooth_rows<double>(20);
  for (OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::lbfgs})
    for (FusedUpdate fused : {FusedUpdate::automatic, FusedUpdate::off}) {
      LinearLog log;
      const LinearModel<double> model(3, 2, log);
      TrainOptions o;
      o.epochs = 10;
      o.batch = 5;
      o.optimizer = optimizer(kind);
      o.fused = fused;
      TrainState<double> state = initial_state(model, 3);
      Trainer trainer(ex, model, data, o, state);
      trainer.step();
      trainer.step();
      log.nan_at = log.batches.size();  // the next forward pass
      state.position.batch = kind == OptimizerKind::lbfgs ? 0 : 2;
      const Buffer<double> before = copy_of(state.parameters);
      std::vector<Buffer<double>> moments;
      for (const auto& s : state.optimizer) moments.push_back(copy_of(s.values));
      const TrainPosition position = state.position;
      try {
        trainer.step();
        ADD_FAILURE() << "no exception";
      } catch (const Exception& e) {
        EXPECT_EQ(e.code(), ErrorCode::numeric);
        EXPECT_THAT(e.what(), HasSubstr("the loss is nan in epoch 1"));
        if (kind != OptimizerKind::lbfgs) {
          EXPECT_THAT(e.what(), HasSubstr("batch 3"));
          EXPECT_THAT(e.what(), HasSubstr("optimizer.lr"));
        }
      }
      EXPECT_TRUE(same_bits(before, state.parameters));
      for (std::size_t s = 0; s < moments.size(); ++s) EXPECT_TRUE(same_bits(moments[s], state.optimizer[s].values));
      EXPECT_EQ(state.position.step, position.step);
      EXPECT_EQ(state.position.batch, position.batch);
    }
}

TEST(Trainer, DivergenceIsReported) {
  TrainOptions o;
  o.batch = 10;
  o.optimizer = {.kind = OptimizerKind::sgd, .lr = 1e30};
  const kan::Network<float> network = small_network<float>();
  const std::string message = message_of([&] { trained(Exec({.threads = 1}), network, o); });
  EXPECT_THAT(message, HasSubstr("diverged"));
}

TEST(Trainer, NamesWhatItCannotTrain) {
  const Exec ex({.threads = 1});
  const kan::Network<float> network = small_network<float>();
  const auto message = [&](TrainOptions o, std::size_t samples = 20) {
    return message_of([&] { trained(ex, network, o, nullptr, samples); });
  };
  EXPECT_THAT(message({.batch = 21}), HasSubstr("21 samples is larger than the training data (20 samples)"));
  EXPECT_THAT(message({.batch = 4, .accumulate = 0}), HasSubstr("accumulate is 0"));
  EXPECT_THAT(message({}, 0), HasSubstr("no data"));
  EXPECT_THAT(message({.batch = 0}, 0), HasSubstr("no data"));
  EXPECT_THAT(message({.batch = 0, .accumulate = 2, .optimizer = optimizer(OptimizerKind::lbfgs)}),
              HasSubstr("full batch"));
  EXPECT_THAT(message({.batch = 4, .optimizer = {.lr = -1}}), HasSubstr("optimizer.lr"));

  const RowDataset<float> data = smooth_rows<float>(20);
  TrainState<float> state;
  EXPECT_THAT(message_of([&] { Trainer(ex, network, data, {.batch = 4}, state); }), HasSubstr("0 parameters"));
  state = initial_state(network, 0);
  state.buffers = Buffer<float>(1);
  EXPECT_THAT(message_of([&] { Trainer(ex, network, data, {.batch = 4}, state); }), HasSubstr("buffers"));
  state = initial_state(network, 0);
  Trainer(ex, network, data, {.batch = 4, .optimizer = optimizer(OptimizerKind::sgd)}, state);
  EXPECT_THAT(message_of([&] { Trainer(ex, network, data, {.batch = 4}, state); }), HasSubstr("another optimizer"));
}

template <class T>
void expect_equal_weights_and_losses() {
  for (OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lbfgs}) {
    TrainOptions o;
    o.epochs = kind == OptimizerKind::adam ? 4 : 2;
    o.batch = 100;
    o.optimizer = optimizer(kind);
    const kan::Network<T> network = small_network<T>();
    std::vector<double> losses;
    const auto one = trained(Exec({.threads = 1}), network, o, &losses, 330);
    ASSERT_EQ(losses.size(), o.epochs);
    EXPECT_LT(losses.back(), losses.front());
    for (unsigned threads : {2u, 3u, 8u}) {
      std::vector<double> others;
      const auto many = trained(Exec({.threads = threads}), network, o, &others, 330);
      EXPECT_TRUE(same_state(one, many)) << threads << " threads";
      EXPECT_EQ(losses, others) << threads << " threads";
    }
    std::vector<double> others;
    const auto reference = trained(Exec({.threads = 2, .variant = Variant::reference}), network, o, &others, 330);
    EXPECT_TRUE(same_state(one, reference)) << "reference";
    EXPECT_EQ(losses, others) << "reference";
  }
}

TEST(Trainer, ThreadsAndReferenceEndWithTheSameWeightsAndLossesInFloat) { expect_equal_weights_and_losses<float>(); }
TEST(Trainer, ThreadsAndReferenceEndWithTheSameWeightsAndLossesInDouble) { expect_equal_weights_and_losses<double>(); }

// Slices so large that several pieces of them are claimed and updated one after the other.
TEST(Trainer, ThreadsUpdateLargeSlicesPieceByPiece) {
  kan::NetworkOptions wide;
  wide.widths = {3, 300, 2};
  wide.grid = 8;
  const kan::Network<float> network(wide);
  for (const double clip_norm : {0.0, 0.5}) {
    TrainOptions o;
    o.epochs = 2;
    o.batch = 50;
    o.optimizer = optimizer(OptimizerKind::adam);
    o.optimizer.clip_norm = clip_norm;
    std::vector<double> losses, others;
    const auto one = trained(Exec({.threads = 1}), network, o, &losses, 100);
    const auto many = trained(Exec({.threads = 3}), network, o, &others, 100);
    EXPECT_TRUE(same_state(one, many)) << clip_norm;
    EXPECT_EQ(losses, others) << clip_norm;
  }
}

}  // namespace
}  // namespace gradloom
