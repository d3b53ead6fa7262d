// Settings that a recipe of gate classifiers leaves to its table (model.size = "auto").
#pragma once

#include "gradloom/app/families/settle.h"
#include "gradloom/session/families/gates/options.h"

namespace gradloom::app {

// A circuit that may suit a table.
struct GatesSize {
  std::vector<std::size_t> gates;
  double temperature = 1.0;
  std::size_t restarts = 1;
};

// What is tried for a table of so many training rows and input bits, from the smallest. Narrow and deep circuits find
// short rules, but not from every start: they have restarts. Wide ones average over many gates.
std::vector<GatesSize> gate_sizes_to_try(std::size_t rows, std::size_t bits);
// About as many updates for any number of rows.
std::uint64_t suitable_gate_epochs(std::size_t rows);

// settle_size() of gate classifiers, which chooses model.gates, model.temperature, train.batch, epochs, train.restarts,
// train.restart_epochs, data.validation and train.keep_best by the accuracy of the hard circuit.
using GatesParts = std::function<Result<RowSplits>(const GatesOptions& options)>;
Result<std::optional<SettledRecipe>> settle_rows(const Config& recipe, const GatesParts& parts_of, ValidationRows given,
                                                 const SessionOptions& settings);
// The same with the files that the recipe names.
Result<std::optional<SettledRecipe>> settle_gates(const Config& recipe, const std::filesystem::path& data_root,
                                                  const SessionOptions& settings);

}  // namespace gradloom::app
