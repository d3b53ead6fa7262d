#include "gradloom/data/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "gradloom/data/inflate.h"
#include "gradloom/io/file.h"

namespace gradloom {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kLongestHeader = 1 << 16;
constexpr std::size_t kMostDimensions = 32;

// Failures travel as exceptions inside.
class NpyParser {
 public:
  NpyParser(std::string_view bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  NpyArray run() {
    read_header();
    std::uint64_t size = array_.item_bytes;
    bool empty = false;
    for (std::size_t extent : array_.shape) {
      empty = empty || extent == 0;
      if (__builtin_mul_overflow(size, std::uint64_t{std::max<std::size_t>(extent, 1)}, &size))
        fail("the shape overflows 64 bits");
    }
    if (empty) size = 0;
    if (bytes_.size() < size)
      fail("the shape needs {} bytes, but {} follow; the file is truncated", size, bytes_.size());
    if (bytes_.size() > size) fail("{} bytes follow the array; only one array per file is read", bytes_.size() - size);
    array_.bytes.assign(bytes_);
    if (swapped_) swap_bytes();
    if (fortran_ && array_.shape.size() > 1 && size > 0) reorder();
    return std::move(array_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_invalid(fmt::format("{}: {}", source_, fmt::format(format, std::forward<Args>(args)...)));
  }

  void read_header() {
    if (!bytes_.starts_with(kMagic) || bytes_.size() < 10) fail("this is not a NumPy file");
    const int version = static_cast<unsigned char>(bytes_[6]);
    if (version < 1 || version > 3) fail("version {} of the NumPy format is not supported", version);
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    if (bytes_.size() < 8 + length_bytes) fail("the header is truncated");
    std::uint32_t length = 0;
    std::memcpy(&length, bytes_.data() + 8, length_bytes);
    bytes_.remove_prefix(8 + length_bytes);
    if (length > kLongestHeader) fail("the header claims {} bytes, above the limit of {}", length, kLongestHeader);
    if (length > bytes_.size()) fail("the header is truncated");
    header_ = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    parse_header();
  }

  // A Python dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
  void parse_header() {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = text();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        parse_type();
      } else if (key == "fortran_order" && !order) {
        order = true;
        fortran_ = word() == "True";
      } else if (key == "shape" && !shape) {
        shape = true;
        parse_shape();
      } else {
        fail("the header has the unexpected key '{}'", key);
      }
      if (!accept(',') && peek() != '}') fail("the header is malformed near '{}'", header_.substr(0, 20));
    }
    if (!descr || !order || !shape) fail("the header lacks descr, fortran_order or shape");
    if (peek() != '\0') fail("text follows the header's dictionary");
  }

  char peek() {
    while (!header_.empty() && (header_[0] == ' ' || header_[0] == '\n')) header_.remove_prefix(1);
    return header_.empty() ? '\0' : header_[0];
  }
  bool accept(char c) {
    if (peek() != c || header_.empty()) return false;
    header_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("the header lacks '{}' near '{}'", c, header_.substr(0, 20));
  }
  std::string_view text() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("the header lacks a string near '{}'", header_.substr(0, 20));
    const std::size_t end = header_.find(quote, 1);
    if (end == std::string_view::npos) fail("a string in the header does not end");
    const std::string_view value = header_.substr(1, end - 1);
    header_.remove_prefix(end + 1);
    return value;
  }
  std::string_view word() {
    peek();
    for (std::string_view w : {"True", "False"})
      if (header_.starts_with(w)) {
        header_.remove_prefix(w.size());
        return w;
      }
    fail("fortran_order is neither True nor False");
  }

  [[noreturn]] void fail_type(std::string_view type) const {
    throw Exception(ErrorCode::unsupported,
                    fmt::format("{}: arrays of type '{}' cannot be read; save numbers (f4, f8, i1 to i8, u1 to u8, b1)",
                                source_, type.substr(0, 40)));
  }

  void parse_type() {
    if (peek() == '[') fail_type("structure");
    const std::string_view type = text();
    if (type.size() != 3 || std::string_view("<>|=").find(type[0]) == std::string_view::npos) fail_type(type);
    const char kind = type[1];
    const std::size_t n = static_cast<std::size_t>(type[2] - '0');
    const bool integer = (kind == 'i' || kind == 'u') && (n == 1 || n == 2 || n == 4 || n == 8);
    if (!integer && !(kind == 'f' && (n == 4 || n == 8)) && !(kind == 'b' && n == 1)) fail_type(type);
    array_.kind = kind == 'f'   ? NpyKind::floating
                  : kind == 'i' ? NpyKind::signed_integer
                  : kind == 'u' ? NpyKind::unsigned_integer
                                : NpyKind::boolean;
    array_.item_bytes = n;
    swapped_ = type[0] == '>' && n > 1;
  }

