#include <fmt/format.h>

#include <iterator>

#include "gradloom/app/report/parts.h"
#include "gradloom/app/report/text.h"

namespace gradloom::app {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[word >> (18 - 6 * k) & 63u] : '=';
  }
  return out;
}

}  // namespace

void append_cell_picture(std::string& out, const CellPicture& picture) {
  fmt::format_to(std::back_inserter(out),
                 "<figure><img class=\"cells\" alt=\"{}\" style=\"width:{:.0f}px\" src=\"data:image/png;base64,{}\">"
                 "</figure>\n",
                 escape_html(picture.description), picture.width, base64(picture.png));
}

}  // namespace gradloom::app
