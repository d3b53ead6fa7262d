// The printed figures of a hard circuit, from found["circuit"].
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "gradloom/app/report/report.h"
#include "gradloom/app/text.h"

namespace gradloom::app {

// One row, where there is a circuit.
std::vector<TextRow> circuit_rows(const nlohmann::json& found);

// Numbers of gates: key and what is said of it.
Table circuit_table(const nlohmann::json& found, std::initializer_list<std::pair<const char*, const char*>> rows);

}  // namespace gradloom::app
