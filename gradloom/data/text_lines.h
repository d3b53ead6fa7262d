// Lines of a text cut into words, for readers that say where something is wrong.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/error.h"

namespace gradloom {

// Goes through the lines of `text`, which must outlive it. Words are separated by blanks and by the characters of
// `separators`; lines without words are skipped.
class TextLines {
 public:
  static constexpr std::size_t kMostWords = std::size_t{1} << 22;  // of a line: its words take eight times its bytes

  TextLines(std::string_view text, std::string_view source, std::string_view separators = "")
      : rest_(text), source_(source), gaps_(std::string(" \t\r\v\f") + std::string(separators)) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // the mark that some editors put first
  }

  // False at the end of the text. Throws as fail() does on a line of more than kMostWords.
  bool next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      words_.clear();
      for (std::size_t at = line.find_first_not_of(gaps_); at != std::string_view::npos;) {
        const std::size_t stop = std::min(line.find_first_of(gaps_, at), line.size());
        if (words_.size() == kMostWords) fail("the line has more than {} words", kMostWords);
        words_.push_back(line.substr(at, stop - at));
        at = line.find_first_not_of(gaps_, stop);
      }
      if (!words_.empty()) return true;
    }
    return false;
  }

  const std::vector<std::string_view>& words() const { return words_; }
  std::size_t line() const { return line_; }  // from 1
  const std::string& source() const { return source_; }

  // Throws Exception{invalid_input} "source:line: ...".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_invalid(fmt::format("{}:{}: {}", source_, line_, fmt::format(format, std::forward<Args>(args)...)));
  }

  // Word `at` as a whole number; `what` names it in the message.
  std::uint32_t number(std::size_t at, std::string_view what) const {
    if (at >= words_.size()) fail("the {} is missing", what);
    const std::string_view word = words_[at];
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      fail("the {} is '{}', not a whole number from 0 to 4294967295", what, shown(word));
    return value;
  }

  // What may be printed of a word from a file.
  static std::string shown(std::string_view word) {
    std::string text;
    for (char c : word.substr(0, 40)) text += c >= ' ' && c < 127 ? c : '?';
    return word.size() > 40 ? text + "..." : text;
  }

 private:
  std::string_view rest_;
  std::string source_, gaps_;
  std::vector<std::string_view> words_;
  std::size_t line_ = 0;
};

}  // namespace gradloom
