// Tree networks and the loss of rewriting: gradients, bits, exact paths, and that they learn.
#include <gmock/gmock.h>

#include <cstring>

#include "gradloom/kernels/simd_targets.h"
#include "gradloom/models/graph/rewrite_loss.h"
#include "gradloom/models/graph/rewrite_path.h"
#include "gradloom/models/graph/rewrite_run.h"
#include "gradloom/train/gradient_check.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

// As the application has it.
template <class T>
double evaluate_loss(const Exec& ex, const LossOptions& o, const TreeBatch<T>& batch, View<const T, 2> y,
                     View<T, 2> dl_dy, std::span<double>) {
  return graph::rewrite_loss<T>(ex, batch, y, dl_dy, o.scale / static_cast<double>(batch.size));
}

namespace {

using graph::TreeNetwork;
using graph::TreeOptions;

static_assert(Model<TreeNetwork<float>, float>);

std::vector<RewriteSample> some_samples(std::size_t count, std::size_t least = 3, std::size_t most = 12) {
  ExpressionSetOptions o;
  o.seed = 5, o.train = count, o.least_nodes = least, o.most_nodes = most;
  return pass_samples(draw_expressions(o).train, {});
}

TreeOptions options_for(std::size_t most_nodes) {
  TreeOptions o;
  o.width = 16, o.layers = 3, o.most_nodes = most_nodes;
  return o;
}

template <class T>
Buffer<T> noisy_parameters(const TreeNetwork<T>& network) {
  Buffer<T> p(network.parameters().flat_size());
  network.initialise(3, p.span(), {});
  const RandomStream random(4, RandomUse::test);
  for (const Slice& slice : network.parameters())
    for_each_logical(
        slice, [&](std::size_t i) { p[i] += static_cast<T>(0.2 * random.normal(static_cast<std::uint32_t>(i))); });
  return p;
}

TEST(TreeNetworks, BackwardMatchesCentralDifferences) {
  auto samples = some_samples(6);
  samples.push_back(make_sample(parse_expression("x")));
  const TreeDataset<double> data(samples, {});
  const TreeNetwork<double> network(options_for(data.most_nodes()));
  const Exec ex({.threads = 1});
  const Buffer<double> p = noisy_parameters(network);
  const auto report = check_gradient(ex, network, data.all(), p.span(), {}, {.noise = 0.1, .max_elements = 1500});
  EXPECT_TRUE(report.passed) << report.reason;
  EXPECT_GT(report.checked, 500u);
}

TEST(TreeNetworks, BackwardMatchesDualNumbers) {
  const TreeDataset<double> data(some_samples(2), {});
  const TreeNetwork<double> network(options_for(data.most_nodes() + 1));
  const Exec ex({.threads = 1});
  const Buffer<double> p = noisy_parameters(network);
  const ModelArrays<double> arrays{p, {}};
  auto tape = network.make_tape(ex, {.batch = data.size()});
  const std::size_t width = network.output_width();
  std::vector<double> y(data.size() * width), dl_dy(y.size()), gradient(p.size());
  const RandomStream random(6, RandomUse::test);
  for (std::size_t i = 0; i < dl_dy.size(); ++i) dl_dy[i] = random.normal(static_cast<std::uint32_t>(i));
  const View<const double, 2> direction(dl_dy.data(), {data.size(), width});
  network.forward(ex, {}, arrays, data.all(), tape, {y.data(), {data.size(), width}});
  network.backward(ex, {.arrays = arrays, .batch = data.all(), .tape = tape, .dl_dy = direction, .gradient = gradient});
  double largest = 0.0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 0.0);
  std::size_t counter = 0;
  for (const Slice& slice : network.parameters())
    for_each_logical(slice, [&](std::size_t i) {
      if (counter++ % 7 != 0) return;
      EXPECT_NEAR(gradient[i], graph::dual_derivative(network, arrays, data.all(), direction, i), 1e-11 * largest)
          << slice.name;
    });
}

