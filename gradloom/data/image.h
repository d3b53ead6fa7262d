// Small pictures: PNG files read as untrusted input; PNG and animated PNG written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom {

// RGB, 8 bits each, rows from the top.
struct Image {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // (H, W, 3)

  Image() = default;
  Image(std::size_t w, std::size_t h, std::array<std::uint8_t, 3> colour);
  void set(std::size_t x, std::size_t y, std::array<std::uint8_t, 3> colour);
  std::array<std::uint8_t, 3> at(std::size_t x, std::size_t y) const;
};

// Fails with not_found, io, or invalid_input when the file is no PNG, is damaged, or is larger than `most` cells along
// a side (nothing of that size is allocated). Transparent pixels are laid on white.
Result<Image> read_png(const std::filesystem::path& path, std::size_t most);

// The bytes of a PNG file. Throws on an empty image.
std::string encode_png(const Image& image);

// The bytes of an animated PNG that repeats for ever, each frame shown for `milliseconds`. All frames have one size;
// throws when there is none or sizes differ. Programs that know no animation show the first frame.
std::string encode_apng(std::span<const Image> frames, unsigned milliseconds);

}  // namespace gradloom
