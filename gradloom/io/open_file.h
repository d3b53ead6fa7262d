// Opening of regular files, by places that may refuse links. For the sources of this room.
#pragma once

#include <fcntl.h>

#include <string>
#include <string_view>

#include "gradloom/base/result.h"
#include "gradloom/io/file_descriptor.h"
#include "gradloom/io/file_place.h"

namespace gradloom {

// Opens without waiting for anybody (a pipe would) and requires a regular file. `what` stands in messages: "read".
// Fails with not_found, io, or invalid_input when the file is not regular or a link that may not be followed.
Result<FileDescriptor> open_regular(std::string_view what, const FilePlace& place, int flags, mode_t mode = 0);

// The folder that holds the file (O_PATH), and the file's name in it.
struct OpenFolder {
  FileDescriptor descriptor;
  std::string name;
};
Result<OpenFolder> open_folder_of(std::string_view what, const FilePlace& place);

// Syncs a folder that was opened with O_PATH, so that names in it survive a power cut. Some file systems cannot.
Result<void> sync_folder(int descriptor, const FilePlace& place);

}  // namespace gradloom
