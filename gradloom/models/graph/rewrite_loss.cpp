#include "gradloom/models/graph/rewrite_loss.h"

#include <fmt/format.h>

#include "gradloom/base/error.h"
#include "gradloom/ged/soft.h"
#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/reduce/tree_sum.h"
#include "gradloom/models/graph/rewrite_path.h"

namespace gradloom::graph {
namespace {

constexpr std::size_t kGhost = kSymbols;  // the label of a node that is not there
constexpr std::size_t kLabels = kSymbols + 1;

// What one worker needs for the soft distance; grows to the largest tree and stays.
template <class T>
struct SoftMemory {
  std::vector<T> probability, dprobability;  // (n, kEditClasses)
  std::vector<T> label, dlabel, table, insert, cost, dcost, a, da, b, erased, derased;
  ged::SoftTape<T> tape;
};

template <class T>
struct Memory : LossMemory {
  std::vector<double> value;  // of each tree
  std::vector<SoftMemory<T>> workers;
};

// p = softmax(z); returns log sum exp(z).
template <class T>
T softmax(const T* z, std::size_t n, T* p) {
  T most = z[0];
  for (std::size_t k = 1; k < n; ++k) most = std::max(most, z[k]);
  T sum = 0;
  for (std::size_t k = 0; k < n; ++k) sum += p[k] = kernels::split::exp(z[k] - most);
  const T inverse = T(1) / sum;
  for (std::size_t k = 0; k < n; ++k) p[k] *= inverse;
  return most + kernels::split::log(sum);
}

// One tree of a batch.
template <class T>
struct TreeLoss {
  const RewriteSample& sample;
  const RewriteLoss& options;
  SoftMemory<T>& m;
  Variant variant;
  std::size_t n = sample.source.size(), n2 = sample.target.size();

  ged::SoftInputs<T> inputs() const {
    ged::SoftInputs<T> in;
    in.n1 = n, in.n2 = n2, in.kinds = 2;
    in.cost = m.cost, in.a = m.a, in.b = m.b;
    in.edge_sub = in.edge_delete = in.edge_insert = static_cast<T>(kPathEdgeCost);
    in.direction = Direction::directed;
    return in;
  }
  ged::SoftOptions soft() const { return {options.temperature, options.iterations, options.rounds, variant}; }

  // side: of the child of `above` on the way down to v.
  template <class F>
  void for_ancestors(std::uint32_t v, F&& body) const {
    const Expression& e = sample.source;
    for (std::uint32_t below = v, above = e.parent[v]; above != kNoNode; below = above, above = e.parent[above])
      body(above, e.child[above][0] == below ? 0u : 1u);
  }

  void prepare() {
    const Expression& target = sample.target;
    m.label.assign(n * kLabels, T(0)), m.erased.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const T* p = m.probability.data() + i * kEditClasses;
      T* to = m.label.data() + i * kLabels;
      for (std::size_t s = 0; s < kSymbols; ++s) to[s] = p[2 + s];
      to[static_cast<std::size_t>(sample.source.symbol[i])] += p[0];
      to[kGhost] = m.erased[i] = p[1];
    }
    m.table.assign(kLabels * (n2 + 1), T(1)), m.insert.assign(n2, T(1));
    for (std::size_t j = 0; j < n2; ++j) m.table[static_cast<std::size_t>(target.symbol[j]) * (n2 + 1) + j] = T(0);
    m.table[kGhost * (n2 + 1) + n2] = T(0);
    m.cost.resize((n + 1) * (n2 + 1)), m.dcost.resize(m.cost.size());
    ged::soft_node_costs<T>(m.label, m.table, m.insert, n, m.cost, variant.arithmetic);
    m.a.assign(2 * n * n, T(0)), m.da.resize(m.a.size()), m.b.assign(2 * n2 * n2, T(0));
    for (std::uint32_t v = 0; v < n; ++v) {
      T between = T(1);  // every node between is erased
      for_ancestors(v, [&](std::uint32_t above, unsigned side) {
        m.a[(side * n + above) * n + v] = (T(1) - m.erased[v]) * (T(1) - m.erased[above]) * between;
        between *= m.erased[above];
      });
    }
    for (std::uint32_t v = 0; v < n2; ++v)
      for (unsigned side = 0; side < 2; ++side)
        if (target.child[v][side] != kNoNode) m.b[(side * n2 + v) * n2 + target.child[v][side]] = T(1);
  }

  // Adds `factor` times the derivatives to dprobability.
  void backward(T factor) {
    ged::soft_distance_backward<T>(inputs(), soft(), m.tape, factor, m.dcost, m.da);
    m.dlabel.resize(n * kLabels), m.derased.assign(n, T(0));
    ged::soft_node_costs_backward<T>(m.table, m.dcost, n, n2, m.dlabel, variant.arithmetic);
    for (std::uint32_t v = 0; v < n; ++v) edge_backward(v);
    for (std::size_t i = 0; i < n; ++i) {
      const T* from = m.dlabel.data() + i * kLabels;
      T* to = m.dprobability.data() + i * kEditClasses;
      to[0] += from[static_cast<std::size_t>(sample.source.symbol[i])];
      to[1] += from[kGhost] + m.derased[i];
      for (std::size_t s = 0; s < kSymbols; ++s) to[2 + s] += from[s];
    }
  }

