// Where the time of a profiled run went.
#pragma once

#include "cli/output.h"

namespace gradloom::cli {

// `phases` maps names to milliseconds. Parts of a phase ("forward layer 0") stand below it ("forward").
void print_phases(const Output& out, const nlohmann::json& phases);

}  // namespace gradloom::cli
