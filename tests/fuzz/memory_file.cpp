#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "tests/fuzz/fuzz.h"

namespace gradloom::fuzz {

namespace fs = std::filesystem;

MemoryFile::MemoryFile(std::string_view content) : descriptor_(::memfd_create("input", 0)) {
  require(descriptor_ >= 0, "memory for a file");
  require(::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()), "a whole file");
  std::snprintf(path_, sizeof path_, "/proc/self/fd/%d", descriptor_);
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

MemoryFolder::MemoryFolder() {
  const fs::path memory = "/dev/shm";
  path_ = (fs::exists(memory) ? memory : fs::temp_directory_path()) / ("gradloom-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(path_);
}

MemoryFolder::~MemoryFolder() { fs::remove_all(path_); }

void MemoryFolder::fill(std::string_view input, std::span<const std::string_view> names) const {
  for (const std::string_view name : names) fs::remove(path_ / name);
  std::ofstream file;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    if (!line.starts_with('%')) {
      if (file.is_open()) file << line << '\n';
      continue;
    }
    for (const std::string_view name : names)
      if (line.substr(1) == name) {
        file.close();
        file.open(path_ / name, std::ios::trunc | std::ios::binary);
      }
  }
}

}  // namespace gradloom::fuzz
