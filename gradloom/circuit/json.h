// Circuits as JSON: the format that training writes and every command reads. docs/circuit.md specifies it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// Either is valid (validate() succeeds).
using AnyCircuit = std::variant<Circuit, CellRule>;

inline const Circuit& circuit_of(const AnyCircuit& any) {
  return std::holds_alternative<CellRule>(any) ? std::get<CellRule>(any).circuit : std::get<Circuit>(any);
}

std::string to_json(const Circuit& circuit);
std::string to_json(const CellRule& rule);
std::string to_json(const AnyCircuit& any);

// The text is not trusted: fails with invalid_input, and names the key, for anything but a valid circuit.
Result<AnyCircuit> parse_circuit_json(std::string_view text);

// A file, or the file circuit.json in the folder of a run. Fails with not_found, io, or invalid_input with the path.
Result<AnyCircuit> load_circuit(const std::filesystem::path& file_or_folder);

// Replaces the file atomically.
Result<void> save_circuit(const std::filesystem::path& file, const AnyCircuit& any);

}  // namespace gradloom::circuit
