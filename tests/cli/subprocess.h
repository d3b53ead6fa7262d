// Runs a program as a person would: arguments, a folder, an environment, maybe a terminal; and looks at what comes
// back.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gradloom::test {

struct Launch {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::filesystem::path folder;                    // where it runs
  std::map<std::string, std::string> environment;  // added to ours; an empty value removes a variable
  std::optional<std::uint64_t> file_size_limit;    // RLIMIT_FSIZE
  std::optional<unsigned> terminal_columns;        // standard error is a terminal of this width
};

struct Ended {
  int code = -1;   // exit code; -1 when a signal ended it
  int signal = 0;  // that ended it
  bool timed_out = false;
  std::string out, err;
};

class Process {
 public:
  explicit Process(const Launch& launch);
  ~Process();  // ends it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  bool running();
  // False when the process ended or the time was over before `condition` held.
  bool wait_until(const std::function<bool()>& condition, std::chrono::seconds limit = std::chrono::seconds(60));
  // Kills it when the time is over.
  Ended wait(std::chrono::seconds limit = std::chrono::seconds(120));

 private:
  void read_terminal();

  pid_t pid_ = -1;
  int terminal_ = -1;
  std::optional<int> status_;
  std::filesystem::path out_, err_;
  std::string terminal_text_;
};

}  // namespace gradloom::test
