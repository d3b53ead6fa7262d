#include "gradloom/circuit/rle.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "gradloom/base/error.h"

namespace gradloom::circuit {
namespace {

constexpr unsigned kMaxState = 255, kLettersPerPrefix = 24;
constexpr std::size_t kLineLength = 70;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class RleReader {
 public:
  RleReader(std::string_view text, std::uint64_t max_cells) : text_(text), max_cells_(max_cells) {}

  Result<Pattern> read() {
    if (auto error = header()) return *error;
    // Two passes: the first finds the largest state, so that the grid has the channels it needs.
    const std::size_t start = at_, start_line = line_;
    if (auto error = body(nullptr)) return *error;
    std::uint32_t channels = 1;
    while (highest_ >> channels != 0) ++channels;
    try {
      pattern_.cells = Grid(channels, height_, width_);
    } catch (const Exception& e) {
      return e.error();
    }
    at_ = start;
    line_ = start_line;
    if (auto error = body(&pattern_.cells)) return *error;
    return std::move(pattern_);
  }

 private:
  Error wrong(std::string_view what) const {
    return {ErrorCode::invalid_input, fmt::format("pattern, line {}: {}", line_, what)};
  }

  bool ended() const { return at_ >= text_.size(); }
  char take() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }
  void skip_line() {
    while (!ended() && take() != '\n') {
    }
  }
  void skip_blanks() {
    while (!ended() && is_blank(text_[at_])) take();
  }
  // The number at the place where we are; none when there is none or it has more than 18 digits.
  std::optional<std::uint64_t> number() {
    std::uint64_t n = 0;
    const std::size_t start = at_;
    while (!ended() && is_digit(text_[at_]) && at_ - start < 19) n = 10 * n + static_cast<std::uint64_t>(take() - '0');
    if (at_ == start || at_ - start > 18) return std::nullopt;
    return n;
  }

  std::optional<Error> header() {
    for (skip_blanks(); !ended() && text_[at_] == '#'; skip_blanks()) skip_line();
    if (auto error = entry("x", width_)) return error;
    if (ended() || take() != ',') return wrong("the header needs a comma after x");
    if (auto error = entry("y", height_)) return error;
    if (width_ == 0 || height_ == 0) return wrong(fmt::format("the header says {} x {} cells", width_, height_));
    if (width_ > max_cells_ || height_ > max_cells_ / width_)
      return wrong(fmt::format("{} x {} cells are too many; at most {} are allowed", width_, height_, max_cells_));
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view rest = text_.substr(at_, end - at_);
    if (const std::size_t key = rest.find("rule"); key != rest.npos) {
      std::string_view value = rest.substr(std::min(rest.find('=', key), rest.size() - 1) + 1);
      while (!value.empty() && is_blank(value.front())) value.remove_prefix(1);
      while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
      const std::size_t colon = std::min(value.find(':'), value.size());
      pattern_.rule = std::string(value.substr(0, std::min(colon, value.find(','))).substr(0, 100));
      if (auto error = bounds(value.substr(colon))) return error;
    } else if (rest.find_first_not_of(" \t\r") != rest.npos) {
      return wrong("the header is `x = W, y = H, rule = R`");
    }
    skip_line();
    return std::nullopt;
  }

  // `:T80,60`, `:P40` (a square); other shapes and shifted ones are not understood and left out.
  std::optional<Error> bounds(std::string_view text) {
    if (text.size() < 3 || (text[1] != 'T' && text[1] != 'P')) return std::nullopt;
    RleReader sides(text.substr(2), max_cells_);
    const auto width = sides.number();
    std::optional<std::uint64_t> height = width;
    if (!sides.ended() && sides.take() == ',') height = sides.number();
    if (!sides.ended() || !width || !height || *width == 0 || *height == 0) return std::nullopt;
    if (*width > max_cells_ || *height > max_cells_ / *width)
      return wrong(fmt::format("a grid of {} x {} cells is too large; at most {} cells are allowed", *width, *height,
                               max_cells_));
    pattern_.bounds = Bounds{*width, *height, text[1] == 'T' ? Boundary::periodic : Boundary::zero};
    return std::nullopt;
  }

  std::optional<Error> entry(std::string_view name, std::uint64_t& value) {
    skip_blanks();
    if (text_.substr(at_, name.size()) != name)
      return wrong(fmt::format(
          "{} is missing in the header `x = W, y = H`; patterns are read in run-length form (RLE) only", name));
    at_ += name.size();
    skip_blanks();
    if (ended() || take() != '=') return wrong(fmt::format("the header needs {} = a number", name));
    skip_blanks();
    const auto n = number();
    if (!n) return wrong(fmt::format("the header needs {} = a whole number of at most 18 digits", name));
    value = *n;
    while (!ended() && (text_[at_] == ' ' || text_[at_] == '\t')) take();
    return std::nullopt;
  }

  // Null: only checks.
  std::optional<Error> body(Grid* cells) {
    std::uint64_t x = 0, y = 0;
    for (;;) {
      skip_blanks();
      if (ended()) return wrong("the pattern has no `!` at its end");
      if (text_[at_] == '#') {
        skip_line();
        continue;
      }
      std::uint64_t count = 1;
      const bool counted = is_digit(text_[at_]);
      if (counted) {
        const auto n = number();
        if (!n) return wrong("a count has more than 18 digits");
        if (*n == 0) return wrong("a count is 0");
        count = *n;
        skip_blanks();
        if (ended()) return wrong("a count without a letter");
      }
      const char c = take();
      if (c == '!') {
        if (counted) return wrong("a count without a letter");
        return std::nullopt;
      }
      if (c == '$') {
        if (count > height_ || (y += count) > height_)
          return wrong(fmt::format("more rows than the header's {}", height_));
        x = 0;
        continue;
      }
      const auto state = state_of(c);
      if (!state) return wrong(fmt::format("the character {} is not a state", shown(c)));
      if (y >= height_) return wrong(fmt::format("more rows than the header's {}", height_));
      if (count > width_ - x) return wrong(fmt::format("row {} is longer than the width in the header, {}", y, width_));
      highest_ = std::max(highest_, *state);
      if (cells && *state != 0) fill(*cells, y, x, count, *state);
      x += count;
    }
  }

