// The slices of a flat array as tensors of a file, and back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradloom/base/slices.h"
#include "gradloom/io/safetensors.h"

namespace gradloom {

// Appends one tensor, called prefix + name, for each slice that is saved. `values` outlive the views.
template <class T>
void add_slice_tensors(std::vector<TensorView>& tensors, const std::string& prefix, const Slices& slices,
                       std::span<const T> values) {
  for (const Slice& s : slices)
    if (s.saved)
      tensors.push_back(
          tensor_view<T>(prefix + s.name, values.subspan(s.offset, s.stored_size()), s.shape, s.stored_last));
}

// Puts the values of a tensor, whose shape is that of the slice, where they belong in the flat array.
template <class T>
void fill_slice(const Slice& slice, std::span<const T> values, std::span<T> flat) {
  std::size_t next = 0;
  for_each_logical(slice, [&](std::size_t at) { flat[at] = values[next++]; });
}

}  // namespace gradloom
