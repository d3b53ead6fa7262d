// Named tensors in a file, in the safetensors format (docs/format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/result.h"
#include "gradloom/io/file_place.h"

namespace gradloom {

enum class DType { f32, f64, u8, u32, i64, u64 };

std::size_t dtype_size(DType dtype);       // bytes of one element
std::string_view dtype_name(DType dtype);  // "F32", as in the file

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::u32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DType::u64;
}

using Metadata = std::map<std::string, std::string>;

// A tensor to be written. Does not own `bytes`.
struct TensorView {
  std::string name;  // UTF-8; not "__metadata__"
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;    // {}: a scalar
  std::span<const std::byte> bytes;  // row-major
  // Elements from one row (of the last dimension) to the next in `bytes`; 0: no padding. Padding is not written, and
  // the last row may lack it.
  std::size_t row_stride = 0;
};

// A view on `values`, of `shape`; `row_stride` as above.
template <class T>
TensorView tensor_view(std::string name, std::span<const T> values, std::vector<std::size_t> shape,
                       std::size_t row_stride = 0) {
  return {std::move(name), dtype_of<T>(), std::move(shape), std::as_bytes(values), row_stride};
}

// Writes the file atomically (write_file_atomic), straight from the views, with a checksum of the whole file among the
// metadata under "checksum". Throws before any work when a view is wrong:
// names that repeat or are not UTF-8, bytes that do not match the shape. Fails with io.
Result<void> write_safetensors(const FilePlace& place, std::span<const TensorView> tensors, const Metadata& metadata);

// The bytes of that file. Throws as it does.
std::string safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata);

// Whoever is given the tensors and metadata of a file, and writes them.
using TensorWriter = FunctionRef<Result<void>(std::span<const TensorView> tensors, const Metadata& metadata)>;

// A tensor that was read. `bytes` belongs to the TensorFile and is aligned for its dtype.
struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;

  std::size_t size() const { return bytes.size() / dtype_size(dtype); }  // elements
};

// The content of a file; moving it keeps all spans valid.
class TensorFile {
 public:
  const Metadata& metadata() const { return metadata_; }        // "checksum" is not among it
  bool has_checksum() const { return has_checksum_; }           // there was one, and it was right
  std::span<const Tensor> tensors() const { return tensors_; }  // in the order of the data
  const Tensor* find(std::string_view name) const;              // null when there is none

  // The values of a tensor. Fails with not_found (naming the nearest tensor), or invalid_input when its dtype is not T.
  template <class T>
  Result<std::span<const T>> values(std::string_view name) const {
    auto tensor = require(name, dtype_of<T>());
    if (!tensor) return tensor.error();
    const auto bytes = tensor.value()->bytes;
    return std::span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
  }

 private:
  friend class SafetensorsReader;
  Result<const Tensor*> require(std::string_view name, DType dtype) const;

  std::string source_;
  Metadata metadata_;
  bool has_checksum_ = false;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::unique_ptr<std::byte[]> data_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;  // of tensors that were not aligned
};

// Both check everything that docs/format.md requires, before memory for the data is allocated, and the checksum where
// there is one of ours; fail with not_found, io, invalid_input or unsupported (dtype). `source` names the bytes in
// messages.
Result<TensorFile> read_safetensors(const FilePlace& place);
Result<TensorFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view source);

}  // namespace gradloom
