// What the terminal behind a stream can do, and text in colour for it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace gradloom::cli {

// All false for a file or a pipe. NO_COLOR switches colour off, TERM=dumb everything.
struct Terminal {
  bool redraws = false;  // a line can be drawn again in place
  bool colour = false;
  bool utf8 = false;
};

Terminal terminal_of(std::FILE* stream);
std::size_t columns_of(std::FILE* stream);  // 80 when it is unknown

enum class Paint { bold, dim, red, green, yellow };
std::string painted(Paint how, std::string_view text, const Terminal& terminal);

// The text without power over a terminal: control characters but for line feeds and tabs are written as \x1b. What
// painted() adds for this terminal stays.
std::string printable(std::string_view text, const Terminal& terminal);

// Columns that UTF-8 text without control characters takes; every code point counts as one.
std::size_t display_width(std::string_view text);

}  // namespace gradloom::cli
