// An optimizer on the host with gradients of a device, whole and compressed.
#include "gradloom/train/device_gradients.h"

#include <cmath>

#include "gradloom/models/kan/device_network.h"
#include "gradloom/train/checkpoint.h"
#include "gradloom/train/device_trainer.h"
#include "tests/support/device.h"
#include "tests/support/scratch.h"
#include "tests/train/support.h"

namespace gradloom {
namespace {

using kan::DeviceNetwork;
using kan::Network;
using kernels::compress::Compression;
using test::same_bits;
using test::small_network;
using test::smooth_rows;
using Cpu = Trainer<Network<float>, RowDataset<float>>;
using Host = DeviceGradientTrainer<DeviceNetwork<float>, RowDataset<float>>;

TrainOptions compressed(OptimizerKind kind, Compression compression = Compression::none) {
  TrainOptions o;
  o.batch = 16;
  o.epochs = 3;
  o.optimizer.kind = kind;
  o.optimizer.lr = 0.01;
  o.place = OptimizerPlace::host;
  o.compression = {compression, 0.1};
  return o;
}

// A trainer on the host with everything it needs.
struct OnHost {
  DeviceNetwork<float> model;
  Host trainer;
  OnHost(vulkan::Device& device, const Exec& ex, const Network<float>& network, const RowDataset<float>& data,
         const TrainOptions& o, TrainState<float>& state)
      : model(device, network), trainer(ex, model, data, o, state) {}
};

std::vector<double> losses_of(auto& trainer) {
  std::vector<double> losses;
  trainer.run({.after_step = {}, .validate = {}, .after_epoch = [&](const EpochReport& e) {
                 losses.push_back(e.loss);
                 return Continue::yes;
               }});
  return losses;
}

using OptimizeOnHost = test::DeviceTest;

TEST_F(OptimizeOnHost, WholeGradientsGiveTheBitsOfTheCpu) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  const Exec ex(test::exec_like(device()));
  for (const std::size_t accumulate : {1, 2})
    for (const double clip_norm : {0.0, 0.05})
      for (const OptimizerKind kind : test::element_optimizers()) {
        SCOPED_TRACE(testing::Message() << accumulate << " batches, clip " << clip_norm << ", optimizer "
                                        << static_cast<int>(kind));
        TrainOptions o = compressed(kind);
        o.accumulate = accumulate;
        o.optimizer.clip_norm = clip_norm;
        o.freeze = {"layer0.bias"};
        TrainState<float> a = initial_state(network, 3), b = initial_state(network, 3);
        Cpu(ex, network, data, o, a).run();
        OnHost(device(), ex, network, data, o, b).trainer.run();
        EXPECT_TRUE(same_bits(a.parameters, b.parameters));
        EXPECT_EQ(a.position.step, b.position.step);
      }
}

// The penalty, and edges that a stage of pruning removed, are completed on the host.
TEST_F(OptimizeOnHost, PenaltiesAndRemovedEdgesGiveTheBitsOfTheCpu) {
  const auto data = smooth_rows<float>(70);
  const Exec ex(test::exec_like(device()));
  const auto plain = small_network<float>();
  for (const double sparsity : {0.0, 0.05})
    for (const bool keep_zero : {false, true})
      for (const std::size_t accumulate : {1, 2})
        for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
          SCOPED_TRACE(testing::Message() << "sparsity " << sparsity << ", keep_zero " << keep_zero << ", "
                                          << accumulate << " batches, optimizer " << static_cast<int>(kind));
          kan::NetworkOptions changed = plain.options();
          changed.sparsity = sparsity, changed.keep_zero = keep_zero;
          const Network<float> network(changed);
          TrainOptions o = compressed(kind);
          o.accumulate = accumulate;
          o.freeze = {"layer1.weight"};
          TrainState<float> a = initial_state(network, 3);
          const Slice& weight = network.parameters()[network.slices(0).weight];
          const kernels::spline::Shape& s = network.shape(0);
          for (std::size_t r = 0; r < s.rows(); ++r) a.parameters.data()[weight.offset + r * s.out_padded()] = 0;
          TrainState<float> b = initial_state(network, 3), without = initial_state(plain, 3);
          for (TrainState<float>* other : {&b, &without})
            std::copy_n(a.parameters.data(), a.parameters.size(), other->parameters.data());
          Cpu cpu(ex, network, data, o, a);
          OnHost host(device(), ex, network, data, o, b);
          const auto expected = losses_of(cpu), losses = losses_of(host.trainer);
          EXPECT_TRUE(same_bits(a.parameters, b.parameters));
          ASSERT_EQ(losses.size(), expected.size());
          for (std::size_t e = 0; e < losses.size(); ++e) EXPECT_NEAR(losses[e], expected[e], 1e-6 * expected[e]);
          Cpu(ex, plain, data, o, without).run();
          EXPECT_EQ(same_bits(without.parameters, b.parameters), sparsity == 0.0 && !keep_zero);
        }
}

