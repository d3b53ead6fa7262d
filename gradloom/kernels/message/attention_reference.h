// The definition of attention, number by number. See attention.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_MESSAGE_ATTENTION_REFERENCE_H_
#define GRADLOOM_KERNELS_MESSAGE_ATTENTION_REFERENCE_H_

#include <algorithm>

#include "gradloom/base/hash.h"
#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/message/attention.h"
#include "gradloom/kernels/message/message.h"
#include "gradloom/kernels/mul_add.h"
#include "gradloom/kernels/reduce/lanes.h"

namespace gradloom::kernels::message {

inline constexpr std::size_t kSelf = ~std::size_t{0};  // the arc from a node to itself

// Walks through the arcs [first, last) of a node, segment by segment: for (Segment s(first, last); s.more(); s.next()).
struct Segment {
  std::size_t begin, end, last;
  bool first = true;

  Segment(std::size_t from, std::size_t to) : begin(from), end(std::min(to, from + kSegment)), last(to) {}
  bool more() const { return first || begin < last; }
  void next() { begin = end, end = std::min(last, begin + kSegment), first = false; }
};

}  // namespace gradloom::kernels::message

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/message/attention_reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::message::reference::GRADLOOM_ARITHMETIC {

using kernels::GRADLOOM_ARITHMETIC::exp;
using kernels::GRADLOOM_ARITHMETIC::lane_sum;
using kernels::GRADLOOM_ARITHMETIC::mul_add;

template <class T>
T z_of(const Attention<T>& p, std::size_t i, std::size_t j, std::size_t arc, std::size_t f) {
  T z = p.left[i * p.stride + f] + p.right[j * p.stride + f];
  if (arc != kSelf)
    for (std::size_t k = 0; k < p.edge_features; ++k)
      z = mul_add(p.edge[arc * p.edge_stride + k], p.edge_weight[k * p.stride + f], z);
  return z;
}

template <class T>
T score(const Attention<T>& p, std::size_t i, std::size_t j, std::size_t arc, std::size_t h) {
  return lane_sum(
      h * p.channels, (h + 1) * p.channels, [&](std::size_t f) GRADLOOM_ARITHMETIC_ATTR { return p.a[f]; },
      [&](std::size_t f) GRADLOOM_ARITHMETIC_ATTR {
        const T z = z_of(p, i, j, arc, f);
        return z > T(0) ? z : static_cast<T>(kLeak) * z;
      });
}

// Of two rows, over the channels of a head.
template <class T>
T dot_head(const Attention<T>& p, const T* a, const T* b, std::size_t h) {
  return lane_sum(
      h * p.channels, (h + 1) * p.channels, [&](std::size_t f) GRADLOOM_ARITHMETIC_ATTR { return a[f]; },
      [&](std::size_t f) GRADLOOM_ARITHMETIC_ATTR { return b[f]; });
}

// The sum over arcs [first, last), in segments: the first begins with `own`; add(e, sum) adds an arc.
template <class T, class F>
T segment_sum(std::size_t first, std::size_t last, T own, F&& add) {
  T total = 0;
  for (Segment s(first, last); s.more(); s.next()) {
    T sum = s.first ? own : T(0);
    for (std::size_t e = s.begin; e < s.end; ++e) sum = add(e, sum);
    total = s.first ? sum : total + sum;
  }
  return total;
}

// exp(score - largest) of a node's neighbours in one head, and what they are multiplied with.
template <class T>
T softmax(const Attention<T>& p, std::size_t i, std::size_t h) {
  T& self = p.self_alpha[i * p.heads + h];
  self = score(p, i, i, kSelf, h);
  T largest = self;
  for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
    T& s = p.alpha[e * p.heads + h];
    s = score(p, i, p.source[e], e, h);
    largest = s > largest ? s : largest;
  }
  self = exp(self - largest);
  for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
    T& s = p.alpha[e * p.heads + h];
    s = exp(s - largest);
  }
  return T(1) / segment_sum(p.ptr[i], p.ptr[i + 1], self, [&](std::size_t e, T sum) GRADLOOM_ARITHMETIC_ATTR {
           return sum + p.alpha[e * p.heads + h];
         });
}

template <class T>
void attend(const Attention<T>& p, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    T* y = p.y + i * p.stride;
    std::fill_n(y, p.stride, T(0));
    for (std::size_t h = 0; h < p.heads; ++h) {
      const T inverse = softmax(p, i, h);
      T& self = p.self_alpha[i * p.heads + h];
      self = self * inverse;
      for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
        T& s = p.alpha[e * p.heads + h];
        s = s * inverse;
      }
      for (std::size_t f = h * p.channels; f < (h + 1) * p.channels; ++f)
        y[f] = segment_sum(p.ptr[i], p.ptr[i + 1], self * p.right[i * p.stride + f],
                           [&](std::size_t e, T sum) GRADLOOM_ARITHMETIC_ATTR {
                             return mul_add(p.alpha[e * p.heads + h], p.right[p.source[e] * p.stride + f], sum);
                           });
    }
  }
}

// ds where z > 0, kLeak ds elsewhere.
template <class T>
T sloped(T ds, T z) {
  return z > T(0) ? ds : static_cast<T>(kLeak) * ds;
}

