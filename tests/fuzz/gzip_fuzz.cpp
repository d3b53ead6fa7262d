// Compressed bytes.
#include "gradloom/data/inflate.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 1 << 20;
  for (const Compression kind : {Compression::gzip, Compression::deflate}) {
    const auto bytes = inflate_bytes(fuzz::text_of(data, size), kind, kMost, "input");
    if (bytes) fuzz::require(bytes->size() <= kMost, "no more is unpacked than allowed");
  }
  return 0;
}
