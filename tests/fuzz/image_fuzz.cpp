// PNG pictures. What was read is written and read again.
#include "gradloom/data/image.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  const auto image = read_png(file.path(), 64);
  if (!image) return 0;
  const fuzz::MemoryFile written(encode_png(*image));
  const auto again = read_png(written.path(), 64);
  fuzz::require(again.ok() && again->rgb == image->rgb, "a picture comes back");
  return 0;
}
