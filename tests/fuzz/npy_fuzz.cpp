// NumPy arrays, alone and in archives.
#include "gradloom/data/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = gradloom::fuzz::text_of(data, size);
  const auto check = [](const gradloom::NpyArray& array) {
    std::size_t elements = 1;
    for (std::size_t extent : array.shape) elements *= extent;
    gradloom::fuzz::require(array.size() == elements, "an array has the size of its shape");
    gradloom::fuzz::require(array.to_doubles().size() == elements, "all values are numbers");
  };
  if (const auto array = gradloom::parse_npy(bytes, "input")) check(*array);
  if (const auto arrays = gradloom::parse_npz(bytes, 1 << 20, "input"))
    for (const auto& entry : *arrays) check(entry.second);
  return 0;
}
