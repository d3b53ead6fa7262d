#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>

#include "gradloom/data/archive.h"
#include "gradloom/data/inflate.h"

namespace gradloom {
namespace {

constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kLongestComment = 65535;
constexpr std::uint32_t kIn64Bits = 0xffffffff;

// Reads a zip archive by its central directory. Failures travel as exceptions inside.
class ZipParser {
 public:
  ZipParser(std::string_view bytes, std::size_t max_bytes, std::string_view source, WantedFile wanted)
      : bytes_(bytes), left_(max_bytes), source_(source), wanted_(wanted) {}

  ArchiveFiles run() {
    const std::size_t end = find_end();
    const std::size_t count = read<std::uint16_t>(end + 10);
    std::size_t at = read<std::uint32_t>(end + 16);
    if (at == kIn64Bits || count == 0xffff) fail(ErrorCode::unsupported, "64-bit zip archives cannot be read");
    for (std::size_t i = 0; i < count; ++i) at = read_entry(at);
    return std::move(files_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    throw Exception(code, fmt::format("{}: {}", source_, fmt::format(format, std::forward<Args>(args)...)));
  }
  [[noreturn]] void fail_damaged() const { fail(ErrorCode::invalid_input, "the archive is truncated or damaged"); }

  std::string_view slice(std::size_t at, std::size_t n) const {
    if (at > bytes_.size() || n > bytes_.size() - at) fail_damaged();
    return bytes_.substr(at, n);
  }

  template <class T>
  T read(std::size_t at) const {
    T value;
    std::memcpy(&value, slice(at, sizeof(T)).data(), sizeof(T));
    return value;
  }

  // The end record stands before a comment of unknown length.
  std::size_t find_end() const {
    if (!bytes_.starts_with("PK") || bytes_.size() < kEndBytes)
      fail(ErrorCode::invalid_input, "this is not a zip archive");
    for (std::size_t back = kEndBytes; back <= bytes_.size() && back <= kEndBytes + kLongestComment; ++back)
      if (bytes_.substr(bytes_.size() - back, 4) == std::string_view("PK\5\6", 4)) return bytes_.size() - back;
    fail(ErrorCode::invalid_input, "the archive has no directory; it is truncated");
  }

  // Returns where the next entry of the directory begins.
  std::size_t read_entry(std::size_t at) {
    if (slice(at, 4) != std::string_view("PK\1\2", 4)) fail_damaged();
    const auto flags = read<std::uint16_t>(at + 8), method = read<std::uint16_t>(at + 10);
    const auto crc = read<std::uint32_t>(at + 16), packed = read<std::uint32_t>(at + 20),
               size = read<std::uint32_t>(at + 24);
    const std::size_t name_bytes = read<std::uint16_t>(at + 28);
    const std::size_t next =
        at + kEntryBytes + name_bytes + read<std::uint16_t>(at + 30) + read<std::uint16_t>(at + 32);
    const std::size_t local = read<std::uint32_t>(at + 42);
    const std::string name(slice(at + kEntryBytes, name_bytes));
    if (!wanted_(name)) return next;

    constexpr std::uint32_t kFileType = 0xf000, kSymbolicLink = 0xa000;  // of a Unix mode
    if ((read<std::uint32_t>(at + 38) >> 16 & kFileType) == kSymbolicLink)
      fail(ErrorCode::invalid_input, "'{}' is a link, which is not followed; archive the file itself", name);
    if (flags & 1) fail(ErrorCode::unsupported, "'{}' is encrypted", name);
    if (packed == kIn64Bits || size == kIn64Bits || local == kIn64Bits)
      fail(ErrorCode::unsupported, "'{}' is larger than 4 GB", name);
    if (slice(local, 4) != std::string_view("PK\3\4", 4)) fail_damaged();
    const std::size_t begin = local + kLocalBytes + read<std::uint16_t>(local + 26) + read<std::uint16_t>(local + 28);
    std::string content = unpack(name, method, slice(begin, packed), size);
    if (::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())) != crc)
      fail(ErrorCode::invalid_input, "the checksum of '{}' is wrong; the archive is damaged", name);
    if (!files_.emplace(name, std::move(content)).second)
      fail(ErrorCode::invalid_input, "the archive holds '{}' twice", name);
    return next;
  }

  std::string unpack(const std::string& name, unsigned method, std::string_view packed, std::size_t size) {
    if (size > left_)
      fail(ErrorCode::invalid_input, "the content is longer than the limit; '{}' alone claims {} bytes", name, size);
    left_ -= size;
    std::string content;
    if (method == 0)
      content = packed;
    else if (method == 8)
      content =
          inflate_bytes(packed, Compression::deflate, size, fmt::format("{}, entry '{}'", source_, name)).or_throw();
    else
      fail(ErrorCode::unsupported, "'{}' is compressed with method {}; only stored and deflated entries can be read",
           name, method);
    if (content.size() != size) fail_damaged();
    return content;
  }

  std::string_view bytes_;
  std::size_t left_;
  std::string source_;
  WantedFile wanted_;
  ArchiveFiles files_;
};

}  // namespace

Result<ArchiveFiles> parse_zip(std::string_view bytes, std::size_t max_bytes, std::string_view source,
                               WantedFile wanted) {
  try {
    return ZipParser(bytes, max_bytes, source, wanted).run();
  } catch (const Exception& e) {
    return e.error();
  }
}

}  // namespace gradloom
