// Compressed bytes, inflated up to a limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gradloom/base/result.h"

namespace gradloom {

enum class Compression { gzip, deflate };  // deflate: raw, as inside zip archives

bool looks_like_gzip(std::string_view bytes);

// Fails with invalid_input when the bytes are damaged or truncated, or give more than max_bytes. Several gzip members
// in a row are joined. `source` names the bytes in messages.
Result<std::string> inflate_bytes(std::string_view bytes, Compression compression, std::size_t max_bytes,
                                  std::string_view source);

}  // namespace gradloom
