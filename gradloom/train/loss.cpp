#include "gradloom/train/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "gradloom/base/error.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom {

namespace loss_detail {
// What the rows of a batch have in common.
template <class T>
struct Rows {
  const RowBatch<T>& batch;
  View<const T, 2> y;
  View<T, 2> dl_dy;  // may be empty
  T factor, huber_delta;

  T* gradient(std::size_t s) const { return dl_dy.empty() ? nullptr : dl_dy.row(s); }
};
}  // namespace loss_detail

namespace {

using loss_detail::Rows;

// Terms that are worth a task.
constexpr std::size_t kTaskTerms = 1024;

template <class T>
struct Term {
  T value, slope;
};

template <LossKind kind, class T>
Term<T> element_term(T delta, T y, T t) {
  const T e = y - t;
  if constexpr (kind == LossKind::mse) {
    return {e * e, e + e};
  } else if constexpr (kind == LossKind::mae) {
    return {std::abs(e), e > 0 ? T(1) : e < 0 ? T(-1) : T(0)};
  } else if constexpr (kind == LossKind::huber) {
    const T a = std::abs(e);
    if (a <= delta) return {e * e * T(0.5), e};
    return {delta * (a - delta * T(0.5)), e > 0 ? delta : -delta};
  } else {
    // log(1 + exp(y)) - t y, without overflow for either sign.
    const T positive = std::max(y, T(0));
    return {positive - t * y + kernels::log1p(kernels::exp(-std::abs(y))), kernels::sigmoid(y) - t};
  }
}

template <class T>
void check_batch(const LossOptions& o, const RowBatch<T>& batch, View<const T, 2> y) {
  const auto fail = [](const std::string& m) { throw Exception(ErrorCode::invalid_input, m); };
  if (y.extent(0) < batch.size)
    fail(fmt::format("the loss got {} rows of output for {} samples", y.extent(0), batch.size));
  const std::size_t out = y.extent(1);
  const bool labelled = batch.target.empty();
  if (o.kind == LossKind::cross_entropy || (o.kind == LossKind::binary_cross_entropy && labelled)) {
    if (batch.label.size() != batch.size) fail("this loss needs a class label for every sample; the data has none");
    if (o.kind == LossKind::binary_cross_entropy && out != 1)
      fail(fmt::format("binary cross-entropy over labels needs one output, the model has {}", out));
    const std::size_t classes = o.kind == LossKind::cross_entropy ? out : 2;
    for (std::size_t s = 0; s < batch.size; ++s)
      if (batch.label[s] >= classes)
        fail(fmt::format("sample {} has class {}, but the loss knows {} classes", s, batch.label[s], classes));
  } else if (labelled || batch.target.extent(1) != out) {
    fail(fmt::format("the model has {} outputs, the data {} targets", out, labelled ? 0 : batch.target.extent(1)));
  }
  if (!batch.weight.empty() && batch.weight.size() != batch.size)
    fail(fmt::format("{} weights were given for {} samples", batch.weight.size(), batch.size));
  if (!batch.mask.empty() && (batch.mask.extent(1) != out || o.kind == LossKind::cross_entropy))
    fail("the mask does not fit the loss: it needs one column per output, and cross-entropy takes none");
}

template <class T>
T term_weight(const RowBatch<T>& b, std::size_t s, std::size_t j) {
  T w = b.weight.empty() ? T(1) : b.weight[s];
  if (!b.mask.empty()) w *= b.mask(s, j);
  return w;
}

// Term j goes to sum j % kSums: additions of one sum wait for each other, those of several do not.
constexpr std::size_t kSums = 8;
using Sums = std::array<double, kSums>;

double total(const Sums& sums) {
  Sums s = sums;
  for (std::size_t half = kSums / 2; half > 0; half /= 2)
    for (std::size_t n = 0; n < half; ++n) s[n] += s[n + half];
  return s[0];
}

// The terms of one row, kSums at a time: with a count that it knows, the compiler finds vectors in them.
template <LossKind kind, bool weighted, class T>
void element_row(const Rows<T>& rows, std::size_t s, Sums& sums) {
  const RowBatch<T>& batch = rows.batch;
  const T* y = rows.y.row(s);
  const T* target = batch.target.empty() ? nullptr : batch.target.row(s);
  const T label = target ? T(0) : static_cast<T>(batch.label[s]), factor = rows.factor, delta = rows.huber_delta;
  T* gradient = rows.gradient(s);
  const auto add = [&](std::size_t first, auto count) {
    T wanted[kSums], slope[kSums];
    for (std::size_t n = 0; n < count; ++n) wanted[n] = target ? target[first + n] : label;
    for (std::size_t n = 0; n < count; ++n) {
      const Term<T> term = element_term<kind>(delta, y[first + n], wanted[n]);
      const T w = weighted ? term_weight(batch, s, first + n) : T(1);
      slope[n] = w * factor * term.slope;
      sums[n] += static_cast<double>(w * term.value);
    }
    if (gradient) std::copy_n(slope, static_cast<std::size_t>(count), gradient + first);
  };
  const std::size_t out = rows.y.extent(1);
  std::size_t first = 0;
  for (; first + kSums <= out; first += kSums) add(first, std::integral_constant<std::size_t, kSums>());
  if (first < out) add(first, out - first);
}

template <LossKind kind, class T>
double element_rows(const Rows<T>& rows, std::size_t begin, std::size_t end) {
  const bool weighted = !rows.batch.weight.empty() || !rows.batch.mask.empty();
  Sums sums{};
  for (std::size_t s = begin; s < end; ++s)
    weighted ? element_row<kind, true>(rows, s, sums) : element_row<kind, false>(rows, s, sums);
  return total(sums);
}

// Fills dl_dy with (softmax - one-hot) and returns the loss of one row.
template <class T>
T cross_entropy_row(const T* y, std::size_t out, std::size_t label, T factor, T* dl_dy) {
  const T top = *std::max_element(y, y + out);
  T sum = 0;
  for (std::size_t j = 0; j < out; ++j) {
    const T e = kernels::exp(y[j] - top);
    sum += e;
    if (dl_dy) dl_dy[j] = e;
  }
  if (dl_dy) {
    const T inverse = T(1) / sum;
    for (std::size_t j = 0; j < out; ++j) dl_dy[j] = (dl_dy[j] * inverse - (j == label ? T(1) : T(0))) * factor;
  }
  return kernels::log(sum) + top - y[label];
}

template <class T>
double cross_entropy_rows(const Rows<T>& rows, std::size_t begin, std::size_t end) {
  const RowBatch<T>& batch = rows.batch;
  const std::size_t out = rows.y.extent(1);
  double sum = 0.0;
  for (std::size_t s = begin; s < end; ++s) {
    T* gradient = rows.gradient(s);
    const T w = batch.weight.empty() ? T(1) : batch.weight[s];
    if (w == T(0)) {  // most nodes of a graph of which few are labelled
      if (gradient) std::fill_n(gradient, out, T(0));
      continue;
    }
    sum += static_cast<double>(w * cross_entropy_row(rows.y.row(s), out, batch.label[s], w * rows.factor, gradient));
  }
  return sum;
}

template <class T>
double sum_rows(LossKind kind, const Rows<T>& rows, std::size_t begin, std::size_t end) {
  switch (kind) {
    case LossKind::mse:
      return element_rows<LossKind::mse>(rows, begin, end);
    case LossKind::mae:
      return element_rows<LossKind::mae>(rows, begin, end);
    case LossKind::huber:
      return element_rows<LossKind::huber>(rows, begin, end);
    case LossKind::binary_cross_entropy:
      return element_rows<LossKind::binary_cross_entropy>(rows, begin, end);
    case LossKind::cross_entropy:
      break;
  }
  return cross_entropy_rows(rows, begin, end);
}

}  // namespace

