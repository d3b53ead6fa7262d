// Archives: .zip and .tar.
#include "gradloom/data/archive.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 1 << 20;
  const auto files = gradloom::parse_archive(gradloom::fuzz::text_of(data, size), kMost, "input",
                                             [](std::string_view name) { return !name.ends_with(".skip"); });
  if (!files) return 0;
  std::size_t all = 0;
  for (const auto& [name, content] : *files) all += content.size();
  gradloom::fuzz::require(all <= kMost, "no more is unpacked than allowed");
  return 0;
}
