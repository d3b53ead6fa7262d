#include "gradloom/models/graph/rewrite_run.h"

#include <algorithm>

namespace gradloom::graph {
namespace {

// Answers for many trees take memory; so many at a time.
constexpr std::size_t kTrees = 1024;

}  // namespace

template <class T>
std::vector<NodeEdit> decode_edits(const T* row, const Expression& e) {
  std::vector<NodeEdit> edits;
  for (std::size_t i = 0; i < e.size(); ++i, row += kNodeOutputs) {
    const auto best = [](const T* from, std::size_t n) {
      return static_cast<std::size_t>(std::max_element(from, from + n) - from);
    };
    NodeEdit d = edit_of(best(row, kEditClasses), best(row + kEditClasses, kInsertClasses));
    if (d.kind == EditKind::relabel && d.symbol == e.symbol[i]) d.kind = EditKind::keep;
    edits.push_back(d);
  }
  return edits;
}

template <class T>
std::vector<RewriteRun> rewrite(const Exec& ex, const TreeNetwork<T>& network, const ModelArrays<T>& arrays,
                                std::span<const Expression> expressions, const RewriteRunOptions& o) {
  std::vector<RewriteRun> runs(expressions.size());
  std::vector<std::uint32_t> active;
  for (std::size_t k = 0; k < expressions.size(); ++k) {
    runs[k].result = expressions[k];
    runs[k].settled = expressions[k].size() == 0;
    if (!runs[k].settled) active.push_back(static_cast<std::uint32_t>(k));
  }
  Step step;
  step.mode = Mode::evaluate;
  for (std::size_t pass = 0; pass < o.passes && !active.empty(); ++pass) {
    std::vector<std::uint32_t> next;
    for (std::size_t first = 0; first < active.size(); first += kTrees) {
      const std::size_t count = std::min(kTrees, active.size() - first);
      std::vector<RewriteSample> samples(count);
      for (std::size_t k = 0; k < count; ++k) {
        samples[k].source = runs[active[first + k]].result;
        samples[k].edits.resize(samples[k].source.size());
      }
      const TreeDataset<T> data(std::move(samples), {});
      TreeOptions options = network.options();
      options.most_nodes = data.most_nodes();
      const TreeNetwork<T> fitting(options);
      auto tape = fitting.make_tape(ex, {.batch = count, .backward = false});
      Buffer<T> y(count * fitting.output_width());
      const View<T, 2> rows(y.data(), {count, fitting.output_width()});
      fitting.forward(ex, step, arrays, data.all(), tape, rows);
      for (std::size_t k = 0; k < count; ++k) {
        RewriteRun& run = runs[active[first + k]];
        const auto edits = decode_edits<T>(rows.row(k), run.result);
        Expression result = apply_edits(run.result, edits);
        run.settled = result == run.result;
        if (run.settled) continue;
        run.result = std::move(result), ++run.passes;
        if (run.result.size() == 0)
          run.settled = true;
        else if (run.result.size() <= o.most_nodes)
          next.push_back(active[first + k]);
      }
    }
    active = std::move(next);
  }
  return runs;
}

#define GRADLOOM_INSTANTIATE(T)                                                                       \
  template std::vector<NodeEdit> decode_edits(const T*, const Expression&);                           \
  template std::vector<RewriteRun> rewrite(const Exec&, const TreeNetwork<T>&, const ModelArrays<T>&, \
                                           std::span<const Expression>, const RewriteRunOptions&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::graph
