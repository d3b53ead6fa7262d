// Turns an error of the command line's parser into a message with advice.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cli/output.h"

namespace gradloom::cli {

// Throws CLI::ArgumentMismatch where an option that needs a value is followed by another option of the same command,
// which the parser would take for the value: --out --json.
void refuse_swallowed_options(const CLI::App& program, const std::vector<std::string>& arguments);

// `arguments` as given, without the name of the program. A word that is no command or option is named with the nearest
// one.
Failure usage_failure(const CLI::App& program, const std::vector<std::string>& arguments, const CLI::ParseError& error);

}  // namespace gradloom::cli
