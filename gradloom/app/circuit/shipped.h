// Circuits that were learned by the shipped recipes and are part of the program.
#pragma once

#include <span>
#include <string_view>

namespace gradloom::app {

struct ShippedCircuit {
  std::string_view name;  // of the recipe that learned it
  std::string_view json;  // as docs/circuit.md has it
};

std::span<const ShippedCircuit> shipped_circuits();

}  // namespace gradloom::app
