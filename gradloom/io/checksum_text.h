// The checksum of a safetensors file as it stands among its metadata (docs/format.md). For the sources of this room.
#pragma once

#include <string>
#include <string_view>

#include "gradloom/base/function_ref.h"
#include "gradloom/io/checksum.h"

namespace gradloom {

inline constexpr const char* kChecksumKey = "checksum";

// "\"xxh3-64:0123456789abcdef\"": JSON text, as all metadata.
std::string checksum_text(std::uint64_t value);
bool is_checksum(std::string_view text);

// Of the length of the header, the header with the 16 digits of `text` (as is_checksum wants it) replaced by zeros
// where they first stand in it, and what `add_data` adds.
std::uint64_t checksum_of_file(std::string header, std::string_view text, FunctionRef<void(Checksum&)> add_data);

// Puts the value in the place of the zeros of checksum_text(0).
void set_checksum(std::string& header, std::uint64_t value);

}  // namespace gradloom
