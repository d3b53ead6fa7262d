// Archives in memory: .zip and .tar.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "gradloom/base/result.h"

namespace gradloom {

using ArchiveFiles = std::map<std::string, std::string, std::less<>>;  // content by name, folders included
using WantedFile = bool (*)(std::string_view name);                    // whether a file is unpacked

// Both fail with invalid_input on archives that are damaged, truncated, hold a wanted file twice, as a link, or more
// than max_bytes of wanted content, and with unsupported on encrypted and 64-bit zip archives. Nothing is written
// anywhere, so names may be what they like. `source` names the archive in messages.
Result<ArchiveFiles> parse_zip(std::string_view bytes, std::size_t max_bytes, std::string_view source,
                               WantedFile wanted);
Result<ArchiveFiles> parse_tar(std::string_view bytes, std::size_t max_bytes, std::string_view source,
                               WantedFile wanted);

// By the first bytes, after gzip.
bool looks_like_archive(std::string_view bytes);
Result<ArchiveFiles> parse_archive(std::string_view bytes, std::size_t max_bytes, std::string_view source,
                                   WantedFile wanted);

}  // namespace gradloom
