// The checkpoints of a run folder: the newest, or the one before it when that is damaged.
#pragma once

#include "gradloom/base/log.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/io/safetensors.h"

namespace gradloom::app {

struct SavedCheckpoint {
  TensorFile file;
  FilePlace place;
  bool last_is_damaged = false;  // so this is the one before it
  std::string warning;           // the warning passed to `log`; empty for the newest
};

// Reads the newest checkpoint whose bytes are right. Warns when that is not the newest. Fails as read_safetensors does
// for the newest one: when both are damaged, and without a look at the other when it is a link, no regular file, or of
// a version that is unknown.
Result<SavedCheckpoint> read_checkpoint(const RunFolder& folder, const LogCallback& log);

}  // namespace gradloom::app
