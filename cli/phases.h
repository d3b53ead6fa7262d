// Where the time of a profiled run went.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/output.h"

namespace gradloom::cli {

// `phases` maps names to milliseconds; none: nothing is printed. Parts of a phase ("forward layer 0") stand below it
// ("forward").
void print_phases(const Output& out, const std::optional<std::map<std::string, double>>& phases);

}  // namespace gradloom::cli
