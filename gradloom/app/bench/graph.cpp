#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gradloom/app/bench/ranks.h"
#include "gradloom/app/bench/timing.h"
#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/models/graph/network.h"

namespace gradloom::app {
namespace {

using Arrays = GraphArrays<float>;

double milliseconds_since(BenchClock::time_point start) { return microseconds_since(start) * 1e-3; }

// The fastest of repetitions over about `seconds`: what neighbours on the machine cost does not show in it.
template <class F>
double fastest(double seconds, std::size_t least, F&& f) {
  double best = std::numeric_limits<double>::infinity();
  const auto begin = BenchClock::now();
  for (std::size_t n = 0; n < least || milliseconds_since(begin) < seconds * 1e3; ++n) {
    const auto start = BenchClock::now();
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
  if (a.nodes > 0x7fffffffu)
    throw_invalid("--nodes times --graphs is larger than an index can be; choose a smaller number");
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

using GraphTraining = BenchTraining<graph::GraphNetwork<float>, GraphDataset<float>>;

std::unique_ptr<GraphTraining> make_graph_training(const BenchGraphOptions& o, const GraphDataset<float>& data,
                                                   const ExecOptions& exec, Profile* profile = nullptr,
                                                   Comm* comm = nullptr) {
  graph::GraphNetwork<float> network(network_options(o, data));
  TrainOptions options = steady_options();
  options.comm = comm;
  options.shuffle = false;
  options.loss.kind = LossKind::cross_entropy;
  auto start = initial_state(network, 1);
  return std::make_unique<GraphTraining>(exec, profile, std::move(network), data, options, std::move(start));
}

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
double bytes_per_edge(const GraphTraining& training) {
  graph::NetworkOptions larger = training.model.options();
  constexpr std::size_t kMore = 1 << 16;
  for (std::size_t& n : larger.limits.arcs) n += kMore;
  const TapeLimits limits{.batch = 1};
  const auto before = training.model.make_tape(training.ex, limits).bytes();
  const auto after = graph::GraphNetwork<float>(larger).make_tape(training.ex, limits).bytes();
  return 2 * (3 * sizeof(std::uint32_t) + static_cast<double>(after - before) / static_cast<double>(kMore));
}

// The first steps by the scalar reference, timed; a graph that takes it seconds gets one.
struct Sequential {
  int steps = 0;
  double milliseconds = std::numeric_limits<double>::infinity();
  TrainState<float> left;  // by these steps: parameters and gradient
};
Sequential run_reference(const BenchGraphOptions& o, const GraphDataset<float>& data) {
  constexpr double kLong = 2000.0;
  Sequential s;
  const auto reference = make_graph_training(o, data, {.threads = 1, .variant = Variant::reference});
  const auto step = [&] {
    const auto start = BenchClock::now();
    reference->step();
    s.milliseconds = std::min(s.milliseconds, milliseconds_since(start));
  };
  for (step(), s.steps = 1; s.steps < 2 && s.milliseconds < kLong; ++s.steps) step();
  const auto copy = [](const Buffer<float>& from, Buffer<float>& to) {
    to = Buffer<float>(from.size());
    std::copy_n(from.data(), from.size(), to.data());
  };
  copy(reference->state.parameters, s.left.parameters);
  copy(reference->state.gradient, s.left.gradient);
  if (s.milliseconds < kLong) fastest(std::min(o.seconds, 0.3), 1, step);
  return s;
}

double forward_time(const BenchGraphOptions& o, const GraphDataset<float>& data, const GraphTraining& fast) {
  auto tape = fast.model.make_tape(fast.ex, {.batch = data.size(), .backward = false});
  const std::size_t stride = padded(fast.model.output_width());
  Buffer<float> y(data.size() * stride);
  const ModelArrays<float> arrays{fast.state.parameters, fast.state.buffers};
  const GraphBatch<float> batch = data.all();
  return fastest(o.seconds, 3, [&] {
    fast.model.forward(fast.ex, {.mode = Mode::evaluate}, arrays, batch, tape,
                       {y.data(), {batch.size, fast.model.output_width()}, {stride, 1}});
  });
}

// Up to this size of a tape there is room for two networks, which are measured in turn.
constexpr std::size_t kRoomForTwo = std::size_t{1} << 30;

BenchGraphReport measure(const BenchGraphOptions& o, const GraphDataset<float>& data) {
  const auto make = [&](const ExecOptions& exec, Profile* profile) {
    return make_graph_training(o, data, exec, profile);
  };
  const auto step = [](GraphTraining& training) { training.step(); };
  const Sequential sequential = run_reference(o, data);
  BenchGraphReport r;
  double step_ms = 0.0, one_ms = 0.0;
  Work work;
  {
    const auto fast = make_graph_training(o, data, {.threads = o.threads});
    for (int i = 0; i < sequential.steps; ++i) fast->step();
    require_same_bits(fast->state, sequential.left);
    if (o.threads > 1 && fast->trainer.tape_bytes() <= kRoomForTwo) {
      const auto one = make_graph_training(o, data, {.threads = 1});
      one->step();
      const auto [all, alone] = repeat_in_turn(
          o.seconds, [&] { fast->step(); }, [&] { one->step(); });
      step_ms = all.fastest * 1e-3, one_ms = alone.fastest * 1e-3;
    } else {
      step_ms = fastest(o.seconds, 3, [&] { fast->step(); });
      if (o.threads == 1) one_ms = step_ms;
    }
    if (o.allocated_bytes) {
      const std::uint64_t before = o.allocated_bytes();
      for (int i = 0; i < 3; ++i) fast->step();
      r.bytes_allocated_per_step = (o.allocated_bytes() - before) / 3;
    }
    r.forward_ms = forward_time(o, data, *fast);
    r.bytes_per_edge = bytes_per_edge(*fast);
    r.tape_bytes = fast->trainer.tape_bytes();
    work = work_of(fast->model, data.arrays());
  }
  if (one_ms == 0.0) {
    const auto one = make_graph_training(o, data, {.threads = 1});
    one->step();
    one_ms = fastest(o.seconds, 3, [&] { one->step(); });
  }
  r.serial = serial_share(o.threads, 5, make, step);
  const ReadSpeed read = read_speed();
  r.options = o;
  r.nodes = data.arrays().nodes;
  r.arcs = data.arrays().source.size();
  r.train_step_ms = step_ms;
  r.one_thread_train_step_ms = one_ms;
  r.speedup_threads = one_ms / step_ms;
  r.sequential_train_step_ms = sequential.milliseconds;
  r.speedup = sequential.milliseconds / step_ms;
  r.gflops = work.step_flops / step_ms * 1e-6;
  r.gflops_forward = work.forward_flops / r.forward_ms * 1e-6;
  r.gbytes_per_s = work.gathered_bytes / step_ms * 1e-6;
  r.bandwidth_ratio = read.two / read.one;
  r.read_gbytes_per_s = read.one;
  if (o.profile) r.phases = phases_of(o.threads, 20, make, step);
  return r;
}

}  // namespace

Result<std::optional<BenchRanksReport>> bench_graph_ranks(const BenchGraphOptions& o) try {
  const GraphDataset<float> data(std::make_shared<const Arrays>(random_arrays(o)), {});
  const graph::GraphNetwork<float> network(network_options(o, data));
  if (!ranks_can_share(network)) return std::optional<BenchRanksReport>();
  const auto make = [&](const ExecOptions& exec, Profile* profile, Comm* comm) {
    return make_graph_training(o, data, exec, profile, comm);
  };
  BenchRanksReport r{fmt::format("{} random graphs, {}", o.graphs, o.layers), o.threads};
  r.step = time_ranks(*o.comm, o.threads, o.seconds, 1.0, make, [](GraphTraining& training) { training.step(); });
  r.parameter_bytes = network.parameters().flat_size() * sizeof(float);
  return std::optional(std::move(r));
} catch (const Exception& e) {
  return e.error();
}

Result<BenchGraphReport> bench_graph(const BenchGraphOptions& o) try {
  const GraphDataset<float> data(std::make_shared<const Arrays>(random_arrays(o)), {});
  return measure(o, data);
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
