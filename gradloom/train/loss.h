// The losses of kernels/loss over batches of rows.
#pragma once

#include "gradloom/base/choice.h"
#include "gradloom/data/batch.h"
#include "gradloom/kernels/loss/loss.h"

namespace gradloom {

using LossKind = kernels::loss::Kind;
using LossOptions = kernels::loss::Options;
using kernels::loss::Reduction;

inline constexpr Choice<LossKind> kLosses[] = {
    {LossKind::mse, "mse", "mean squared error"},
    {LossKind::mae, "mae", "mean absolute error"},
    {LossKind::huber, "huber", "squared near 0, absolute beyond"},
    {LossKind::cross_entropy, "cross-entropy", "one class of several"},
    {LossKind::binary_cross_entropy, "binary-cross-entropy", "a yes-or-no decision for each output"},
};
inline constexpr Choice<Reduction> kReductions[] = {
    {Reduction::mean, "mean", "over all terms of a batch"},
    {Reduction::sum, "sum", "of all terms of a batch"},
};

template <class T>
kernels::loss::Wanted<T> wanted_of(const RowBatch<T>& batch) {
  return {batch.size, batch.target, batch.label, batch.mask, batch.weight};
}

inline std::size_t loss_partials(std::size_t batch) { return kernels::loss::partials(batch); }

// Throws as kernels::loss::check does.
template <class T>
void check_loss_batch(const LossOptions& options, const RowBatch<T>& batch, std::size_t out) {
  kernels::loss::check(options, wanted_of(batch), out);
}

template <class T>
double evaluate_loss(const Exec& ex, const LossOptions& options, const RowBatch<T>& batch, View<const T, 2> y,
                     View<T, 2> dl_dy, std::span<double> partials) {
  return kernels::loss::evaluate(ex, options, wanted_of(batch), y, dl_dy, partials);
}

// What Options::factor of a part of the batch must be.
template <class T>
double loss_factor(const LossOptions& options, const RowBatch<T>& batch, std::size_t out) {
  return kernels::loss::normaliser(options, wanted_of(batch), out);
}

template <class T>
std::uint64_t loss_branches(const LossOptions& options, const RowBatch<T>& batch, View<const T, 2> y) {
  return kernels::loss::branches(options, wanted_of(batch), y);
}

}  // namespace gradloom
