#include "gradloom/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "gradloom/io/file_descriptor.h"

namespace gradloom {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::size_t kWriteBytes = 1 << 30;  // Linux writes at most 2 GiB in one call

FileDescriptor open_file(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// The file that a path means: links are followed, since renaming over one would leave its target as it was. Links of
// the system to open descriptors (/dev/stdout) cannot be replaced as files are.
Result<std::filesystem::path> link_target(std::filesystem::path path) {
  const std::filesystem::path asked = path;
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; std::filesystem::is_symlink(path, error); ++i) {
    const std::string folder = std::filesystem::absolute(path, error).parent_path().string();
    if (folder.starts_with("/dev") || folder.starts_with("/proc"))
      return Error{ErrorCode::io,
                   fmt::format("cannot write '{}': it is not a regular file; name a file", asked.string())};
    if (i == kMostLinks) return system_error("write", asked, ELOOP);
    const std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) return system_error("write", asked, error.value());
    path = next.is_absolute() ? next : folder_of(path) / next;
  }
  return path;
}

class DescriptorSink final : public FileSink {
 public:
  DescriptorSink(int fd, const std::filesystem::path& path) : fd_(fd), path_(path) { buffer_.reserve(kBufferBytes); }

  Result<void> write(std::span<const std::byte> bytes) override {
    if (buffer_.size() + bytes.size() > kBufferBytes) {
      if (auto r = flush(); !r) return r;
      if (bytes.size() > kBufferBytes) return write_all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }

  Result<void> flush() {
    auto r = write_all(buffer_.data(), buffer_.size());
    buffer_.clear();
    return r;
  }

 private:
  Result<void> write_all(const char* data, std::size_t n) {
    while (n > 0) {
      const ssize_t written = ::write(fd_, data, std::min(n, kWriteBytes));
      if (written < 0) {
        if (errno == EINTR) continue;
        return system_error("write", path_, errno);
      }
      data += written;
      n -= static_cast<std::size_t>(written);
    }
    return {};
  }

  int fd_;
  const std::filesystem::path& path_;
  std::string buffer_;
};

// Removes the temporary unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::filesystem::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

Error system_error(std::string_view what, const std::filesystem::path& path, int error_number) {
  const auto code = error_number == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  std::string message =
      fmt::format("cannot {} '{}': {}", what, path.string(), std::generic_category().message(error_number));
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG)
    message += "; free some space or choose another folder";
  else if (error_number == EACCES || error_number == EPERM || error_number == EROFS)
    message += "; check the permissions or choose another folder";
  return {code, message};
}

Result<void> refuse_overwriting(const std::filesystem::path& out, std::span<const std::filesystem::path> inputs,
                                InFolders read) {
  namespace fs = std::filesystem;
  for (const fs::path& input : inputs) {
    std::error_code missing;
    bool same = fs::equivalent(out, input, missing) && !missing;
    if (!same && read == InFolders::contents && fs::is_directory(input, missing) && fs::is_regular_file(out, missing)) {
      const fs::path folder = fs::canonical(input, missing), file = fs::canonical(out, missing);
      same = !missing && std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
    }
    if (!same) continue;
    return Error{ErrorCode::invalid_input,
                 fmt::format("'{}' would be overwritten, but it is read; choose another name", out.string())};
  }
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK);  // else opening a pipe waits for a writer
  if (!file.valid()) return system_error("read", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("read", path, errno);
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::invalid_input, fmt::format("'{}' is not a regular file", path.string())};
  const auto too_long = [&] {
    return Error{ErrorCode::invalid_input,
                 fmt::format("'{}' is longer than the limit of {} bytes", path.string(), max_bytes)};
  };
  if (static_cast<std::uintmax_t>(status.st_size) > max_bytes) return too_long();

  // Files below /proc say 0 and still have content, and a file may grow while it is read: read until the end, not until
  // the size.
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t used = 0;
  for (;;) {
    if (used == content.size()) {
      char more[4096];
      const ssize_t n = ::read(file.get(), more, sizeof more);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("read", path, errno);
      if (n == 0) break;
      if (static_cast<std::size_t>(n) > max_bytes - used) return too_long();
      content.append(more, static_cast<std::size_t>(n));
      used = content.size();
      continue;
    }
    const ssize_t n = ::read(file.get(), content.data() + used, std::min(content.size() - used, kWriteBytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
  }
  content.resize(used);
  return content;
}

Result<void> write_file_atomic(const std::filesystem::path& wanted, FunctionRef<Result<void>(FileSink&)> writer) {
  const auto target = link_target(wanted);
  if (!target) return target.error();
  const std::filesystem::path& path = *target;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return Error{ErrorCode::io, fmt::format("cannot write '{}': it exists and is not a regular file", path.string())};
  if (!path.has_filename())
    return Error{ErrorCode::io, fmt::format("cannot write '{}': the path has no file name", path.string())};

  static std::atomic<unsigned> counter{0};
  FileDescriptor file;
  std::filesystem::path name;
  do {
    name = folder_of(path) / fmt::format(".{}.{}.{}.tmp", path.filename().string(), ::getpid(), counter++);
    file = open_file(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
  } while (!file.valid() && errno == EEXIST);
  if (!file.valid()) return system_error("write", path, errno);
  Temporary temporary(name);

  DescriptorSink sink(file.get(), path);
  if (auto r = writer(sink); !r) return r;
  if (auto r = sink.flush(); !r) return r;
  if (::fsync(file.get()) != 0) return system_error("write", path, errno);
  if (file.close() != 0) return system_error("write", path, errno);
  if (::rename(temporary.path().c_str(), path.c_str()) != 0) return system_error("replace", path, errno);
  temporary.keep();

  // The rename itself must survive a power cut. Some file systems cannot sync folders (EINVAL); the file is complete
  // there too.
  const FileDescriptor folder = open_file(folder_of(path), O_RDONLY | O_DIRECTORY);
  if (folder.valid() && ::fsync(folder.get()) != 0 && errno != EINVAL)
    return system_error("sync the folder of", path, errno);
  return {};
}

Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  return write_file_atomic(path, [&](FileSink& sink) { return sink.write(content); });
}

}  // namespace gradloom