// Column f of dl_dleft, dl_da and dl_dedge_weight of row i, in head h; a is left to the end of the last.
template <class T>
void gradient_column(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t i, std::size_t h,
                     std::size_t f) {
  const std::size_t first = p.ptr[i], last = p.ptr[i + 1];
  const auto z = [&](std::size_t e) GRADLOOM_ARITHMETIC_ATTR { return z_of(p, i, p.source[e], e, f); };
  const auto u = [&](std::size_t e) GRADLOOM_ARITHMETIC_ATTR { return sloped(g.ds[e * p.heads + h], z(e)); };
  const T own_z = z_of(p, i, i, kSelf, f), own = sloped(g.self_ds[i * p.heads + h], own_z);
  g.dl_dleft[i * p.stride + f] =
      p.a[f] * segment_sum(first, last, own, [&](std::size_t e, T sum) GRADLOOM_ARITHMETIC_ATTR { return sum + u(e); });
  const T da = segment_sum(first, last, mul_add(own, own_z, T(0)),
                           [&](std::size_t e, T sum) GRADLOOM_ARITHMETIC_ATTR { return mul_add(u(e), z(e), sum); });
  g.dl_da[f] = g.dl_da[f] + da;
  for (std::size_t k = 0; k < p.edge_features; ++k) {
    T& dw = g.dl_dedge_weight[k * p.stride + f];
    dw = dw + segment_sum(first, last, T(0), [&](std::size_t e, T sum) GRADLOOM_ARITHMETIC_ATTR {
           return mul_add(p.edge[e * p.edge_stride + k], u(e), sum);
         });
  }
}

template <class T>
void attend_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  const std::size_t width = p.heads * p.channels;
  std::fill_n(g.dl_da, p.stride, T(0));
  if (p.edge_features > 0) std::fill_n(g.dl_dedge_weight, p.edge_features * p.stride, T(0));
  for (std::size_t i = begin; i < end; ++i) {
    const T *dl_dy = g.dl_dy + i * p.stride, *y = p.y + i * p.stride;
    for (std::size_t h = 0; h < p.heads; ++h) {
      const T mean = dot_head(p, dl_dy, y, h);
      const auto ds = [&](std::size_t j, T alpha) GRADLOOM_ARITHMETIC_ATTR {
        return alpha * (dot_head(p, dl_dy, p.right + j * p.stride, h) - mean);
      };
      g.self_ds[i * p.heads + h] = ds(i, p.self_alpha[i * p.heads + h]);
      for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e)
        g.ds[e * p.heads + h] = ds(p.source[e], p.alpha[e * p.heads + h]);
    }
    for (std::size_t f = 0; f < width; ++f) gradient_column(p, g, i, f / p.channels, f);
    std::fill(g.dl_dleft + i * p.stride + width, g.dl_dleft + (i + 1) * p.stride, T(0));
  }
  for (std::size_t k = 0; k < p.edge_features; ++k)
    for (std::size_t f = 0; f < width; ++f)
      g.dl_dedge_weight[k * p.stride + f] = p.a[f] * g.dl_dedge_weight[k * p.stride + f];
}

template <class T>
void attend_source_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  const std::size_t width = p.heads * p.channels;
  for (std::size_t j = begin; j < end; ++j) {
    T* dl_dright = g.dl_dright + j * p.stride;
    std::fill_n(dl_dright, p.stride, T(0));
    for (std::size_t f = 0; f < width; ++f) {
      const std::size_t h = f / p.channels, self = j * p.heads + h, first = p.out_ptr[j], last = p.out_ptr[j + 1];
      const T passed = segment_sum(first, last, p.self_alpha[self] * g.dl_dy[j * p.stride + f],
                                   [&](std::size_t q, T sum) GRADLOOM_ARITHMETIC_ATTR {
                                     const T alpha = p.alpha[p.slot[q] * p.heads + h];
                                     return mul_add(alpha, g.dl_dy[p.out_target[q] * p.stride + f], sum);
                                   });
      const T scored = segment_sum(first, last, sloped(g.self_ds[self], z_of(p, j, j, kSelf, f)),
                                   [&](std::size_t q, T sum) GRADLOOM_ARITHMETIC_ATTR {
                                     const std::size_t e = p.slot[q];
                                     return sum + sloped(g.ds[e * p.heads + h], z_of(p, p.out_target[q], j, e, f));
                                   });
      dl_dright[f] = mul_add(p.a[f], scored, passed);
    }
  }
}

template <class T>
void attend_edge_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
      const auto u = [&](std::size_t f) GRADLOOM_ARITHMETIC_ATTR {
        return p.a[f] * sloped(g.ds[e * p.heads + f / p.channels], z_of(p, i, p.source[e], e, f));
      };
      for (std::size_t k = 0; k < p.edge_features; ++k) {
        T& de = g.dl_dedge[e * p.edge_stride + k];
        de = de + lane_sum(0, p.heads * p.channels, u,
                           [&](std::size_t f) GRADLOOM_ARITHMETIC_ATTR { return p.edge_weight[k * p.stride + f]; });
      }
    }
}

template <class T>
std::uint64_t attention_branches(const Attention<T>& p, std::size_t rows) {
  Hash hash;
  const auto look = [&](std::size_t i, std::size_t j, std::size_t arc) GRADLOOM_ARITHMETIC_ATTR {
    for (std::size_t f = 0; f < p.heads * p.channels; ++f) hash.mix(z_of(p, i, j, arc, f) > T(0) ? 2u : 1u);
  };
  for (std::size_t i = 0; i < rows; ++i) {
    look(i, i, kSelf);
    for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) look(i, p.source[e], e);
  }
  return hash.value();
}

}  // namespace gradloom::kernels::message::reference::GRADLOOM_ARITHMETIC

#endif
