// Recipes: the TOML files that describe a run. Those in recipes/ ship inside the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/io/config.h"
#include "gradloom/io/option_schema.h"

namespace gradloom::app {

inline constexpr std::size_t kMaxRecipeBytes = 1 << 20;  // of a recipe's file

// A recipe that ships with the program.
struct ShippedRecipe {
  std::string name;
  std::string summary;  // its first comment line
  std::string toml;
};

std::span<const ShippedRecipe> shipped_recipes();

// The values of the key `family`; the first is that of a recipe without the key.
std::vector<std::string> recipe_families();

// Every key that a recipe of a family may have, with type, default, range and meaning; and what stages may change.
// Throws when there is no such family.
const AnyOptionSchema& recipe_options(std::string_view family);
const Schema& recipe_schema(std::string_view family);

// A recipe's text with overrides "key=value" applied; `source` is its name in messages. Fails as parse_config does.
Result<Config> parse_recipe(std::string_view toml_text, std::string_view source,
                            std::span<const std::string> overrides);

// Fails with invalid_input on a number that the recipe's precision would turn into 0 or infinity.
Result<void> check_precision(const Config& recipe);

// Values of the recipe that have no effect, a sentence each.
std::vector<std::string> recipe_warnings(const Config& recipe);

// The text of a run's recipe.toml: the recipe, and in its last line a checksum of it.
std::string sealed_recipe(const Config& recipe);
// Whether such a text was changed since; not where it has no checksum.
bool is_edited_recipe(std::string_view text);

// What a recipe without the key `name` is called: as the shipped recipe or its file, where that is plain text; or not
// at all.
enum class RecipeName { of_file, own };

// A shipped recipe by name, or a file by path (anything with a '/' or ending in .toml), with overrides "key=value"
// applied. Fails with not_found, naming a recipe that is near, or as parse_config does.
Result<Config> load_recipe(const std::string& name_or_path, std::span<const std::string> overrides,
                           RecipeName naming = RecipeName::of_file);

}  // namespace gradloom::app
