// From a recipe's keys to the options of data, models and training.
#pragma once

#include <filesystem>

#include "gradloom/base/result.h"
#include "gradloom/data/further_rows.h"
#include "gradloom/data/rows.h"
#include "gradloom/data/source.h"
#include "gradloom/data/split.h"
#include "gradloom/io/config.h"
#include "gradloom/models/kan/grid.h"
#include "gradloom/train/trainer.h"

namespace gradloom::app {

// The data of a run in its three parts; validation and test may be empty.
struct RowSplits {
  RowDataset<double> train;
  std::optional<RowDataset<double>> validation, test;
  RowCode code;  // of the training file
};

// data.seed, or else the seed of the run.
std::uint64_t data_seed(const Config& recipe);

// The file or folder that `key` names: in data.root where that is set, otherwise from the current folder, otherwise
// from `data_root`. The schema must say that `key` names a file.
std::filesystem::path data_path(const Config& recipe, const std::string& key, const std::filesystem::path& data_root);

// Everything that the recipe reads its data from: the keys of its schema that name a file.
std::vector<std::filesystem::path> data_paths(const Config& recipe, const std::filesystem::path& data_root);

// Adds to an error about a file that is not there where files are looked for. data_root: GRADLOOM_DATA, or ".".
Error with_places(Error error, const Config& recipe, const std::filesystem::path& data_root);

// Rows of a further file for a model of this recipe; `training` are some of its training rows with their code.
Result<FurtherRows<double>> load_further_rows(const Config& recipe, const std::filesystem::path& data_root,
                                              const LoadedRows& training, const std::filesystem::path& file);

// Loads and splits what the recipe names. `data_root` serves when the recipe has no data.root. Fails as load_rows does,
// or when a part that is asked for would be empty.
Result<RowSplits> load_splits(const Config& recipe, const std::filesystem::path& data_root);

// Stages of a run: a recipe without any has one.
std::size_t stage_count(const Config& recipe);
unsigned stage_grid(const Config& recipe, std::size_t stage);

kan::NetworkOptions network_options(const Config& recipe, std::size_t stage, std::size_t inputs, std::size_t outputs);
const std::vector<std::int64_t>& refit_epochs(const Config& recipe, std::size_t stage);
kan::RefitOptions refit_options(const Config& recipe);
TrainOptions train_options(const Config& recipe, std::size_t stage);

}  // namespace gradloom::app
