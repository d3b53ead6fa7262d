// NumPy arrays: .npy files and .npz archives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom {

enum class NpyKind { floating, signed_integer, unsigned_integer, boolean };

// Row-major and little-endian, whatever the file was.
struct NpyArray {
  NpyKind kind = NpyKind::floating;
  std::size_t item_bytes = 8;      // 1, 2, 4 or 8
  std::vector<std::size_t> shape;  // {}: a scalar
  std::string bytes;

  std::size_t size() const { return bytes.size() / item_bytes; }
  // All values as doubles; integers above 2^53 are rounded.
  std::vector<double> to_doubles() const;
  // All values in decimal, where one is an integer above 2^53; else nothing.
  std::vector<std::string> to_wide_integers() const;
};

// Versions 1 to 3; types f4 f8 i1..i8 u1..u8 b1, either byte order, C or Fortran order. Fail with not_found, io,
// invalid_input (damaged, truncated, bytes left over), unsupported (objects, text, structures, other types). Nothing
// larger than the input or max_bytes is allocated.
Result<NpyArray> parse_npy(std::string_view bytes, std::string_view source);
Result<NpyArray> read_npy(const std::filesystem::path& path, std::size_t max_bytes);

// What stands before the little-endian values of an array, row-major, of type "<f8" and the like: version 1.
std::string npy_header(std::string_view type, std::span<const std::size_t> shape);

// An archive's arrays by name, without ".npy"; other entries are ignored. Entries are stored or deflated; max_bytes
// limits the file, and the sum of what its entries inflate to. Encrypted and 64-bit archives are unsupported.
using NpzArrays = std::map<std::string, NpyArray, std::less<>>;
Result<NpzArrays> parse_npz(std::string_view bytes, std::size_t max_bytes, std::string_view source);
Result<NpzArrays> read_npz(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace gradloom
