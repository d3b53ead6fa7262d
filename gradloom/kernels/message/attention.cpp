#include "gradloom/kernels/message/attention.h"

#include <algorithm>

#include "gradloom/base/hash.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::kernels::message {
namespace {

constexpr std::size_t kSelf = ~std::size_t{0};  // the arc from a node to itself

template <class T>
T z_of(const Attention<T>& p, std::size_t i, std::size_t j, std::size_t arc, std::size_t f) {
  T z = p.left[i * p.stride + f] + p.right[j * p.stride + f];
  if (arc != kSelf)
    for (std::size_t k = 0; k < p.edge_features; ++k)
      z = z + p.edge[arc * p.edge_stride + k] * p.edge_weight[k * p.stride + f];
  return z;
}

template <class T>
T score(const Attention<T>& p, std::size_t i, std::size_t j, std::size_t arc, std::size_t h) {
  T sum = 0;
  for (std::size_t f = h * p.channels; f < (h + 1) * p.channels; ++f) {
    const T z = z_of(p, i, j, arc, f);
    sum = sum + p.a[f] * (z > T(0) ? z : static_cast<T>(kLeak) * z);
  }
  return sum;
}

template <class T>
T dot_head(const T* a, const T* b, std::size_t channels) {
  T sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum = sum + a[c] * b[c];
  return sum;
}

}  // namespace

template <class T>
void attend(const Attention<T>& p, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    std::fill_n(p.y + i * p.stride, p.stride, T(0));
    for (std::size_t h = 0; h < p.heads; ++h) {
      T& self = p.self_alpha[i * p.heads + h];
      self = score(p, i, i, kSelf, h);
      T largest = self;
      for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
        T& s = p.alpha[e * p.heads + h];
        s = score(p, i, p.source[e], e, h);
        largest = s > largest ? s : largest;
      }
      self = split::exp(self - largest);
      T sum = self;
      for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
        T& s = p.alpha[e * p.heads + h];
        s = split::exp(s - largest);
        sum = sum + s;
      }
      const T inverse = T(1) / sum;
      T* y = p.y + i * p.stride + h * p.channels;
      self = self * inverse;
      const T* own = p.right + i * p.stride + h * p.channels;
      for (std::size_t c = 0; c < p.channels; ++c) y[c] = self * own[c];
      for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) {
        T& s = p.alpha[e * p.heads + h];
        s = s * inverse;
        const T weight = s;
        const T* from = p.right + p.source[e] * p.stride + h * p.channels;
        for (std::size_t c = 0; c < p.channels; ++c) y[c] = y[c] + weight * from[c];
      }
    }
  }
}

template <class T>
void attend_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  std::fill_n(g.dl_da, p.stride, T(0));
  std::fill_n(g.dl_dedge_weight, p.edge_features * p.stride, T(0));
  for (std::size_t i = begin; i < end; ++i) {
    T* dl_dleft = g.dl_dleft + i * p.stride;
    std::fill_n(dl_dleft, p.stride, T(0));
    for (std::size_t h = 0; h < p.heads; ++h) {
      const std::size_t first = h * p.channels;
      const T* dl_dy = g.dl_dy + i * p.stride + first;
      const T mean = dot_head(dl_dy, p.y + i * p.stride + first, p.channels);
      const auto neighbour = [&](std::size_t j, std::size_t arc, T alpha) {
        const T ds = alpha * (dot_head(dl_dy, p.right + j * p.stride + first, p.channels) - mean);
        for (std::size_t f = first; f < first + p.channels; ++f) {
          const T z = z_of(p, i, j, arc, f);
          const bool above = z > T(0);
          g.dl_da[f] = g.dl_da[f] + ds * (above ? z : static_cast<T>(kLeak) * z);
          const T u = ds * (p.a[f] * (above ? T(1) : static_cast<T>(kLeak)));
          dl_dleft[f] = dl_dleft[f] + u;
          if (arc == kSelf) continue;
          for (std::size_t k = 0; k < p.edge_features; ++k) {
            T& dw = g.dl_dedge_weight[k * p.stride + f];
            dw = dw + p.edge[arc * p.edge_stride + k] * u;
            if (!g.dl_dedge) continue;
            T& de = g.dl_dedge[arc * p.edge_stride + k];
            de = de + u * p.edge_weight[k * p.stride + f];
          }
        }
        return ds;
      };
      g.self_ds[i * p.heads + h] = neighbour(i, kSelf, p.self_alpha[i * p.heads + h]);
      for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e)
        g.ds[e * p.heads + h] = neighbour(p.source[e], e, p.alpha[e * p.heads + h]);
    }
  }
}

template <class T>
void attend_source_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j) {
    T* dl_dright = g.dl_dright + j * p.stride;
    std::fill_n(dl_dright, p.stride, T(0));
    for (std::size_t h = 0; h < p.heads; ++h) {
      const auto neighbour = [&](std::size_t i, std::size_t arc, T alpha, T ds) {
        const T* dl_dy = g.dl_dy + i * p.stride;
        for (std::size_t f = h * p.channels; f < (h + 1) * p.channels; ++f) {
          const T slope = z_of(p, i, j, arc, f) > T(0) ? T(1) : static_cast<T>(kLeak);
          dl_dright[f] = dl_dright[f] + (alpha * dl_dy[f] + ds * (p.a[f] * slope));
        }
      };
      neighbour(j, kSelf, p.self_alpha[j * p.heads + h], g.self_ds[j * p.heads + h]);
      for (std::size_t q = p.out_ptr[j]; q < p.out_ptr[j + 1]; ++q) {
        const std::size_t e = p.slot[q];
        neighbour(p.out_target[q], e, p.alpha[e * p.heads + h], g.ds[e * p.heads + h]);
      }
    }
  }
}

template <class T>
std::uint64_t attention_branches(const Attention<T>& p, std::size_t rows) {
  Hash hash;
  const auto look = [&](std::size_t i, std::size_t j, std::size_t arc) {
    for (std::size_t f = 0; f < p.heads * p.channels; ++f) hash.mix(z_of(p, i, j, arc, f) > T(0) ? 2u : 1u);
  };
  for (std::size_t i = 0; i < rows; ++i) {
    look(i, i, kSelf);
    for (std::size_t e = p.ptr[i]; e < p.ptr[i + 1]; ++e) look(i, p.source[e], e);
  }
  return hash.value();
}

GRADLOOM_INSTANTIATE(attend);
GRADLOOM_INSTANTIATE(attend_gradient);
GRADLOOM_INSTANTIATE(attend_source_gradient);
GRADLOOM_INSTANTIATE(attention_branches);

}  // namespace gradloom::kernels::message