template <class T>
void check_loss_batch(const LossOptions& o, const RowBatch<T>& batch, std::size_t out) {
  check_batch<T>(o, batch, View<const T, 2>(nullptr, {batch.size, out}));
}

template <class T>
double evaluate_loss(const Exec& ex, const LossOptions& o, const RowBatch<T>& batch, View<const T, 2> y,
                     View<T, 2> dl_dy, std::span<double> partials) {
  check_batch(o, batch, y);
  if (batch.size == 0) return 0.0;
  const std::size_t out = y.extent(1), chunks = loss_partials(batch.size);
  if (partials.size() < chunks)
    throw Exception(ErrorCode::invalid_input, fmt::format("the loss of {} samples got room for {} sums, it needs {}",
                                                          batch.size, partials.size(), chunks));
  const bool by_row = o.kind == LossKind::cross_entropy;
  const std::size_t samples = o.samples == 0 ? batch.size : o.samples;
  double total_weight = static_cast<double>(samples) * static_cast<double>(by_row ? 1 : out);
  if (!batch.weight.empty() || !batch.mask.empty()) {
    total_weight = 0.0;
    for (std::size_t s = 0; s < batch.size; ++s)
      for (std::size_t j = 0; j < (by_row ? 1 : out); ++j)
        total_weight += static_cast<double>(term_weight(batch, s, j));
    if (samples != batch.size) total_weight *= static_cast<double>(samples) / static_cast<double>(batch.size);
  }
  const double normaliser = o.reduction == Reduction::sum ? 1.0 : total_weight > 0 ? 1.0 / total_weight : 0.0;
  const Rows<T> rows{batch, y, dl_dy, static_cast<T>(o.scale * normaliser), static_cast<T>(o.huber_delta)};

  const std::size_t together = std::max<std::size_t>(1, kTaskTerms / (kLossChunk * std::max<std::size_t>(1, out)));
  ex.parallel_for((chunks + together - 1) / together, [&](std::size_t task, unsigned) {
    for (std::size_t chunk = task * together; chunk < std::min(chunks, (task + 1) * together); ++chunk) {
      const std::size_t begin = chunk * kLossChunk, end = std::min(batch.size, begin + kLossChunk);
      partials[chunk] = sum_rows(o.kind, rows, begin, end);
    }
  });
  double loss = 0.0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) loss += partials[chunk];
  return loss * normaliser * o.scale;
}

