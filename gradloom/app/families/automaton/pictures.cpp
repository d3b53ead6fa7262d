#include "gradloom/app/families/automaton/pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "gradloom/data/image.h"
#include "gradloom/io/nearest.h"

namespace gradloom::app {
namespace {

// '.' is background (white), '#' black; digits are colours, whose bits are red (1), green (2) and blue (4).
constexpr std::array<std::string_view, 20> kLizard{
    "....................",  //
    "........###.........",  //
    ".......#####........",  //
    ".......#####........",  //
    "..##....###....##...",  //
    "...##..#####..##....",  //
    "....###########.....",  //
    ".....#########......",  //
    ".......#####........",  //
    ".......#####........",  //
    ".......######.......",  //
    "........#####.......",  //
    ".....##########.....",  //
    "....##..#####.##....",  //
    "...##....###...##...",  //
    "...#.....###....#...",  //
    "..........##........",  //
    "...........##.......",  //
    "............####....",  //
    "....................",
};

constexpr std::array<std::string_view, 16> kLetter{
    "................",  //
    "................",  //
    ".....111133.....",  //
    "...1111333333...",  //
    "..111......33...",  //
    "..11............",  //
    ".55.............",  //
    ".55.............",  //
    ".55.....222222..",  //
    ".55.........22..",  //
    "..44........22..",  //
    "..444......66...",  //
    "...4444666666...",  //
    ".....444666.....",  //
    "................",  //
    "................",
};

template <std::size_t N>
Picture drawn(const std::array<std::string_view, N>& rows, std::size_t planes) {
  Picture p;
  p.height = N;
  p.width = rows[0].size();
  p.bits.resize(planes * p.height * p.width);
  for (std::size_t y = 0; y < p.height; ++y)
    for (std::size_t x = 0; x < p.width; ++x) {
      const char c = rows[y][x];
      for (std::size_t plane = 0; plane < planes; ++plane) {
        const unsigned colour = c == '.' ? (planes == 1 ? 0u : 7u) : c == '#' ? 1u : static_cast<unsigned>(c - '0');
        p.bits[(plane * p.height + y) * p.width + x] = static_cast<std::uint8_t>(colour >> plane & 1u);
      }
    }
  return p;
}

Picture from_image(const Image& image) {
  bool grey = true;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3)
    grey = grey && image.rgb[i] == image.rgb[i + 1] && image.rgb[i] == image.rgb[i + 2];
  Picture p;
  p.height = image.height;
  p.width = image.width;
  const std::size_t planes = grey ? 1 : 3, cells = p.height * p.width;
  p.bits.resize(planes * cells);
  for (std::size_t i = 0; i < cells; ++i)
    for (std::size_t plane = 0; plane < planes; ++plane) {
      const bool bright = image.rgb[3 * i + plane] >= 128;
      p.bits[plane * cells + i] = static_cast<std::uint8_t>(grey ? !bright : bright);
    }
  return p;
}

}  // namespace

std::vector<std::string> shipped_pictures() { return {"lizard", "letter"}; }

Result<Picture> load_picture(const std::string& name, const std::filesystem::path& path) {
  if (name == "lizard") return drawn(kLizard, 1);
  if (name == "letter") return drawn(kLetter, 3);
  if (name.find('/') == std::string::npos && !name.ends_with(".png"))
    return Error{ErrorCode::not_found,
                 fmt::format("there is no shipped picture '{}'; the nearest is '{}' (there are {}; a file's name ends "
                             "in .png)",
                             name, nearest_name(name, shipped_pictures()), fmt::join(shipped_pictures(), ", "))};
  auto image = read_png(path, kMostPictureCells);
  if (!image) return image.error();
  return from_image(*image);
}

}  // namespace gradloom::app