  static void fill(Grid& cells, std::uint64_t y, std::uint64_t x, std::uint64_t count, unsigned state) {
    for (std::uint32_t c = 0; c < cells.channels(); ++c)
      for (std::uint64_t i = x; i < x + count && (state >> c & 1); ++i) cells.set(c, y, i, true);
  }

  std::optional<unsigned> state_of(char c) {
    if (c == 'b' || c == '.') return 0;
    if (c == 'o') return 1;
    unsigned prefix = 0;
    if (c >= 'p' && c <= 'y') {
      if (ended()) return std::nullopt;
      prefix = static_cast<unsigned>(c - 'p') + 1;
      c = take();
    }
    if (c < 'A' || c > 'X') return std::nullopt;
    const unsigned state = prefix * kLettersPerPrefix + static_cast<unsigned>(c - 'A') + 1;
    return state <= kMaxState ? std::optional(state) : std::nullopt;
  }

  static std::string shown(char c) {
    return c >= 32 && c < 127 ? fmt::format("'{}'", c) : fmt::format("{}", static_cast<unsigned char>(c));
  }

  std::string_view text_;
  std::uint64_t max_cells_;
  std::size_t at_ = 0, line_ = 1;
  std::uint64_t width_ = 0, height_ = 0;
  unsigned highest_ = 1;
  Pattern pattern_;
};

std::string letter(unsigned state, bool two_states) {
  if (two_states) return state ? "o" : "b";
  if (state == 0) return ".";
  std::string text;
  if (state > kLettersPerPrefix) text += static_cast<char>('p' + (state - 1) / kLettersPerPrefix - 1);
  return text + static_cast<char>('A' + (state - 1) % kLettersPerPrefix);
}

class Writer {
 public:
  void add(std::uint64_t count, const std::string& what) {
    const std::string word = count == 1 ? what : fmt::format("{}{}", count, what);
    if (line_ + word.size() > kLineLength) {
      text += '\n';
      line_ = 0;
    }
    text += word;
    line_ += word.size();
  }
  std::string text;

 private:
  std::size_t line_ = 0;
};

}  // namespace

Result<Pattern> parse_rle(std::string_view text, std::uint64_t max_cells) { return RleReader(text, max_cells).read(); }

std::string to_rle(const Grid& grid, std::string_view rule) {
  if (grid.channels() > 8)
    throw Exception(ErrorCode::unsupported,
                    fmt::format("a pattern has at most 8 channels (255 states); the grid has {}", grid.channels()));
  Writer out;
  out.text = fmt::format("x = {}, y = {}", grid.width(), grid.height());
  if (!rule.empty()) out.text += fmt::format(", rule = {}", rule);
  out.text += '\n';
  std::uint64_t ends = 0;  // rows ended and not yet written: what is empty at the end is left out
  for (std::size_t y = 0; y < grid.height(); ++y) {
    std::uint64_t empty = 0;
    for (std::size_t x = 0; x < grid.width();) {
      const auto state_at = [&](std::size_t i) {
        unsigned state = 0;
        for (std::uint32_t c = 0; c < grid.channels(); ++c) state |= (grid.get(c, y, i) ? 1u : 0u) << c;
        return state;
      };
      const unsigned state = state_at(x);
      std::size_t end = x + 1;
      while (end < grid.width() && state_at(end) == state) ++end;
      if (state == 0) {
        empty = end - x;
      } else {
        if (ends > 0) out.add(ends, "$");
        ends = 0;
        if (empty > 0) out.add(empty, letter(0, grid.channels() == 1));
        empty = 0;
        out.add(end - x, letter(state, grid.channels() == 1));
      }
      x = end;
    }
    ++ends;
  }
  out.add(1, "!");
  out.text += '\n';
  return std::move(out.text);
}

void place(Grid& grid, const Grid& pattern, std::size_t top, std::size_t left) {
  if (pattern.channels() > grid.channels())
    throw_invalid(fmt::format("the pattern has states that need {} channels, the grid has {}", pattern.channels(),
                              grid.channels()));
  if (pattern.height() > grid.height() || top > grid.height() - pattern.height() || pattern.width() > grid.width() ||
      left > grid.width() - pattern.width())
    throw_invalid(fmt::format("a pattern of {} x {} cells does not fit into a grid of {} x {}{}", pattern.width(),
                              pattern.height(), grid.width(), grid.height(),
                              pattern.width() > grid.width() || pattern.height() > grid.height()
                                  ? ""
                                  : fmt::format(" at column {}, row {}", left, top)));
  for (std::uint32_t c = 0; c < pattern.channels(); ++c)
    for (std::size_t y = 0; y < pattern.height(); ++y)
      for (std::size_t x = 0; x < pattern.width(); ++x) grid.set(c, top + y, left + x, pattern.get(c, y, x));
}

void place_centred(Grid& grid, const Grid& pattern) {
  const auto half = [](std::size_t whole, std::size_t part) { return whole > part ? (whole - part) / 2 : 0; };
  place(grid, pattern, half(grid.height(), pattern.height()), half(grid.width(), pattern.width()));
}

}  // namespace gradloom::circuit
