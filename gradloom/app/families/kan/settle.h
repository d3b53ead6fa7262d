// Settings that a recipe of spline networks leaves to its table (model.size = "auto").
#pragma once

#include "gradloom/app/families/settle.h"
#include "gradloom/session/families/kan/options.h"

namespace gradloom::app {

// A network that may suit a table.
struct KanSize {
  std::vector<std::size_t> hidden;
  unsigned grid = 3;
  double decay = 0.1;
  bool operator==(const KanSize&) const = default;
};

// What a recipe sets of a size.
struct GivenSize {
  std::optional<std::vector<std::size_t>> hidden;
  std::optional<unsigned> grid;
  std::optional<double> decay;
};

// What is tried for a table of so many training rows, features and outputs, from the smallest, each size once.
std::vector<KanSize> sizes_to_try(std::size_t rows, std::size_t features, std::size_t outputs,
                                  const GivenSize& given = {});
// Whether no size for so many rows would have so fine a grid by itself. Training on it keeps a validation part: between
// its rows such a grid can be anything.
bool is_fine_grid(std::size_t rows, unsigned grid);
// Samples per batch, and epochs, for so many training rows.
std::size_t suitable_batch(std::size_t rows);
std::uint64_t suitable_epochs(std::size_t rows);

// settle_size() of spline networks, which chooses model.hidden, model.grid, optimizer.weight_decay, train.batch,
// epochs, data.validation, train.keep_best and model.refit by the loss.
using KanParts = std::function<Result<RowSplits>(const KanOptions& options)>;
Result<std::optional<SettledRecipe>> settle_rows(const Config& recipe, const KanParts& parts_of, ValidationRows given,
                                                 const SessionOptions& settings);
// The same with the files that the recipe names.
Result<std::optional<SettledRecipe>> settle_kan(const Config& recipe, const std::filesystem::path& data_root,
                                                const SessionOptions& settings);

}  // namespace gradloom::app
