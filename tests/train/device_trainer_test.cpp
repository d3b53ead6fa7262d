// Training on a device against training on the CPU.
#include "gradloom/train/device_trainer.h"

#include <cmath>

#include "gradloom/models/kan/device_network.h"
#include "gradloom/train/checkpoint.h"
#include "tests/support/device.h"
#include "tests/support/scratch.h"
#include "tests/train/support.h"

namespace gradloom {
namespace {

using kan::DeviceNetwork;
using kan::Network;
using test::same_bits;
using test::small_network;
using test::smooth_rows;
using Cpu = Trainer<Network<float>, RowDataset<float>>;
using Gpu = DeviceTrainer<DeviceNetwork<float>, RowDataset<float>>;

TrainOptions options(OptimizerKind kind) {
  TrainOptions o;
  o.batch = 16;
  o.epochs = 3;
  o.optimizer.kind = kind;
  o.optimizer.lr = 0.01;
  return o;
}

using TrainOnDevice = test::DeviceTest;

// Both train; the states must agree in every bit, but for the losses, which are summed in another order.
void expect_same_training(vulkan::Device& device, const Network<float>& network, const RowDataset<float>& data,
                          const TrainOptions& o) {
  const Exec ex(test::exec_like(device));
  TrainState<float> on_cpu = initial_state(network, 3), on_device = initial_state(network, 3);
  std::vector<double> cpu_losses, device_losses;
  const auto keep = [](std::vector<double>& to) {
    return TrainHooks{.after_step = {}, .validate = {}, .after_epoch = [&](const EpochReport& e) {
                        to.push_back(e.loss);
                        return Continue::yes;
                      }};
  };
  Cpu(ex, network, data, o, on_cpu).run(keep(cpu_losses));
  const DeviceNetwork<float> on(device, network);
  Gpu(ex, on, data, o, on_device).run(keep(device_losses));
  EXPECT_TRUE(same_bits(on_cpu.parameters, on_device.parameters));
  ASSERT_EQ(on_cpu.optimizer.size(), on_device.optimizer.size());
  for (std::size_t i = 0; i < on_cpu.optimizer.size(); ++i)
    EXPECT_TRUE(same_bits(on_cpu.optimizer[i].values, on_device.optimizer[i].values)) << on_cpu.optimizer[i].name;
  EXPECT_EQ(on_cpu.position.step, on_device.position.step);
  ASSERT_EQ(cpu_losses.size(), device_losses.size());
  for (std::size_t e = 0; e < cpu_losses.size(); ++e)
    EXPECT_NEAR(device_losses[e], cpu_losses[e], 1e-12 * std::abs(cpu_losses[e])) << "epoch " << e;
}

TEST_F(TrainOnDevice, HasTheBitsOfTheCpuWithEveryOptimizer) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);  // the last batch is shorter
  for (const OptimizerKind kind : test::element_optimizers()) {
    TrainOptions o = options(kind);
    o.optimizer.weight_decay = 0.02;
    o.optimizer.clip_value = 0.05;
    o.schedule.kind = ScheduleKind::cosine;
    SCOPED_TRACE(static_cast<int>(kind));
    expect_same_training(device(), network, data, o);
  }
  TrainOptions o = options(OptimizerKind::sgd);
  o.optimizer.momentum = 0.9;
  expect_same_training(device(), network, data, o);
  o.optimizer.nesterov = true;
  expect_same_training(device(), network, data, o);
}

TEST_F(TrainOnDevice, HasTheBitsOfTheCpuWithAccumulationAndFrozenLayers) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  TrainOptions o = options(OptimizerKind::adam);
  o.accumulate = 2;
  expect_same_training(device(), network, data, o);
  o.freeze = {"layer0.weight", "layer1.bias"};
  expect_same_training(device(), network, data, o);
  o.freeze = {"layer0.*"};
  expect_same_training(device(), network, data, o);
}

