#include "gradloom/app/families/circuit_text.h"

#include <fmt/format.h>

namespace gradloom::app {

std::vector<TextRow> circuit_rows(const nlohmann::json& found) {
  if (!found.contains("circuit")) return {};
  const auto& c = found["circuit"];
  return {{"circuit", fmt::format("{} of {} gates active, {} after simplification, depth {}",
                                  c["active_gates"].get<std::size_t>(), c["gates"].get<std::size_t>(),
                                  c["simplified_gates"].get<std::size_t>(), c["depth"].get<std::size_t>())}};
}

Table circuit_table(const nlohmann::json& found, std::initializer_list<std::pair<const char*, const char*>> rows) {
  Table table{
      "The circuit",
      "circuit.json holds the circuit as learned; gradloom export minimises it and writes C, Verilog or a drawing.",
      {"", "gates"}};
  for (const auto& [key, text] : rows) table.rows.push_back({text, found["circuit"][key].get<std::size_t>()});
  return table;
}

}  // namespace gradloom::app
