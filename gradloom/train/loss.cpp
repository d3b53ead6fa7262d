#include "gradloom/train/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/base/error.h"
#include "gradloom/kernels/elementary/elementary.h"

namespace gradloom {
namespace {

constexpr std::size_t kChunk = 256;

template <class T>
struct Term {
  T value, slope;
};

template <class T>
Term<T> element_term(const LossOptions& o, T y, T t) {
  const T e = y - t;
  switch (o.kind) {
    case LossKind::mse:
      return {e * e, e + e};
    case LossKind::mae:
      return {std::abs(e), e > 0 ? T(1) : e < 0 ? T(-1) : T(0)};
    case LossKind::huber: {
      const T delta = static_cast<T>(o.huber_delta), a = std::abs(e);
      if (a <= delta) return {e * e * T(0.5), e};
      return {delta * (a - delta * T(0.5)), e > 0 ? delta : -delta};
    }
    default: {
      // log(1 + exp(y)) - t y, without overflow for either sign.
      const T positive = std::max(y, T(0));
      return {positive - t * y + kernels::log1p(kernels::exp(-std::abs(y))), kernels::sigmoid(y) - t};
    }
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
  const std::size_t out = y.extent(1), chunks = (batch.size + kChunk - 1) / kChunk;
  const bool rows = o.kind == LossKind::cross_entropy;
  const std::size_t samples = o.samples == 0 ? batch.size : o.samples;
  double total_weight = static_cast<double>(samples) * static_cast<double>(rows ? 1 : out);
  if (!batch.weight.empty() || !batch.mask.empty()) {
    total_weight = 0.0;
    for (std::size_t s = 0; s < batch.size; ++s)
      for (std::size_t j = 0; j < (rows ? 1 : out); ++j) total_weight += static_cast<double>(term_weight(batch, s, j));
    if (samples != batch.size) total_weight *= static_cast<double>(samples) / static_cast<double>(batch.size);
  }
  const double normaliser = o.reduction == Reduction::sum ? 1.0 : total_weight > 0 ? 1.0 / total_weight : 0.0;
  const T factor = static_cast<T>(o.scale * normaliser);

  ex.parallel_for(chunks, [&](std::size_t chunk, unsigned) {
    double sum = 0.0;
    for (std::size_t s = chunk * kChunk; s < std::min(batch.size, (chunk + 1) * kChunk); ++s) {
      const T* row = y.row(s);
      T* gradient = dl_dy.empty() ? nullptr : dl_dy.row(s);
      if (rows) {
        const T w = batch.weight.empty() ? T(1) : batch.weight[s];
        if (w == T(0)) {  // most nodes of a graph of which few are labelled
          if (gradient) std::fill_n(gradient, out, T(0));
          continue;
        }
        sum += static_cast<double>(w * cross_entropy_row(row, out, batch.label[s], w * factor, gradient));
        continue;
      }
      const T* target = batch.target.empty() ? nullptr : batch.target.row(s);
      for (std::size_t j = 0; j < out; ++j) {
        const T t = target ? target[j] : static_cast<T>(batch.label[s]);
        const Term<T> term = element_term(o, row[j], t);
        const T w = term_weight(batch, s, j);
        sum += static_cast<double>(w * term.value);
        if (gradient) gradient[j] = w * factor * term.slope;
      }
    }
    partials[chunk] = sum;
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
