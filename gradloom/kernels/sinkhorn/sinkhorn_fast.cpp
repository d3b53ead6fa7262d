// Sinkhorn's iteration; lanes are columns.
// clang-format off
#include "gradloom/kernels/simd_config.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradloom/kernels/sinkhorn/sinkhorn_fast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "gradloom/kernels/elementary/simd-inl.h"
#include "gradloom/kernels/reduce/lanes-inl.h"
#include "gradloom/kernels/simd-inl.h"
// clang-format on

#include <algorithm>

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/sinkhorn/fast.h"

HWY_BEFORE_NAMESPACE();
namespace gradloom::kernels::sinkhorn {
namespace HWY_NAMESPACE {

using namespace gradloom::kernels::HWY_NAMESPACE;

// `count` numbers, at most a vector; the rest is zero. Rows have no padding.
template <class T>
HWY_INLINE Vector<T> load(const T* from, std::size_t count) {
  constexpr Tag<T> d;
  if (count >= kVector<T>) return hn::LoadU(d, from);
  HWY_ALIGN T some[kVector<T>] = {};
  for (std::size_t l = 0; l < count; ++l) some[l] = from[l];
  return hn::Load(d, some);
}
template <class T>
HWY_INLINE void store(Vector<T> v, T* to, std::size_t count) {
  constexpr Tag<T> d;
  if (count >= kVector<T>) return hn::StoreU(v, d, to);
  HWY_ALIGN T some[kVector<T>];
  hn::Store(v, d, some);
  for (std::size_t l = 0; l < count; ++l) to[l] = some[l];
}

// The first `count` lanes; the others become `rest`.
template <class T>
HWY_INLINE Vector<T> first_lanes(Vector<T> v, std::size_t count, T rest) {
  constexpr Tag<T> d;
  return count >= kVector<T> ? v : hn::IfThenElse(hn::FirstN(d, count), v, hn::Set(d, rest));
}

template <class T>
HWY_INLINE Vector<T> exp_of(Vector<T> x) {
  return elementary_exp(VectorOps<Tag<T>>(), x);
}

// a - s K from column j of row i on.
template <class T>
HWY_INLINE Vector<T> exponent(const Costs<T>& c, std::size_t i, std::size_t j, std::size_t count, Vector<T> a) {
  return neg_mul_add(load(c.k + i * c.columns + j, count), hn::Set(Tag<T>(), c.sharpness), a);
}

// What the columns from j on sum to, as logarithms.
template <class T>
HWY_INLINE Vector<T> column_sums(const Costs<T>& c, std::size_t j) {
  constexpr Tag<T> d;
  const std::size_t last = c.columns - 1;
  if (last < j || last >= j + kVector<T>) return hn::Zero(d);
  HWY_ALIGN T sums[kVector<T>] = {};
  sums[last - j] = c.log_column;
  return hn::Load(d, sums);
}

// The sum over the columns of a row of term(j, count), a vector from column j on with zeros beyond.
template <class T, class F>
HWY_INLINE T row_sum(std::size_t columns, F&& term) {
  constexpr std::size_t parts = 8 / kVector<T>;
  Vector<T> lanes[parts];
  unroll<parts>([&](auto k) GRADLOOM_UNROLLED { lanes[k] = hn::Zero(Tag<T>()); });
  for (std::size_t j = 0; j < columns; j += 8)
    unroll<parts>([&](auto k) GRADLOOM_UNROLLED {
      const std::size_t at = j + k * kVector<T>;
      lanes[k] = hn::Add(lanes[k], term(at, std::min(kVector<T>, columns - std::min(columns, at))));
    });
  return add_eight<T>(lanes);
}

template <class T>
void scale_rows(const Costs<T>& c, const T* g, T* f) {
  constexpr Tag<T> d;
  for (std::size_t i = 0; i < c.rows; ++i) {
    T most = neg_mul_add(c.k[i * c.columns], c.sharpness, g[0]);
    Vector<T> largest = hn::Set(d, most);
    for (std::size_t j = 0; j < c.columns; j += kVector<T>) {
      const std::size_t count = std::min(kVector<T>, c.columns - j);
      largest = hn::Max(largest, first_lanes<T>(exponent(c, i, j, count, load(g + j, count)), count, most));
    }
    HWY_ALIGN T each[kVector<T>];
    hn::Store(largest, d, each);
    for (const T x : each) most = std::max(most, x);
    const T sum = row_sum<T>(c.columns, [&](std::size_t j, std::size_t count) GRADLOOM_UNROLLED {
      const Vector<T> e = exp_of<T>(hn::Sub(exponent(c, i, j, count, load(g + j, count)), hn::Set(d, most)));
      return first_lanes<T>(e, count, T(0));
    });
    f[i] = c.row_sum(i) - (most + kernels::GRADLOOM_TARGET_ARITHMETIC::log(sum));
  }
}

template <class T>
void scale_columns(const Costs<T>& c, const T* f, T* g) {
  constexpr Tag<T> d;
  for (std::size_t j = 0; j < c.columns; j += kVector<T>) {
    const std::size_t count = std::min(kVector<T>, c.columns - j);
    const auto at = [&](std::size_t i) GRADLOOM_UNROLLED { return exponent(c, i, j, count, hn::Set(d, f[i])); };
    Vector<T> most = at(0), sum = hn::Zero(d);
    for (std::size_t i = 1; i < c.rows; ++i) most = hn::Max(most, at(i));
    for (std::size_t i = 0; i < c.rows; ++i) sum = hn::Add(sum, exp_of<T>(hn::Sub(at(i), most)));
    const Vector<T> logs = hn::Add(most, elementary_log(VectorOps<Tag<T>>(), sum));
    store<T>(hn::Sub(column_sums(c, j), logs), g + j, count);
  }
}

// body(i, j, count) for all vectors of a matrix.
template <class T, class F>
HWY_INLINE void each_vector(const Costs<T>& c, F&& body) {
  for (std::size_t i = 0; i < c.rows; ++i)
    for (std::size_t j = 0; j < c.columns; j += kVector<T>) body(i, j, std::min(kVector<T>, c.columns - j));
}

template <class T>
void matching(const Costs<T>& c, const T* f, const T* g, T* p) {
  each_vector(c, [&](std::size_t i, std::size_t j, std::size_t count) GRADLOOM_UNROLLED {
    const Vector<T> a = hn::Add(hn::Set(Tag<T>(), f[i]), load(g + j, count));
    store<T>(exp_of<T>(exponent(c, i, j, count, a)), p + i * c.columns + j, count);
  });
}

// dk_ij = mul_add(s, w, dk_ij).
template <class T>
HWY_INLINE void add_to_costs(const Costs<T>& c, std::size_t i, std::size_t j, std::size_t count, Vector<T> w, T* dk) {
  T* to = dk + i * c.columns + j;
  store<T>(mul_add(hn::Set(Tag<T>(), c.sharpness), w, load<T>(to, count)), to, count);
}

template <class T>
void scale_columns_gradient(const Costs<T>& c, const T* f, const T* g, const T* dg, T* df, T* dk) {
  for (std::size_t i = 0; i < c.rows; ++i)
    df[i] = df[i] - row_sum<T>(c.columns, [&](std::size_t j, std::size_t count) GRADLOOM_UNROLLED {
              const Vector<T> a = hn::Sub(hn::Add(hn::Set(Tag<T>(), f[i]), load(g + j, count)), column_sums(c, j));
              const Vector<T> w = hn::Mul(exp_of<T>(exponent(c, i, j, count, a)), load(dg + j, count));
              add_to_costs(c, i, j, count, w, dk);
              return first_lanes<T>(w, count, T(0));
            });
}

template <class T>
void scale_rows_gradient(const Costs<T>& c, const T* f, const T* g, const T* df, T* dg, T* dk) {
  constexpr Tag<T> d;
  std::fill_n(dg, c.columns, T(0));
  each_vector(c, [&](std::size_t i, std::size_t j, std::size_t count) GRADLOOM_UNROLLED {
    const Vector<T> a = hn::Sub(hn::Add(hn::Set(d, f[i]), load(g + j, count)), hn::Set(d, c.row_sum(i)));
    const Vector<T> v = hn::Mul(exp_of<T>(exponent(c, i, j, count, a)), hn::Set(d, df[i]));
    add_to_costs(c, i, j, count, v, dk);
    store<T>(hn::Sub(load<T>(dg + j, count), v), dg + j, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradloom::kernels::sinkhorn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradloom::kernels::sinkhorn {
GRADLOOM_EXPORT(scale_rows);
GRADLOOM_EXPORT(scale_columns);
GRADLOOM_EXPORT(matching);
GRADLOOM_EXPORT(scale_columns_gradient);
GRADLOOM_EXPORT(scale_rows_gradient);
}  // namespace gradloom::kernels::sinkhorn
#endif
