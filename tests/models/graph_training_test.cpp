// Training over many graphs: the same bits as the sequential loop, however graphs are dealt to workers and batches.
#include <gtest/gtest.h>

#include <cstring>

#include "gradloom/train/trainer.h"
#include "tests/models/graph_support.h"
#include "tests/support/sanitized.h"

namespace gradloom {
namespace {

using graph::GraphNetwork;
using graph::Jumping;
using graph::LayerKind;
using graph::NetworkOptions;
using graph::Norm;
using graph::Readout;
using test::GraphShape;

struct Trained {
  std::vector<double> losses;
  std::vector<float> parameters, gradient;
};

void expect_same(const Trained& a, const Trained& b, const std::string& where) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  const auto equal = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  EXPECT_TRUE(equal(a.parameters, b.parameters)) << "weights, " << where;
  EXPECT_TRUE(equal(a.gradient, b.gradient)) << "gradient, " << where;
}

Trained train(const ExecOptions& exec, const NetworkOptions& options, const GraphDataset<float>& data,
              TrainOptions how) {
  const Exec ex(exec);
  const GraphNetwork<float> network(test::GraphFixture<float>::fitted(options, data));
  how.epochs = 3;
  how.loss.kind = LossKind::cross_entropy;
  TrainState<float> state = initial_state(network, 7);
  Trained result;
  Trainer trainer(ex, network, data, how, state);
  trainer.run({.after_step = {}, .validate = {}, .after_epoch = [&](const EpochReport& e) {
                 result.losses.push_back(e.loss);
                 return Continue::yes;
               }});
  result.parameters.assign(state.parameters.span().begin(), state.parameters.span().end());
  result.gradient.assign(state.gradient.span().begin(), state.gradient.span().end());
  return result;
}

// Small graphs, one without edges, one of a single node; `star` adds a graph with a hub that is cut within operations.
GraphDataset<float> graphs(std::uint32_t star) {
  GraphShape shape{.nodes = {1}, .star = star, .features = 5};
  for (std::uint32_t g = 0; g < 25; ++g) shape.nodes.push_back(1 + g * 7 % 31);
  return test::dataset_of<float>(test::random_graphs(shape, GraphTask::graph), GraphTask::graph);
}

std::vector<std::pair<std::string, NetworkOptions>> networks() {
  std::vector<std::pair<std::string, NetworkOptions>> all;
  const auto add = [&](const char* name, LayerKind kind, auto change) {
    NetworkOptions o;
    o.task = GraphTask::graph, o.kind = kind, o.hidden = {20, 20};
    change(o);
    all.emplace_back(name, o);
  };
  add("mean", LayerKind::mean, [](auto& o) { o.head_dropout = 0.5; });
  add("gcn, dropout", LayerKind::gcn, [](auto& o) { o.dropout = 0.3, o.readout = Readout::mean; });
  add("sage-max, residual", LayerKind::sage_max, [](auto& o) { o.residual = true, o.readout = Readout::max; });
  add("gcn, layers of different widths", LayerKind::gcn, [](auto& o) {
    o.hidden = {70, 20, 40, 8}, o.jumping = Jumping::concat;
  });
  add("gin, layer norm", LayerKind::gin, [](auto& o) { o.norm = Norm::layer, o.jumping = Jumping::concat; });
  add("gat, jump by maximum", LayerKind::gat, [](auto& o) { o.heads = 4, o.jumping = Jumping::max; });
  return all;
}

TEST(GraphTraining, ParallelLoopHasTheLossGradientsAndWeightsOfTheSequentialReference) {
  auto all = networks();
  all.emplace_back("gin, batch norm", all[4].second);
  all.back().second.norm = Norm::batch;
  for (const std::uint32_t star : test::thinned<std::uint32_t>({4500, 700, 0})) {
    const GraphDataset<float> data = graphs(star);
    for (const auto& [name, options] : test::thinned(all)) {
      const TrainOptions how{.batch = 7};
      const Trained expected = train({.threads = 1, .variant = Variant::reference}, options, data, how);
      EXPECT_EQ(expected.losses.size(), 3u);
      for (const unsigned threads : {1u, 2u, 8u}) {
        const Trained found = train({.threads = threads}, options, data, how);
        expect_same(found, expected, name + ", threads " + std::to_string(threads));
        EXPECT_EQ(found.losses, expected.losses) << name;
      }
    }
  }
}

// Twelve graphs per update in every case; the groups end alike.
TEST(GraphTraining, BatchesPiecesAndSingleGraphsOnAnyThreadsGiveTheSameBits) {
  for (const std::uint32_t star : test::thinned<std::uint32_t>({4500, 0})) {
    const GraphDataset<float> data = graphs(star);
    for (const auto& [name, options] : test::thinned(networks())) {
      const Trained expected =
          train({.threads = 1, .variant = Variant::reference}, options, data, {.batch = 1, .accumulate = 12});
      for (const TrainOptions& how :
           {TrainOptions{.batch = 12}, TrainOptions{.batch = 4, .accumulate = 3},
            TrainOptions{.batch = 12, .parallel_examples = 1}, TrainOptions{.batch = 12, .parallel_examples = 5},
            TrainOptions{.batch = 6, .accumulate = 2, .parallel_examples = 4},
            TrainOptions{.batch = 12, .fused = FusedUpdate::off}}) {
        const Trained found = train({.threads = 2}, options, data, how);
        expect_same(
            found, expected,
            name + ", batch " + std::to_string(how.batch) + ", pieces of " + std::to_string(how.parallel_examples));
        for (std::size_t e = 0; e < 3; ++e)  // sums of at most 26 numbers in double
          EXPECT_NEAR(found.losses[e], expected.losses[e], 1e-14 * expected.losses[e]);
      }
    }
  }
}

TEST(GraphTraining, DropoutOfAGraphDoesNotDependOnItsBatch) {
  const GraphDataset<float> data = graphs(0);
  NetworkOptions o;
  o.task = GraphTask::graph, o.hidden = {8}, o.dropout = 0.5, o.head_dropout = 0.5;
  const GraphNetwork<float> network(test::GraphFixture<float>::fitted(o, data));
  TrainState<float> state = initial_state(network, 1);
  const Exec ex({.threads = 1});
  const ModelArrays<float> arrays{state.parameters, state.buffers};
  auto tape = network.make_tape(ex, {.batch = 4});
  auto storage = data.make_storage(4);
  const auto output = [&](std::vector<std::uint32_t> which, std::size_t row, Step step) {
    Buffer<float> y(which.size() * 16);
    network.forward(ex, step, arrays, data.gather(which, storage), tape,
                    {y.data(), {which.size(), network.output_width()}, {16, 1}});
    return std::vector<float>(y.data() + row * 16, y.data() + row * 16 + network.output_width());
  };
  const Step step{.seed = 3, .epoch = 5, .index = 1}, later{.seed = 3, .epoch = 6, .index = 1};
  const auto alone = output({9}, 0, step);
  EXPECT_EQ(output({4, 20, 9, 1}, 2, {.seed = 3, .epoch = 5, .index = 8}), alone);
  EXPECT_NE(output({9}, 0, later), alone);
}

}  // namespace
}  // namespace gradloom
