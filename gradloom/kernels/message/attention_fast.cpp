// Attention; lanes are columns, and sums over neighbours stay in registers while the neighbours pass.
// clang-format off
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/message/attention_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/reduce/lanes-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include "gradloom/kernels/message/attention_fast.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "gradloom/kernels/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::message {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// What the loops have to look at.
enum class Shape {
  one,    // one head, no edge features
  whole,  // no edge features, and the 8 columns of a group belong to one head
  any,
};

// `parts` vectors of a row from column f on.
template <Shape shape, std::size_t parts, class T>
struct Columns {
  const Attention<T>& p;
  const std::size_t f;
  std::size_t head[parts];  // of the first column of each vector; padding has that of the last

  HWY_INLINE Columns(const Attention<T>& attention, std::size_t first) : p(attention), f(first) {
    if constexpr (shape != Shape::one)
      for (std::size_t k = 0; k < parts; ++k) head[k] = std::min(p.heads - 1, (f + k * kVector<T>) / p.channels);
  }

  // A weight for each head, one number for each column.
  HWY_INLINE Vector<T> weight(const T* of_heads, std::size_t k) const {
    constexpr Tag<T> d;
    if constexpr (shape == Shape::one) return hn::Set(d, of_heads[0]);
    Vector<T> w = hn::Set(d, of_heads[head[k]]);
    if constexpr (shape == Shape::any) {
      const std::size_t begin = f + k * kVector<T>, end = begin + kVector<T>;
      for (std::size_t h = head[k] + 1; h < p.heads && h * p.channels < end; ++h)
        w = hn::IfThenElse(hn::FirstN(d, h * p.channels - begin), w, hn::Set(d, of_heads[h]));
    }
    return w;
  }
};

// z of column f on; edge: the features of the arc, null for a node itself.
template <Shape shape, class T>
HWY_INLINE Vector<T> z_at(const Attention<T>& p, const T* left, const T* right, const T* edge, std::size_t f) {
  Vector<T> z = hn::Add(load(left + f), load(right + f));
  if constexpr (shape == Shape::any) {
    if (edge)
      for (std::size_t k = 0; k < p.edge_features; ++k)
        z = mul_add(hn::Set(Tag<T>(), edge[k]), load(p.edge_weight + k * p.stride + f), z);
  }
  return z;
}

template <Shape shape, class T>
HWY_INLINE const T* edge_of(const Attention<T>& p, std::size_t e) {
  return shape == Shape::any && p.edge_features > 0 ? p.edge + e * p.edge_stride : nullptr;
}

// ds where z > 0, kLeak ds elsewhere.
template <class T>
HWY_INLINE Vector<T> sloped(Vector<T> ds, Vector<T> z) {
  constexpr Tag<T> d;
  return hn::IfThenElse(hn::Gt(z, hn::Zero(d)), ds, hn::Mul(hn::Set(d, static_cast<T>(kLeak)), ds));
}

// The columns of a head among those of a vector at f.
template <class T>
HWY_INLINE hn::Mask<Tag<T>> inside(std::size_t first, std::size_t last, std::size_t f) {
  constexpr Tag<T> d;
  const std::size_t begin = std::min(kVector<T>, first - std::min(first, f)),
                    end = std::min(kVector<T>, last - std::min(last, f));
  return hn::AndNot(hn::FirstN(d, begin), hn::FirstN(d, end));
}

// sums[m] = sum over the columns of head h of a(f) b(f, m), for m < n.
template <Shape shape, std::size_t n, class T, class A, class B>
HWY_INLINE void lane_sums(const Attention<T>& p, std::size_t h, A&& a, B&& b, T* HWY_RESTRICT sums) {
  constexpr std::size_t parts = 8 / kVector<T>;
  const std::size_t first = h * p.channels, last = first + p.channels;
  Vector<T> lanes[n * parts];
  unroll<n * parts>([&](auto k) GRADLOOM_UNROLLED { lanes[k] = hn::Zero(Tag<T>()); });
  for (std::size_t group = first / 8 * 8; group < last; group += 8)
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const std::size_t f = group + k * kVector<T>;
      if constexpr (shape == Shape::any) {
        const auto mask = inside<T>(first, last, f);
        const Vector<T> factor = hn::IfThenElseZero(mask, a(f));
        unroll<n>([&](auto m) GRADLOOM_UNROLLED {
          lanes[m * parts + k] = mul_add(factor, hn::IfThenElseZero(mask, b(f, m)), lanes[m * parts + k]);
        });
      } else {
        const Vector<T> factor = a(f);
        unroll<n>([&](auto m)
                      GRADLOOM_UNROLLED { lanes[m * parts + k] = mul_add(factor, b(f, m), lanes[m * parts + k]); });
      }
    });
  add_lanes<n, T>(lanes, sums);
}

