#include "cli/progress.h"

#include <fmt/format.h>

#include <cmath>

namespace gradloom::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{5};
constexpr std::size_t kPlainWidth = 160;

}  // namespace

void ProgressView::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to_);
  std::fflush(to_);
}

void ProgressView::erase() {
  if (drawn_) write("\r\x1b[K");
  drawn_ = false;
}

void ProgressView::draw(const app::Progress& p) {
  if (terminal_.redraws) {
    // Room for the ^C of an interrupt, which the terminal writes behind the line; a line that wraps cannot be erased.
    constexpr std::size_t kFree = 3;
    const std::size_t columns = columns_of(to_);
    write(fmt::format("\r{}\x1b[K", progress_line(p, {columns > kFree ? columns - kFree : 1, true, terminal_.utf8})));
    drawn_ = true;
  } else {
    write(progress_line(p, {kPlainWidth, false, false}) + "\n");
  }
  unwritten_.reset();
}

void ProgressView::update(const app::Progress& p) {
  if (show_ == Show::nothing) return;
  const Clock::time_point now = Clock::now();
  const int tenth = static_cast<int>(std::floor(progress_share(p) * 10 + 1e-9));
  const auto wait = terminal_.redraws ? Clock::duration(kRedraw) : Clock::duration(kPlainLine);
  const bool due = !last_ || now - *last_ >= wait || (!terminal_.redraws && tenth > last_tenth_);
  if (!due) {
    unwritten_ = p;
    return;
  }
  last_ = now;
  last_tenth_ = tenth;
  draw(p);
}

void ProgressView::message(LogLevel level, const std::string& text) {
  if (show_ == Show::nothing) return;
  erase();
  write(fmt::format("{}{}\n", level == LogLevel::warning ? painted(Paint::yellow, "warning: ", terminal_) : "",
                    printable(text, terminal_)));
}

void ProgressView::finish() {
  if (!terminal_.redraws && unwritten_) draw(*unwritten_);
  erase();
  unwritten_.reset();
  last_.reset();
  last_tenth_ = 0;
}

}  // namespace gradloom::cli
