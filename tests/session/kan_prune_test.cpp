// Pruning networks with multiplication nodes: the smaller network computes what the whole one does without its edges.
#include <gtest/gtest.h>

#include <cmath>

#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/session/families/kan/prune.h"
#include "gradloom/session/families/kan/samples.h"

namespace gradloom {
namespace {

RowDataset<double> random_rows(std::size_t rows, std::size_t features) {
  RowParts<double> parts;
  parts.size = rows, parts.features = features, parts.targets = 1;
  const RandomStream random(4, RandomUse::test);
  for (std::size_t i = 0; i < rows * features; ++i)
    parts.x.push_back(2 * random.uniform(static_cast<std::uint32_t>(i)) - 1);
  parts.target.assign(rows, 0.0);
  return RowDataset<double>(std::move(parts));
}

// Outputs on rows, of which the network sees the numbered features.
std::vector<double> outputs(const kan::Network<double>& network, const ModelArrays<double>& arrays,
                            const RowDataset<double>& rows, const std::vector<bool>& seen) {
  std::vector<double> y, x(network.input_width()), out(network.output_width());
  auto workspace = network.make_single_workspace();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i]) x[n++] = rows.all().x(r, i);
    network.forward_single(Variant::fast, arrays, x, workspace, out);
    y.insert(y.end(), out.begin(), out.end());
  }
  return y;
}

struct Pruned {
  kan::Network<double> network;
  Buffer<double> parameters, buffers;
  RowDataset<double> rows = random_rows(200, 4);

  explicit Pruned(std::vector<std::size_t> widths, std::vector<std::size_t> multiply)
      : network([&] {
          kan::NetworkOptions o;
          o.widths = std::move(widths), o.multiply = std::move(multiply);
          o.spline_noise = 0.5;
          return o;
        }()),
        parameters(network.parameters().flat_size()),
        buffers(network.buffers().flat_size()) {
    network.initialise(2, parameters.span(), buffers.span());
  }
  formula::NetworkSamples samples() const {
    return network_samples<double>(Exec({.threads = 1}), network, {parameters, buffers}, rows);
  }
};

void expect_same_function(Pruned& p, const formula::NetworkSamples& samples, const KeptParts& kept) {
  const PrunedNetwork<double> small = prune_network<double>(p.network, {p.parameters, p.buffers}, samples, kept);
  for (std::size_t l = 0; l < p.network.layers(); ++l)
    EXPECT_EQ(small.network.options().widths[l], kept.count(l)) << "layer " << l;
  clear_edges<double>(p.network, samples, kept, p.parameters.span());
  const auto expected =
      outputs(p.network, {p.parameters, p.buffers}, p.rows, std::vector<bool>(p.network.input_width(), true));
  const auto y = outputs(small.network, {small.parameters, small.buffers}, p.rows, kept.nodes[0]);
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-11);
  // As many edges as were kept.
  std::size_t edges = 0, live = 0;
  for (const auto& layer : kept.edges)
    for (const bool e : layer) edges += e ? 1 : 0;
  for (const auto& layer : live_edges<double>(small.network, small.parameters.span()))
    for (const bool e : layer) live += e ? 1 : 0;
  EXPECT_EQ(live, edges);
}

TEST(KanPrune, KeepsTheFunctionOfWhatIsLeftWithMultiplicationNodes) {
  for (const double threshold : {0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.5}) {
    Pruned p({4, 6, 5, 2}, {3, 5});
    const formula::NetworkSamples samples = p.samples();
    SCOPED_TRACE(threshold);
    expect_same_function(p, samples, keep_above(samples, formula::score(samples), threshold));
  }
  Pruned p({4, 6, 5, 2}, {3, 5});
  const formula::NetworkSamples samples = p.samples();
  expect_same_function(p, samples, keep_inputs(samples, formula::score(samples), 2));
}

// Node 0 is a sum, 1 and 2 multiply: sums 1 and 3, 2 and 4.
TEST(KanPrune, AProductStaysWithOneFactorAndGoesWithoutAny) {
  Pruned p({4, 3, 1}, {2});
  const formula::NetworkSamples samples = p.samples();
  const formula::Scores scores = formula::score(samples);
  KeptParts kept = keep_above(samples, scores, 0.0);
  EXPECT_EQ(kept.count(1), 3u);
  // Nothing enters the second factor of node 1: its bias multiplies.
  formula::Scores fewer = scores;
  for (std::size_t i = 0; i < 4; ++i) fewer.edges[0][i * 5 + 3].value = 0;
  kept = keep_above(samples, fewer, 1e-9);
  EXPECT_EQ(kept.count(1), 3u);
  expect_same_function(p, samples, kept);
  // Nor the first: the node is a constant.
  Pruned q({4, 3, 1}, {2});
  for (std::size_t i = 0; i < 4; ++i) fewer.edges[0][i * 5 + 1].value = 0;
  kept = keep_above(samples, fewer, 1e-9);
  EXPECT_EQ(kept.nodes[1], (std::vector<bool>{true, false, true}));
  const auto small = prune_network<double>(q.network, {q.parameters, q.buffers}, samples, kept);
  EXPECT_EQ(small.network.options().multiply, (std::vector<std::size_t>{1}));
  expect_same_function(q, samples, kept);
}

}  // namespace
}  // namespace gradloom
