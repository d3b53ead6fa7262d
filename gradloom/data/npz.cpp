#include <fmt/format.h>

#include "gradloom/data/archive.h"
#include "gradloom/data/npy.h"
#include "gradloom/io/file.h"

namespace gradloom {

Result<NpzArrays> parse_npz(std::string_view bytes, std::size_t max_bytes, std::string_view source) {
  auto files = parse_zip(bytes, max_bytes, source, [](std::string_view name) { return name.ends_with(".npy"); });
  if (!files) return files.error();
  NpzArrays arrays;
  for (const auto& [name, content] : *files) {
    auto array = parse_npy(content, fmt::format("{}, entry '{}'", source, name));
    if (!array) return array.error();
    arrays.emplace(name.substr(0, name.size() - 4), std::move(*array));
  }
  return arrays;
}

Result<NpzArrays> read_npz(const std::filesystem::path& path, std::size_t max_bytes) {
  const auto bytes = read_file(path, max_bytes);
  if (!bytes) return bytes.error();
  return parse_npz(*bytes, max_bytes, path.string());
}

}  // namespace gradloom
