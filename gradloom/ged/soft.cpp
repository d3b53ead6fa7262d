#include "gradloom/ged/soft.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/base/error.h"
#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom::ged {
namespace {

// Sizes and the parts of a tape; all sums run in the order of the indices.
template <class T>
class Soft {
 public:
  Soft(const SoftInputs<T>& in, const SoftOptions& o, SoftTape<T>& tape)
      : in_(in), o_(o), tape_(tape), r_(in.n1 + 1), c_(in.n2 + 1), size_(r_ * c_) {
    if (in.cost.size() != size_ || in.a.size() != in.kinds * in.n1 * in.n1 || in.b.size() != in.kinds * in.n2 * in.n2)
      throw Exception(
          ErrorCode::invalid_input,
          fmt::format("soft distance of {} and {} nodes, {} kinds of edges: cost, a, b have {}, {}, {} entries", in.n1,
                      in.n2, in.kinds, in.cost.size(), in.a.size(), in.b.size()));
    if (!(o.temperature > 0.0) || o.iterations == 0 || o.rounds == 0)
      throw Exception(ErrorCode::invalid_input,
                      fmt::format("soft distance: temperature {} must be > 0, iterations {} and rounds {} at least 1",
                                  o.temperature, o.iterations, o.rounds));
    sharpness_ = T(1) / static_cast<T>(o.temperature);
  }

  T forward() {
    tape_.p.resize(o_.rounds * size_);
    tape_.price.resize(o_.rounds * size_);
    tape_.rows.resize(o_.rounds * o_.iterations * r_);
    tape_.columns.resize(o_.rounds * (o_.iterations + 1) * c_);
    tape_.scratch.resize(scratch_size());
    for (unsigned round = 0; round < o_.rounds; ++round) {
      T* price = price_of(round);
      std::copy(in_.cost.begin(), in_.cost.end(), price);
      price[size_ - 1] = T(0);
      if (round > 0) add_slope(p_of(round - 1), price);
      if (fixed())
        only_matching(p_of(round));
      else
        sinkhorn(round);
    }
    return cost(p_of(o_.rounds - 1));
  }

  T cost(const T* p) {
    T total = T(0);
    for (std::size_t k = 0; k + 1 < size_; ++k) total += p[k] * in_.cost[k];
    T all_a = T(0), all_b = T(0), both = T(0);
    for (T x : in_.a) all_a += x;
    for (T x : in_.b) all_b += x;
    tape_.scratch.resize(scratch_size());
    T* g = tape_.scratch.data();
    std::fill(g, g + size_, T(0));
    add_product(p, g, false);
    for (std::size_t k = 0; k < size_; ++k) both += p[k] * g[k];
    return total + half() * (in_.edge_delete * all_a + in_.edge_insert * all_b + both);
  }

  void backward(T dl_dy, std::span<T> dl_dcost, std::span<T> dl_da) {
    T* dp = tape_.scratch.data() + size_ + temporary();
    T* dprice = dp + size_;
    std::fill(dl_dcost.begin(), dl_dcost.end(), T(0));
    std::fill(dl_da.begin(), dl_da.end(), T(0));
    const T* last = p_of(o_.rounds - 1);
    for (std::size_t k = 0; k + 1 < size_; ++k) {
      dl_dcost[k] += dl_dy * last[k];
      dp[k] = in_.cost[k];
    }
    dp[size_ - 1] = T(0);
    add_slope(last, dp);
    for (std::size_t k = 0; k < size_; ++k) dp[k] *= dl_dy;
    if (!dl_da.empty()) {
      for (T& d : dl_da) d += dl_dy * half() * in_.edge_delete;
      add_a_gradient(last, last, dl_dy * half(), dl_da);
    }
    if (fixed()) return;
    for (unsigned round = o_.rounds; round-- > 0;) {
      sinkhorn_backward(round, dp, dprice);
      for (std::size_t k = 0; k + 1 < size_; ++k) dl_dcost[k] += dprice[k];
      if (round == 0) break;
      // price = cost + slope(p of the round before); the slope is linear in p, and its matrix symmetric.
      const T* before = p_of(round - 1);
      dprice[size_ - 1] = T(0);
      std::fill(dp, dp + size_, T(0));
      add_slope(dprice, dp);
      if (!dl_da.empty()) {
        add_a_gradient(dprice, before, half(), dl_da);
        add_a_gradient(before, dprice, half(), dl_da);
      }
    }
    dl_dcost[size_ - 1] = T(0);
  }

