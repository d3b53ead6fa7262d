// Pictures that automata grow: those that ship with the program, and PNG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom::app {

constexpr std::size_t kMostPictureCells = 64;  // along a side

struct Picture {
  std::size_t height = 0, width = 0;
  std::vector<std::uint8_t> bits;  // (1, H, W) black is 1; or (3, H, W) red, green, blue
};

// The names of shipped pictures.
std::vector<std::string> shipped_pictures();

// A shipped picture by name, or (for a name with a '/' or ending in .png) the PNG file at `path`. A picture in black,
// white and greys has one plane, cut at half brightness; any other has three planes, which make eight colours. Fails
// with not_found (naming the nearest shipped picture), io or invalid_input.
Result<Picture> load_picture(const std::string& name, const std::filesystem::path& path);

}  // namespace gradloom::app
