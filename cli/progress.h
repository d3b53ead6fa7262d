// How a run stands, for people who watch it: one line that is redrawn on a terminal, now and then a plain line
// elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "cli/terminal.h"
#include "gradloom/app/run/run.h"
#include "gradloom/base/log.h"

namespace gradloom::cli {

struct ProgressStyle {
  std::size_t width = 80;  // most columns
  bool bar = true;
  bool utf8 = false;
};

// Never wider than style.width: what matters least is left out first.
std::string progress_line(const app::Progress& p, const ProgressStyle& style);

// Of the whole run, in 0..1.
double progress_share(const app::Progress& p);

enum class Show { progress, nothing };

class ProgressView {
 public:
  ProgressView(std::FILE* to, Show show) : to_(to), show_(show), terminal_(terminal_of(to)) {}
  ~ProgressView() { finish(); }
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void update(const app::Progress& p);
  void message(LogLevel level, const std::string& text);
  // Takes the line off a terminal; elsewhere writes the last state if it was not written. More updates may follow.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void draw(const app::Progress& p);
  void erase();
  void write(const std::string& text);

  std::FILE* to_;
  Show show_;
  Terminal terminal_;
  bool drawn_ = false;  // a line stands on the terminal
  std::optional<Clock::time_point> last_;
  int last_tenth_ = 0;
  std::optional<app::Progress> unwritten_;  // the newest state, when it was left out
};

}  // namespace gradloom::cli
