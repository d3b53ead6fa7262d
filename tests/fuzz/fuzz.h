// What the fuzz targets share. A target is a function of bytes: it must return, and what its reader accepts must
// survive a round trip through the writer, where there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gradloom::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the program, which the fuzzer takes for a crash.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

// For readers that take the name of a file: one in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const char* path() const { return path_; }

 private:
  int descriptor_;
  char path_[64];
};

// For readers of several files: a folder in memory, where the system has one; one for each process.
class MemoryFolder {
 public:
  MemoryFolder();
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  // Replaces what is in the folder by the files of the input: a line that is "%NAME" begins the file of that name,
  // where it is one of `names`.
  void fill(std::string_view input, std::span<const std::string_view> names) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gradloom::fuzz
