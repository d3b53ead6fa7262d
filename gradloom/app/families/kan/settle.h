// Settings that a recipe of spline networks leaves to its table (model.size = "auto").
#pragma once

#include <functional>
#include <optional>

#include "gradloom/app/families/families.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/session/rows.h"

namespace gradloom::app {

// A network that may suit a table.
struct KanSize {
  std::vector<std::size_t> hidden;
  unsigned grid = 3;
  double decay = 0.1;
};

// What is tried for a table of so many training rows, features and outputs, from the smallest.
std::vector<KanSize> sizes_to_try(std::size_t rows, std::size_t features, std::size_t outputs);
// Samples per batch, and epochs, for so many training rows.
std::size_t suitable_batch(std::size_t rows);
std::uint64_t suitable_epochs(std::size_t rows);
// Folds that sizes are compared on; 0: the validation part decides.
std::size_t suitable_folds(std::size_t rows);

// The rows as these options split them.
using PartsOf = std::function<Result<RowSplits>(const KanOptions& options)>;
// drawn: options say which fraction validates; given: they are there whatever the options say, and decide alone.
enum class ValidationRows { drawn, given };

// Trains each size on the folds, or on the training part, and takes the one with the lowest mean loss on what it was
// not trained on. Deterministic. Keys that the recipe sets stay: model.hidden, model.grid, optimizer.weight_decay,
// train.batch, epochs, data.validation, train.keep_best, model.refit. Nothing, when model.size is not "auto".
Result<std::optional<SettledRecipe>> settle_rows(const Config& recipe, const PartsOf& parts_of, ValidationRows given,
                                                 const SessionOptions& settings);
// The same with the files that the recipe names.
Result<std::optional<SettledRecipe>> settle_kan(const Config& recipe, const std::filesystem::path& data_root,
                                                const SessionOptions& settings);

}  // namespace gradloom::app