TEST(RewriteLosses, GradientMatchesCentralDifferencesWithAndWithoutTheSoftDistance) {
  for (const double weight : {0.0, 0.7}) {
    RewriteLoss loss;
    loss.soft_weight = weight;
    const TreeDataset<double> data(some_samples(5), loss);
    const std::size_t width = data.most_nodes() * kNodeOutputs;
    std::vector<double> y(data.size() * width), dl_dy(y.size());
    const RandomStream random(7, RandomUse::test);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = random.normal(static_cast<std::uint32_t>(i));
    const View<double, 2> view(y.data(), {data.size(), width});
    const Exec ex({.threads = 1});
    const auto batch = data.all();
    graph::rewrite_loss<double>(ex, batch, view, {dl_dy.data(), {data.size(), width}}, 0.5);
    double largest = 0.0;
    for (const double g : dl_dy) largest = std::max(largest, std::abs(g));
    const double h = 1e-5;
    std::size_t checked = 0;
    for (std::size_t i = 0; i < y.size(); i += 3) {
      const double centre = y[i];
      y[i] = centre + h;
      const double up = graph::rewrite_loss<double>(ex, batch, view, {}, 0.5);
      y[i] = centre - h;
      const double down = graph::rewrite_loss<double>(ex, batch, view, {}, 0.5);
      y[i] = centre;
      EXPECT_NEAR((up - down) / (2 * h), dl_dy[i], 1e-6 * largest) << i;
      checked += dl_dy[i] != 0.0;
    }
    EXPECT_GT(checked, 300u);
  }
}

TEST(RewriteLosses, TheSoftDistanceOfCertainEditsIsTheCostOfTheirPath) {
  RewriteLoss loss;
  loss.soft_weight = 1.0, loss.temperature = 0.02, loss.iterations = 300, loss.rounds = 3;
  // Nothing is inserted, and sides stay: the soft tree is then the target itself.
  for (const char* text : {"((x*1)+y)", "((x-x)/(y+z))", "(-(-x))", "((x+y)*(1+2))"}) {
    const TreeDataset<double> data({make_sample(parse_expression(text))}, loss);
    const std::size_t width = data.most_nodes() * kNodeOutputs;
    std::vector<double> y(width, 0.0);
    const auto batch = data.all();
    for (std::size_t i = 0; i < batch.nodes; ++i) {
      y[i * kNodeOutputs + batch.edit[i]] = 60.0;
      y[i * kNodeOutputs + kEditClasses + batch.insert[i]] = 60.0;
    }
    const Exec ex({.threads = 1});
    EXPECT_NEAR(graph::rewrite_loss<double>(ex, batch, View<const double, 2>(y.data(), {1, width}), {}, 1.0), 0.0, 1e-3)
        << text;
  }
}

struct TreeResult {
  std::vector<float> y, gradient;
  double loss = 0.0;
  bool operator==(const TreeResult& o) const {
    return std::memcmp(y.data(), o.y.data(), sizeof(float) * y.size()) == 0 &&
           std::memcmp(gradient.data(), o.gradient.data(), sizeof(float) * gradient.size()) == 0 && loss == o.loss;
  }
};

TreeResult run(const Exec& ex) {
  RewriteLoss loss;
  loss.soft_weight = 0.5;
  const TreeDataset<float> data(some_samples(30), loss);
  const TreeNetwork<float> network(options_for(data.most_nodes()));
  const Buffer<float> p = noisy_parameters(network);
  const ModelArrays<float> arrays{p, {}};
  auto tape = network.make_tape(ex, {.batch = data.size()});
  const std::size_t width = network.output_width();
  TreeResult r;
  r.y.resize(data.size() * width), r.gradient.resize(p.size());
  std::vector<float> dl_dy(r.y.size());
  network.forward(ex, {}, arrays, data.all(), tape, {r.y.data(), {data.size(), width}});
  r.loss = graph::rewrite_loss<float>(ex, data.all(), {r.y.data(), {data.size(), width}},
                                      {dl_dy.data(), {data.size(), width}}, 1.0);
  network.backward(ex, {.arrays = arrays,
                        .batch = data.all(),
                        .tape = tape,
                        .dl_dy = {dl_dy.data(), {data.size(), width}},
                        .gradient = r.gradient});
  return r;
}

