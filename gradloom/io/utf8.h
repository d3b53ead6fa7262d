// Whether bytes are text.
#pragma once

#include <cstddef>
#include <string_view>

namespace gradloom {

// The length of the valid UTF-8 sequence at the start of `text`, which is not empty; 0 when there is none.
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace gradloom
