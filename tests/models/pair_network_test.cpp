// Pair networks: gradients against differences and dual numbers, symmetry, the same bits however they are run.
#include "gradloom/models/graph/pair_network.h"

#include <gmock/gmock.h>

#include <cstring>

#include "gradloom/kernels/simd_targets.h"
#include "gradloom/train/gradient_check.h"
#include "gradloom/train/trainer.h"
#include "tests/models/graph_support.h"

namespace gradloom {
namespace {

using graph::PairNetwork;
using graph::PairOptions;

static_assert(Model<PairNetwork<float>, float>);
static_assert(HasBranches<PairNetwork<double>>);
static_assert(HasRunningBuffers<PairNetwork<double>>);

std::vector<GraphPair> all_pairs(std::size_t graphs) {
  std::vector<GraphPair> pairs;
  for (std::uint32_t a = 0; a < graphs; ++a)
    for (std::uint32_t b = a; b < graphs; ++b) pairs.push_back({a, b, 0.1 * (a + b)});
  return pairs;
}

template <class T>
PairDataset<T> pair_data(std::vector<GraphPair> pairs) {
  const GraphSet set = test::random_graphs({}, GraphTask::graph);
  const std::vector<std::uint32_t> which{0, 1, 2, 3};
  GraphFeatureOptions o;
  o.targets_known = false;
  return PairDataset<T>(std::make_shared<GraphArrays<T>>(make_graph_arrays<T>(set, which, GraphTask::graph, o)),
                        std::move(pairs));
}

template <class T>
PairNetwork<T> network_of(const PairDataset<T>& data, graph::Activation act = graph::Activation::relu) {
  PairOptions o;
  o.encoder.task = GraphTask::graph, o.encoder.kind = graph::LayerKind::gin, o.encoder.activation = act;
  o.encoder.hidden = {5, 5}, o.encoder.jumping = graph::Jumping::concat;
  o.encoder.inputs = data.graphs().arrays().features, o.encoder.outputs = 6;
  o.encoder.limits.include(data.graphs());
  o.hidden = 7;
  return PairNetwork<T>(o);
}

template <class T>
Buffer<T> noisy_parameters(const PairNetwork<T>& network) {
  Buffer<T> p(network.parameters().flat_size());
  network.initialise(3, p.span(), {});
  const RandomStream random(4, RandomUse::test);
  for (const Slice& slice : network.parameters())
    for_each_logical(
        slice, [&](std::size_t i) { p[i] += static_cast<T>(0.3 * random.normal(static_cast<std::uint32_t>(i))); });
  return p;
}

struct PairResult {
  std::vector<float> y, gradient;
  bool operator==(const PairResult& o) const {
    return y.size() == o.y.size() && std::memcmp(y.data(), o.y.data(), sizeof(float) * y.size()) == 0 &&
           std::memcmp(gradient.data(), o.gradient.data(), sizeof(float) * gradient.size()) == 0;
  }
};

PairResult run(const Exec& ex) {
  // Enough pairs for several blocks of rows.
  std::vector<GraphPair> pairs;
  for (int k = 0; k < 40; ++k)
    for (const GraphPair& p : all_pairs(4)) pairs.push_back(p);
  const auto data = pair_data<float>(pairs);
  const auto network = network_of(data);
  const Buffer<float> p = noisy_parameters(network);
  const ModelArrays<float> arrays{p, {}};
  auto tape = network.make_tape(ex, {.batch = data.size()});
  PairResult r;
  r.y.resize(data.size() * 16), r.gradient.resize(p.size());
  std::vector<float> dl_dy(r.y.size(), 0.5f);
  network.forward(ex, {}, arrays, data.all(), tape, {r.y.data(), {data.size(), 1}, {16, 1}});
  Buffer<float> levels = gradient_levels(network, data.all());
  network.backward(ex, {.arrays = arrays,
                        .batch = data.all(),
                        .tape = tape,
                        .dl_dy = {dl_dy.data(), {data.size(), 1}, {16, 1}},
                        .gradient = r.gradient,
                        .levels = levels});
  return r;
}

TEST(PairNetworks, BackwardMatchesCentralDifferences) {
  for (const auto act : {graph::Activation::relu, graph::Activation::silu}) {
    const auto data = pair_data<double>({{0, 1, 0.5}, {2, 0, 0.1}, {3, 2, 0.9}, {1, 2, 0.2}, {0, 3, 0.3}});
    const auto network = network_of(data, act);
    const Exec ex({.threads = 1});
    const Buffer<double> p = noisy_parameters(network);
    const auto report = check_gradient(ex, network, data.all(), p.span(), {}, {.noise = 0.2});
    EXPECT_TRUE(report.passed) << report.reason;
    EXPECT_GT(report.checked, 100u);
  }
}

TEST(PairNetworks, BackwardMatchesDualNumbers) {
  const auto data = pair_data<double>({{0, 1, 0.5}, {2, 0, 0.1}, {3, 2, 0.9}, {1, 2, 0.2}});
  const auto network = network_of(data);
  const Exec ex({.threads = 1});
  const Buffer<double> p = noisy_parameters(network);
  const ModelArrays<double> arrays{p, {}};
  auto tape = network.make_tape(ex, {.batch = 4});
  std::vector<double> y(64), dl_dy(64, 0.0), gradient(p.size());
  for (int b = 0; b < 4; ++b) dl_dy[b * 16] = 1.0 - 0.7 * b;
  const View<const double, 2> direction(dl_dy.data(), {4, 1}, {16, 1});
  network.forward(ex, {}, arrays, data.all(), tape, {y.data(), {4, 1}, {16, 1}});
  Buffer<double> levels = gradient_levels(network, data.all());
  network.backward(ex, {.arrays = arrays,
                        .batch = data.all(),
                        .tape = tape,
                        .dl_dy = direction,
                        .gradient = gradient,
                        .levels = levels});
  double largest = 0.0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 0.0);
  for (const Slice& slice : network.parameters())
    for_each_logical(slice, [&](std::size_t i) {
      EXPECT_NEAR(gradient[i], graph::dual_derivative(network, {}, arrays, data.all(), direction, i), 1e-11 * largest)
          << slice.name;
    });
}

TEST(PairNetworks, SimilarityDoesNotDependOnTheOrderOfThePair) {
  const auto data = pair_data<float>({{0, 2, 0.5}, {2, 0, 0.5}, {1, 1, 1.0}, {3, 1, 0.1}, {1, 3, 0.1}});
  const auto network = network_of(data);
  const Exec ex({.threads = 1});
  const Buffer<float> p = noisy_parameters(network);
  auto tape = network.make_tape(ex, {.batch = 5, .backward = false});
  std::vector<float> y(80);
  network.forward(ex, {}, {p, {}}, data.all(), tape, {y.data(), {5, 1}, {16, 1}});
  EXPECT_EQ(y[0], y[16]);
  EXPECT_EQ(y[48], y[64]);
  for (int b = 0; b < 5; ++b) EXPECT_THAT(y[b * 16], ::testing::AllOf(::testing::Gt(0.0f), ::testing::Le(1.0f)));
}

TEST(PairNetworks, BitsAreTheSameOnAllThreadsTargetsAndInTheReference) {
  const PairResult expected = run(Exec({.threads = 1}));
  for (const unsigned threads : {2u, 3u}) EXPECT_TRUE(run(Exec({.threads = threads})) == expected) << threads;
  EXPECT_TRUE(run(Exec({.threads = 1, .variant = Variant::reference})) == expected);
  for (const std::string& name : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(name);
    EXPECT_TRUE(run(Exec({.threads = 1})) == expected) << name;
  }
}

TEST(PairNetworks, WrongTapesAndOptionsAreRefused) {
  const auto data = pair_data<float>(all_pairs(4));
  const auto network = network_of(data);
  const Exec ex({.threads = 1});
  const Buffer<float> p = noisy_parameters(network);
  auto small = network.make_tape(ex, {.batch = 2});
  std::vector<float> y(160);
  EXPECT_THROW(network.forward(ex, {}, {p, {}}, data.all(), small, {y.data(), {10, 1}, {16, 1}}), Exception);
  PairOptions o = network.options();
  o.hidden = 0;
  EXPECT_THROW(PairNetwork<float>{o}, Exception);
  o.hidden = 4, o.encoder.task = GraphTask::node;
  EXPECT_THROW(PairNetwork<float>{o}, Exception);
}

}  // namespace
}  // namespace gradloom
