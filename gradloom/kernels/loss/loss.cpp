#include "gradloom/kernels/loss/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "gradloom/base/error.h"
#include "gradloom/base/hash.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/loss/reference.h"
#include "gradloom/kernels/reduce/tree_sum.h"

namespace gradloom::kernels::loss {
namespace {

// Terms that are worth a task.
constexpr std::size_t kTaskTerms = 1024;

// What the rows of a batch have in common.
template <class T>
struct Rows {
  const Wanted<T>& wanted;
  View<const T, 2> y;
  View<T, 2> dl_dy;  // may be empty
  T factor, huber_delta;

  T* gradient(std::size_t s) const { return dl_dy.empty() ? nullptr : dl_dy.row(s); }
};

template <class T>
T term_weight(const Wanted<T>& b, std::size_t s, std::size_t j) {
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

}  // namespace
}  // namespace gradloom::kernels::loss

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/loss/rows.inc"
#include "gradloom/kernels/each_arithmetic.inc"

namespace gradloom::kernels::loss {

template <class T>
void check(const Options& o, const Wanted<T>& wanted, std::size_t out) {
  const auto fail = [](const std::string& m) { throw_invalid(m); };
  const bool labelled = wanted.target.empty();
  if (o.kind == Kind::cross_entropy || (o.kind == Kind::binary_cross_entropy && labelled)) {
    if (wanted.label.size() != wanted.size) fail("this loss needs a class label for every sample; the data has none");
    if (o.kind == Kind::binary_cross_entropy && out != 1)
      fail(fmt::format("binary cross-entropy over labels needs one output, the model has {}", out));
    const std::size_t classes = o.kind == Kind::cross_entropy ? out : 2;
    for (std::size_t s = 0; s < wanted.size; ++s)
      if (wanted.label[s] >= classes)
        fail(fmt::format("sample {} has class {}, but the loss knows {} classes", s, wanted.label[s], classes));
  } else if (labelled || wanted.target.extent(1) != out) {
    fail(fmt::format("the model has {} outputs, the data {} targets", out, labelled ? 0 : wanted.target.extent(1)));
  }
  if (!wanted.weight.empty() && wanted.weight.size() != wanted.size)
    fail(fmt::format("{} weights were given for {} samples", wanted.weight.size(), wanted.size));
  if (!wanted.mask.empty() && (wanted.mask.extent(1) != out || o.kind == Kind::cross_entropy))
    fail("the mask does not fit the loss: it needs one column per output, and cross-entropy allows no mask");
}

template <class T>
double sum_weights(const Wanted<T>& wanted, std::size_t terms) {
  const auto add = [&](std::size_t begin, std::size_t end, double sum) {
    for (std::size_t s = begin; s < end; ++s)
      for (std::size_t j = 0; j < terms; ++j) sum += static_cast<double>(term_weight(wanted, s, j));
    return sum;
  };
  double levels[64] = {};
  const reduce::TreeSum<double> sum{.root = levels, .upper = levels + 1, .stride = 1};
  const std::size_t chunks = partials(wanted.size);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const double own = add(chunk * kChunk, std::min(wanted.size, (chunk + 1) * kChunk), 0.0);
    reduce::add_leaf(sum, chunk, &own, 0, 1);
  }
  reduce::finish_levels(sum, chunks, 0, 1);
  return levels[0];
}

template <class T>
double normaliser(const Options& o, const Wanted<T>& wanted, std::size_t out) {
  if (o.factor) return *o.factor;
  if (o.reduction == Reduction::sum) return 1.0;
  const std::size_t terms = o.kind == Kind::cross_entropy ? 1 : out;
  const std::size_t samples = o.samples == 0 ? wanted.size : o.samples;
  double total_weight = static_cast<double>(samples) * static_cast<double>(terms);
  if (!wanted.weight.empty() || !wanted.mask.empty()) {
    total_weight = sum_weights(wanted, terms);
    if (samples != wanted.size) total_weight *= static_cast<double>(samples) / static_cast<double>(wanted.size);
  }
  return total_weight > 0 ? 1.0 / total_weight : 0.0;
}

template <class T>
double evaluate(const Exec& ex, const Options& o, const Wanted<T>& wanted, View<const T, 2> y, View<T, 2> dl_dy,
                std::span<double> sums) {
  const auto fail = [](const std::string& m) { throw_invalid(m); };
  if (y.extent(0) < wanted.size)
    fail(fmt::format("the loss got {} rows of output for {} samples", y.extent(0), wanted.size));
  const std::size_t out = y.extent(1), chunks = partials(wanted.size);
  check(o, wanted, out);
  if (wanted.size == 0) return 0.0;
  if (sums.size() < chunks)
    fail(fmt::format("the loss of {} samples got room for {} sums, it needs {}", wanted.size, sums.size(), chunks));
  const double factor = normaliser(o, wanted, out);
  const Rows<T> rows{wanted, y, dl_dy, static_cast<T>(o.scale * factor), static_cast<T>(o.huber_delta)};

  const auto sum_rows = GRADLOOM_DEFINITION(ex.arithmetic(), sum_rows<T>);
  const std::size_t together = std::max<std::size_t>(1, kTaskTerms / (kChunk * std::max<std::size_t>(1, out)));
  ex.parallel_for(divide_up(chunks, together), [&](std::size_t task, unsigned) {
    for (std::size_t chunk = task * together; chunk < std::min(chunks, (task + 1) * together); ++chunk) {
      const std::size_t begin = chunk * kChunk, end = std::min(wanted.size, begin + kChunk);
      sums[chunk] = sum_rows(o.kind, rows, begin, end);
    }
  });
  return finish(o, factor, sums.first(chunks));
}

double finish(const Options& o, double factor, std::span<const double> sums) {
  const double loss = 0.0 + reduce::tree_total<double>(sums);
  return loss * factor * o.scale;
}

template <class T>
std::uint64_t branches(const Options& o, const Wanted<T>& wanted, View<const T, 2> y) {
  Hash hash;
  if (o.kind != Kind::mae && o.kind != Kind::huber) return hash.value();
  for (std::size_t s = 0; s < wanted.size; ++s)
    for (std::size_t j = 0; j < y.extent(1); ++j) {
      const T e = y(s, j) - wanted.target(s, j);
      const T edge = o.kind == Kind::huber ? static_cast<T>(o.huber_delta) : T(0);
      hash.mix(e > edge ? 2u : e < -edge ? 1u : 0u);
    }
  return hash.value();
}

GRADLOOM_INSTANTIATE(check);
GRADLOOM_INSTANTIATE(normaliser);
GRADLOOM_INSTANTIATE(evaluate);
GRADLOOM_INSTANTIATE(branches);

}  // namespace gradloom::kernels::loss