// put(m, sum) for the node itself (m = 0) and its arcs (m = 1, ...): sum over the columns of head h of a(f) b(f, j,
// edge).
template <Shape shape, class T, class A, class B, class Put>
HWY_INLINE void neighbour_sums(const Attention<T>& p, std::size_t i, std::size_t h, A&& a, B&& b, Put&& put) {
  constexpr std::size_t n = 4, kAhead = 8, kLine = 64 / sizeof(T);
  const std::size_t before = p.ptr[i] - std::size_t{1}, count = p.ptr[i + 1] - before;  // arc m: before + m
  for (std::size_t m = 0; m < count; m += n) {
    const T *right[n], *edge[n];
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t at = std::min(m + k, count - 1);  // behind the last: that one again
      right[k] = p.right + (at == 0 ? i : p.source[before + at]) * p.stride;
      edge[k] = at == 0 ? nullptr : edge_of<shape>(p, before + at);
      if (m + k + kAhead >= count) continue;
      const T* next = p.right + p.source[before + m + k + kAhead] * p.stride + h * p.channels;
      for (std::size_t f = 0; f < p.channels; f += kLine) hwy::Prefetch(next + f);
    }
    T sums[n];
    if (count - m > 1)
      lane_sums<shape, n, T>(
          p, h, a, [&](std::size_t f, auto k) GRADLOOM_UNROLLED { return b(f, right[k], edge[k]); }, sums);
    else
      lane_sums<shape, 1, T>(
          p, h, a, [&](std::size_t f, auto k) GRADLOOM_UNROLLED { return b(f, right[k], edge[k]); }, sums);
    for (std::size_t k = 0; k < std::min(n, count - m); ++k) put(m + k, sums[k]);
  }
}

// score - largest score of row i.
template <Shape shape, class T>
void scores_of(const Attention<T>& p, std::size_t i) {
  constexpr Tag<T> d;
  const T* left = p.left + i * p.stride;
  for (std::size_t h = 0; h < p.heads; ++h) {
    T* own = p.self_alpha + i * p.heads + h;
    T* of_arcs = p.alpha + p.ptr[i] * p.heads + h;
    T largest = 0;
    neighbour_sums<shape, T>(
        p, i, h, [&](std::size_t f) GRADLOOM_UNROLLED { return load(p.a + f); },
        [&](std::size_t f, const T* right, const T* edge) GRADLOOM_UNROLLED {
          const Vector<T> z = z_at<shape>(p, left, right, edge, f);
          return hn::Max(hn::Mul(hn::Set(d, static_cast<T>(kLeak)), z), z);  // leaky, of a slope below 1
        },
        [&](std::size_t m, T sum) GRADLOOM_UNROLLED {
          (m == 0 ? *own : of_arcs[(m - 1) * p.heads]) = sum;
          largest = m == 0 || sum > largest ? sum : largest;
        });
    *own = *own - largest;
    for (std::size_t m = 0; m < p.ptr[i + 1] - p.ptr[i]; ++m) of_arcs[m * p.heads] = of_arcs[m * p.heads] - largest;
  }
}

template <class T>
void exp_of(T* HWY_RESTRICT x, std::size_t count) {
  constexpr Tag<T> d;
  const VectorOps<Tag<T>> ops;
  std::size_t k = 0;
  for (; k + kVector<T> <= count; k += kVector<T>) hn::StoreU(elementary_exp(ops, load(x + k)), d, x + k);
  for (; k < count; ++k) x[k] = kernels::GRADLOOM_TARGET_ARITHMETIC::exp(x[k]);
}

