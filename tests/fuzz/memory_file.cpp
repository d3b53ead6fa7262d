#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

namespace gradloom::fuzz {

MemoryFile::MemoryFile(std::string_view content) : descriptor_(::memfd_create("input", 0)) {
  require(descriptor_ >= 0, "memory for a file");
  require(::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()), "a whole file");
  std::snprintf(path_, sizeof path_, "/proc/self/fd/%d", descriptor_);
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

}  // namespace gradloom::fuzz
