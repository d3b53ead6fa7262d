// Whole files: read with a limit, written so that a crash or a full disk leaves the old content.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/result.h"

namespace gradloom {

// The content of a file. Fails with not_found, io, or invalid_input when it is longer than max_bytes (nothing that
// large is ever allocated) or not a regular file.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

// Where the writer of write_file_atomic puts its bytes, in order. Small pieces are buffered.
class FileSink {
 public:
  virtual Result<void> write(std::span<const std::byte> bytes) = 0;
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

 protected:
  ~FileSink() = default;
};

// Replaces the file at `path` by what `writer` writes: temporary file in the same folder, fsync, rename, fsync of the
// folder. On any failure (also one that `writer` returns or throws) the temporary is removed, the old file stays as it
// was, and the error has the path and the system's words. `path` must name a regular file or nothing.
Result<void> write_file_atomic(const std::filesystem::path& path, FunctionRef<Result<void>(FileSink&)> writer);
Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view content);

// Fails with invalid_input when `out` is one of these files, under whatever name, or with `contents` a file in one of
// these folders. Empty paths and files that do not exist are no file's.
enum class InFolders { names, contents };  // what of a folder is read
Result<void> refuse_overwriting(const std::filesystem::path& out, std::span<const std::filesystem::path> inputs,
                                InFolders read = InFolders::names);

// An Error{io} (or not_found for ENOENT) that says what could not be done with which path, and why.
Error system_error(std::string_view what, const std::filesystem::path& path, int error_number);

}  // namespace gradloom