// alpha of row i from exp(score - largest).
template <class T>
void normalise(const Attention<T>& p, std::size_t i) {
  const std::size_t first = p.ptr[i], last = p.ptr[i + 1];
  for (std::size_t h = 0; h < p.heads; ++h) {
    T& own = p.self_alpha[i * p.heads + h];
    T total = 0, sum = own;
    for (Segment s(first, last); s.more(); s.next()) {
      for (std::size_t e = s.begin; e < s.end; ++e) sum = sum + p.alpha[e * p.heads + h];
      total = s.first ? sum : total + sum;
      sum = 0;
    }
    const T inverse = T(1) / total;
    own = own * inverse;
    for (std::size_t e = first; e < last; ++e) p.alpha[e * p.heads + h] = p.alpha[e * p.heads + h] * inverse;
  }
}

// `parts` vectors of y_i from column f on.
template <Shape shape, std::size_t parts, class T>
HWY_INLINE void weighted_part(const Attention<T>& p, std::size_t i, std::size_t f) {
  constexpr Tag<T> d;
  const Columns<shape, parts, T> columns(p, f);
  Vector<T> total[parts];
  for (Segment s(p.ptr[i], p.ptr[i + 1]); s.more(); s.next()) {
    Vector<T> sum[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      sum[k] = s.first ? hn::Mul(columns.weight(p.self_alpha + i * p.heads, k),
                                 load(p.right + i * p.stride + f + k * kVector<T>))
                       : hn::Zero(d);
    });
    for (std::size_t e = s.begin; e < s.end; ++e) {
      const T* from = p.right + p.source[e] * p.stride + f;
      const T* alpha = p.alpha + e * p.heads;
      unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
        sum[k] = mul_add(columns.weight(alpha, k), load(from + k * kVector<T>), sum[k]);
      });
    }
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED { total[k] = s.first ? sum[k] : hn::Add(total[k], sum[k]); });
  }
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { hn::StoreU(total[k], d, p.y + i * p.stride + f + k * kVector<T>); });
}

// part(Index<vectors>, column) for all columns of a row.
template <std::size_t most, class T, class F>
HWY_INLINE void for_columns(std::size_t stride, F&& part) {
  std::size_t f = 0;
  for (; f + most * kVector<T> <= stride; f += most * kVector<T>) part(Index<most>{}, f);
  for (; f < stride; f += 2 * kVector<T>) part(Index<2>{}, f);
}

// A function of Shape that these arrays need.
template <class T, class F>
void with_shape(const Attention<T>& p, F&& run) {
  if (p.edge_features == 0 && p.heads == 1) return run(std::integral_constant<Shape, Shape::one>{});
  if (p.edge_features == 0 && p.channels % 8 == 0) return run(std::integral_constant<Shape, Shape::whole>{});
  run(std::integral_constant<Shape, Shape::any>{});
}

template <class T>
HWY_INLINE void clear_padding(const Attention<T>& p, T* row) {
  std::fill(row + p.heads * p.channels, row + p.stride, T(0));
}

template <class T>
void attend(const Attention<T>& p, std::size_t begin, std::size_t end) {
  constexpr std::size_t kRows = 16;  // neighbours of so many are still in the cache for the second pass
  with_shape(p, [&](auto shape) HWY_ATTR {
    for (std::size_t first = begin; first < end; first += kRows) {
      const std::size_t last = std::min(end, first + kRows);
      for (std::size_t i = first; i < last; ++i) scores_of<shape.value>(p, i);
      exp_of(p.self_alpha + first * p.heads, (last - first) * p.heads);
      exp_of(p.alpha + p.ptr[first] * p.heads, (p.ptr[last] - p.ptr[first]) * p.heads);
      for (std::size_t i = first; i < last; ++i) {
        normalise(p, i);
        for_columns<8, T>(p.stride, [&](auto parts, std::size_t f)
                                        GRADLOOM_UNROLLED { weighted_part<shape.value, parts.value>(p, i, f); });
        clear_padding(p, p.y + i * p.stride);
      }
    }
  });
}

