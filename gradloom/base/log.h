// The library's only way to say something: a callback that the caller provides.
#pragma once

#include <functional>
#include <string>

namespace gradloom {

enum class LogLevel { info, warning };

// May be empty; the library never prints by itself.
using LogCallback = std::function<void(LogLevel, const std::string&)>;

}  // namespace gradloom