// Steps of 1024 rows, four leaves of the tree, however they are cut; the last step of an epoch is shorter.
TEST_F(TrainOnDevice, BatchTimesAccumulateGivesTheSameBits) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(2300);
  TrainOptions o = options(OptimizerKind::adam);
  o.epochs = 2;
  const auto trained = [&](std::size_t batch, std::size_t accumulate, std::size_t piece) {
    o.batch = batch, o.accumulate = accumulate, o.parallel_examples = piece;
    expect_same_training(device(), network, data, o);
    TrainState<float> state = initial_state(network, 3);
    const DeviceNetwork<float> on(device(), network);
    Gpu(Exec(test::exec_like(device())), on, data, o, state).run();
    return std::move(state.parameters);
  };
  const Buffer<float> whole = trained(1024, 1, 0);
  EXPECT_TRUE(same_bits(trained(256, 4, 0), whole));
  EXPECT_TRUE(same_bits(trained(512, 2, 0), whole));
  EXPECT_TRUE(same_bits(trained(1024, 1, 256), whole));
  EXPECT_TRUE(same_bits(trained(1024, 1, 768), whole));
  o.freeze = {"layer1.weight"};
  expect_same_training(device(), network, data, o);
}

TEST_F(TrainOnDevice, PiecesAreCutAtLeaves) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(600);
  TrainOptions o = options(OptimizerKind::adam);
  o.batch = 600, o.parallel_examples = 100;
  TrainState<float> state = initial_state(network, 3);
  const DeviceNetwork<float> on(device(), network);
  const Exec ex(test::exec_like(device()));
  EXPECT_NE(test::message_of([&] { Gpu(ex, on, data, o, state); }).find("parallel_examples is 100"), std::string::npos);
}

TEST_F(TrainOnDevice, HasTheBitsOfTheCpuWhenOnlySomeTensorsDecay) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw})
    for (const char* decay : {"layer0.weight", "layer1.bias", "layer0.*"}) {
      TrainOptions o = options(kind);
      o.optimizer.weight_decay = 0.5;
      o.decay = {decay};
      SCOPED_TRACE(decay);
      expect_same_training(device(), network, data, o);
    }
}

TEST_F(TrainOnDevice, HasTheBitsOfTheCpuWithEveryLoss) {
  const auto network = small_network<float>();
  auto rows = smooth_rows<float>(40).parts();
  for (std::size_t s = 0; s < rows.size; ++s) rows.weight.push_back(s % 3 == 0 ? 0.5f : 2.0f);
  TrainOptions o = options(OptimizerKind::adam);
  for (const LossKind kind : {LossKind::mse, LossKind::mae, LossKind::huber, LossKind::binary_cross_entropy}) {
    o.loss.kind = kind;
    o.loss.huber_delta = 0.3;
    SCOPED_TRACE(static_cast<int>(kind));
    expect_same_training(device(), network, RowDataset<float>(rows), o);
  }
  RowParts<float> classes = rows;
  classes.targets = 0;
  classes.target.clear();
  classes.target_names.clear();
  classes.class_names = {"a", "b"};
  for (std::size_t s = 0; s < rows.size; ++s) classes.label.push_back(rows.target[2 * s] > 0 ? 1 : 0);
  o.loss.kind = LossKind::cross_entropy;
  expect_same_training(device(), network, RowDataset<float>(classes), o);
}

TEST_F(TrainOnDevice, ClipsByNormAsTheCpuDoes) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  TrainOptions plain = options(OptimizerKind::sgd);
  plain.optimizer.clip_norm = 0.05;
  std::vector<TrainOptions> all(4, plain);
  all[1].freeze = {"layer0.weight"};
  all[2].optimizer.weight_decay = 0.5;
  all[2].decay = {"layer1.weight"};
  all[3].accumulate = 2;
  const Exec ex(test::exec_like(device()));
  for (std::size_t n = 0; n < all.size(); ++n) {
    SCOPED_TRACE(n);
    TrainOptions o = all[n];
    TrainState<float> on_cpu = initial_state(network, 3), on_device = initial_state(network, 3),
                      free = initial_state(network, 3);
    Cpu(ex, network, data, o, on_cpu).run();
    const DeviceNetwork<float> on(device(), network);
    Gpu(ex, on, data, o, on_device).run();
    o.optimizer.clip_norm = 0.0;
    Cpu(ex, network, data, o, free).run();
    double difference = 0.0, moved = 0.0;
    for (std::size_t i = 0; i < on_cpu.parameters.size(); ++i) {
      difference = std::max<double>(difference, std::abs(on_cpu.parameters[i] - on_device.parameters[i]));
      moved = std::max<double>(moved, std::abs(on_cpu.parameters[i] - free.parameters[i]));
    }
    EXPECT_LE(difference, 1e-6);
    EXPECT_GT(moved, 1e-4) << "the limit was never reached, so nothing was tested";
  }
}

