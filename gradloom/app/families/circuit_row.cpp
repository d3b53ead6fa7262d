#include "gradloom/app/families/circuit_row.h"

#include <fmt/format.h>

namespace gradloom::app {

void add_circuit_row(const nlohmann::json& study, std::vector<TextRow>& rows) {
  if (!study.contains("circuit")) return;
  const auto& c = study["circuit"];
  rows.emplace_back("circuit", fmt::format("{} of {} gates active, {} after simplification, depth {}",
                                           c["active_gates"].get<std::size_t>(), c["gates"].get<std::size_t>(),
                                           c["simplified_gates"].get<std::size_t>(), c["depth"].get<std::size_t>()));
}

}  // namespace gradloom::app