TEST_F(OptimizeOnHost, UpdatesOnTheDeviceRefuseAPenalty) {
  kan::NetworkOptions changed = small_network<float>().options();
  changed.sparsity = 0.05;
  const Network<float> network(changed);
  const auto data = smooth_rows<float>(70);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  const DeviceNetwork<float> on(device(), network);
  using OnDevice = DeviceTrainer<DeviceNetwork<float>, RowDataset<float>>;
  const std::string message = test::message_of([&] { OnDevice(ex, on, data, compressed(OptimizerKind::adam), state); });
  EXPECT_NE(message.find("model.sparsity"), std::string::npos) << message;
}

TEST_F(OptimizeOnHost, BatchTimesAccumulateGivesTheBitsOfTheCpu) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(2300);
  const Exec ex(test::exec_like(device()));
  TrainOptions o = compressed(OptimizerKind::adam);
  o.epochs = 2, o.batch = 1024;
  TrainState<float> on_cpu = initial_state(network, 3);
  Cpu(ex, network, data, o, on_cpu).run();
  for (const auto& [batch, accumulate, piece] : {std::tuple(1024, 1, 0), {256, 4, 0}, {512, 2, 0}, {1024, 1, 256}}) {
    SCOPED_TRACE(testing::Message() << accumulate << " times " << batch << ", pieces of " << piece);
    o.batch = batch, o.accumulate = accumulate, o.parallel_examples = piece;
    TrainState<float> state = initial_state(network, 3);
    OnHost(device(), ex, network, data, o, state).trainer.run();
    EXPECT_TRUE(same_bits(state.parameters, on_cpu.parameters));
    // A state that is put aside in the middle of a step goes on elsewhere.
    TrainState<float> parted = initial_state(network, 3);
    {
      OnHost first(device(), ex, network, data, o, parted);
      for (int n = 0; n < 3; ++n) first.trainer.step();
      first.trainer.sync();
    }
    OnHost(device(), ex, network, data, o, parted).trainer.run();
    EXPECT_TRUE(same_bits(parted.parameters, on_cpu.parameters));
  }
}

TEST_F(OptimizeOnHost, LbfgsDescendsAsOnTheCpu) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device()));
  TrainOptions o = compressed(OptimizerKind::lbfgs);
  o.optimizer.lr = 1.0;
  TrainState<float> a = initial_state(network, 3), b = initial_state(network, 3);
  Cpu cpu(ex, network, data, o, a);
  OnHost host(device(), ex, network, data, o, b);
  const auto expected = losses_of(cpu), found = losses_of(host.trainer);
  ASSERT_EQ(expected.size(), found.size());
  // Losses are summed in another order, so a line search may end elsewhere in the last digits of a float.
  for (std::size_t e = 0; e < found.size(); ++e) EXPECT_NEAR(found[e], expected[e], 1e-3 * expected[e]) << e;
  EXPECT_LT(found.back(), found.front());
}

// Sums of sines, as the other trainers on a device learn them.
RowDataset<float> sines() {
  RowParts<float> parts;
  parts.size = 64;
  parts.features = 8;
  parts.targets = 4;
  const RandomStream random(1, RandomUse::data);
  for (std::uint32_t i = 0; i < 64 * 8; ++i) parts.x.push_back(static_cast<float>(2 * random.uniform(i) - 1));
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      parts.target.push_back(std::sin(2 * parts.x[i * 8 + j]) + parts.x[i * 8 + j + 4]);
  return RowDataset<float>(parts);
}

