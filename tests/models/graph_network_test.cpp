// Graph networks: every gradient against differences and dual numbers; the same bits however they are run.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "gradloom/kernels/simd_targets.h"
#include "gradloom/models/graph/dual.h"
#include "gradloom/train/gradient_check.h"
#include "tests/models/graph_support.h"
#include "tests/support/sanitized.h"

namespace gradloom {
namespace {

using graph::Activation;
using graph::DualDirection;
using graph::GraphNetwork;
using graph::Jumping;
using graph::LayerKind;
using graph::NetworkOptions;
using graph::Norm;
using graph::Readout;
using test::GraphFixture;
using test::GraphShape;

static_assert(Model<GraphNetwork<float>, float>);
static_assert(HasBranches<GraphNetwork<double>>);
static_assert(HasRunningBuffers<GraphNetwork<double>>);

struct GraphCase {
  std::string name;
  NetworkOptions options;
  GraphShape shape;

  friend std::ostream& operator<<(std::ostream& out, const GraphCase& c) { return out << c.name; }
};

std::vector<GraphCase> graph_cases() {
  std::vector<GraphCase> all;
  const std::pair<LayerKind, const char*> kinds[] = {
      {LayerKind::mean, "mean"},         {LayerKind::gcn, "gcn"}, {LayerKind::sage_mean, "sage_mean"},
      {LayerKind::sage_max, "sage_max"}, {LayerKind::gin, "gin"}, {LayerKind::gat, "gat"}};
  for (const auto& [kind, name] : kinds) {
    const auto add = [&, kind = kind, name = name](const std::string& what, auto change) {
      GraphCase c;
      c.name = std::string(name) + "_" + what;
      c.options.kind = kind;
      c.options.hidden = {4, 4};
      if (kind == LayerKind::gat) c.options.heads = 2;
      change(c.options, c.shape);
      all.push_back(std::move(c));
    };
    const bool plain = kind == LayerKind::sage_max;
    add("node", [](auto&, auto&) {});
    add("directed_silu", [](auto& o, auto& s) { s.direction = Direction::directed, o.activation = Activation::silu; });
    add("graph_sum_batch_norm", [](auto& o, auto&) { o.task = GraphTask::graph, o.norm = Norm::batch; });
    add("graph_max_concat_layer_norm_residual", [](auto& o, auto&) {
      o.task = GraphTask::graph, o.norm = Norm::layer, o.jumping = Jumping::concat, o.readout = Readout::max;
      o.residual = true;
    });
    add("graph_mean_jump_max_dropout", [](auto& o, auto&) {
      o.task = GraphTask::graph, o.jumping = Jumping::max, o.readout = Readout::mean, o.dropout = 0.25;
      o.head_dropout = 0.5;
    });
    add("node_jump_concat", [](auto& o, auto&) { o.jumping = Jumping::concat, o.residual = true; });
    add("wide_features", [](auto& o, auto& s) { s.features = 9, o.hidden = {6}; });
    if (plain) continue;
    add("edges", [kind = kind](auto& o, auto& s) {
      s.edge_features = 2, s.weights = kind != LayerKind::gat, o.residual = true;
    });
    add("sparse_dropout", [](auto& o, auto& s) {
      s.sparse = true, s.features = 20, o.dropout = 0.5, o.hidden = {8, 8};
    });
  }
  return all;
}

class GraphNetworks : public ::testing::TestWithParam<GraphCase> {};

TEST_P(GraphNetworks, BackwardMatchesCentralDifferences) {
  const GraphCase& c = GetParam();
  GraphFixture<double> f(c.options, c.shape);
  const Exec ex({.threads = 1});
  const auto report = check_gradient(ex, f.network, f.data.all(), f.parameters.span(), f.buffers.span());
  EXPECT_TRUE(report.passed) << report.reason
                             << (report.mismatches.empty() ? std::string() : " " + report.mismatches[0].where);
  EXPECT_GT(report.checked, 20u);
}

TEST_P(GraphNetworks, BackwardMatchesDualNumbersForParametersFeaturesAndEdges) {
  const GraphCase& c = GetParam();
  GraphFixture<double> f(c.options, c.shape);
  const Exec ex({.threads = 1});
  const Step step{.seed = 5, .epoch = 2, .index = 3};
  const auto tape = f.run(ex, step);
  using What = DualDirection::What;
  const auto batch = f.data.all();
  double largest = 0.0;
  for (const double g : f.gradient.span()) largest = std::max(largest, std::abs(g));
  const auto expect = [&](What what, std::size_t index, double analytic, double scale, const std::string& where) {
    EXPECT_NEAR(analytic, graph::dual_derivative(f.network, step, f.arrays(), batch, f.dl_dy_view(), {what, index}),
                1e-11 * scale)
        << where << " " << index;
  };
  for (const Slice& slice : f.network.parameters()) {
    double moved = 0.0;
    for_each_logical(slice, [&](std::size_t i) {
      moved = std::max(moved, std::abs(f.gradient[i]));
      expect(What::parameter, i, f.gradient[i], largest, slice.name);
    });
    EXPECT_GT(moved, 0.0) << slice.name;
  }
  if (batch.sparse()) return;
  double widest = 0.0;
  for (const double g : f.dl_dx.span()) widest = std::max(widest, std::abs(g));
  EXPECT_GT(widest, 0.0);
  for (std::size_t i = 0; i < f.dl_dx.size(); ++i) expect(What::node_feature, i, f.dl_dx[i], widest, "x");
  EXPECT_EQ(tape.edge_weight_gradient().size(), batch.edge_weight.size());
  for (std::size_t e = 0; e < batch.edge_weight.size(); ++e)
    expect(What::edge_weight, e, tape.edge_weight_gradient()[e], std::max(1.0, largest), "edge weight");
  const auto edges = tape.edge_feature_gradient();
  EXPECT_EQ(edges.empty(), c.shape.edge_features == 0);
  for (std::size_t e = 0; !edges.empty() && e < edges.extent(0); ++e)
    for (std::size_t k = 0; k < edges.extent(1); ++k)
      expect(What::edge_feature, e * edges.extent(1) + k, edges(e, k), std::max(1.0, largest), "edge feature");
}

template <class T>
std::vector<std::byte> bits_of(const GraphFixture<T>& f) {
  std::vector<std::byte> bits;
  for (const Buffer<T>* b : {&f.y, &f.gradient, &f.dl_dx}) {
    const auto* from = reinterpret_cast<const std::byte*>(b->data());
    bits.insert(bits.end(), from, from + b->size() * sizeof(T));
  }
  return bits;
}

TEST_P(GraphNetworks, ThreadsTargetsAndReferenceGiveTheSameBits) {
  GraphCase c = GetParam();
  c.shape.nodes = {40, 1, 300, 25, 200};
  c.shape.star = 1300;
  GraphFixture<float> expected(c.options, c.shape);
  expected.run(Exec({.threads = 1, .variant = Variant::reference}));
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    GraphFixture<float> f(c.options, c.shape);
    f.run(Exec({.threads = threads}));
    EXPECT_EQ(bits_of(f), bits_of(expected)) << threads << " threads";
  }
  for (const std::string& target : kernels::simd_targets()) {
    const kernels::ForceSimdTarget force(target);
    GraphFixture<float> f(c.options, c.shape);
    f.run(Exec({.threads = 1}));
    EXPECT_EQ(bits_of(f), bits_of(expected)) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GraphNetworks, ::testing::ValuesIn(graph_cases()),
                         [](const auto& i) { return i.param.name; });

TEST(GraphBatches, GiveEveryGraphTheBitsItHasAlone) {
  for (const LayerKind kind : {LayerKind::mean, LayerKind::gcn, LayerKind::sage_max, LayerKind::gin, LayerKind::gat}) {
    NetworkOptions o;
    o.kind = kind, o.task = GraphTask::graph, o.hidden = {6, 6};
    GraphFixture<float> f(o, {.nodes = {5, 1, 7, 4, 30}});
    const Exec ex({.threads = 2});
    f.run(ex);
    auto storage = f.data.make_storage(3);
    auto tape = f.network.make_tape(ex, {.batch = 3});
    for (const std::vector<std::uint32_t>& which : {std::vector<std::uint32_t>{2}, {4, 0, 1}, {1}, {3, 3, 2}}) {
      const auto batch = f.data.gather(which, storage);
      ASSERT_EQ(batch.size, which.size());
      Buffer<float> y(batch.size * f.stride);
      f.network.forward(ex, {}, f.arrays(), batch, tape,
                        {y.data(), {batch.size, f.network.output_width()}, {f.stride, 1}});
      for (std::size_t k = 0; k < which.size(); ++k) {
        EXPECT_EQ(batch.label[k], f.data.all().label[which[k]]);
        EXPECT_EQ(std::memcmp(y.data() + k * f.stride, f.y.data() + which[k] * f.stride,
                              f.network.output_width() * sizeof(float)),
                  0);
      }
    }
  }
}

TEST(GraphNetworkFreezing, LeavesFrozenSlicesAloneAndReportsOthersOnceOnAnyThreads) {
  struct Sink final : GradientSink {
    explicit Sink(std::size_t size) : seen(size) {}
    std::vector<std::atomic<int>> seen;
    void finished(std::size_t begin, std::size_t end, unsigned) override {
      for (std::size_t i = begin; i < end; ++i) ++seen[i];
    }
  };
  NetworkOptions o;
  o.kind = LayerKind::gin, o.task = GraphTask::graph, o.hidden = {4, 4}, o.norm = Norm::batch;
  GraphFixture<double> whole(o, {}), f(o, {});
  whole.run(Exec({.threads = 1}));
  std::vector<std::uint8_t> frozen(f.network.parameters().size(), 0);
  for (std::size_t s = 0; s < frozen.size(); s += 2) frozen[s] = 1;
  for (const unsigned threads : {1u, 3u}) {
    const Exec ex({.threads = threads});
    std::fill_n(f.gradient.data(), f.gradient.size(), 7.0);
    Sink sink(f.gradient.size());
    f.run(ex, {.frozen = frozen}, &sink);
    for (std::size_t s = 0; s < frozen.size(); ++s)
      for_each_logical(f.network.parameters()[s], [&](std::size_t i) {
        EXPECT_EQ(f.gradient[i], frozen[s] ? 7.0 : whole.gradient[i]) << f.network.parameters()[s].name;
        EXPECT_EQ(sink.seen[i], frozen[s] ? 0 : 1);
      });
  }
}

TEST(GraphNetworkGradients, AddUpWhenAccumulated) {
  for (const bool sparse : {false, true}) {
    NetworkOptions o;
    o.hidden = {4};
    GraphFixture<double> f(o, {.features = 20, .sparse = sparse});
    const Exec ex({.threads = 1});
    f.run(ex);
    std::vector<double> once(f.gradient.span().begin(), f.gradient.span().end());
    f.run(ex, {.gradient = GradientMode::accumulate, .leaf = 1});
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(f.gradient[i], 2 * once[i]);
  }
}

// A model whose backward pass is wrong in one way each time; the check has to notice. What is wrong is the largest
// element of a slice, or of dl_dx. `error` becomes its error relative to the largest of all.
struct Wrong : GraphNetwork<double> {
  enum class How { sign, factor, missing, swapped } how;
  std::size_t slice;  // kInput: dl_dx
  double* error;
  static constexpr std::size_t kInput = ~std::size_t{0};