 private:
  bool fixed() const { return in_.n1 == 0 || in_.n2 == 0; }
  T half() const { return in_.direction == Direction::undirected ? T(0.5) : T(1); }
  std::size_t temporary() const { return 2 * std::max(r_, c_) * std::max(r_, c_); }
  std::size_t scratch_size() const { return 3 * size_ + temporary() + 2 * (r_ + c_); }
  T* p_of(unsigned round) { return tape_.p.data() + round * size_; }
  T* price_of(unsigned round) { return tape_.price.data() + round * size_; }
  T* rows_of(unsigned round, unsigned t) { return tape_.rows.data() + (round * o_.iterations + t) * r_; }
  T* columns_of(unsigned round, unsigned t) { return tape_.columns.data() + (round * (o_.iterations + 1) + t) * c_; }
  // The factor of a_k p b_k^T in the edge term: an edge that meets its like is neither deleted nor inserted nor
  // relabelled.
  T like() const { return -in_.edge_sub; }
  T any() const { return in_.edge_sub - in_.edge_delete - in_.edge_insert; }

  void only_matching(T* p) const {
    std::fill(p, p + size_, T(0));
    for (std::size_t i = 0; i < in_.n1; ++i) p[i * c_ + in_.n2] = T(1);
    for (std::size_t j = 0; j < in_.n2; ++j) p[in_.n1 * c_ + j] = T(1);
  }

  // out += factor a x b^T (or a^T x b) on the part without deletions and insertions; x and out are (n1 + 1, n2 + 1).
  void add_one(const T* a, const T* b, const T* x, T factor, bool transposed, T* out) const {
    T* middle = tape_.scratch.data() + size_;  // (n1, n2)
    for (std::size_t i = 0; i < in_.n1; ++i)
      for (std::size_t l = 0; l < in_.n2; ++l) {
        T sum = T(0);
        for (std::size_t k = 0; k < in_.n1; ++k)
          sum += (transposed ? a[k * in_.n1 + i] : a[i * in_.n1 + k]) * x[k * c_ + l];
        middle[i * in_.n2 + l] = sum;
      }
    for (std::size_t i = 0; i < in_.n1; ++i)
      for (std::size_t j = 0; j < in_.n2; ++j) {
        T sum = T(0);
        for (std::size_t l = 0; l < in_.n2; ++l)
          sum += middle[i * in_.n2 + l] * (transposed ? b[l * in_.n2 + j] : b[j * in_.n2 + l]);
        out[i * c_ + j] += factor * sum;
      }
  }

  // All kinds added up, into the scratch behind the (n1, n2) product.
  const T* sum_of(std::span<const T> kinds, std::size_t n, T* to) const {
    for (std::size_t e = 0; e < n * n; ++e) {
      T sum = T(0);
      for (std::size_t k = 0; k < in_.kinds; ++k) sum += kinds[k * n * n + e];
      to[e] = sum;
    }
    return to;
  }
  const T* all_a() const {
    if (in_.kinds == 1) return in_.a.data();
    tape_.sum_a.resize(in_.n1 * in_.n1);
    return sum_of(in_.a, in_.n1, tape_.sum_a.data());
  }
  const T* all_b() const {
    if (in_.kinds == 1) return in_.b.data();
    tape_.sum_b.resize(in_.n2 * in_.n2);
    return sum_of(in_.b, in_.n2, tape_.sum_b.data());
  }

  void add_product(const T* x, T* out, bool transposed, T factor = T(1)) const {
    add_one(all_a(), all_b(), x, factor * any(), transposed, out);
    for (std::size_t k = 0; k < in_.kinds; ++k)
      add_one(in_.a.data() + k * in_.n1 * in_.n1, in_.b.data() + k * in_.n2 * in_.n2, x, factor * like(), transposed,
              out);
  }

  // out += the derivative of the edge term at x.
  void add_slope(const T* x, T* out) const {
    add_product(x, out, false, half());
    add_product(x, out, true, half());
  }

