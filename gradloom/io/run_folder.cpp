#include "gradloom/io/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "gradloom/io/file.h"
#include "gradloom/io/open_file.h"

namespace gradloom {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockName = ".lock";

// As write_file_atomic names them.
bool is_temporary_of(const fs::path& path, std::string_view file) {
  const std::string name = path.filename().string();
  return name.starts_with(fmt::format(".{}.", file)) && name.ends_with(".tmp");
}

// What a run leaves that ended before its recipe was saved: an empty folder of checkpoints, a temporary of the recipe.
bool is_leftover(const fs::directory_entry& entry) {
  std::error_code error;
  const std::string name = entry.path().filename().string();
  if (name == "checkpoint") return entry.is_directory(error) && fs::is_empty(entry.path(), error);
  return is_temporary_of(entry.path(), "recipe.toml");
}

// Fails unless the folder is missing or empty.
Result<void> check_empty(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (error) return system_error("open the folder", path, error.value());
  if (status.type() != fs::file_type::directory)
    return Error{ErrorCode::invalid_input,
                 fmt::format("'{}' exists and is not a folder; choose another name for the run", path.string())};
  const bool is_run = fs::exists(path / "recipe.toml", error);
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == kLockName || is_leftover(*it)) continue;
    return Error{ErrorCode::invalid_input,
                 fmt::format("the folder '{}' is not empty (it holds '{}'); choose another name{}", path.string(), name,
                             is_run ? ", or continue the run in it" : "")};
  }
  if (error) return system_error("list the folder", path, error.value());
  return {};
}

// Half-written files of a process that was killed. Only the run's own: others may write theirs here at any time.
void remove_temporaries(const fs::path& folder, std::initializer_list<std::string_view> files) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    for (const std::string_view file : files)
      if (is_temporary_of(it->path(), file)) found.push_back(it->path());
  for (const fs::path& path : found) fs::remove(path, error);  // one that stays does no harm
}

Result<void> make_folder(const fs::path& path) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) return system_error("make the folder", path, error.value());
  if (!made) return {};
  const auto parent =
      open_folder_of("make the folder", (path / "").parent_path());  // its name must survive a power cut
  return parent ? sync_folder(parent->descriptor.get(), path) : Result<void>();
}

}  // namespace

std::vector<std::filesystem::path> run_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const char* name :
       {"recipe.toml", "log.jsonl", "report.html", "circuit.json", "model.safetensors", "formula.json", ".lock"})
    files.push_back(folder / name);
  for (const char* name : {"last.safetensors", "previous.safetensors", "damaged.safetensors"})
    files.push_back(folder / "checkpoint" / name);
  return files;
}

Result<RunFolder> RunFolder::create(const fs::path& path) {
  RunFolder folder(path);
  if (auto r = check_empty(path); !r) {
    // A folder that another run is filling is busy rather than not empty: the advice differs.
    std::error_code error;
    if (fs::is_regular_file(path / kLockName, error) && folder.open_folder())
      if (auto locked = folder.lock(); !locked && locked.error().code == ErrorCode::busy) return locked.error();
    return r.error();
  }
  if (auto r = make_folder(path); !r) return r.error();
  if (auto r = folder.open_folder(); !r) return r.error();
  if (auto r = folder.lock(); !r) return r.error();
  // Another run may have filled the folder before the lock was ours.
  if (auto r = check_empty(path); !r) return r.error();
  if (auto r = make_folder(folder.checkpoints()); !r) return r.error();
  if (auto r = folder.check_files(); !r) return r.error();
  folder.clean();
  return folder;
}

Result<RunFolder> RunFolder::open(const fs::path& path, FolderAccess access) {
  RunFolder folder(path);
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Error{ErrorCode::not_found, fmt::format("there is no folder '{}'", path.string())};
  if (!fs::exists(fs::symlink_status(folder.recipe(), error)))
    return Error{ErrorCode::not_found, fmt::format("'{}' is not a run folder: it has no recipe.toml", path.string())};
  if (auto r = folder.open_folder(); !r) return r.error();
  if (access == FolderAccess::write) {
    if (auto r = folder.lock(); !r) return r.error();
    if (auto r = make_folder(folder.checkpoints()); !r) return r.error();
    if (auto r = folder.check_files(); !r) return r.error();
    folder.clean();
  }
  return folder;
}

Result<void> RunFolder::open_folder() {
  folder_ = FileDescriptor(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.valid()) return system_error("open the folder", path_, errno);
  return {};
}

// Before any work: a run that has trained for hours must not find out at its end that its report cannot be written.
Result<void> RunFolder::check_files() const {
  for (const fs::path& path : run_files(path_)) {
    const FilePlace place = file(path.lexically_relative(path_));
    if (auto opened = open_regular("open", place, O_RDONLY); !opened && opened.error().code != ErrorCode::not_found)
      return opened.error();
  }
  return {};
}

bool RunFolder::has_checkpoint() const {
  std::error_code error;
  return fs::exists(fs::symlink_status(last_checkpoint(), error)) ||
         fs::exists(fs::symlink_status(previous_checkpoint(), error));
}

Result<void> RunFolder::set_last_checkpoint_aside() const {
  const auto folder = open_folder_of("set aside", last_checkpoint());
  if (!folder) return folder.error();
  const int in = folder->descriptor.get();
  if (::renameat(in, "last.safetensors", in, "damaged.safetensors") != 0 && errno != ENOENT)
    return system_error("set aside", last_checkpoint(), errno);
  return {};
}

void RunFolder::clean() const {
  remove_temporaries(path_, {"recipe.toml", "log.jsonl", "report.html", "circuit.json", "model.safetensors"});
  remove_temporaries(checkpoints(), {"last.safetensors"});
}

Result<void> RunFolder::check_own() const {
  struct stat held {
  }, there{};
  if (::fstat(lock_.get(), &held) == 0 && ::lstat((path_ / kLockName).c_str(), &there) == 0 &&
      held.st_dev == there.st_dev && held.st_ino == there.st_ino)
    return {};
  return Error{ErrorCode::io,
               fmt::format("the folder '{}' was removed or replaced while this run wrote into it; nothing "
                           "more is written",
                           path_.string())};
}

Result<void> RunFolder::lock() {
  const FilePlace path = file(kLockName);
  auto opened = open_regular("lock", path, O_RDWR | O_CREAT, 0666);
  if (!opened) return opened.error();
  lock_ = std::move(*opened);
  int result = 0;
  do result = ::flock(lock_.get(), LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno == EWOULDBLOCK)
    return Error{ErrorCode::busy, fmt::format("another run uses the folder '{}' now; wait until it ends, or choose "
                                              "another folder",
                                              path_.string())};
  return system_error("lock", path, errno);
}

}  // namespace gradloom
