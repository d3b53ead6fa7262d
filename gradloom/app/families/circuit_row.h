// What people are told of a hard circuit.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "gradloom/app/text.h"

namespace gradloom::app {

// Adds a row about study["circuit"], where that is.
void add_circuit_row(const nlohmann::json& study, std::vector<TextRow>& rows);

}  // namespace gradloom::app