  // dl_da += factor d<x, product(y)>/da.
  void add_a_gradient(const T* x, const T* y, T factor, std::span<T> dl_da) const {
    const std::size_t n1 = in_.n1, n2 = in_.n2;
    const auto outer = [&](const T* b, T weight, std::size_t first, std::size_t last) {
      T* middle = tape_.scratch.data() + size_;  // x b: (n1, n2)
      for (std::size_t i = 0; i < n1; ++i)
        for (std::size_t l = 0; l < n2; ++l) {
          T sum = T(0);
          for (std::size_t j = 0; j < n2; ++j) sum += x[i * c_ + j] * b[j * n2 + l];
          middle[i * n2 + l] = sum;
        }
      for (std::size_t i = 0; i < n1; ++i)
        for (std::size_t k = 0; k < n1; ++k) {
          T sum = T(0);
          for (std::size_t l = 0; l < n2; ++l) sum += middle[i * n2 + l] * y[k * c_ + l];
          for (std::size_t kind = first; kind < last; ++kind) dl_da[(kind * n1 + i) * n1 + k] += weight * sum;
        }
    };
    outer(all_b(), factor * any(), 0, in_.kinds);
    for (std::size_t k = 0; k < in_.kinds; ++k) outer(in_.b.data() + k * n2 * n2, factor * like(), k, k + 1);
  }

  T log_row_sum(std::size_t i) const { return i < in_.n1 ? T(0) : kernels::split::log(static_cast<T>(in_.n2)); }
  T log_column_sum(std::size_t j) const { return j < in_.n2 ? T(0) : kernels::split::log(static_cast<T>(in_.n1)); }

  void sinkhorn(unsigned round) {
    const T* price = price_of(round);
    std::fill(columns_of(round, 0), columns_of(round, 0) + c_, T(0));
    for (unsigned t = 0; t < o_.iterations; ++t) {
      T* f = rows_of(round, t);
      const T* g = columns_of(round, t);
      for (std::size_t i = 0; i < r_; ++i)
        f[i] = log_row_sum(i) - log_sum(c_, [&](std::size_t j) { return g[j] - price[i * c_ + j] * sharpness_; });
      T* h = columns_of(round, t + 1);
      for (std::size_t j = 0; j < c_; ++j)
        h[j] = log_column_sum(j) - log_sum(r_, [&](std::size_t i) { return f[i] - price[i * c_ + j] * sharpness_; });
    }
    const T *f = rows_of(round, o_.iterations - 1), *g = columns_of(round, o_.iterations);
    T* p = p_of(round);
    for (std::size_t i = 0; i < r_; ++i)
      for (std::size_t j = 0; j < c_; ++j)
        p[i * c_ + j] = kernels::split::exp(f[i] + g[j] - price[i * c_ + j] * sharpness_);
  }

  template <class F>
  static T log_sum(std::size_t n, F&& at) {
    T most = at(0);
    for (std::size_t k = 1; k < n; ++k) most = std::max(most, at(k));
    T sum = T(0);
    for (std::size_t k = 0; k < n; ++k) sum += kernels::split::exp(at(k) - most);
    return most + kernels::split::log(sum);
  }

  // dprice = the derivative by the price of this round, given dp by its matching.
  void sinkhorn_backward(unsigned round, const T* dp, T* dprice) {
    const T *price = price_of(round), *p = p_of(round);
    T* df = dprice + size_;
    T* dg = df + r_;
    std::fill(df, df + r_, T(0));
    std::fill(dg, dg + c_, T(0));
    for (std::size_t i = 0; i < r_; ++i)
      for (std::size_t j = 0; j < c_; ++j) {
        const T d = dp[i * c_ + j] * p[i * c_ + j];
        df[i] += d;
        dg[j] += d;
        dprice[i * c_ + j] = -d * sharpness_;
      }
    for (unsigned t = o_.iterations; t-- > 0;) {
      const T *f = rows_of(round, t), *h = columns_of(round, t + 1), *g = columns_of(round, t);
      for (std::size_t i = 0; i < r_; ++i)
        for (std::size_t j = 0; j < c_; ++j) {
          const T w = kernels::split::exp(f[i] + h[j] - log_column_sum(j) - price[i * c_ + j] * sharpness_) * dg[j];
          df[i] -= w;
          dprice[i * c_ + j] += w * sharpness_;
        }
      std::fill(dg, dg + c_, T(0));
      for (std::size_t i = 0; i < r_; ++i)
        for (std::size_t j = 0; j < c_; ++j) {
          const T v = kernels::split::exp(f[i] + g[j] - log_row_sum(i) - price[i * c_ + j] * sharpness_) * df[i];
          dg[j] -= v;
          dprice[i * c_ + j] += v * sharpness_;
        }
      std::fill(df, df + r_, T(0));
    }
  }

