#include "gradloom/models/kan/sparsity.h"

#include <cmath>

#include "gradloom/kernels/elementary/arrays.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::kan {

namespace spline = kernels::spline;

namespace {

constexpr std::size_t kColumns = 64;  // outputs at once: their sums stay in registers or the first-level cache

// f(first output, how many) for all outputs of a layer.
template <class F>
void for_columns(std::size_t out, F&& f) {
  for (std::size_t j = 0; j < out; j += kColumns) f(j, std::min(kColumns, out - j));
}

// mean[c] of the spline coefficients of outputs j .. j + n - 1.
template <class T>
void mean_rows(const spline::Shape& s, const T* of_input, std::size_t j, std::size_t n, T* mean) {
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows();
  const T share = T(1) / static_cast<T>(rows);
  for (std::size_t c = 0; c < n; ++c) mean[c] = of_input[j + c];
  for (std::size_t r = 1; r < rows; ++r)
    for (std::size_t c = 0; c < n; ++c) mean[c] += of_input[r * pitch + j + c];
  for (std::size_t c = 0; c < n; ++c) mean[c] *= share;
}

double log_of(double v) { return kernels::split::log(v); }

}  // namespace

template <class T>
void edge_strengths(Variant variant, const spline::Shape& s, const T* weight, spline::Range inputs,
                    const LayerStrengths<T>& out) {
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows(), width = s.out_lanes();
  const T least = static_cast<T>(kLeastStrength * kLeastStrength), share = T(1) / static_cast<T>(rows);
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const T* w = weight + i * s.rows() * pitch;
    T* strength = out.strength.data() + i * width;
    for_columns(s.out, [&](std::size_t j, std::size_t n) {
      T mean[kColumns], sum[kColumns];
      mean_rows(s, w, j, n, mean);
      for (std::size_t c = 0; c < n; ++c) sum[c] = T(0);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < n; ++c) {
          const T d = w[r * pitch + j + c] - mean[c];
          sum[c] += d * d;
        }
      for (std::size_t c = 0; c < n; ++c) sum[c] = least + share * sum[c];
      if (s.base)
        for (std::size_t c = 0; c < n; ++c) {
          const T u = w[rows * pitch + j + c];
          sum[c] += u * u;
        }
      for (std::size_t c = 0; c < n; ++c) strength[j + c] = std::sqrt(sum[c]);
    });
    for (std::size_t j = s.out; j < width; ++j) strength[j] = T(1);
    T* logarithm = out.logarithm.data() + i * width;
    kernels::elementary::log<T>(variant, {strength, width}, {logarithm, width});
    double node = 0, weighted = 0;
    for (std::size_t j = 0; j < s.out; ++j) {
      node += static_cast<double>(strength[j]);
      weighted += static_cast<double>(strength[j]) * static_cast<double>(logarithm[j]);
    }
    out.node[i] = node, out.weighted[i] = weighted;
  }
}

template <class T>
LayerPenalty layer_penalty(const spline::Shape& s, const LayerStrengths<T>& strengths) {
  LayerPenalty p;
  double edges = 0, nodes = 0;
  for (std::size_t i = 0; i < s.in; ++i) {
    const double q = strengths.node[i];
    p.total += q, edges += strengths.weighted[i], nodes += q * log_of(q);
  }
  p.edge_entropy = log_of(p.total) - edges / p.total;
  p.node_entropy = log_of(p.total) - nodes / p.total;
  return p;
}

// dH/ds_ij = (log S - log s_ij - H) / S, and likewise of N by Q_i; ds/dc_k = (c_k - mean c) / (R s), ds/du = u / s.
template <class T>
void add_penalty_gradient(const spline::Shape& s, const SparsityOptions& o, const T* weight,
                          const LayerStrengths<T>& strengths, const LayerPenalty& p, spline::Range inputs,
                          T* gradient) {
  const std::size_t pitch = s.out_padded(), rows = s.spline_rows(), width = s.out_lanes();
  const T share = T(1) / static_cast<T>(rows), edge_slope = static_cast<T>(o.sparsity * o.sparsity_edges / p.total);
  const double log_total = log_of(p.total);
  for (std::size_t i = inputs.begin; i < inputs.end; ++i) {
    const T* w = weight + i * s.rows() * pitch;
    T* g = gradient + i * s.rows() * pitch;
    // All but the part of the edge itself.
    const auto common = static_cast<T>(
        o.sparsity * (o.sparsity_l1 + o.sparsity_edges * (log_total - p.edge_entropy) / p.total +
                      o.sparsity_nodes * (log_total - log_of(strengths.node[i]) - p.node_entropy) / p.total));
    const T* strength = strengths.strength.data() + i * width;
    const T* logarithm = strengths.logarithm.data() + i * width;
    for_columns(s.out, [&](std::size_t j, std::size_t n) {
      T mean[kColumns], factor[kColumns], part[kColumns];
      mean_rows(s, w, j, n, mean);
      for (std::size_t c = 0; c < n; ++c) {
        factor[c] = (common - edge_slope * logarithm[j + c]) / strength[j + c];
        part[c] = factor[c] * share;
      }
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < n; ++c) g[r * pitch + j + c] += part[c] * (w[r * pitch + j + c] - mean[c]);
      if (s.base)
        for (std::size_t c = 0; c < n; ++c) g[rows * pitch + j + c] += factor[c] * w[rows * pitch + j + c];
    });
  }
}

#define GRADLOOM_SPARSITY(T)                                                                                           \
  template void edge_strengths(Variant, const spline::Shape&, const T*, spline::Range, const LayerStrengths<T>&);      \
  template LayerPenalty layer_penalty(const spline::Shape&, const LayerStrengths<T>&);                                 \
  template void add_penalty_gradient(const spline::Shape&, const SparsityOptions&, const T*, const LayerStrengths<T>&, \
                                     const LayerPenalty&, spline::Range, T*);
GRADLOOM_SPARSITY(float)
GRADLOOM_SPARSITY(double)
#undef GRADLOOM_SPARSITY

}  // namespace gradloom::kan