// Of one step of a network with these widths.
std::uint64_t dispatches(vulkan::Device& device, const std::vector<std::size_t>& widths, const TrainOptions& o) {
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device));
  kan::NetworkOptions n;
  n.widths = widths;
  const Network<float> network(n);
  const DeviceNetwork<float> on(device, network);
  TrainState<float> state = initial_state(network, 3);
  Gpu trainer(ex, on, data, o, state);
  const auto before = device.counters().dispatches;
  trainer.step();
  const auto after = device.counters().dispatches;
  trainer.sync();
  return after - before;
}

TEST_F(TrainOnDevice, NoStepHasMoreThanFourDispatchesPerLayer) {
  for (const auto& widths : {std::vector<std::size_t>{3, 2}, {3, 4, 2}, {3, 4, 4, 2}}) {
    const std::size_t layers = widths.size() - 1;
    TrainOptions o = options(OptimizerKind::adamw);
    EXPECT_EQ(dispatches(device(), widths, o), 4 * layers);
    o.optimizer.weight_decay = 0.1;
    o.decay = {"layer0.weight"};
    EXPECT_EQ(dispatches(device(), widths, o), 4 * layers) << "some decay";
    o.optimizer.clip_norm = 0.05;
    EXPECT_EQ(dispatches(device(), widths, o), 4 * layers) << "some decay, clipped";
    o.decay.clear();
    EXPECT_EQ(dispatches(device(), widths, o), 3 * layers + 1) << "clipped";
    o.freeze = {"layer0.weight"};
    EXPECT_EQ(dispatches(device(), widths, o), 4 * layers) << "clipped, frozen";
  }
}

TEST_F(TrainOnDevice, FollowsTheCpuOverAHundredSteps) {
  kan::NetworkOptions n;
  n.widths = {8, 16, 8, 4};
  const Network<float> network(n);
  RowParts<float> parts;
  parts.size = 64;
  parts.features = 8;
  parts.targets = 4;
  const RandomStream random(1, RandomUse::data);
  for (std::uint32_t i = 0; i < 64 * 8; ++i) parts.x.push_back(static_cast<float>(2 * random.uniform(i) - 1));
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      parts.target.push_back(std::sin(2 * parts.x[i * 8 + j]) + parts.x[i * 8 + j + 4]);
  const RowDataset<float> data(parts);
  const Exec ex(test::exec_like(device()));
  for (const auto& [kind, tolerance] : {std::pair(OptimizerKind::sgd, 1e-5), std::pair(OptimizerKind::adam, 1e-4)}) {
    TrainOptions o = options(kind);
    o.batch = 64;
    o.epochs = 100;
    if (kind == OptimizerKind::sgd) o.optimizer.lr = 0.1;
    std::vector<double> cpu, gpu;
    const auto keep = [](std::vector<double>& to) {
      return TrainHooks{.after_step = {}, .validate = {}, .after_epoch = [&](const EpochReport& e) {
                          to.push_back(e.loss);
                          return Continue::yes;
                        }};
    };
    TrainState<float> a = initial_state(network, 1), b = initial_state(network, 1);
    Cpu(ex, network, data, o, a).run(keep(cpu));
    const DeviceNetwork<float> on(device(), network);
    Gpu(ex, on, data, o, b).run(keep(gpu));
    ASSERT_EQ(cpu.size(), 100u);
    ASSERT_EQ(gpu.size(), 100u);
    for (std::size_t e = 0; e < 100; ++e) ASSERT_LE(std::abs(cpu[e] - gpu[e]), tolerance * cpu[e]) << "step " << e;
    EXPECT_LT(gpu.back(), 0.7 * gpu.front());
  }
}

TEST_F(TrainOnDevice, AStepMovesTheBatchInAndNothingElse) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  const DeviceNetwork<float> on(device(), network);
  Gpu trainer(ex, on, data, options(OptimizerKind::adam), state);
  trainer.step();
  const vulkan::DeviceCounters before = device().counters();
  trainer.step();
  const vulkan::DeviceCounters after = device().counters();
  EXPECT_EQ(after.submits - before.submits, 1u);
  EXPECT_EQ(after.bytes_down - before.bytes_down, 0u);
  EXPECT_EQ(after.bytes_up - before.bytes_up, 512u + 256 + 256);  // head, 16 x 3 inputs, 16 x 2 targets
  EXPECT_LE(after.dispatches - before.dispatches, 4 * network.layers());
}

