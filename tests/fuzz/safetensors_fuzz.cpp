// Tensors, and checkpoints made of them. The checksum is left to others: nothing would come past it.
#include "gradloom/io/safetensors.h"
#include "gradloom/train/checkpoint.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = parse_safetensors(std::as_bytes(std::span(data, size)), "input");
  if (!file) return 0;
  std::size_t bytes = 0;
  for (const Tensor& tensor : file->tensors()) {
    bytes += tensor.bytes.size();
    fuzz::require(file->find(tensor.name) == &tensor, "a tensor is found by its name");
    std::uint8_t sum = 0;
    for (std::byte b : tensor.bytes) sum = static_cast<std::uint8_t>(sum + std::to_integer<std::uint8_t>(b));
    (void)sum;
  }
  fuzz::require(bytes <= size, "tensors are not larger than their file");
  (void)checkpoint_head(*file, "input");
  Slices parameters(sizeof(float)), buffers(sizeof(float));
  parameters.add("w", {2, 3}, 4);
  buffers.add("g", {2});
  (void)load_checkpoint<float>(*file, "input", parameters, buffers);
  return 0;
}
