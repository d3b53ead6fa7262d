// JSON from untrusted files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "gradloom/base/result.h"

namespace gradloom {

// One value. Refused, with a message that begins with `source`: text that is not JSON in UTF-8 (with its line), an
// object that has a key twice (the library would keep the last), numbers beyond a double, and more than 64 levels.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view source);

}  // namespace gradloom
