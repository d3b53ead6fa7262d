// The log of a run: one JSON object per line (docs/format.md).
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/io/file_descriptor.h"
#include "gradloom/io/file_place.h"

namespace gradloom {

// Appends lines. Each is with the system when append() returns, so a crash of the program loses none.
class RunLog {
 public:
  // Opens for appending; makes the file when there is none, and removes a torn last line. Fails with io, or
  // invalid_input when it is not a regular file.
  static Result<RunLog> open(const FilePlace& place);

  // Throws unless `line` is an object. On failure (full disk) nothing of the line stays in the file.
  Result<void> append(const nlohmann::json& line);

  // After this a power cut loses no line either. Fails with io.
  Result<void> sync();

 private:
  RunLog(FilePlace path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  FilePlace path_;
  bool folder_is_synced_ = false;
  FileDescriptor file_;
};

struct RunLogContent {
  std::vector<nlohmann::json> lines;
  std::size_t torn = 0;  // 1 when the last line was incomplete and dropped
};

// Fails with not_found, io, or invalid_input naming the line that is not a JSON object.
Result<RunLogContent> read_run_log(const FilePlace& place);

// Cuts the file after its first `lines` complete lines and syncs it. Returns how many there are then: fewer than asked
// for when the file has fewer. A file that does not exist has none.
Result<std::size_t> keep_first_lines(const FilePlace& place, std::size_t lines);

}  // namespace gradloom
