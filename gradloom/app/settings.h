// From options to data: where files are looked for, and rows in their three parts.
#pragma once

#include <filesystem>

#include "gradloom/base/result.h"
#include "gradloom/data/new_rows.h"
#include "gradloom/data/rows.h"
#include "gradloom/data/source.h"
#include "gradloom/data/split.h"
#include "gradloom/io/config.h"
#include "gradloom/session/options/rows.h"
#include "gradloom/session/rows.h"

namespace gradloom::app {

// A file or folder that options name: in `root` where that is set, otherwise from the current folder, otherwise from
// `data_root`.
std::filesystem::path data_path(const std::string& root, const FileName& name, const std::filesystem::path& data_root);

// Everything that the recipe reads its data from: the keys of its schema that name a file.
std::vector<std::filesystem::path> data_paths(const Config& recipe, const std::filesystem::path& data_root);

// Adds to an error about a file that is not there where files are looked for. data_root: GRADLOOM_DATA, or ".".
Error with_places(Error error, const Config& recipe, const std::filesystem::path& data_root);

// Rows of a new file for a model of these options; `training` are some of its training rows with their code. Fails with
// invalid_input, naming row and column, on a value beyond `largest_input` (KanFamily::kLargestInput and the like).
Result<NewRows<double>> load_new_rows(const RowFamilyOptions& options, const std::filesystem::path& data_root,
                                      const LoadedRows& training, const std::filesystem::path& file,
                                      double largest_input);

// Loads and splits what the options name. `data_root` serves when they have no root. Fails as load_rows does, or when a
// part that is asked for would be empty.
Result<RowSplits> load_splits(const RowFamilyOptions& options, const std::filesystem::path& data_root);

}  // namespace gradloom::app
