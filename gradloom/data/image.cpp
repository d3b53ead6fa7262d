#include "gradloom/data/image.h"

#include <fmt/format.h>
#include <png.h>
#include <zlib.h>

#include <cstring>

#include "gradloom/base/error.h"
#include "gradloom/io/file.h"

namespace gradloom {
namespace {

constexpr std::size_t kMostBytes = 16 << 20;
constexpr std::size_t kSignature = 8;

void put_u32(std::string& out, std::uint32_t v) {
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(v >> shift);
}

void put_u16(std::string& out, unsigned v) {
  out += static_cast<char>(v >> 8);
  out += static_cast<char>(v);
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t v = 0;
  for (int i = 0; i < 4; ++i) v = v << 8 | static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i)]);
  return v;
}

void put_chunk(std::string& out, std::string_view type, std::string_view data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  std::string body(type);
  body += data;
  out += body;
  put_u32(out, static_cast<std::uint32_t>(
                   crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

// The data of all chunks of one type in a PNG that we encoded ourselves.
std::string chunk_data(std::string_view png, std::string_view type) {
  std::string data;
  for (std::size_t at = kSignature; at + 12 <= png.size();) {
    const std::size_t length = get_u32(png.substr(at));
    if (png.substr(at + 4, 4) == type) data += png.substr(at + 8, length);
    at += 12 + length;
  }
  return data;
}

std::string frame_control(std::uint32_t sequence, const Image& frame, unsigned milliseconds) {
  std::string data;
  put_u32(data, sequence);
  put_u32(data, static_cast<std::uint32_t>(frame.width));
  put_u32(data, static_cast<std::uint32_t>(frame.height));
  put_u32(data, 0);
  put_u32(data, 0);
  put_u16(data, milliseconds);
  put_u16(data, 1000);
  data += '\0';  // leave the frame as it is
  data += '\0';  // replace what was there
  return data;
}

}  // namespace

Image::Image(std::size_t w, std::size_t h, std::array<std::uint8_t, 3> colour) : width(w), height(h), rgb(w * h * 3) {
  for (std::size_t i = 0; i < w * h; ++i)
    std::copy(colour.begin(), colour.end(), rgb.begin() + static_cast<long>(3 * i));
}

void Image::set(std::size_t x, std::size_t y, std::array<std::uint8_t, 3> colour) {
  std::copy(colour.begin(), colour.end(), rgb.begin() + static_cast<long>(3 * (y * width + x)));
}

std::array<std::uint8_t, 3> Image::at(std::size_t x, std::size_t y) const {
  const std::uint8_t* p = rgb.data() + 3 * (y * width + x);
  return {p[0], p[1], p[2]};
}

Result<Image> read_png(const std::filesystem::path& path, std::size_t most) {
  auto bytes = read_file(path, kMostBytes);
  if (!bytes) return bytes.error();
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  const auto fail = [&](const std::string& why) {
    png_image_free(&png);
    return Error{ErrorCode::invalid_input, fmt::format("{}: {}", path.string(), why)};
  };
  if (bytes->size() < kSignature || png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes->data()), 0, kSignature) != 0)
    return fail("this is not a PNG file; only PNG files can be read");
  if (!png_image_begin_read_from_memory(&png, bytes->data(), bytes->size()))
    return fail(fmt::format("damaged PNG file: {}", png.message));
  if (png.width == 0 || png.height == 0 || png.width > most || png.height > most)
    return fail(
        fmt::format("the picture has {} x {} pixels; at most {} x {} are possible", png.width, png.height, most, most));
  png.format = PNG_FORMAT_RGB;
  Image image(png.width, png.height, {255, 255, 255});
  const png_color white{255, 255, 255};
  if (!png_image_finish_read(&png, &white, image.rgb.data(), 0, nullptr))
    return fail(fmt::format("damaged PNG file: {}", png.message));
  return image;
}

std::string encode_png(const Image& image) {
  if (image.rgb.empty()) throw_invalid("an image without pixels cannot be a PNG file");
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string out(size, '\0');
  if (!png_image_write_to_memory(&png, out.data(), &size, 0, image.rgb.data(), 0, nullptr))
    throw Exception(ErrorCode::io, fmt::format("the picture could not be encoded: {}", png.message));
  out.resize(size);
  return out;
}

std::string encode_apng(std::span<const Image> frames, unsigned milliseconds) {
  if (frames.empty()) throw_invalid("an animation needs at least one frame");
  const std::string first = encode_png(frames[0]);
  std::string out = first.substr(0, kSignature);
  put_chunk(out, "IHDR", chunk_data(first, "IHDR"));
  std::string control;
  put_u32(control, static_cast<std::uint32_t>(frames.size()));
  put_u32(control, 0);  // for ever
  put_chunk(out, "acTL", control);
  std::uint32_t sequence = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].width != frames[0].width || frames[i].height != frames[0].height)
      throw_invalid("the frames of an animation must have equal sizes");
    put_chunk(out, "fcTL", frame_control(sequence++, frames[i], milliseconds));
    std::string pixels = chunk_data(i == 0 ? first : encode_png(frames[i]), "IDAT");
    if (i == 0) {
      put_chunk(out, "IDAT", pixels);
      continue;
    }
    std::string numbered;
    put_u32(numbered, sequence++);
    put_chunk(out, "fdAT", numbered + pixels);
  }
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace gradloom