  Wrong(const GraphNetwork<double>& right, How h, std::size_t s, double* e)
      : GraphNetwork<double>(right), how(h), slice(s), error(e) {}

  void spoil(std::vector<double*> values, double largest) const {
    const auto smaller = [](const double* a, const double* b) { return std::abs(*a) < std::abs(*b); };
    double& g = **std::max_element(values.begin(), values.end(), smaller);
    const double before = g;
    if (how == How::sign) g = -g;
    if (how == How::factor) g *= 1.5;
    if (how == How::missing) g = 0.0;
    if (how == How::swapped) std::swap(g, **std::min_element(values.begin(), values.end(), smaller));
    *error = std::abs(g - before) / largest;
  }

  void backward(const Exec& ex, const BackwardCall<double, Batch, Tape>& call) const {
    GraphNetwork<double>::backward(ex, call);
    const std::span<double> gradient = call.gradient;
    const View<double, 2> dl_dx = call.dl_dx;
    std::vector<double*> values;
    double largest = 0.0;
    if (slice != kInput) {
      for_each_logical(parameters()[slice], [&](std::size_t i) { values.push_back(gradient.data() + i); });
      for (std::size_t i = 0; i < gradient.size(); ++i) largest = std::max(largest, std::abs(gradient.data()[i]));
    } else {
      for (std::size_t i = 0; i < dl_dx.extent(0); ++i)
        for (std::size_t c = 0; c < dl_dx.extent(1); ++c) values.push_back(&dl_dx(i, c));
      for (const double* v : values) largest = std::max(largest, std::abs(*v));
    }
    if (!values.empty()) spoil(std::move(values), largest);
  }
};

TEST_P(GraphNetworks, WrongGradientsOfEverySliceAndOfTheInputsAreCaught) {
  const GraphCase& c = GetParam();
  GraphFixture<double> f(c.options, c.shape);
  const Exec ex({.threads = 1});
  std::size_t caught = 0, below = 0;
  const auto expect_caught = [&](Wrong::How how, std::size_t slice, const std::string& where) {
    double error = 0.0;
    const bool passed =
        check_gradient(ex, Wrong(f.network, how, slice, &error), f.data.all(), f.parameters.span(), f.buffers.span())
            .passed;
    // What is smaller than the promise of the check cannot be seen by it: a swap in a slice of one element, the weights
    // of an attention that has settled.
    if (error < GradientCheckOptions().tolerance) {
      ++below;
    } else {
      ++caught;
      EXPECT_FALSE(passed) << where << ", off by " << error;
    }
  };
  using How = Wrong::How;
  // Every slice once, with one defect after the other, then every defect where there is most to compare.
  constexpr How kKinds[] = {How::sign, How::factor, How::missing, How::swapped};
  std::size_t largest = 0;
  for (std::size_t s = 0; s < f.network.parameters().size(); ++s) {
    if (!test::kSanitized || s % 4 == 0)
      expect_caught(kKinds[s / (test::kSanitized ? 4 : 1) % 4], s, f.network.parameters()[s].name);
    if (f.network.parameters()[s].logical_size() > f.network.parameters()[largest].logical_size()) largest = s;
  }
  for (const How how : kKinds) {
    expect_caught(how, largest, f.network.parameters()[largest].name);
    if (!c.shape.sparse) expect_caught(how, Wrong::kInput, "dl_dx");  // sparse features have no gradient
  }
  EXPECT_GT(caught, test::kSanitized ? below : 3 * below);
}

TEST(GraphNetworkErrors, NameWhatIsWrong) {
  NetworkOptions o;
  o.kind = LayerKind::gat, o.heads = 3, o.hidden = {4};
  EXPECT_THROW(GraphNetwork<float>{o}, Exception);
  o.heads = 2, o.dropout = 1.0;
  EXPECT_THROW(GraphNetwork<float>{o}, Exception);
  GraphFixture<float> small({.hidden = {4}}, {.nodes = {3}}), large({.hidden = {4}}, {.nodes = {30}});
  const Exec ex({.threads = 1});
  auto tape = small.network.make_tape(ex, {.batch = 1});
  EXPECT_THROW(small.network.forward(ex, {}, small.arrays(), large.data.all(), tape, large.y_view()), Exception);
  EXPECT_THROW(small.network.backward(ex, {.arrays = small.arrays(),
                                           .batch = small.data.all(),
                                           .tape = tape,
                                           .dl_dy = small.dl_dy_view(),
                                           .gradient = small.gradient}),
               Exception);
}

}  // namespace
}  // namespace gradloom