// ds of row i.
template <Shape shape, class T>
void score_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t i) {
  const T *dl_dy = g.dl_dy + i * p.stride, *y = p.y + i * p.stride;
  const auto of_row = [&](std::size_t f) GRADLOOM_UNROLLED { return load(dl_dy + f); };
  for (std::size_t h = 0; h < p.heads; ++h) {
    const std::size_t own = i * p.heads + h, of_arcs = p.ptr[i] * p.heads + h;
    T mean;
    lane_sums<shape, 1, T>(
        p, h, of_row, [&](std::size_t f, auto) GRADLOOM_UNROLLED { return load(y + f); }, &mean);
    neighbour_sums<shape, T>(
        p, i, h, of_row, [&](std::size_t f, const T* right, const T*) GRADLOOM_UNROLLED { return load(right + f); },
        [&](std::size_t m, T sum) GRADLOOM_UNROLLED {
          if (m == 0)
            g.self_ds[own] = p.self_alpha[own] * (sum - mean);
          else
            g.ds[of_arcs + (m - 1) * p.heads] = p.alpha[of_arcs + (m - 1) * p.heads] * (sum - mean);
        });
  }
}

// `parts` vectors of dl_dleft_i from column f on, and what row i adds to dl_da.
template <Shape shape, std::size_t parts, class T>
HWY_INLINE void left_part(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t i, std::size_t f) {
  constexpr Tag<T> d;
  const Columns<shape, parts, T> columns(p, f);
  const T* left = p.left + i * p.stride;
  Vector<T> slopes[parts], products[parts];  // sums of f_ij and f_ij z_ij
  for (Segment s(p.ptr[i], p.ptr[i + 1]); s.more(); s.next()) {
    Vector<T> slope[parts], product[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      if (s.first) {
        const Vector<T> z = z_at<shape, T>(p, left, p.right + i * p.stride, nullptr, f + k * kVector<T>);
        slope[k] = sloped<T>(columns.weight(g.self_ds + i * p.heads, k), z);
        product[k] = mul_add(slope[k], z, hn::Zero(d));
      } else {
        slope[k] = product[k] = hn::Zero(d);
      }
    });
    for (std::size_t e = s.begin; e < s.end; ++e) {
      const T *right = p.right + p.source[e] * p.stride, *ds = g.ds + e * p.heads, *edge = edge_of<shape>(p, e);
      unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
        const Vector<T> z = z_at<shape>(p, left, right, edge, f + k * kVector<T>);
        const Vector<T> u = sloped<T>(columns.weight(ds, k), z);
        slope[k] = hn::Add(slope[k], u);
        product[k] = mul_add(u, z, product[k]);
      });
    }
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      slopes[k] = s.first ? slope[k] : hn::Add(slopes[k], slope[k]);
      products[k] = s.first ? product[k] : hn::Add(products[k], product[k]);
    });
  }
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
    const std::size_t at = f + k * kVector<T>;
    hn::StoreU(hn::Mul(load(p.a + at), slopes[k]), d, g.dl_dleft + i * p.stride + at);
    hn::StoreU(hn::Add(load(g.dl_da + at), products[k]), d, g.dl_da + at);
  });
}

// What row i adds to `parts` vectors of dl_dedge_weight from column f on, without a; some features at a time.
template <std::size_t parts, class T>
HWY_INLINE void edge_part(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t i, std::size_t f) {
  constexpr std::size_t kFeatures = 16, width = parts * kVector<T>;
  constexpr Tag<T> d;
  const Columns<Shape::any, parts, T> columns(p, f);
  HWY_ALIGN T sum[kFeatures * width];
  HWY_ALIGN T total[kFeatures * width];
  for (std::size_t feature = 0; feature < p.edge_features; feature += kFeatures) {
    const std::size_t features = std::min(kFeatures, p.edge_features - feature);
    for (Segment s(p.ptr[i], p.ptr[i + 1]); s.more(); s.next()) {
      std::fill_n(sum, features * width, T(0));
      for (std::size_t e = s.begin; e < s.end; ++e) {
        const T *right = p.right + p.source[e] * p.stride, *edge = p.edge + e * p.edge_stride;
        unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
          const Vector<T> z = z_at<Shape::any>(p, p.left + i * p.stride, right, edge, f + k * kVector<T>);
          const Vector<T> u = sloped<T>(columns.weight(g.ds + e * p.heads, k), z);
          for (std::size_t n = 0; n < features; ++n) {
            T* to = sum + n * width + k * kVector<T>;
            hn::Store(mul_add(hn::Set(d, edge[feature + n]), u, hn::Load(d, to)), d, to);
          }
        });
      }
      for (std::size_t n = 0; n < features * width; ++n) total[n] = s.first ? sum[n] : total[n] + sum[n];
    }
    for (std::size_t n = 0; n < features; ++n) {
      T* to = g.dl_dedge_weight + (feature + n) * p.stride + f;
      for (std::size_t c = 0; c < width; ++c) to[c] = to[c] + total[n * width + c];
    }
  }
}