  const SoftInputs<T>& in_;
  SoftOptions o_;
  SoftTape<T>& tape_;
  std::size_t r_, c_, size_;
  T sharpness_ = T(1);
};

}  // namespace

template <class T>
T soft_cost(const SoftInputs<T>& in, std::span<const T> p) {
  const FlushSubnormals flush;
  SoftTape<T> tape;
  if (p.size() != (in.n1 + 1) * (in.n2 + 1))
    throw Exception(ErrorCode::invalid_input,
                    fmt::format("the matching has {} entries, not {} x {}", p.size(), in.n1 + 1, in.n2 + 1));
  return Soft<T>(in, {}, tape).cost(p.data());
}

template <class T>
T soft_distance(const SoftInputs<T>& in, const SoftOptions& options, SoftTape<T>& tape) {
  const FlushSubnormals flush;
  return Soft<T>(in, options, tape).forward();
}

template <class T>
void soft_distance_backward(const SoftInputs<T>& in, const SoftOptions& options, SoftTape<T>& tape, T dl_dy,
                            std::span<T> dl_dcost, std::span<T> dl_da) {
  const FlushSubnormals flush;
  Soft<T> soft(in, options, tape);
  const std::size_t size = in.cost.size();
  if (dl_dcost.size() != size || (!dl_da.empty() && dl_da.size() != in.a.size()) ||
      tape.p.size() != options.rounds * size)
    throw Exception(ErrorCode::invalid_input,
                    "soft distance, backward: the gradients or the tape do not fit the inputs");
  soft.backward(dl_dy, dl_dcost, dl_da);
}

template <class T>
void soft_node_costs(std::span<const T> label, std::span<const T> table, std::span<const T> insert, std::size_t n1,
                     std::span<T> cost) {
  const std::size_t n2 = insert.size(), labels = n1 == 0 ? 0 : label.size() / n1;
  if (label.size() != n1 * labels || (n1 > 0 && table.size() != labels * (n2 + 1)) ||
      cost.size() != (n1 + 1) * (n2 + 1))
    throw Exception(ErrorCode::invalid_input, "soft node costs: sizes do not fit");
  const FlushSubnormals flush;
  for (std::size_t i = 0; i < n1; ++i)
    for (std::size_t j = 0; j <= n2; ++j) {
      T sum = T(0);
      for (std::size_t l = 0; l < labels; ++l) sum += label[i * labels + l] * table[l * (n2 + 1) + j];
      cost[i * (n2 + 1) + j] = sum;
    }
  std::copy(insert.begin(), insert.end(), cost.begin() + static_cast<std::ptrdiff_t>(n1 * (n2 + 1)));
  cost.back() = T(0);
}

template <class T>
void soft_node_costs_backward(std::span<const T> table, std::span<const T> dl_dcost, std::size_t n1, std::size_t n2,
                              std::span<T> dl_dlabel) {
  const std::size_t labels = table.size() / (n2 + 1);
  if (dl_dcost.size() != (n1 + 1) * (n2 + 1) || table.size() != labels * (n2 + 1) || dl_dlabel.size() != n1 * labels)
    throw Exception(ErrorCode::invalid_input, "soft node costs, backward: sizes do not fit");
  const FlushSubnormals flush;
  for (std::size_t i = 0; i < n1; ++i)
    for (std::size_t l = 0; l < labels; ++l) {
      T sum = T(0);
      for (std::size_t j = 0; j <= n2; ++j) sum += dl_dcost[i * (n2 + 1) + j] * table[l * (n2 + 1) + j];
      dl_dlabel[i * labels + l] = sum;
    }
}

#define GRADLOOM_SOFT(T)                                                                                        \
  template T soft_cost(const SoftInputs<T>&, std::span<const T>);                                               \
  template T soft_distance(const SoftInputs<T>&, const SoftOptions&, SoftTape<T>&);                             \
  template void soft_distance_backward(const SoftInputs<T>&, const SoftOptions&, SoftTape<T>&, T, std::span<T>, \
                                       std::span<T>);                                                           \
  template void soft_node_costs(std::span<const T>, std::span<const T>, std::span<const T>, std::size_t,        \
                                std::span<T>);                                                                  \
  template void soft_node_costs_backward(std::span<const T>, std::span<const T>, std::size_t, std::size_t, std::span<T>)
GRADLOOM_SOFT(float);
GRADLOOM_SOFT(double);
#undef GRADLOOM_SOFT

}  // namespace gradloom::ged