  // Upwards the products `between` are made again; downwards their gradients are handed on.
  void edge_backward(std::uint32_t v) {
    std::uint32_t chain[kMostDepth];
    T between[kMostDepth], slope[kMostDepth];
    std::size_t depth = 0;
    T product = T(1);
    for_ancestors(v, [&](std::uint32_t above, unsigned side) {
      if (depth == kMostDepth) return;
      chain[depth] = above, between[depth] = product, slope[depth] = m.da[(side * n + above) * n + v];
      product *= m.erased[above];
      ++depth;
    });
    T dbetween = T(0);
    for (std::size_t t = depth; t-- > 0;) {
      const T there = T(1) - m.erased[v], above = T(1) - m.erased[chain[t]];
      m.derased[v] -= slope[t] * above * between[t];
      m.derased[chain[t]] += (dbetween - slope[t] * there) * between[t];
      dbetween = slope[t] * there * above + dbetween * m.erased[chain[t]];
    }
  }
  static constexpr std::size_t kMostDepth = 1024;
};

}  // namespace

template <class T>
double rewrite_loss(const Exec& ex, const TreeBatch<T>& batch, View<const T, 2> y, View<T, 2> dl_dy, double factor) {
  if (!batch.memory || batch.edit.size() != batch.nodes) throw_invalid("the batch has no edits to learn");
  if (y.extent(0) < batch.size)
    throw_invalid(fmt::format("the loss got {} rows for {} trees", y.extent(0), batch.size));
  if (!*batch.memory) *batch.memory = std::make_unique<Memory<T>>();
  auto& memory = static_cast<Memory<T>&>(**batch.memory);
  memory.value.resize(std::max(memory.value.size(), batch.size));
  memory.workers.resize(std::max<std::size_t>(memory.workers.size(), ex.threads()));
  const T weight = static_cast<T>(batch.loss.soft_weight), scale = static_cast<T>(factor);
  ex.parallel_for(batch.size, [&](std::size_t t, unsigned worker) {
    SoftMemory<T>& m = memory.workers[worker];
    const std::size_t first = batch.graph_ptr[t], n = batch.graph_ptr[t + 1] - first;
    m.probability.resize(n * kEditClasses), m.dprobability.assign(n * kEditClasses, T(0));
    double value = 0.0;
    const T* row = y.row(t);
    T* gradient = dl_dy.empty() ? nullptr : dl_dy.row(t);
    if (gradient) std::fill_n(gradient, dl_dy.extent(1), T(0));
    for (std::size_t i = 0; i < n; ++i) {
      const T *edits = row + i * kNodeOutputs, *inserts = edits + kEditClasses;
      const std::size_t edit = batch.edit[first + i], insert = batch.insert[first + i];
      T* p = m.probability.data() + i * kEditClasses;
      T q[kInsertClasses];
      value += static_cast<double>(softmax(edits, kEditClasses, p) - edits[edit]);
      value += static_cast<double>(softmax(inserts, kInsertClasses, q) - inserts[insert]);
      if (!gradient) continue;
      T* to = gradient + i * kNodeOutputs;
      for (std::size_t k = 0; k < kEditClasses; ++k) to[k] = (p[k] - (k == edit ? T(1) : T(0))) * scale;
      for (std::size_t k = 0; k < kInsertClasses; ++k)
        to[kEditClasses + k] = (q[k] - (k == insert ? T(1) : T(0))) * scale;
    }
    if (weight > T(0)) {
      TreeLoss<T> soft{batch.samples[batch.sample[t]], batch.loss, m, ex.variant()};
      soft.prepare();
      value += batch.loss.soft_weight * static_cast<double>(ged::soft_distance<T>(soft.inputs(), soft.soft(), m.tape));
      if (gradient) {
        soft.backward(weight * scale);
        for (std::size_t i = 0; i < n; ++i) {
          const T *p = m.probability.data() + i * kEditClasses, *dp = m.dprobability.data() + i * kEditClasses;
          T mean = T(0);
          for (std::size_t k = 0; k < kEditClasses; ++k) mean += p[k] * dp[k];
          for (std::size_t k = 0; k < kEditClasses; ++k) gradient[i * kNodeOutputs + k] += p[k] * (dp[k] - mean);
        }
      }
    }
    memory.value[t] = value;
  });
  const std::span<const double> values(memory.value);
  return (0.0 + kernels::reduce::tree_total(values.first(batch.size))) * factor;  // a tree is a leaf
}

template double rewrite_loss(const Exec&, const TreeBatch<float>&, View<const float, 2>, View<float, 2>, double);
template double rewrite_loss(const Exec&, const TreeBatch<double>&, View<const double, 2>, View<double, 2>, double);

}  // namespace gradloom::graph
