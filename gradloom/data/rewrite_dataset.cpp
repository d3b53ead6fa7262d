#include "gradloom/data/rewrite_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

constexpr std::uint32_t kAttempts = 4096;  // for one expression
constexpr std::size_t kPlainEvery = 20;    // expressions of which one may have nothing to rewrite

using Seen = std::unordered_set<std::string>;

std::vector<Expression> draw_part(const ExpressionSetOptions& o, std::uint32_t part, std::size_t count,
                                  std::size_t least, std::size_t most, Seen& seen) {
  if (least == 0 || least > most || most > 1000)
    throw_invalid(fmt::format("expressions of {} to {} nodes; 1 <= least <= most <= 1000 is needed", least, most));
  std::vector<Expression> result;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::uint32_t attempt = 0;; ++attempt) {
      if (attempt == kAttempts)
        throw_invalid(
            fmt::format("fewer than {} different expressions of {} to {} nodes were found; set fewer or larger ones",
                        count, least, most));
      const RandomStream random(o.seed, RandomUse::data, part * kAttempts + attempt, static_cast<std::uint32_t>(i));
      const std::size_t nodes = least + random.below(0xffffffffu, static_cast<std::uint32_t>(most - least + 1));
      Expression e = random_expression(random, nodes);
      if (i % kPlainEvery != 0 && keeps_everything(plan_pass(e))) continue;
      if (!seen.insert(to_text(e)).second) continue;
      result.push_back(std::move(e));
      break;
    }
  }
  return result;
}

void append_tree(const Expression& e, std::uint32_t first, TreeArrays& to) {
  const auto move = [&](std::uint32_t v) { return v == kNoNode ? kNoNode : first + v; };
  for (std::size_t v = 0; v < e.size(); ++v) {
    to.symbol.push_back(static_cast<std::uint8_t>(e.symbol[v]));
    to.parent.push_back(move(e.parent[v]));
    to.left.push_back(move(e.child[v][0])), to.right.push_back(move(e.child[v][1]));
  }
  to.graph_ptr.push_back(static_cast<std::uint32_t>(to.symbol.size()));
}

template <class T>
TreeBatch<T> batch_of_trees(const TreeArrays& a, std::size_t trees) {
  TreeBatch<T> b;
  const std::size_t nodes = a.graph_ptr[trees];
  const auto first = [](const auto& v, std::size_t n) { return std::span(v.data(), n); };
  b.size = b.graphs = trees, b.nodes = nodes;
  b.graph_ptr = first(a.graph_ptr, trees + 1), b.symbol = first(a.symbol, nodes);
  b.parent = first(a.parent, nodes), b.left = first(a.left, nodes), b.right = first(a.right, nodes);
  b.edit = first(a.edit, nodes), b.insert = first(a.insert, nodes);
  b.sample = first(a.sample, trees);
  return b;
}

}  // namespace

ExpressionSets draw_expressions(const ExpressionSetOptions& o) {
  ExpressionSets sets;
  Seen seen;
  // What is held out comes first: it does not depend on how much is trained on.
  sets.test = draw_part(o, 0, o.test, o.least_nodes, o.most_nodes, seen);
  sets.validation = draw_part(o, 1, o.validation, o.least_nodes, o.most_nodes, seen);
  if (o.large > 0) sets.large = draw_part(o, 2, o.large, o.large_least, o.large_most, seen);
  sets.train = draw_part(o, 3, o.train, o.least_nodes, o.most_nodes, seen);
  return sets;
}

RewriteSample make_sample(Expression source) {
  RewriteSample s;
  s.edits = plan_pass(source);
  s.target = apply_edits(source, s.edits);
  s.source = std::move(source);
  return s;
}

std::vector<RewriteSample> pass_samples(std::span<const Expression> expressions, std::span<const Expression> held_out) {
  Seen seen;
  for (const Expression& e : held_out) seen.insert(to_text(e));
  std::vector<RewriteSample> result;
  for (const Expression& e : expressions)
    for (Expression& step : passes(e))
      if (seen.insert(to_text(step)).second) result.push_back(make_sample(std::move(step)));
  return result;
}

std::uint8_t edit_class(const NodeEdit& d) {
  if (d.kind == EditKind::relabel) return static_cast<std::uint8_t>(2 + static_cast<std::size_t>(d.symbol));
  return d.kind == EditKind::keep ? 0 : 1;
}