TEST_F(TrainOnDevice, RunsAreTheSameEveryTime) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  const Exec ex(test::exec_like(device()));
  const DeviceNetwork<float> on(device(), network);
  TrainOptions o = options(OptimizerKind::adam);
  o.optimizer.clip_norm = 0.1;
  TrainState<float> a = initial_state(network, 3), b = initial_state(network, 3);
  Gpu(ex, on, data, o, a).run();
  Gpu(ex, on, data, o, b).run();
  EXPECT_TRUE(same_bits(a.parameters, b.parameters));
}

TEST_F(TrainOnDevice, GoesOnFromACheckpointOfTheCpuAndBack) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  const Exec ex(test::exec_like(device()));
  const DeviceNetwork<float> on(device(), network);
  TrainOptions o = options(OptimizerKind::adam);
  TrainState<float> whole_run = initial_state(network, 3), state = initial_state(network, 3);
  Cpu(ex, network, data, o, whole_run).run();
  const auto some_steps = [&](auto&& trainer) {
    int left = 4;
    trainer.run({.after_step = [&](const TrainPosition&) { return --left == 0 ? Continue::stop : Continue::yes; },
                 .validate = {},
                 .after_epoch = {}});
  };
  const test::Scratch scratch;
  const auto reload = [&] {
    save_checkpoint<float>(scratch.path() / "c.safetensors", network.parameters(), network.buffers(), state,
                           GradientIn::nowhere)
        .or_throw();
    auto file = read_safetensors(scratch.path() / "c.safetensors").or_throw();
    state = load_checkpoint<float>(file, "c", network.parameters(), network.buffers()).or_throw();
    network.derive(state.buffers.span()).or_throw();
  };
  some_steps(Gpu(ex, on, data, o, state));
  reload();
  some_steps(Cpu(ex, network, data, o, state));
  reload();
  Gpu(ex, on, data, o, state).run();
  EXPECT_TRUE(same_bits(state.parameters, whole_run.parameters));
}

// Seven leaves of a step and a checkpoint behind each: on the device the levels of the sum are those of the CPU.
TEST_F(TrainOnDevice, CheckpointsInTheMiddleOfAStepAreThoseOfTheCpu) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(7 * 256);
  const Exec ex(test::exec_like(device()));
  const DeviceNetwork<float> on(device(), network);
  TrainOptions o = options(OptimizerKind::adam);
  o.epochs = 1, o.batch = 256, o.accumulate = 7;
  TrainState<float> whole_run = initial_state(network, 3);
  Cpu(ex, network, data, o, whole_run).run();
  const test::Scratch scratch;
  const auto path = scratch.path() / "c.safetensors";
  for (int pieces = 1; pieces < 7; ++pieces) {
    SCOPED_TRACE(pieces);
    TrainState<float> on_cpu = initial_state(network, 3), on_device = initial_state(network, 3);
    {
      Cpu cpu(ex, network, data, o, on_cpu);
      Gpu gpu(ex, on, data, o, on_device);
      for (int n = 0; n < pieces; ++n) cpu.step(), gpu.step();
      gpu.sync();
    }
    EXPECT_TRUE(same_bits(on_cpu.gradient, on_device.gradient));
    ASSERT_EQ(on_cpu.leaves, on_device.leaves);
    const std::size_t levels = (kernels::reduce::tree_height(on_cpu.leaves) - 1) * on_cpu.gradient.size();
    ASSERT_GE(on_device.levels.size(), levels);
    EXPECT_EQ(std::memcmp(on_cpu.levels.data(), on_device.levels.data(), levels * sizeof(float)), 0);
    save_checkpoint<float>(path, network.parameters(), network.buffers(), on_device, GradientIn::checkpoint).or_throw();
    const auto file = read_safetensors(path).or_throw();
    const auto loaded = [&] {
      auto state = load_checkpoint<float>(file, path, network.parameters(), network.buffers()).or_throw();
      network.derive(state.buffers.span()).or_throw();
      return state;
    };
    TrainState<float> goes_on_cpu = loaded(), goes_on_device = loaded(), damaged = loaded();
    Cpu(ex, network, data, o, goes_on_cpu).run();
    Gpu(ex, on, data, o, goes_on_device).run();
    EXPECT_TRUE(same_bits(goes_on_cpu.parameters, whole_run.parameters));
    EXPECT_TRUE(same_bits(goes_on_device.parameters, whole_run.parameters));
    damaged.leaves += 1;
    EXPECT_NE(test::message_of([&] { Gpu(ex, on, data, o, damaged); }).find("leaves of a step"), std::string::npos);
  }
}