TEST_F(OptimizeOnHost, CompressedGradientsConverge) {
  kan::NetworkOptions n;
  n.widths = {8, 16, 4};
  const Network<float> network(n);
  const auto data = sines();
  const Exec ex(test::exec_like(device()));
  enum class Waiting { is_kept, is_forgotten };
  const auto last_loss = [&](OptimizerKind optimizer, Compression kind, Waiting waiting) {
    TrainOptions o = compressed(optimizer, kind);
    o.batch = 64;
    o.epochs = 100;
    if (optimizer == OptimizerKind::sgd) o.optimizer.lr = 0.1;
    TrainState<float> state = initial_state(network, 1);
    double last = 0.0;
    while (state.position.epoch < o.epochs) {
      if (waiting == Waiting::is_forgotten) state.residual = {};
      OnHost host(device(), ex, network, data, o, state);
      host.trainer.run({.after_step = {}, .validate = {}, .after_epoch = [&](const EpochReport& e) {
                          last = e.loss;
                          return waiting == Waiting::is_kept ? Continue::yes : Continue::stop;
                        }});
    }
    return last;
  };
  double variance = 0.0;  // about the loss of the best constant
  for (float t : data.parts().target) variance += static_cast<double>(t) * static_cast<double>(t) / 256;
  for (const Compression kind : {Compression::none, Compression::half, Compression::top_k})
    EXPECT_LT(last_loss(OptimizerKind::adam, kind, Waiting::is_kept), 1e-2 * variance) << static_cast<int>(kind);
  // Adam's scaling hides what is missing; plain steps show it.
  EXPECT_LT(last_loss(OptimizerKind::sgd, Compression::top_k, Waiting::is_kept),
            last_loss(OptimizerKind::sgd, Compression::top_k, Waiting::is_forgotten));
}

TEST_F(OptimizeOnHost, ACompressedGradientMovesFewBytes) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device()));
  const std::size_t size = network.parameters().flat_size(), pairs = 2 * sizeof(float);
  for (const Compression kind : {Compression::none, Compression::half, Compression::top_k}) {
    TrainState<float> state = initial_state(network, 3);
    const TrainOptions o = compressed(OptimizerKind::adam, kind);
    OnHost host(device(), ex, network, data, o, state);
    host.trainer.step();
    const vulkan::DeviceCounters before = device().counters();
    host.trainer.step();
    const vulkan::DeviceCounters after = device().counters();
    EXPECT_EQ(after.submits - before.submits, 1u);
    EXPECT_EQ(after.bytes_down - before.bytes_down,
              kernels::compress::compressed_bytes<float>(o.compression, size) + pairs);
  }
}

TEST_F(OptimizeOnHost, WhatWaitsToBeSentSurvivesACheckpoint) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  const Exec ex(test::exec_like(device()));
  for (const bool forget : {false, true}) {
    const TrainOptions o = compressed(OptimizerKind::adam, Compression::top_k);
    TrainState<float> whole_run = initial_state(network, 3), state = initial_state(network, 3);
    OnHost(device(), ex, network, data, o, whole_run).trainer.run();
    {
      OnHost host(device(), ex, network, data, o, state);
      for (int i = 0; i < 4; ++i) host.trainer.step();
      host.trainer.sync();
    }
    const test::Scratch scratch;
    const auto path = scratch.path() / "c.safetensors";
    save_checkpoint<float>(path, network.parameters(), network.buffers(), state, GradientIn::nowhere).or_throw();
    auto file = read_safetensors(path).or_throw();
    state = load_checkpoint<float>(file, path, network.parameters(), network.buffers()).or_throw();
    network.derive(state.buffers.span()).or_throw();
    if (forget) state.residual = {};
    OnHost(device(), ex, network, data, o, state).trainer.run();
    EXPECT_EQ(static_cast<bool>(same_bits(state.parameters, whole_run.parameters)), !forget);
  }
}

TEST_F(OptimizeOnHost, LbfgsWithCompressionIsRefused) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  const TrainOptions o = compressed(OptimizerKind::lbfgs, Compression::half);
  const std::string message = test::message_of([&] { OnHost(device(), ex, network, data, o, state); });
  EXPECT_NE(message.find("exact gradients"), std::string::npos) << message;
}

TEST_F(OptimizeOnHost, DivergenceIsToldAndChangesNothing) {
  const auto network = small_network<float>();
  auto rows = smooth_rows<float>(64).parts();
  rows.target[0] = std::numeric_limits<float>::infinity();
  const RowDataset<float> data(rows);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  TrainOptions o = compressed(OptimizerKind::adam);
  o.batch = 64;
  OnHost host(device(), ex, network, data, o, state);
  EXPECT_NE(test::message_of([&] { host.trainer.run(); }).find("diverged"), std::string::npos);
  EXPECT_TRUE(same_bits(state.parameters, initial_state(network, 3).parameters));
}

}  // namespace
}  // namespace gradloom
