#include "gradloom/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include "gradloom/io/checksum_text.h"
#include "gradloom/io/file.h"
#include "gradloom/io/nearest.h"

namespace gradloom {

static_assert(std::endian::native == std::endian::little,
              "tensors are written in the byte order of memory, which must be little-endian");

std::size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 1;
    case DType::f32:
    case DType::u32:
      return 4;
    default:
      return 8;
  }
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::u8:
      return "U8";
    case DType::u32:
      return "U32";
    case DType::i64:
      return "I64";
    default:
      return "U64";
  }
}

namespace {

struct Rows {
  std::size_t count = 1;   // rows of the last dimension
  std::size_t length = 1;  // elements of a row that are written
  std::size_t stride = 1;  // elements from row to row
};

Rows rows_of(const TensorView& t) {
  Rows rows;
  for (std::size_t d = 0; d + 1 < t.shape.size(); ++d) rows.count *= t.shape[d];
  if (!t.shape.empty()) rows.length = t.shape.back();
  rows.stride = t.row_stride == 0 ? rows.length : t.row_stride;
  return rows;
}

void check_view(const TensorView& t) {
  const Rows rows = rows_of(t);
  const std::size_t size = dtype_size(t.dtype);
  const std::size_t elements = rows.count * rows.length;
  const std::size_t needed = elements == 0 ? 0 : (rows.count - 1) * rows.stride + rows.length;
  const bool padded = rows.stride != rows.length;
  const bool fits = padded ? t.bytes.size() >= needed * size : t.bytes.size() == needed * size;
  if (rows.stride < rows.length || !fits)
    throw_invalid(fmt::format("tensor '{}' has {} bytes, but {} elements of {} in rows {} apart", t.name,
                              t.bytes.size(), elements, dtype_name(t.dtype), rows.stride));
}

std::string make_header(std::span<const TensorView> tensors, std::span<const std::size_t> order,
                        const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string_view> names{"__metadata__"};
  std::size_t offset = 0;
  for (std::size_t i : order) {
    const TensorView& t = tensors[i];
    check_view(t);
    if (!names.insert(t.name).second) throw_invalid(fmt::format("two tensors are named '{}'", t.name));
    const Rows rows = rows_of(t);
    const std::size_t end = offset + rows.count * rows.length * dtype_size(t.dtype);
    // Not header[name]: that searches all names before it.
    header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
        t.name,
        nlohmann::ordered_json{{"dtype", dtype_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
  } catch (const nlohmann::json::exception& e) {
    throw_invalid(fmt::format("a tensor's name or metadata is not UTF-8: {}", e.what()));
  }
}

// The rows of a tensor, in order, without padding.
Result<void> for_each_row(const TensorView& t, FunctionRef<Result<void>(std::span<const std::byte>)> use) {
  const Rows rows = rows_of(t);
  const std::size_t size = dtype_size(t.dtype);
  if (rows.count * rows.length == 0) return {};
  if (rows.stride == rows.length) return use(t.bytes);
  for (std::size_t r = 0; r < rows.count; ++r)
    if (auto used = use(t.bytes.subspan(r * rows.stride * size, rows.length * size)); !used) return used;
  return {};
}

// Checked, and ready to be written.
struct OrderedTensors {
  std::span<const TensorView> tensors;
  std::vector<std::size_t> order;
  std::string header;
};

OrderedTensors ordered(std::span<const TensorView> tensors, const Metadata& metadata) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return dtype_size(tensors[a].dtype) > dtype_size(tensors[b].dtype);
  });
  Metadata checked = metadata;
  checked[kChecksumKey] = checksum_text(0);
  std::string header = make_header(tensors, order, checked);
  const std::uint64_t sum = checksum_of_file(header, checksum_text(0), [&](Checksum& bytes) {
    for (std::size_t i : order)
      (void)for_each_row(tensors[i], [&](std::span<const std::byte> row) -> Result<void> {
        bytes.add(row);
        return {};
      });
  });
  set_checksum(header, sum);
  return {tensors, std::move(order), std::move(header)};
}

Result<void> write_ordered(FileSink& sink, const OrderedTensors& all) {
  const auto length = std::bit_cast<std::array<std::byte, 8>>(std::uint64_t{all.header.size()});
  if (auto r = sink.write(length); !r) return r;
  if (auto r = sink.write(all.header); !r) return r;
  for (std::size_t i : all.order)
    if (auto r = for_each_row(all.tensors[i], [&](auto row) { return sink.write(row); }); !r) return r;
  return {};
}

class StringSink final : public FileSink {
 public:
  using FileSink::write;
  Result<void> write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }

  std::string text;
};

}  // namespace

Result<void> write_safetensors(const FilePlace& place, std::span<const TensorView> tensors, const Metadata& metadata) {
  const OrderedTensors all = ordered(tensors, metadata);
  return write_file_atomic(place, [&](FileSink& sink) { return write_ordered(sink, all); });
}

std::string safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata) {
  StringSink sink;
  write_ordered(sink, ordered(tensors, metadata)).or_throw();
  return std::move(sink.text);
}

const Tensor* TensorFile::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

Result<const Tensor*> TensorFile::require(std::string_view name, DType dtype) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) {
    std::vector<std::string> names;
    for (const auto& entry : index_) names.push_back(entry.first);
    return Error{ErrorCode::not_found,
                 names.empty() ? fmt::format("{}: there is no tensor '{}'; the file has no tensors", source_, name)
                               : fmt::format("{}: there is no tensor '{}'; the nearest is '{}'", source_, name,
                                             nearest_name(name, names))};
  }
  if (tensor->dtype != dtype)
    return Error{ErrorCode::invalid_input, fmt::format("{}: tensor '{}' is {}, but {} is needed", source_, name,
                                                       dtype_name(tensor->dtype), dtype_name(dtype))};
  return tensor;
}

}  // namespace gradloom
