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
  const int code = how == Paint::bold    ? 1
                   : how == Paint::dim   ? 2
                   : how == Paint::red   ? 31
                   : how == Paint::green ? 32
                                         : 33;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace gradloom::cli
