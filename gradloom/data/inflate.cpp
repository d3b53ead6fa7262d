#include "gradloom/data/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace gradloom {
namespace {

class Inflater {
 public:
  explicit Inflater(int window_bits) { ok_ = ::inflateInit2(&stream_, window_bits) == Z_OK; }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ok_) ::inflateEnd(&stream_);
  }
  bool ok() const { return ok_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ok_;
};

constexpr std::size_t kPiece = 1 << 18;
constexpr std::size_t kMostInput = 1 << 30;  // zlib counts in 32 bits

}  // namespace

bool looks_like_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> inflate_bytes(std::string_view bytes, Compression compression, std::size_t max_bytes,
                                  std::string_view source) {
  const auto fail = [&](std::string_view why) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: cannot decompress: {}", source, why)};
  };
  Inflater inflater(compression == Compression::gzip ? 15 + 16 : -15);
  if (!inflater.ok())
    return Error{ErrorCode::out_of_memory, fmt::format("{}: not enough memory to decompress", source)};
  z_stream& z = inflater.stream();
  std::string out;
  std::string piece(kPiece, '\0');
  for (;;) {
    if (z.avail_in == 0) {
      const std::size_t n = std::min(bytes.size(), kMostInput);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      z.avail_in = static_cast<uInt>(n);
      bytes.remove_prefix(n);
    }
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    const int status = ::inflate(&z, Z_NO_FLUSH);
    const std::size_t made = piece.size() - z.avail_out;
    if (made > max_bytes - out.size())
      return fail(fmt::format("the content is longer than the limit of {} bytes", max_bytes));
    out.append(piece, 0, made);
    if (status == Z_STREAM_END) {
      if (z.avail_in == 0 && bytes.empty()) return out;
      if (compression == Compression::deflate) return fail("bytes follow the end");
      if (::inflateReset(&z) != Z_OK) return fail("the data is damaged");
    } else if (status == Z_BUF_ERROR || (status == Z_OK && made == 0 && z.avail_in == 0 && bytes.empty())) {
      return fail("the data is truncated");
    } else if (status != Z_OK) {
      return fail(z.msg ? z.msg : "the data is damaged");
    }
  }
}

}  // namespace gradloom
