// Slices: how named tensors lie in one flat array (parameters, buffers, gradients, optimizer state).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gradloom {

// One named tensor inside a flat array. The last dimension may be padded: elements [shape.back(), stored_last) of each
// row are padding; they are zero, stay zero, and never reach a file.
struct Slice {
  std::string name;
  std::vector<std::size_t> shape;  // logical; never empty
  std::size_t stored_last = 0;     // stored length of the last dimension, >= shape.back()
  std::size_t offset = 0;          // first element in the flat array
  bool saved = true;               // false: the model derives it from other slices, and it never reaches a file

  std::size_t rows() const;  // product of all dimensions but the last
  std::size_t logical_size() const { return rows() * shape.back(); }
  std::size_t stored_size() const { return rows() * stored_last; }
  std::size_t end() const { return offset + stored_size(); }
};

// The slices of one flat array. Each starts at a multiple of 256 bytes for a scalar of `scalar_bytes`, so that a GPU
// can bind each alone; the gaps are padding too.
class Slices {
 public:
  explicit Slices(std::size_t scalar_bytes) : scalar_bytes_(scalar_bytes) {}

  // Appends a tensor and returns its index. `stored_last` 0 means: not padded. Throws on a duplicate name or empty
  // shape.
  std::size_t add(std::string name, std::vector<std::size_t> shape, std::size_t stored_last = 0, bool saved = true);

  std::size_t size() const { return slices_.size(); }
  const Slice& operator[](std::size_t i) const { return slices_[i]; }
  auto begin() const { return slices_.begin(); }
  auto end() const { return slices_.end(); }
  // The index of a name, or size() when there is none.
  std::size_t find(std::string_view name) const;

  std::size_t flat_size() const { return flat_size_; }  // elements of the flat array, padding included
  std::size_t logical_size() const;                     // elements without padding

 private:
  std::size_t scalar_bytes_;
  std::size_t flat_size_ = 0;
  std::vector<Slice> slices_;
};

// Calls f(flat_index) for every element that is not padding, in the order of the slices.
template <class F>
void for_each_logical(const Slice& slice, F&& f) {
  const std::size_t rows = slice.rows(), columns = slice.shape.back();
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) f(slice.offset + r * slice.stored_last + c);
}

}  // namespace gradloom