TEST(TreeNetworks, BitsAreTheSameOnAllThreadsTargetsAndInTheReference) {
  const TreeResult expected = run(Exec({.threads = 1}));
  for (const unsigned threads : {2u, 3u}) EXPECT_TRUE(run(Exec({.threads = threads})) == expected) << threads;
  EXPECT_TRUE(run(Exec({.threads = 1, .variant = Variant::reference})) == expected);
  for (const std::string& name : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(name);
    EXPECT_TRUE(run(Exec({.threads = 1})) == expected) << name;
  }
}

TEST(TreeNetworks, AnswersDoNotDependOnTheTapeOrOnTheBatch) {
  const TreeDataset<float> data(some_samples(40), {});
  const TreeNetwork<float> network(options_for(data.most_nodes()));
  const Buffer<float> p = noisy_parameters(network);
  const ModelArrays<float> arrays{p, {}};
  const Exec ex({.threads = 2});
  const std::size_t width = network.output_width();
  std::vector<float> with(data.size() * width), without(with.size()), one(width);
  auto tape = network.make_tape(ex, {.batch = data.size()});
  auto forward_only = network.make_tape(ex, {.batch = data.size(), .backward = false});
  network.forward(ex, {}, arrays, data.all(), tape, {with.data(), {data.size(), width}});
  network.forward(ex, {}, arrays, data.all(), forward_only, {without.data(), {data.size(), width}});
  EXPECT_EQ(with, without);
  auto storage = data.make_storage(1);
  const std::uint32_t which[] = {17};
  network.forward(ex, {}, arrays, data.gather(which, storage), tape, {one.data(), {1, width}});
  EXPECT_TRUE(std::equal(one.begin(), one.end(), with.begin() + static_cast<std::ptrdiff_t>(17 * width)));
}

