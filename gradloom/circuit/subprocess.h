// Runs a foreign program in a folder of its own, with a time limit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom::circuit {

// A fresh folder among the temporary files of the system that only we can read; removed with everything in it at the
// end.
class TemporaryFolder {
 public:
  TemporaryFolder();  // throws Exception(io)
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The program in /usr/local/bin or /usr/bin; empty when it is in neither.
std::filesystem::path find_program(std::string_view name);

struct ProgramEnd {
  int code = -1;  // -1 when a signal ended it
  bool timed_out = false;
  std::string output;  // standard output and error, at most the last 64 KB
};

// No shell; no input; an environment of PATH and TMPDIR alone. The program and what it started are killed when the time
// is over. Fails with io when it cannot be started.
Result<ProgramEnd> run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                               const std::filesystem::path& folder, double seconds);

}  // namespace gradloom::circuit