TEST_F(TrainOnDevice, DivergenceIsToldAndLeavesTheParametersFinite) {
  const auto network = small_network<float>();
  auto rows = smooth_rows<float>(64).parts();
  rows.target[2 * 50] = std::numeric_limits<float>::infinity();
  const RowDataset<float> data(rows);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  const DeviceNetwork<float> on(device(), network);
  Gpu trainer(ex, on, data, options(OptimizerKind::adam), state);
  try {
    trainer.run();
    FAIL() << "an infinite loss went unnoticed";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::numeric);
  }
  for (float p : state.parameters.span()) ASSERT_TRUE(std::isfinite(p));
}

// Sample weights of 1e25 make gradients whose squares no float holds.
TEST_F(TrainOnDevice, ANormThatOverflowsIsToldOnBothSides) {
  const auto network = small_network<float>();
  auto rows = smooth_rows<float>(16).parts();
  rows.weight.assign(rows.size, 1e25f);
  const RowDataset<float> data(rows);
  TrainOptions o = options(OptimizerKind::sgd);
  o.loss.kind = LossKind::mae;
  o.loss.reduction = Reduction::sum;
  o.optimizer.clip_norm = 0.5;
  const Exec ex(test::exec_like(device()));
  TrainState<float> on_cpu = initial_state(network, 3), on_device = initial_state(network, 3);
  const auto message = [](auto&& train) -> std::string {
    try {
      train();
    } catch (const Exception& e) {
      EXPECT_EQ(e.code(), ErrorCode::numeric);
      return e.what();
    }
    return "";
  };
  const DeviceNetwork<float> on(device(), network);
  EXPECT_NE(message([&] { Cpu(ex, network, data, o, on_cpu).run(); }).find("norm of the gradient"), std::string::npos);
  EXPECT_NE(message([&] { Gpu(ex, on, data, o, on_device).run(); }).find("norm of the gradient"), std::string::npos);
  for (float p : on_device.parameters.span()) ASSERT_TRUE(std::isfinite(p));
}

TEST_F(TrainOnDevice, LostDeviceEndsTrainingWithAName) {
  const auto fragile = own_device({.lose_at_submit = 12});
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  const DeviceNetwork<float> on(*fragile, network);
  try {
    Gpu trainer(ex, on, data, options(OptimizerKind::adam), state);
    trainer.run();
    FAIL() << "a lost device went unnoticed";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::device_lost);
  }
}

// Results on a software device stay right without barriers; only the validation layer knows better.
TEST_F(TrainOnDevice, EveryBarrierOfAStepIsMissed) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(600);
  const auto layers = static_cast<std::uint32_t>(network.layers());
  for (const std::size_t batch : {16, 600}) {
    // The first stands before the step; then come the copy of the batch, forward, loss, backward, and with three leaves
    // their tree.
    const std::uint32_t barriers = 3 + (batch > 512 ? 3 : 2) * layers;
    for (std::uint32_t n = 2; n <= barriers; ++n) {
      const auto careless = own_device({.drop_barrier = n});
      const Exec ex(test::exec_like(*careless));
      TrainState<float> state = initial_state(network, 3);
      const DeviceNetwork<float> on(*careless, network);
      TrainOptions o = options(OptimizerKind::adam);
      o.batch = batch;
      Gpu trainer(ex, on, data, o, state);
      trainer.step();
      trainer.sync();
      ASSERT_FALSE(messages_.all.empty())
          << "without barrier " << n << " of a batch of " << batch << " nobody complains";
      EXPECT_NE(messages_.all.front().find("SYNC-HAZARD"), std::string::npos) << messages_.all.front();
      messages_.all.clear();
    }
  }
}

TEST_F(TrainOnDevice, WeightDecayIsForThoseItNames) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(70);
  for (const OptimizerKind kind : test::element_optimizers()) {
    TrainOptions o = options(kind);
    o.optimizer.weight_decay = 0.1;
    o.decay = {"layer0.weight", "layer1.*"};
    expect_same_training(device(), network, data, o);
  }
}

TEST_F(TrainOnDevice, LbfgsIsRefused) {
  const auto network = small_network<float>();
  const auto data = smooth_rows<float>(64);
  const Exec ex(test::exec_like(device()));
  TrainState<float> state = initial_state(network, 3);
  const DeviceNetwork<float> on(device(), network);
  EXPECT_NE(test::message_of([&] { Gpu(ex, on, data, options(OptimizerKind::lbfgs), state); }).find("lbfgs"),
            std::string::npos);
}

}  // namespace
}  // namespace gradloom