// A batch of 256 trees has more parts than one of 257.
TEST(TreeNetworks, GradientsDoNotDependOnTheTape) {
  const TreeDataset<float> data(some_samples(20), {});
  const TreeNetwork<float> network(options_for(data.most_nodes()));
  const Buffer<float> p = noisy_parameters(network);
  const Exec ex({.threads = 2});
  const std::size_t count = 256, width = network.output_width();
  std::vector<std::uint32_t> which(count);
  for (std::uint32_t k = 0; k < count; ++k) which[k] = k % static_cast<std::uint32_t>(data.size());
  auto storage = data.make_storage(count);
  const TreeBatch<float> batch = data.gather(which, storage);
  std::vector<float> y(count * width);
  std::vector<std::vector<float>> gradients;
  for (const std::size_t most : {count, count + 1}) {
    auto tape = network.make_tape(ex, {.batch = most});
    gradients.emplace_back(p.size());
    network.forward(ex, {}, {p, {}}, batch, tape, {y.data(), {count, width}});
    network.backward(ex, {.arrays = {p, {}},
                          .batch = batch,
                          .tape = tape,
                          .dl_dy = {y.data(), {count, width}},
                          .gradient = gradients.back()});
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(TreeNetworks, WrongOptionsBatchesAndTapesAreRefused) {
  for (const auto change : {+[](TreeOptions& o) { o.width = 24; }, +[](TreeOptions& o) { o.layers = 0; },
                            +[](TreeOptions& o) { o.outputs = 0; }}) {
    TreeOptions o = options_for(5);
    change(o);
    EXPECT_THROW(TreeNetwork<float>{o}, Exception);
  }
  const TreeDataset<float> data({make_sample(parse_expression("((x+y)*(x+y))"))}, {});
  const TreeNetwork<float> network(options_for(5));
  const Buffer<float> p = noisy_parameters(network);
  const Exec ex({.threads = 1});
  auto tape = network.make_tape(ex, {.batch = 1, .backward = false});
  std::vector<float> y(network.output_width());
  EXPECT_THROW(network.forward(ex, {}, {p, {}}, data.all(), tape, {y.data(), {1, y.size()}}), Exception);
  EXPECT_THROW(network.make_tape(ex, {.batch = 1, .input_gradient = true}), Exception);
}

TEST(RewritePaths, AlmostAllRulesMakeExactPathsAndNoneIsBelowTheDistance) {
  const Exec ex({.threads = 2});
  const auto samples = some_samples(100, 5, 14);
  const auto proofs = graph::prove_passes(ex, samples, 100000);
  std::size_t exact = 0, open = 0;
  for (const auto p : proofs) exact += p == graph::PathProof::exact, open += p == graph::PathProof::open;
  EXPECT_EQ(open, 0u);
  EXPECT_GT(exact, samples.size() * 9 / 10);
  const graph::ExpressionCosts costs(graph::path_costs());
  const Exec alone({.threads = 1});
  for (std::size_t s = 0; s < samples.size(); s += 5) {
    const Expression& source = samples[s].source;
    bool all = true;
    for (const std::uint32_t node : pass_places(source)) {
      const auto edits = plan_rule(source, node);
      const Expression target = apply_edits(source, edits);
      const Graph a = graph::expression_graph(source), b = graph::expression_graph(target);
      ged::Mapping mapping = trace_edits(source, edits);
      for (auto& image : mapping)
        if (image == kNoNode) image = ged::kErased;
      const double cost = ged::mapping_cost(a, b, costs.table(), mapping);
      const auto d = graph::expression_distance(alone, source, target, costs, 1000000);
      ASSERT_TRUE(d.exact);
      EXPECT_GE(cost, d.upper);
      all = all && cost == d.upper;
    }
    EXPECT_EQ(proofs[s] == graph::PathProof::exact, all) << to_text(source);
  }
}

TEST(RewritePaths, ACheaperWayIsNoticed) {
  const graph::ExpressionCosts costs(graph::path_costs());
  const Exec ex({.threads = 1});
  // The 1 that is erased could stay.
  const RewriteSample sample = make_sample(parse_expression("((1/3)^0)"));
  EXPECT_EQ(graph::prove_pass(ex, sample, costs, 100000), graph::PathProof::beaten);
  EXPECT_EQ(graph::prove_pass(ex, make_sample(parse_expression("((x/3)^0)")), costs, 100000), graph::PathProof::exact);
}

// What a network learns in a second or two is far from perfect, but clearly something.
TEST(TreeNetworks, LearnToRewriteSmallExpressions) {
  RewriteLoss loss;
  loss.soft_weight = 0.1;
  const TreeDataset<float> data(some_samples(250, 5, 9), loss);
  TreeOptions o = options_for(data.most_nodes());
  o.width = 32;
  const TreeNetwork<float> network(o);
  const Exec ex({.threads = 2});
  TrainState<float> state = initial_state(network, 1);
  TrainOptions options;
  options.epochs = 15, options.batch = 32, options.optimizer.lr = 5e-3;
  double first = 0.0, last = 0.0;
  Trainer<TreeNetwork<float>, TreeDataset<float>> trainer(ex, network, data, options, state);
  trainer.run({.after_step = {}, .validate = {}, .after_epoch = [&](const EpochReport& e) {
                 if (e.position.epoch == 1) first = e.loss;
                 last = e.loss;
                 return Continue::yes;
               }});
  EXPECT_LT(last, 0.2 * first);
  ExpressionSetOptions unseen;
  unseen.seed = 77, unseen.test = 100, unseen.least_nodes = 5, unseen.most_nodes = 9;
  const auto expressions = draw_expressions(unseen).test;
  const auto runs = graph::rewrite<float>(ex, network, {state.parameters, state.buffers}, expressions, {});
  std::size_t right = 0, plain = 0;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    right += runs[k].result == normal_form(expressions[k]);
    plain += expressions[k] == normal_form(expressions[k]);
  }
  EXPECT_GT(right, 3 * plain + 30);
}

}  // namespace
}  // namespace gradloom