  void parse_shape() {
    expect('(');
    while (!accept(')')) {
      peek();
      std::uint64_t extent = 0;
      const auto [end, error] = std::from_chars(header_.data(), header_.data() + header_.size(), extent);
      if (error != std::errc()) fail("the shape holds something that is not a size near '{}'", header_.substr(0, 20));
      header_.remove_prefix(static_cast<std::size_t>(end - header_.data()));
      if (array_.shape.size() == kMostDimensions) fail("the shape has more than {} dimensions", kMostDimensions);
      array_.shape.push_back(extent);
      if (!accept(',') && peek() != ')') fail("the shape is malformed near '{}'", header_.substr(0, 20));
    }
  }

  void swap_bytes() {
    const auto n = static_cast<std::ptrdiff_t>(array_.item_bytes);
    for (auto at = array_.bytes.begin(); at != array_.bytes.end(); at += n) std::reverse(at, at + n);
  }

  // Walks the elements in row-major order, with the strides of the column-major file.
  void reorder() {
    const std::size_t rank = array_.shape.size(), item = array_.item_bytes;
    std::vector<std::size_t> stride(rank, 1), index(rank, 0);
    for (std::size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * array_.shape[d - 1];
    std::string out(array_.bytes.size(), '\0');
    std::size_t from = 0;
    for (std::size_t to = 0; to < array_.size(); ++to) {
      std::memcpy(out.data() + to * item, array_.bytes.data() + from * item, item);
      for (std::size_t d = rank; d-- > 0;) {
        from += stride[d];
        if (++index[d] < array_.shape[d]) break;
        from -= stride[d] * array_.shape[d];
        index[d] = 0;
      }
    }
    array_.bytes = std::move(out);
  }

  std::string_view bytes_, header_;
  std::string source_;
  NpyArray array_;
  bool fortran_ = false, swapped_ = false;
};

template <class T>
std::vector<double> widen(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

}  // namespace

std::vector<double> NpyArray::to_doubles() const {
  if (kind == NpyKind::floating) return item_bytes == 4 ? widen<float>(bytes) : widen<double>(bytes);
  const bool is_signed = kind == NpyKind::signed_integer;
  switch (item_bytes) {
    case 1:
      return is_signed ? widen<std::int8_t>(bytes) : widen<std::uint8_t>(bytes);
    case 2:
      return is_signed ? widen<std::int16_t>(bytes) : widen<std::uint16_t>(bytes);
    case 4:
      return is_signed ? widen<std::int32_t>(bytes) : widen<std::uint32_t>(bytes);
    default:
      return is_signed ? widen<std::int64_t>(bytes) : widen<std::uint64_t>(bytes);
  }
}

std::vector<std::string> NpyArray::to_wide_integers() const {
  if (kind == NpyKind::floating || item_bytes != 8) return {};
  std::vector<std::string> texts;
  bool wide = false;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 53;
  for (std::size_t i = 0; i < size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + 8 * i, 8);
    const bool negative = kind == NpyKind::signed_integer && bits >> 63 != 0;
    const std::uint64_t magnitude = negative ? ~bits + 1 : bits;
    wide = wide || magnitude > kLargest;
    texts.push_back(fmt::format("{}{}", negative ? "-" : "", magnitude));
  }
  return wide ? texts : std::vector<std::string>();
}

Result<NpyArray> parse_npy(std::string_view bytes, std::string_view source) {
  try {
    return NpyParser(bytes, source).run();
  } catch (const Exception& e) {
    return e.error();
  }
}

// A magic word, the length of a header, the header padded to a multiple of 64.
std::string npy_header(std::string_view type, std::span<const std::size_t> shape) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, fmt::join(shape, ", "));
  constexpr std::size_t kHead = 10, kAlign = 64;
  while ((kHead + header.size() + 1) % kAlign != 0) header += ' ';
  header += '\n';
  std::string bytes = std::string(kMagic) + '\x01' + '\0';
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

Result<NpyArray> read_npy(const std::filesystem::path& path, std::size_t max_bytes) {
  auto bytes = read_file(path, max_bytes);
  if (!bytes) return bytes.error();
  if (looks_like_gzip(*bytes)) bytes = inflate_bytes(*bytes, Compression::gzip, max_bytes, path.string());
  if (!bytes) return bytes.error();
  return parse_npy(*bytes, path.string());
}

}  // namespace gradloom
