#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "gradloom/app/bench/bench.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/exec/profile.h"
#include "gradloom/models/graph/network.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Arrays = GraphArrays<float>;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The fastest of repetitions over about `seconds`: what neighbours on the machine cost does not show in it.
template <class F>
double fastest(double seconds, std::size_t least, F&& f) {
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (std::size_t n = 0; n < least || milliseconds_since(begin) < seconds * 1e3; ++n) {
    const auto start = Clock::now();
    f();
    best = std::min(best, milliseconds_since(start));
  }
  return best;
}

struct Arc {
  std::uint32_t from, to;
};

// A stable counting sort.
template <class Key>
std::vector<std::uint32_t> sorted_by(const std::vector<Arc>& arcs, const std::vector<std::uint32_t>& order,
                                     std::size_t nodes, Key key) {
  std::vector<std::uint32_t> start(nodes + 1, 0), result(order.size());
  for (const Arc& a : arcs) ++start[key(a) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  for (const std::uint32_t i : order) result[start[key(arcs[i])]++] = i;
  return result;
}

void append_graph(const BenchGraphOptions& o, RandomGraph kind, std::size_t number, std::vector<Arc>& arcs) {
  const auto n = static_cast<std::uint32_t>(o.nodes), first = static_cast<std::uint32_t>(number * o.nodes);
  const RandomStream random(1, RandomUse::data, 0, static_cast<std::uint32_t>(number));
  const auto tie = [&](std::uint32_t a, std::uint32_t b) {
    if (a == b) return;
    arcs.push_back({first + a, first + b});
    arcs.push_back({first + b, first + a});
  };
  if (kind == RandomGraph::star) {
    for (std::uint32_t v = 1; v < n; ++v) tie(0, v);
    return;
  }
  const auto edges = static_cast<std::size_t>(o.degree * static_cast<double>(n) / 2);
  for (std::size_t e = 0; e < edges; ++e) {
    const auto at = static_cast<std::uint32_t>(2 * e);
    std::uint32_t a = random.below(at, n);
    // The cube of a uniform number: a few nodes have most neighbours.
    if (kind == RandomGraph::powerlaw) {
      const double u = random.uniform(at);
      a = std::min(n - 1, static_cast<std::uint32_t>(u * u * u * n));
    }
    tie(a, random.below(at + 1, n));
  }
}

Arrays random_arrays(const BenchGraphOptions& o) {
  Arrays a;
  a.task = o.graphs > 1 ? GraphTask::graph : GraphTask::node;
  a.graphs = o.graphs, a.nodes = o.graphs * o.nodes;
  if (a.nodes > 0x7fffffffu) throw Exception(ErrorCode::invalid_input, "more nodes than an index holds");
  a.features = o.features, a.stride = padded(o.features), a.outputs = 8;
  std::vector<Arc> arcs;
  const RandomGraph kind = value_of<RandomGraph>(kRandomGraphs, o.kind, "kind of random graphs").or_throw();
  for (std::size_t g = 0; g < o.graphs; ++g) append_graph(o, kind, g, arcs);
  std::vector<std::uint32_t> order(arcs.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto from = [](const Arc& x) { return x.from; };
  const auto to = [](const Arc& x) { return x.to; };
  const auto in = sorted_by(arcs, sorted_by(arcs, order, a.nodes, from), a.nodes, to);
  const auto out = sorted_by(arcs, sorted_by(arcs, order, a.nodes, to), a.nodes, from);
  std::vector<std::uint32_t> place(arcs.size());
  a.ptr.assign(a.nodes + 1, 0), a.out_ptr.assign(a.nodes + 1, 0);
  for (std::uint32_t e = 0; e < in.size(); ++e) place[in[e]] = e, a.source.push_back(arcs[in[e]].from);
  for (const std::uint32_t i : out) a.out_target.push_back(arcs[i].to), a.slot.push_back(place[i]);
  for (const Arc& x : arcs) ++a.ptr[x.to + 1], ++a.out_ptr[x.from + 1];
  std::partial_sum(a.ptr.begin(), a.ptr.end(), a.ptr.begin());
  std::partial_sum(a.out_ptr.begin(), a.out_ptr.end(), a.out_ptr.begin());
  for (std::size_t g = 0; g <= o.graphs; ++g) a.graph_ptr.push_back(static_cast<std::uint32_t>(g * o.nodes));
  for (std::size_t v = 0; v < a.nodes; ++v) {
    const double d = a.ptr[v + 1] - a.ptr[v];
    a.root.push_back(static_cast<float>(1 / std::sqrt(d + 1)));
    a.with_self.push_back(static_cast<float>(1 / (d + 1)));
    a.without.push_back(d > 0 ? static_cast<float>(1 / d) : float(0));
  }
  a.x.resize(a.nodes * a.stride);
  const RandomStream random(2, RandomUse::data);
  for (std::size_t v = 0; v < a.nodes; ++v)
    for (std::size_t c = 0; c < a.features; ++c)
      a.x[v * a.stride + c] =
          static_cast<float>(2 * random.uniform(static_cast<std::uint32_t>(v * a.features + c)) - 1);
  for (std::size_t r = 0; r < a.rows(); ++r) a.label.push_back(static_cast<std::uint32_t>(r % a.outputs));
  return a;
}

graph::NetworkOptions network_options(const BenchGraphOptions& o, const GraphDataset<float>& data) {
  graph::NetworkOptions n;
  n.kind = value_of<graph::LayerKind>(graph::kLayers, o.layers, "kind of layer").or_throw();
  n.task = data.arrays().task;
  n.inputs = o.features, n.outputs = data.arrays().outputs;
  n.hidden.assign(n.task == GraphTask::node ? o.depth - 1 : o.depth, o.features);
  n.limits.include(data);
  return n;
}

// One network and a trainer on it; the data is shared.
struct GraphSetup {
  using Model = graph::GraphNetwork<float>;
  Exec ex;
  Model network;
  TrainState<float> state;
  std::unique_ptr<Trainer<Model, GraphDataset<float>>> trainer;

  GraphSetup(const BenchGraphOptions& o, const GraphDataset<float>& data, Variant variant, unsigned threads,
             Profile* profile = nullptr)
      : ex({.threads = threads, .variant = variant}), network(network_options(o, data)) {
    ex.set_profile(profile);
    state = initial_state(network, 1);
    TrainOptions options;
    options.batch = 0;
    options.shuffle = false;
    options.epochs = std::uint64_t{1} << 40;
    options.loss.kind = LossKind::cross_entropy;
    options.optimizer.lr = 1e-6;  // weights stay as they are, so every step is the same work
    trainer = std::make_unique<Trainer<Model, GraphDataset<float>>>(ex, network, data, options, state);
  }
  void step() {
    state.position.batch = 0;
    trainer->step();
  }
};

// Multiplications and additions of a step, and bytes that its gathers read and write; forward, dl_dx and dl_dw each.
struct Work {
  double forward_flops = 0.0, step_flops = 0.0, gathered_bytes = 0.0;
};
Work work_of(const graph::GraphNetwork<float>& network, const Arrays& a) {
  Work w;
  const auto nodes = static_cast<double>(a.nodes), arcs = static_cast<double>(a.source.size());
  for (const auto& op : network.ops()) {
    const graph::Tensor& out = op->out();
    const double rows = out.rows == graph::RowsAre::graphs ? static_cast<double>(a.graphs) : nodes;
    const double width = static_cast<double>(out.width);
    const bool lowest = !op->inputs().empty() && op->inputs()[0].tensor.id == 0;
    if (op->kind() == "dense") {
      const double flops = 2 * rows * width * static_cast<double>(op->cost().row);
      w.forward_flops += flops;
      w.step_flops += (lowest ? 2 : 3) * flops;
    }
    if (op->kind() == "gather") {
      const double flops = 2 * (arcs + nodes) * width, bytes = (arcs + 2 * nodes) * width * sizeof(float) + 4 * arcs;
      const int passes = lowest ? 1 : 2;
      w.forward_flops += flops;
      w.step_flops += passes * flops;
      w.gathered_bytes += passes * bytes;
    }
  }
  return w;
}

// How fast memory is read, in GB/s.
struct ReadSpeed {
  double one = 0.0, two = 0.0;  // threads; gigabytes a second
};

ReadSpeed read_speed() {
  const Buffer<float> memory(std::size_t{1} << 25);
  std::vector<double> sums(64);
  const std::size_t parts = sums.size(), size = memory.size() / parts;
  const Exec one({.threads = 1}), two({.threads = 2});
  const auto read = [&](const Exec& ex) {
    ex.parallel_for(parts, [&](std::size_t p, unsigned) {
      const auto* words = reinterpret_cast<const std::uint64_t*>(memory.data() + p * size);
      std::uint64_t sum[8] = {};
      for (std::size_t i = 0; i + 8 <= size / 2; i += 8)
        for (std::size_t k = 0; k < 8; ++k) sum[k] ^= words[i + k];
      sums[p] = static_cast<double>(sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7]);
    });
  };
  const auto [of_one, of_two] = repeat_in_turn(
      0.2, [&] { read(one); }, [&] { read(two); });
  const double bytes = static_cast<double>(memory.size() * sizeof(float));
  return {bytes / of_one.fastest * 1e-3, bytes / of_two.fastest * 1e-3};
}

// Bytes by which memory grows with one more edge: two arcs in the indices and in the tape.
double bytes_per_edge(const GraphSetup& setup) {
  graph::NetworkOptions larger = setup.network.options();
  constexpr std::size_t kMore = 1 << 16;
  for (std::size_t& n : larger.limits.arcs) n += kMore;
  const TapeLimits limits{.batch = 1};
  const auto before = setup.network.make_tape(setup.ex, limits).bytes();
  const auto after = graph::GraphNetwork<float>(larger).make_tape(setup.ex, limits).bytes();
  return 2 * (3 * sizeof(std::uint32_t) + static_cast<double>(after - before) / static_cast<double>(kMore));
}

// What a step leaves behind.
struct Left {
  Buffer<float> parameters, gradient;
};

// The first steps by the scalar reference, timed; a graph that takes it seconds gets one.
struct Sequential {
  int steps = 0;
  double milliseconds = std::numeric_limits<double>::infinity();
  Left left;
};
Sequential run_reference(const BenchGraphOptions& o, const GraphDataset<float>& data) {
  constexpr double kLong = 2000.0;
  Sequential s;
  GraphSetup reference(o, data, Variant::reference, 1);
  const auto step = [&] {
    const auto start = Clock::now();
    reference.step();
    s.milliseconds = std::min(s.milliseconds, milliseconds_since(start));
  };
  for (step(), s.steps = 1; s.steps < 2 && s.milliseconds < kLong; ++s.steps) step();
  s.left = {Buffer<float>(reference.state.parameters.size()), Buffer<float>(reference.state.gradient.size())};
  std::copy_n(reference.state.parameters.data(), s.left.parameters.size(), s.left.parameters.data());
  std::copy_n(reference.state.gradient.data(), s.left.gradient.size(), s.left.gradient.data());
  if (s.milliseconds < kLong) fastest(std::min(o.seconds, 0.3), 1, step);
  return s;
}

void check_bits(GraphSetup& fast, const Sequential& s) {
  for (int i = 0; i < s.steps; ++i) fast.step();
  if (!same_bits(fast.state.parameters, s.left.parameters) || !same_bits(fast.state.gradient, s.left.gradient))
    throw Exception(ErrorCode::numeric,
                    "the fast kernels and the scalar reference differ: this build is broken, its speed means nothing");
}

double forward_time(const BenchGraphOptions& o, const GraphDataset<float>& data, const GraphSetup& fast) {
  auto tape = fast.network.make_tape(fast.ex, {.batch = data.size(), .backward = false});
  const std::size_t stride = padded(fast.network.output_width());
  Buffer<float> y(data.size() * stride);
  const ModelArrays<float> arrays{fast.state.parameters, fast.state.buffers};
  const GraphBatch<float> batch = data.all();
  return fastest(o.seconds, 3, [&] {
    fast.network.forward(fast.ex, {.mode = Mode::evaluate}, arrays, batch, tape,
                         {y.data(), {batch.size, fast.network.output_width()}, {stride, 1}});
  });
}

// Up to this size of a tape there is room for two networks, which are measured in turn.
constexpr std::size_t kRoomForTwo = std::size_t{1} << 30;

json measure(const BenchGraphOptions& o, const GraphDataset<float>& data) {
  const Sequential sequential = run_reference(o, data);
  json r;
  double step_ms = 0.0, one_ms = 0.0;
  Work work;
  {
    GraphSetup fast(o, data, Variant::fast, o.threads);
    check_bits(fast, sequential);
    if (o.threads > 1 && fast.trainer->tape_bytes() <= kRoomForTwo) {
      GraphSetup one(o, data, Variant::fast, 1);
      one.step();
      const auto [step, alone] = repeat_in_turn(
          o.seconds, [&] { fast.step(); }, [&] { one.step(); });
      step_ms = step.fastest * 1e-3, one_ms = alone.fastest * 1e-3;
    } else {
      step_ms = fastest(o.seconds, 3, [&] { fast.step(); });
      if (o.threads == 1) one_ms = step_ms;
    }
    r["bytes_allocated_per_step"] = nullptr;
    if (o.allocated_bytes) {
      const std::uint64_t before = o.allocated_bytes();
      for (int i = 0; i < 3; ++i) fast.step();
      r["bytes_allocated_per_step"] = (o.allocated_bytes() - before) / 3;
    }
    r["forward_ms"] = forward_time(o, data, fast);
    r["bytes_per_edge"] = bytes_per_edge(fast), r["tape_bytes"] = fast.trainer->tape_bytes();
    work = work_of(fast.network, data.arrays());
  }
  if (one_ms == 0.0) {
    GraphSetup one(o, data, Variant::fast, 1);
    one.step();
    one_ms = fastest(o.seconds, 3, [&] { one.step(); });
  }
  {
    // How much of a step runs outside of parallel loops, measured on two threads at least.
    GraphSetup threaded(o, data, Variant::fast, std::max(2u, o.threads));
    const SerialShare share = serial_share(threaded.ex, 5, [&] { threaded.step(); });
    r["serial_fraction"] = share.fraction, r["parallel_tasks"] = share.tasks;
  }
  const ReadSpeed read = read_speed();
  const double forward_ms = r["forward_ms"];
  r["nodes"] = data.arrays().nodes, r["arcs"] = data.arrays().source.size(), r["graphs"] = o.graphs;
  r["features"] = o.features, r["layers"] = o.layers, r["kind"] = o.kind, r["threads"] = o.threads;
  r["train_step_ms"] = step_ms, r["one_thread_train_step_ms"] = one_ms, r["speedup_threads"] = one_ms / step_ms;
  r["sequential_train_step_ms"] = sequential.milliseconds, r["speedup"] = sequential.milliseconds / step_ms;
  r["gflops"] = work.step_flops / step_ms * 1e-6, r["gflops_forward"] = work.forward_flops / forward_ms * 1e-6;
  r["gbytes_per_s"] = work.gathered_bytes / step_ms * 1e-6;
  r["bandwidth_ratio"] = read.two / read.one, r["read_gbytes_per_s"] = read.one;
  return r;
}

}  // namespace

Result<json> bench_graph(const BenchGraphOptions& o) try {
  const GraphDataset<float> data(std::make_shared<const Arrays>(random_arrays(o)), {});
  json r = measure(o, data);
  if (o.profile) {
    Profile profile(o.threads);
    GraphSetup profiled(o, data, Variant::fast, o.threads, &profile);
    r["phases"] = phases_of(profile, 20, [&] { profiled.step(); });
  }
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
