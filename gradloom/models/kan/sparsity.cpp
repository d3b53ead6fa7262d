#include "gradloom/models/kan/sparsity.h"

#include "gradloom/kernels/elementary/arrays.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::kan {

namespace spline = kernels::spline;
namespace sparsity = kernels::sparsity;

// dH/ds_ij = (log S - log s_ij - H) / S, and likewise of N by Q_i. All but the part of the edge itself is common to an
// input.
template <class T>
LayerPenalty layer_penalty(Variant variant, const spline::Shape& s, const SparsityOptions& o,
                           const LayerStrengths<T>& strengths) {
  const double* node = strengths.edges.node;
  kernels::elementary::log<double>(variant, {node, s.in}, strengths.log_node);
  LayerPenalty p;
  double edges = 0, nodes = 0;
  for (std::size_t i = 0; i < s.in; ++i)
    p.total += node[i], edges += strengths.edges.weighted[i], nodes += node[i] * strengths.log_node[i];
  const double log_total = kernels::split::log(p.total);
  p.edge_entropy = log_total - edges / p.total;
  p.node_entropy = log_total - nodes / p.total;
  const double all = o.sparsity * (o.sparsity_l1 + o.sparsity_edges * (log_total - p.edge_entropy) / p.total +
                                   o.sparsity_nodes * (log_total - p.node_entropy) / p.total);
  const double by_node = o.sparsity * o.sparsity_nodes / p.total;
  for (std::size_t i = 0; i < s.in; ++i) strengths.common[i] = static_cast<T>(all - by_node * strengths.log_node[i]);
  return p;
}

template <class T>
void add_penalty_gradient(Variant variant, const spline::Shape& s, const SparsityOptions& o, const T* weight,
                          const LayerStrengths<T>& strengths, const LayerPenalty& p, spline::Range inputs,
                          T* gradient) {
  const sparsity::Slopes<T> slopes{strengths.common.data(), static_cast<T>(o.sparsity * o.sparsity_edges / p.total)};
  sparsity::add_gradient<T>(variant, s, weight, strengths.edges, slopes, inputs, gradient);
}

#define GRADLOOM_SPARSITY(T)                                                                          \
  template LayerPenalty layer_penalty(Variant, const spline::Shape&, const SparsityOptions&,          \
                                      const LayerStrengths<T>&);                                      \
  template void add_penalty_gradient(Variant, const spline::Shape&, const SparsityOptions&, const T*, \
                                     const LayerStrengths<T>&, const LayerPenalty&, spline::Range, T*);
GRADLOOM_SPARSITY(float)
GRADLOOM_SPARSITY(double)
#undef GRADLOOM_SPARSITY

}  // namespace gradloom::kan
