// RowBatch: some samples of a table, as the models and losses see them.
#pragma once

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

}  // namespace gradloom
