#include "gradloom/base/rounding.h"
#include "gradloom/kernels/shader/step.h"
#include "gradloom/models/device_model.h"

namespace gradloom {

template <class T>
BatchLayout batch_layout(const RowBatch<T>& batch) {
  BatchLayout at;
  at.bytes = kernels::kStepHeadBytes;
  const auto take = [&](std::size_t count, std::size_t size) -> std::uint64_t {
    const std::uint64_t begin = at.bytes;
    at.bytes += round_up(count * size, kMemoryAlignment);
    return begin;
  };
  at.x = take(batch.size * batch.x.extent(1), sizeof(T));
  if (!batch.target.empty()) at.target = take(batch.size * batch.target.extent(1), sizeof(T));
  if (!batch.label.empty()) at.label = take(batch.size, sizeof(std::uint32_t));
  if (!batch.weight.empty()) at.weight = take(batch.size, sizeof(T));
  if (!batch.mask.empty()) at.mask = take(batch.size * batch.mask.extent(1), sizeof(T));
  return at;
}

template <class T>
void pack_batch(const RowBatch<T>& batch, const BatchLayout& layout, std::byte* to) {
  const auto pack_rows = [&](View<const T, 2> rows, std::uint64_t at) {
    const std::size_t bytes = rows.extent(1) * sizeof(T);
    for (std::size_t s = 0; s < batch.size; ++s) std::memcpy(to + at + s * bytes, rows.row(s), bytes);
  };
  pack_rows(batch.x, layout.x);
  if (layout.target) pack_rows(batch.target, layout.target);
  if (layout.mask) pack_rows(batch.mask, layout.mask);
  if (layout.label) std::memcpy(to + layout.label, batch.label.data(), batch.size * sizeof(std::uint32_t));
  if (layout.weight) std::memcpy(to + layout.weight, batch.weight.data(), batch.size * sizeof(T));
}

template BatchLayout batch_layout(const RowBatch<float>&);
template BatchLayout batch_layout(const RowBatch<double>&);
template void pack_batch(const RowBatch<float>&, const BatchLayout&, std::byte*);
template void pack_batch(const RowBatch<double>&, const BatchLayout&, std::byte*);

}  // namespace gradloom
