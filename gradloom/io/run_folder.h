// The folder of a run: where its files are, and who may write them.
#pragma once

#include <filesystem>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/io/file_descriptor.h"

namespace gradloom {

// The files of a run in a folder, whether they exist or not.
std::vector<std::filesystem::path> run_files(const std::filesystem::path& folder);

enum class FolderAccess {
  read,   // no lock
  write,  // an exclusive lock for as long as the RunFolder lives
};

// Movable. A writer's lock ends with it, or with the process. A writer first removes temporary files that a killed one
// left.
class RunFolder {
 public:
  // Makes the folder (and those above it) and locks it for writing. Fails with invalid_input when it exists and is not
  // empty (`.lock` alone is empty), busy when another writer has it, io. A folder that was refused is left as it was.
  static Result<RunFolder> create(const std::filesystem::path& path);

  // Opens the folder of an earlier run. Fails with not_found when there is no recipe.toml, busy, io.
  static Result<RunFolder> open(const std::filesystem::path& path, FolderAccess access);

  // Whether the path still leads to the folder that was locked; a writer asks before it writes. Fails with io when the
  // folder was removed or replaced.
  Result<void> check_own() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path recipe() const { return path_ / "recipe.toml"; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }  // exists after create()
  std::filesystem::path last_checkpoint() const { return checkpoints() / "last.safetensors"; }
  std::filesystem::path report() const { return path_ / "report.html"; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Result<void> lock();
  void clean() const;

  std::filesystem::path path_;
  FileDescriptor lock_;
};

}  // namespace gradloom
