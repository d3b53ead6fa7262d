// Whole files: read with a limit, written so that a crash or a full disk leaves the old content.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/result.h"
#include "gradloom/io/file_place.h"

namespace gradloom {

// The content of a file. Fails with not_found, io, or invalid_input when it is longer than max_bytes (nothing that
// large is ever allocated), not a regular file, or a link where the place refuses links.
Result<std::string> read_file(const FilePlace& place, std::size_t max_bytes);

// Fails as read_file does for a file of any length, before it reads: missing, not regular, a link, no permission.
Result<void> is_readable(const FilePlace& place);

// Where the writer of write_file_atomic puts its bytes, in order. Small pieces are buffered.
class FileSink {
 public:
  virtual Result<void> write(std::span<const std::byte> bytes) = 0;
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

 protected:
  ~FileSink() = default;
};

// Replaces the file by what `writer` writes: temporary file in the same folder, fsync, rename, fsync of the folder. On
// any failure (also one that `writer` returns or throws) the temporary is removed, the old file stays as it was (or,
// when the folder alone cannot be synced, the new one is there), and the error has the path and the system's words. The
// place must name a regular file or nothing. Temporaries of writers that were killed are removed from the folder first.
//
// Where the place keeps what is replaced, the old file gets that name, and the file that had it goes. At every instant
// the two newest complete files are in the folder under one of the two names or that of a temporary; a file system that
// cannot exchange two files has for an instant only the kept one.
Result<void> write_file_atomic(const FilePlace& place, FunctionRef<Result<void>(FileSink&)> writer);
Result<void> write_file_atomic(const FilePlace& place, std::string_view content);

// Fails with invalid_input when `out` is one of these files, under whatever name, or with `contents` a file in one of
// these folders. Empty paths and files that do not exist are no file's.
enum class InFolders { names, contents };  // what of a folder is read
Result<void> refuse_overwriting(const std::filesystem::path& out, std::span<const std::filesystem::path> inputs,
                                InFolders read = InFolders::names);

// An Error{io} (or not_found for ENOENT) that says what could not be done with which path, and why.
Error system_error(std::string_view what, const std::filesystem::path& path, int error_number);

}  // namespace gradloom
