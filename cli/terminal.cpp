#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace gradloom::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = variable(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

// By Paint.
constexpr std::string_view kPaints[] = {"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"};
constexpr std::string_view kUnpaint = "\x1b[0m";

// Of what painted() writes, at the start of the text; 0: it is something else.
std::size_t paint_length(std::string_view text) {
  if (text.starts_with(kUnpaint)) return kUnpaint.size();
  for (const std::string_view paint : kPaints)
    if (text.starts_with(paint)) return paint.size();
  return 0;
}

}  // namespace

Terminal terminal_of(std::FILE* stream) {
  Terminal t;
  const std::string kind = variable("TERM");
  if (::isatty(::fileno(stream)) == 0 || kind.empty() || kind == "dumb") return t;
  t.redraws = true;
  t.colour = variable("NO_COLOR").empty();
  t.utf8 = locale_is_utf8();
  return t;
}

std::size_t columns_of(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string painted(Paint how, std::string_view text, const Terminal& terminal) {
  if (!terminal.colour) return std::string(text);
  return fmt::format("{}{}{}", kPaints[static_cast<std::size_t>(how)], text, kUnpaint);
}

std::string printable(std::string_view text, const Terminal& terminal) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const std::size_t paint = terminal.colour ? paint_length(text.substr(i)) : 0;
    if (paint > 0) {
      out += text.substr(i, paint);
      i += paint - 1;
    } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // control characters beyond ASCII
      out += fmt::format("\\x{:02x}", next);
      ++i;
    } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += text[i];
    }
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace gradloom::cli