template <class T>
void attend_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  std::fill_n(g.dl_da, p.stride, T(0));
  if (p.edge_features > 0) std::fill_n(g.dl_dedge_weight, p.edge_features * p.stride, T(0));
  with_shape(p, [&](auto shape) HWY_ATTR {
    for (std::size_t i = begin; i < end; ++i) {
      score_gradient<shape.value>(p, g, i);
      for_columns<4, T>(p.stride, [&](auto parts, std::size_t f)
                                      GRADLOOM_UNROLLED { left_part<shape.value, parts.value>(p, g, i, f); });
      clear_padding(p, g.dl_dleft + i * p.stride);
      if (p.edge_features > 0)
        for_columns<2, T>(p.stride,
                          [&](auto parts, std::size_t f) GRADLOOM_UNROLLED { edge_part<parts.value>(p, g, i, f); });
    }
  });
  for (std::size_t k = 0; k < p.edge_features; ++k) {
    T* row = g.dl_dedge_weight + k * p.stride;
    for (std::size_t f = 0; f < p.heads * p.channels; ++f) row[f] = p.a[f] * row[f];
    clear_padding(p, row);
  }
}

// `parts` vectors of dl_dright_j from column f on.
template <Shape shape, std::size_t parts, class T>
HWY_INLINE void right_part(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t j, std::size_t f) {
  constexpr Tag<T> d;
  const Columns<shape, parts, T> columns(p, f);
  const T* right = p.right + j * p.stride;
  Vector<T> passed[parts], scored[parts];
  for (Segment s(p.out_ptr[j], p.out_ptr[j + 1]); s.more(); s.next()) {
    Vector<T> pass[parts], score[parts];
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const std::size_t at = f + k * kVector<T>;
      if (s.first) {
        pass[k] = hn::Mul(columns.weight(p.self_alpha + j * p.heads, k), load(g.dl_dy + j * p.stride + at));
        score[k] = sloped<T>(columns.weight(g.self_ds + j * p.heads, k),
                             z_at<shape, T>(p, p.left + j * p.stride, right, nullptr, at));
      } else {
        pass[k] = score[k] = hn::Zero(d);
      }
    });
    for (std::size_t q = s.begin; q < s.end; ++q) {
      const std::size_t i = p.out_target[q], e = p.slot[q];
      const T *left = p.left + i * p.stride, *dl_dy = g.dl_dy + i * p.stride, *edge = edge_of<shape>(p, e);
      unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
        const std::size_t at = f + k * kVector<T>;
        pass[k] = mul_add(columns.weight(p.alpha + e * p.heads, k), load(dl_dy + at), pass[k]);
        const Vector<T> z = z_at<shape>(p, left, right, edge, at);
        score[k] = hn::Add(score[k], sloped<T>(columns.weight(g.ds + e * p.heads, k), z));
      });
    }
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      passed[k] = s.first ? pass[k] : hn::Add(passed[k], pass[k]);
      scored[k] = s.first ? score[k] : hn::Add(scored[k], score[k]);
    });
  }
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
    const std::size_t at = f + k * kVector<T>;
    hn::StoreU(mul_add(load(p.a + at), scored[k], passed[k]), d, g.dl_dright + j * p.stride + at);
  });
}

template <class T>
void attend_source_gradient(const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin, std::size_t end) {
  with_shape(p, [&](auto shape) HWY_ATTR {
    for (std::size_t j = begin; j < end; ++j) {
      for_columns<4, T>(p.stride, [&](auto parts, std::size_t f)
                                      GRADLOOM_UNROLLED { right_part<shape.value, parts.value>(p, g, j, f); });
      clear_padding(p, g.dl_dright + j * p.stride);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::message
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::message {
GRADLOOM_EXPORT(attend);
GRADLOOM_EXPORT(attend_gradient);
GRADLOOM_EXPORT(attend_source_gradient);
}  // namespace gradloom::kernels::message
#endif