template <class T>
std::uint64_t loss_branches(const LossOptions& o, const RowBatch<T>& batch, View<const T, 2> y) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  if (o.kind != LossKind::mae && o.kind != LossKind::huber) return hash;
  for (std::size_t s = 0; s < batch.size; ++s)
    for (std::size_t j = 0; j < y.extent(1); ++j) {
      const T e = y(s, j) - batch.target(s, j);
      const T edge = o.kind == LossKind::huber ? static_cast<T>(o.huber_delta) : T(0);
      hash = (hash ^ (e > edge ? 2u : e < -edge ? 1u : 0u)) * 0x100000001b3u;
    }
  return hash;
}

template void check_loss_batch(const LossOptions&, const RowBatch<float>&, std::size_t);
template void check_loss_batch(const LossOptions&, const RowBatch<double>&, std::size_t);
template double evaluate_loss(const Exec&, const LossOptions&, const RowBatch<float>&, View<const float, 2>,
                              View<float, 2>, std::span<double>);
template double evaluate_loss(const Exec&, const LossOptions&, const RowBatch<double>&, View<const double, 2>,
                              View<double, 2>, std::span<double>);
template std::uint64_t loss_branches(const LossOptions&, const RowBatch<float>&, View<const float, 2>);
template std::uint64_t loss_branches(const LossOptions&, const RowBatch<double>&, View<const double, 2>);

}  // namespace gradloom
