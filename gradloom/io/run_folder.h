// The folder of a run: where its files are, and who may write them.
#pragma once

#include <filesystem>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/io/file_descriptor.h"
#include "gradloom/io/file_place.h"

namespace gradloom {

// The files of a run in a folder, whether they exist or not.
std::vector<std::filesystem::path> run_files(const std::filesystem::path& folder);

enum class FolderAccess {
  read,   // no lock
  write,  // an exclusive lock for as long as the RunFolder lives
};

// Movable. A writer's lock ends with it, or with the process. A writer first removes temporary files that a killed one
// left. The places that it names refuse links: a folder that comes from elsewhere cannot lead out of itself.
class RunFolder {
 public:
  // Makes the folder (and those above it) and locks it for writing. Fails with invalid_input when it exists and is not
  // empty (`.lock` alone is empty), busy when another writer has it, io. A folder that was refused is left as it was.
  static Result<RunFolder> create(const std::filesystem::path& path);

  // Opens the folder of an earlier run. Fails with not_found when there is no recipe.toml, busy, io, and for a writer
  // with invalid_input when one of the run's files is a link or not a regular file.
  static Result<RunFolder> open(const std::filesystem::path& path, FolderAccess access);

  // Whether the path still leads to the folder that was locked; a writer asks before it writes. Fails with io when the
  // folder was removed or replaced.
  Result<void> check_own() const;

  const std::filesystem::path& path() const { return path_; }
  FilePlace file(const std::filesystem::path& name) const { return {folder_.get(), path_, name}; }
  FilePlace recipe() const { return file("recipe.toml"); }
  FilePlace log() const { return file("log.jsonl"); }
  FilePlace report() const { return file("report.html"); }
  std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }  // exists after create()
  FilePlace model() const { return file("model.safetensors"); }
  // The newest checkpoint. A writer keeps the one that it replaces as previous_checkpoint().
  FilePlace last_checkpoint() const { return file("checkpoint/last.safetensors").keeping("previous.safetensors"); }
  FilePlace previous_checkpoint() const { return file("checkpoint/previous.safetensors"); }
  bool has_checkpoint() const;  // one of the two exists

  // Renames a damaged newest checkpoint to damaged.safetensors, so that the next one does not push a good one out. A
  // writer does so. Fails with io.
  Result<void> set_last_checkpoint_aside() const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Result<void> open_folder();
  Result<void> lock();
  Result<void> check_files() const;
  void clean() const;

  std::filesystem::path path_;
  FileDescriptor folder_, lock_;
};

}  // namespace gradloom