std::uint8_t insert_class(const NodeEdit& d) { return !d.insert ? 0 : d.inserted == Symbol::negate ? 1 : 2; }

NodeEdit edit_of(std::size_t edit, std::size_t insert) {
  NodeEdit d;
  if (edit == 1) d.kind = EditKind::erase;
  if (edit >= 2) d.kind = EditKind::relabel, d.symbol = static_cast<Symbol>(edit - 2);
  if (insert > 0) d.insert = true, d.inserted = insert == 1 ? Symbol::negate : Symbol::opposite;
  return d;
}

template <class T>
TreeDataset<T>::TreeDataset(std::vector<RewriteSample> samples, const RewriteLoss& loss)
    : data_(std::make_shared<Content>()) {
  if (samples.empty()) throw_invalid("there are no expressions");
  Content& c = *data_;
  c.samples = std::move(samples), c.loss = loss;
  for (std::size_t s = 0; s < c.samples.size(); ++s) {
    const RewriteSample& sample = c.samples[s];
    if (sample.source.size() == 0 || sample.edits.size() != sample.source.size())
      throw_invalid(fmt::format("sample {} has {} nodes and {} edits", s, sample.source.size(), sample.edits.size()));
    if (c.arrays.symbol.size() + sample.source.size() > 0xfffffff0u)
      throw_invalid("more than 2^32 nodes in one data set");
    c.arrays.sample.push_back(static_cast<std::uint32_t>(s));
    append_tree(sample.source, static_cast<std::uint32_t>(c.arrays.symbol.size()), c.arrays);
    for (const NodeEdit& d : sample.edits)
      c.arrays.edit.push_back(edit_class(d)), c.arrays.insert.push_back(insert_class(d));
    c.most_nodes = std::max(c.most_nodes, sample.source.size());
  }
}

template <class T>
TreeBatch<T> TreeDataset<T>::all() const {
  TreeBatch<T> b = batch_of_trees<T>(data_->arrays, size());
  b.samples = data_->samples, b.loss = data_->loss, b.memory = &data_->memory;
  return b;
}

template <class T>
TreeBatchStorage<T>::TreeBatchStorage(const TreeDataset<T>& data, std::size_t max_size) : max_size_(max_size) {
  const std::size_t nodes = max_size * data.most_nodes();
  TreeArrays& a = arrays_;
  a.graph_ptr.resize(max_size + 1), a.sample.resize(max_size);
  a.parent.resize(nodes), a.left.resize(nodes), a.right.resize(nodes);
  a.symbol.resize(nodes), a.edit.resize(nodes), a.insert.resize(nodes);
}

template <class T>
TreeBatch<T> TreeDataset<T>::gather(std::span<const std::uint32_t> which, TreeBatchStorage<T>& storage) const {
  if (which.size() > storage.max_size_)
    throw_invalid(fmt::format("{} trees do not fit into storage for {}", which.size(), storage.max_size_));
  const TreeArrays& from = data_->arrays;
  TreeArrays& to = storage.arrays_;
  std::uint32_t node = 0;
  for (std::size_t k = 0; k < which.size(); ++k) {
    if (which[k] >= size()) throw_invalid(fmt::format("tree {} of {} does not exist", which[k], size()));
    const std::uint32_t first = from.graph_ptr[which[k]], count = from.graph_ptr[which[k] + 1] - first;
    // The difference wraps around where the tree moves to the front; the sums are right.
    const std::uint32_t move = node - first;
    const auto copy = [&](const auto& a, auto& b) { std::copy_n(a.data() + first, count, b.data() + node); };
    copy(from.symbol, to.symbol), copy(from.edit, to.edit), copy(from.insert, to.insert);
    for (const auto& [a, b] :
         {std::pair(&from.parent, &to.parent), std::pair(&from.left, &to.left), std::pair(&from.right, &to.right)})
      for (std::uint32_t v = 0; v < count; ++v) {
        const std::uint32_t at = (*a)[first + v];
        (*b)[node + v] = at == kNoNode ? kNoNode : at + move;
      }
    to.sample[k] = which[k];
    node += count;
    to.graph_ptr[k + 1] = node;
  }
  TreeBatch<T> b = batch_of_trees<T>(to, which.size());
  b.samples = data_->samples, b.loss = data_->loss, b.memory = &storage.memory_;
  return b;
}

#define GRADLOOM_INSTANTIATE(T)       \
  template class TreeBatchStorage<T>; \
  template class TreeDataset<T>;
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom
