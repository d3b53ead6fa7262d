// SIGINT, SIGTERM and SIGHUP as a wish to stop, for as long as a run lasts.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace gradloom::cli {

// One at a time. The first signal sets the flag, a second one, but for SIGHUP, has its usual effect and ends the
// program at once. Signals that were ignored when the program began (nohup, background jobs) stay ignored. Meanwhile a
// reader of the progress may go away: what cannot be told is not told, and the run goes on.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  const std::atomic<bool>& requested() const;
  int exit_code() const;  // 130 for SIGINT, 143 for SIGTERM; meaningful when requested
};

// Whether the first signal ends the program at once too, as a second one does: while nobody looks at requested() and
// nothing can be lost. `empty_folders` are then removed first, in this order, where they are empty.
class EndAtOnce {
 public:
  explicit EndAtOnce(std::vector<std::string> empty_folders);
  ~EndAtOnce();
  EndAtOnce(const EndAtOnce&) = delete;
  EndAtOnce& operator=(const EndAtOnce&) = delete;

  void begin();
  void end();
};

// Standard input, output and error that the program was started without become /dev/null; otherwise the next files that
// it opens would take their numbers, and messages would go into them. Whether there was a standard output.
bool open_closed_streams();

// A write beyond the file size limit is then an error like a full disk, instead of the end of the program.
void ignore_file_size_signal();

}  // namespace gradloom::cli
