#include "gradloom/io/open_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "gradloom/io/file.h"

namespace gradloom {
namespace {

FileDescriptor open_at(int folder, const char* name, int flags, mode_t mode = 0) {
  int fd = -1;
  do fd = ::openat(folder, name, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

bool is_link_at(int folder, const char* name) {
  struct stat status {};
  return ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

// An error of a call, or that what it was about is a link.
Error open_error(std::string_view what, const FilePlace& place, int folder, const char* name, int error_number) {
  if (!place.follows_links() && (error_number == ELOOP || error_number == ENOTDIR) && is_link_at(folder, name))
    return {ErrorCode::invalid_input,
            fmt::format("cannot {} '{}': '{}' is a symbolic link, and links in a run folder are not followed; "
                        "put the file itself there",
                        what, place.string(), name)};
  return system_error(what, place, error_number);
}

}  // namespace

Result<OpenFolder> open_folder_of(std::string_view what, const FilePlace& place) {
  constexpr int kFolder = O_PATH | O_DIRECTORY;
  OpenFolder opened;
  opened.name = place.path().filename().string();
  if (place.follows_links()) {
    const auto parent = place.path().has_parent_path() ? place.path().parent_path() : std::filesystem::path(".");
    opened.descriptor = open_at(AT_FDCWD, parent.c_str(), kFolder);
    if (!opened.descriptor.valid()) return system_error(what, place, errno);
    return opened;
  }
  opened.descriptor = open_at(place.folder(), ".", kFolder);
  if (!opened.descriptor.valid()) return system_error(what, place, errno);
  for (const auto& part : place.below().parent_path()) {
    FileDescriptor next = open_at(opened.descriptor.get(), part.c_str(), kFolder | O_NOFOLLOW);
    if (!next.valid()) return open_error(what, place, opened.descriptor.get(), part.c_str(), errno);
    opened.descriptor = std::move(next);
  }
  return opened;
}

Result<FileDescriptor> open_regular(std::string_view what, const FilePlace& place, int flags, mode_t mode) {
  FileDescriptor file;
  flags |= O_NONBLOCK | O_NOCTTY;
  if (place.follows_links()) {
    file = open_at(AT_FDCWD, place.path().c_str(), flags, mode);
    if (!file.valid()) return system_error(what, place, errno);
  } else {
    auto folder = open_folder_of(what, place);
    if (!folder) return folder.error();
    file = open_at(folder->descriptor.get(), folder->name.c_str(), flags | O_NOFOLLOW, mode);
    if (!file.valid()) return open_error(what, place, folder->descriptor.get(), folder->name.c_str(), errno);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(what, place, errno);
  if (S_ISDIR(status.st_mode))
    return Error{ErrorCode::invalid_input, fmt::format("'{}' is a folder, not a regular file", place.string())};
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::invalid_input, fmt::format("'{}' is not a regular file", place.string())};
  return file;
}

Result<void> sync_folder(int descriptor, const FilePlace& place) {
  const FileDescriptor folder = open_at(descriptor, ".", O_RDONLY | O_DIRECTORY);
  if (folder.valid() && ::fsync(folder.get()) != 0 && errno != EINVAL)
    return system_error("sync the folder of", place, errno);
  return {};
}

}  // namespace gradloom
