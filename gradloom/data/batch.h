// RowBatch: some samples of a table, as the models and losses see them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gradloom/base/view.h"

namespace gradloom {

// B samples; In features; Out targets. Owns nothing: it is valid as long as the dataset or storage it came from.
template <class T>
struct RowBatch {
  std::size_t size = 0;                  // B
  View<const T, 2> x;                    // (B, In) row-major
  View<const T, 2> target;               // (B, Out), empty for classification
  std::span<const std::uint32_t> label;  // (B), empty for regression
  View<const T, 2> mask;                 // (B, Out) 0/1, empty: all count
  std::span<const T> weight;             // (B), empty: all 1
};

// The first `count` samples, or all when there are fewer.
template <class T>
RowBatch<T> first_rows(RowBatch<T> batch, std::size_t count) {
  batch.size = std::min(batch.size, count);
  batch.x = batch.x.first(batch.size);
  if (!batch.target.empty()) batch.target = batch.target.first(batch.size);
  if (!batch.mask.empty()) batch.mask = batch.mask.first(batch.size);
  if (!batch.label.empty()) batch.label = batch.label.first(batch.size);
  if (!batch.weight.empty()) batch.weight = batch.weight.first(batch.size);
  return batch;
}

// Samples [first, first + count).
template <class T>
RowBatch<T> middle_rows(const RowBatch<T>& batch, std::size_t first, std::size_t count) {
  const auto rows = [&](const View<const T, 2>& v) {
    return v.empty() ? v : View<const T, 2>(v.row(first), {count, v.extent(1)}, v.strides());
  };
  RowBatch<T> part{.size = count, .x = rows(batch.x), .target = rows(batch.target), .mask = rows(batch.mask)};
  if (!batch.label.empty()) part.label = batch.label.subspan(first, count);
  if (!batch.weight.empty()) part.weight = batch.weight.subspan(first, count);
  return part;
}

}  // namespace gradloom
