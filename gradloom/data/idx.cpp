#include "gradloom/data/idx.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/data/inflate.h"
#include "gradloom/io/file.h"

namespace gradloom {
namespace {

struct IdxType {
  unsigned char code;
  NpyKind kind;
  std::size_t bytes;
};
constexpr IdxType kIdxTypes[] = {
    {0x08, NpyKind::unsigned_integer, 1}, {0x09, NpyKind::signed_integer, 1}, {0x0b, NpyKind::signed_integer, 2},
    {0x0c, NpyKind::signed_integer, 4},   {0x0d, NpyKind::floating, 4},       {0x0e, NpyKind::floating, 8},
};
constexpr std::size_t kMostIdxDimensions = 8;

std::size_t big_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

Result<NpyArray> parse_idx(std::string_view bytes, std::string_view source) {
  const auto fail = [&](const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: {}", source, message)};
  };
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    return fail("this is not an IDX file: it does not begin with two zero bytes");
  const auto code = static_cast<unsigned char>(bytes[2]);
  const auto type =
      std::find_if(std::begin(kIdxTypes), std::end(kIdxTypes), [&](const IdxType& t) { return t.code == code; });
  if (type == std::end(kIdxTypes)) return fail(fmt::format("there is no IDX type {:#04x}", code));
  const std::size_t dimensions = static_cast<unsigned char>(bytes[3]);
  if (dimensions == 0 || dimensions > kMostIdxDimensions || bytes.size() < 4 + 4 * dimensions)
    return fail(
        fmt::format("there are {} dimensions; their number must be from 1 to {}", dimensions, kMostIdxDimensions));
  NpyArray array;
  array.kind = type->kind;
  array.item_bytes = type->bytes;
  const std::size_t data = bytes.size() - 4 - 4 * dimensions;
  std::size_t size = type->bytes;
  for (std::size_t d = 0; d < dimensions; ++d) {
    array.shape.push_back(big_endian(bytes.substr(4 + 4 * d, 4)));
    if (array.shape[d] != 0 && size > data / array.shape[d]) return fail("the file is truncated");
    size *= array.shape[d];
  }
  if (size != data) return fail(fmt::format("there are {} bytes of values, but the shape needs {}", data, size));
  array.bytes = bytes.substr(4 + 4 * dimensions);
  for (std::size_t at = 0; type->bytes > 1 && at < array.bytes.size(); at += type->bytes)
    std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 array.bytes.begin() + static_cast<std::ptrdiff_t>(at + type->bytes));
  return array;
}

Result<NpyArray> read_idx(const std::filesystem::path& path, std::size_t max_bytes) {
  auto bytes = read_file(path, max_bytes);
  if (bytes && looks_like_gzip(*bytes)) bytes = inflate_bytes(*bytes, Compression::gzip, max_bytes, path.string());
  if (!bytes) return bytes.error();
  return parse_idx(*bytes, path.string());
}

bool is_idx_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".idx")) return true;
  const std::size_t at = name.rfind("idx");
  return at != std::string::npos && at > 0 && (name[at - 1] == '-' || name[at - 1] == '.') && at + 3 < name.size() &&
         name[at + 3] >= '1' && name[at + 3] <= '8';
}

std::filesystem::path idx_labels_name(const std::filesystem::path& images) {
  std::string name = images.filename().string();
  const std::size_t images_at = name.find("images"), dimensions_at = name.rfind("idx3");
  if (images_at == std::string::npos) return {};
  if (dimensions_at != std::string::npos) name[dimensions_at + 3] = '1';
  name.replace(images_at, 6, "labels");
  return images.parent_path() / name;
}

}  // namespace gradloom
