#include "gradloom/io/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "gradloom/io/file_descriptor.h"
#include "gradloom/io/open_file.h"

namespace gradloom {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::size_t kWriteBytes = 1 << 30;  // Linux writes at most 2 GiB in one call

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

constexpr std::string_view kTemporaryEnd = ".gradloom.tmp";

// A file beside the one that it will replace, with a name of its own. Its lock says that its writer lives. Removed
// unless it was renamed.
class Temporary {
 public:
  Temporary() = default;
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
  }

  Result<void> make(int folder, const std::string& wanted, const FilePlace& place) {
    static std::atomic<unsigned> counter{0};
    folder_ = folder;
    for (;;) {
      const std::string name = fmt::format(".{}.{}.{}{}", wanted, ::getpid(), counter++, kTemporaryEnd);
      file_ =
          FileDescriptor(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (!file_.valid() && (errno == EEXIST || errno == EINTR)) continue;
      if (!file_.valid()) return system_error("write", place, errno);
      name_ = name;
      // Where there are no locks, nobody else gets one either, and nothing is taken for a leftover.
      while (::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {
      }
      struct stat status {};
      if (::fstat(file_.get(), &status) != 0) return system_error("write", place, errno);
      if (status.st_nlink > 0) return {};  // else somebody locked it first, and took it for a leftover
    }
  }

  int file() const { return file_.get(); }
  const std::string& name() const { return name_; }
  void keep() { name_.clear(); }

 private:
  int folder_ = -1;
  FileDescriptor file_;
  std::string name_;
};

// Temporaries of writers that were killed. Who still writes holds a lock.
void remove_leftovers(int folder) {
  const int listed = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(listed), ::closedir);
  if (!names) {
    ::close(listed);
    return;
  }
  while (const dirent* entry = ::readdir(names.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with('.') || !name.ends_with(kTemporaryEnd)) continue;
    const FileDescriptor file(::openat(folder, entry->d_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, entry->d_name, 0);
  }
}

// Puts the temporary in the place of `name`. What was there goes, or is kept as `kept_as`: first both are exchanged, so
// that at every instant the newest complete file has the name, and the one before it another.
Result<void> replace(int folder, Temporary& temporary, const std::string& name, const FilePlace& place) {
  const auto rename_to = [&](const std::string& from, const std::string& to) {
    return ::renameat(folder, from.c_str(), folder, to.c_str());
  };
  const std::string& kept = place.kept_as();
  if (!kept.empty() && ::faccessat(folder, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    if (::renameat2(folder, temporary.name().c_str(), folder, name.c_str(), RENAME_EXCHANGE) == 0) {
      if (rename_to(temporary.name(), kept) != 0) return system_error("keep the file before", place, errno);
      temporary.keep();
      return {};
    }
    // A file system that cannot exchange two files: for an instant there is only the kept one.
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return system_error("replace", place, errno);
    if (rename_to(name, kept) != 0) return system_error("keep the file before", place, errno);
  }
  if (rename_to(temporary.name(), name) != 0) return system_error("replace", place, errno);
  temporary.keep();
  return {};
}

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
    return Error{
        ErrorCode::invalid_input,
        fmt::format("'{}' is an input of this command and would be overwritten; choose another name", out.string())};
  }
  return {};
}

Result<void> is_readable(const FilePlace& place) {
  const auto opened = open_regular("read", place, O_RDONLY);
  return opened ? Result<void>() : Result<void>(opened.error());
}

Result<std::string> read_file(const FilePlace& path, std::size_t max_bytes) {
  const auto opened = open_regular("read", path, O_RDONLY);
  if (!opened) return opened.error();
  const FileDescriptor& file = *opened;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("read", path, errno);
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

Result<void> write_file_atomic(const FilePlace& wanted, FunctionRef<Result<void>(FileSink&)> writer) {
  FilePlace place = wanted;
  if (wanted.follows_links()) {
    auto target = link_target(wanted);
    if (!target) return target.error();
    place = FilePlace(*target).keeping(wanted.kept_as());
  }
  if (!place.path().has_filename())
    return Error{ErrorCode::io,
                 fmt::format("cannot write '{}': the path has no file name; it is not a regular file", place.string())};
  const auto folder = open_folder_of("write", place);
  if (!folder) return folder.error();
  const int in = folder->descriptor.get();
  struct stat status {};
  if (::fstatat(in, folder->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode))
    return Error{ErrorCode::io, fmt::format("cannot write '{}': it exists and is {}", place.string(),
                                            S_ISLNK(status.st_mode) ? "a symbolic link, which is not followed here"
                                                                    : "not a regular file")};

  remove_leftovers(in);
  Temporary temporary;
  if (auto r = temporary.make(in, folder->name, place); !r) return r;
  DescriptorSink sink(temporary.file(), place);
  if (auto r = writer(sink); !r) return r;
  if (auto r = sink.flush(); !r) return r;
  if (::fsync(temporary.file()) != 0) return system_error("write", place, errno);
  // It stays open, and so locked, until it has its name: else another writer might take it for a leftover.
  if (auto r = replace(in, temporary, folder->name, place); !r) return r;
  return sync_folder(in, place);  // the rename itself must survive a power cut
}

Result<void> write_file_atomic(const FilePlace& place, std::string_view content) {
  return write_file_atomic(place, [&](FileSink& sink) { return sink.write(content); });
}

}  // namespace gradloom
