#include "gradloom/base/slices.h"

#include "gradloom/base/error.h"
#include "gradloom/base/rounding.h"

namespace gradloom {

namespace {
constexpr std::size_t kSliceAlignment = 256;  // bytes
}

std::size_t Slice::rows() const {
  std::size_t n = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) n *= shape[d];
  return n;
}

std::size_t Slices::add(std::string name, std::vector<std::size_t> shape, std::size_t stored_last, bool saved) {
  if (shape.empty()) throw_invalid("slice '" + name + "' has no dimensions");
  if (find(name) != size()) throw_invalid("two slices are named '" + name + "'");
  if (stored_last == 0) stored_last = shape.back();
  if (stored_last < shape.back()) throw_invalid("slice '" + name + "' has a row stride below its last dimension");
  const std::size_t step = kSliceAlignment / scalar_bytes_;
  Slice slice{std::move(name), std::move(shape), stored_last, flat_size_, saved};
  flat_size_ = round_up(slice.end(), step);
  slices_.push_back(std::move(slice));
  return slices_.size() - 1;
}

std::size_t Slices::find(std::string_view name) const {
  for (std::size_t i = 0; i < slices_.size(); ++i)
    if (slices_[i].name == name) return i;
  return slices_.size();
}

std::size_t Slices::logical_size() const {
  std::size_t n = 0;
  for (const Slice& s : slices_) n += s.logical_size();
  return n;
}

}  // namespace gradloom
