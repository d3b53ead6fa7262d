#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/base/function_ref.h"
#include "gradloom/io/checksum_text.h"
#include "gradloom/io/file.h"
#include "gradloom/io/file_descriptor.h"
#include "gradloom/io/json.h"
#include "gradloom/io/open_file.h"
#include "gradloom/io/safetensors.h"

namespace gradloom {

using nlohmann::json;

namespace {

constexpr std::uint64_t kHeaderLimit = 100'000'000;
constexpr std::uint64_t kPrefix = 8;

std::optional<DType> dtype_from(std::string_view name) {
  for (DType d : {DType::f32, DType::f64, DType::u8, DType::u32, DType::i64, DType::u64})
    if (dtype_name(d) == name) return d;
  return std::nullopt;
}

}  // namespace

// Reads through a function, so that a file's header is checked before its data is allocated and read.
class SafetensorsReader {
 public:
  // read(offset, into): fills `into` from the source.
  using Read = FunctionRef<Result<void>(std::uint64_t, std::span<std::byte>)>;

  SafetensorsReader(std::string_view source, std::uint64_t total, Read read) : total_(total), read_(read) {
    file_.source_ = source;
  }

  Result<TensorFile> run() {
    try {
      read_header();
      read_data();
      check_checksum();
      return std::move(file_);
    } catch (const Exception& e) {
      return e.error();
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, fmt::format("{}: not enough memory for {} bytes", file_.source_, total_)};
    }
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    throw Exception(code, fmt::format("{}: {}", file_.source_, fmt::format(format, std::forward<Args>(args)...)));
  }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::invalid_input, format, std::forward<Args>(args)...);
  }

  void read_header() {
    if (total_ < kPrefix) fail("a safetensors file has at least 8 bytes, this one has {}", total_);
    std::uint64_t length = 0;
    read_(0, std::as_writable_bytes(std::span(&length, 1))).or_throw();
    if (length > kHeaderLimit)
      fail("the header claims {} bytes, above the limit of {}; is this a safetensors file?", length, kHeaderLimit);
    if (length > total_ - kPrefix)
      fail("the header claims {} bytes, but only {} follow; the file is truncated", length, total_ - kPrefix);
    header_.resize(length);
    read_(kPrefix, std::as_writable_bytes(std::span(header_))).or_throw();
    data_begin_ = kPrefix + length;
    parse_header(header_);
    check_coverage();
  }

  void parse_header(const std::string& text) {
    const json header = parse_json(text, file_.source_ + ": header").or_throw();
    if (!header.is_object()) fail("the header is not a JSON object");
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__")
        parse_metadata(entry);
      else
        parse_tensor(name, entry);
    }
  }

  void parse_metadata(const json& entry) {
    if (!entry.is_object()) fail("__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail("the value of '{}' in __metadata__ is not a string", key);
      file_.metadata_.emplace(key, value.get<std::string>());
    }
  }

  void parse_tensor(const std::string& name, const json& entry) {
    if (!entry.is_object()) fail("tensor '{}' is not described by an object", name);
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key)) fail("tensor '{}' has no '{}'", name, key);
    if (entry.size() != 3) fail("tensor '{}' has keys other than dtype, shape and data_offsets", name);

    const json& dtype = entry["dtype"];
    if (!dtype.is_string()) fail("the dtype of tensor '{}' is not a string", name);
    const auto known = dtype_from(dtype.get_ref<const std::string&>());
    if (!known)
      fail(ErrorCode::unsupported, "tensor '{}' has the dtype '{}'; supported are F32, F64, U8, U32, I64 and U64", name,
           dtype.get_ref<const std::string&>());

    Pending t{{name, *known, {}, {}}, 0, 0};
    std::uint64_t bytes = dtype_size(*known);
    const json& shape = entry["shape"];
    if (!shape.is_array()) fail("the shape of tensor '{}' is not a list", name);
    for (const json& extent : shape) {
      if (!extent.is_number_unsigned()) fail("the shape of tensor '{}' holds something that is not a size", name);
      if (__builtin_mul_overflow(bytes, extent.get<std::uint64_t>(), &bytes))
        fail("the shape of tensor '{}' overflows 64 bits", name);
      t.tensor.shape.push_back(extent.get<std::size_t>());
    }

    const json& offsets = entry["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail("the data_offsets of tensor '{}' are not two sizes", name);
    t.begin = offsets[0].get<std::uint64_t>();
    t.end = offsets[1].get<std::uint64_t>();
    const std::uint64_t available = total_ - data_begin_;
    if (t.begin > t.end || t.end > available)
      fail("tensor '{}' lies at bytes {} to {}, but the data has {}; the file is truncated or damaged", name, t.begin,
           t.end, available);
    if (t.end - t.begin != bytes)
      fail("tensor '{}' has {} bytes, but its shape and dtype need {}", name, t.end - t.begin, bytes);
    pending_.push_back(std::move(t));
  }

  void check_coverage() {
    std::stable_sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t at = 0;
    for (const Pending& t : pending_) {
      if (t.begin < at) fail("tensor '{}' overlaps the one before it", t.tensor.name);
      if (t.begin > at) fail("{} unused bytes lie before tensor '{}'", t.begin - at, t.tensor.name);
      at = t.end;
    }
    if (at != total_ - data_begin_) fail("{} unused bytes follow the last tensor", total_ - data_begin_ - at);
  }

  void read_data() {
    const std::uint64_t size = total_ - data_begin_;
    file_.data_ = std::make_unique_for_overwrite<std::byte[]>(size);
    read_(data_begin_, {file_.data_.get(), size}).or_throw();
    for (Pending& t : pending_) {
      const std::size_t bytes = t.end - t.begin;
      const std::byte* at = file_.data_.get() + t.begin;
      if (t.begin % dtype_size(t.tensor.dtype) != 0) {
        file_.copies_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
        if (bytes > 0) std::memcpy(file_.copies_.back().get(), at, bytes);
        at = file_.copies_.back().get();
      }
      t.tensor.bytes = {at, bytes};
      file_.index_.emplace(t.tensor.name, file_.tensors_.size());
      file_.tensors_.push_back(std::move(t.tensor));
    }
  }

  void check_checksum() {
    const auto found = file_.metadata_.find(kChecksumKey);
    if (found == file_.metadata_.end() || !is_checksum(found->second)) return;
    const std::uint64_t told = checksum_of_file(header_, found->second, [&](Checksum& sum) {
      sum.add({file_.data_.get(), static_cast<std::size_t>(total_ - data_begin_)});
    });
    if (found->second != checksum_text(told)) fail("its checksum does not match its bytes; the file is damaged");
    file_.metadata_.erase(found);
    file_.has_checksum_ = true;
  }

  struct Pending {
    Tensor tensor;
    std::uint64_t begin, end;  // in the data
  };

  TensorFile file_;
  std::string header_;
  std::uint64_t total_;
  std::uint64_t data_begin_ = 0;
  Read read_;
  std::vector<Pending> pending_;
};

Result<TensorFile> read_safetensors(const FilePlace& path) {
  const auto opened = open_regular("read", path, O_RDONLY);
  if (!opened) return opened.error();
  const FileDescriptor& file = *opened;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("read", path, errno);

  const auto read = [&](std::uint64_t offset, std::span<std::byte> into) -> Result<void> {
    while (!into.empty()) {
      const ssize_t n =
          ::pread(file.get(), into.data(), std::min<std::size_t>(into.size(), 1 << 30), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("read", path, errno);
      if (n == 0) return Error{ErrorCode::io, fmt::format("'{}' became shorter while it was read", path.string())};
      offset += static_cast<std::uint64_t>(n);
      into = into.subspan(static_cast<std::size_t>(n));
    }
    return {};
  };
  return SafetensorsReader(path.string(), static_cast<std::uint64_t>(status.st_size), read).run();
}

Result<TensorFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view source) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> into) -> Result<void> {
    if (!into.empty()) std::memcpy(into.data(), bytes.data() + offset, into.size());
    return {};
  };
  return SafetensorsReader(source, bytes.size(), read).run();
}

}  // namespace gradloom
