#include "gradloom/app/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "gradloom/io/checksum.h"
#include "gradloom/io/file.h"
#include "gradloom/io/nearest.h"
#include "gradloom/io/option_rules.h"
#include "gradloom/io/utf8.h"
#include "gradloom/session/options/family.h"

namespace gradloom::app {
namespace {

// Whether TOML holds the name as it stands; a name that is more is not worth an error that nobody understands.
bool is_plain(std::string_view name) {
  const auto is_special = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\'' || c == '\\'; };
  return !name.empty() && is_utf8(name) && std::none_of(name.begin(), name.end(), is_special);
}

// Parses a recipe; one that has no name takes this, unless it is empty.
Result<Config> parse_named(const std::string& name, std::string_view toml_text, std::string_view source,
                           std::span<const std::string> overrides) {
  std::vector<std::string> all;
  if (is_plain(name) && peek_string(toml_text, overrides, "name", "").empty())
    all.push_back(fmt::format("name='{}'", name));
  all.insert(all.end(), overrides.begin(), overrides.end());
  return parse_recipe(toml_text, source, all);
}

// Nobody sets a key in order that nothing happens: refuses an override of a key that no stage takes up.
std::optional<Error> idle_override(const Config& recipe, std::span<const StageKey> keys,
                                   std::span<const std::string> overrides) {
  const std::vector<Config>& stages = recipe.tables("stage");
  for (const std::string& assignment : overrides)
    for (const StageKey& staged : keys) {
      if (override_key(assignment) != staged.key || stages.empty()) continue;
      const auto sets = [&](const Config& stage) { return stage.has(staged.name); };
      if (staged.lasting == Lasting::rest ? !sets(stages.front()) : !std::all_of(stages.begin(), stages.end(), sets))
        continue;
      const std::string first = fmt::format("stage.0.{}", staged.name);
      return Error{ErrorCode::invalid_input,
                   fmt::format("override '{}': has no effect, because the stages of the recipe set {} themselves; set "
                               "{}, or remove the stages with 'stage=[]'",
                               assignment, staged.name,
                               stages.size() == 1 ? first
                                                  : fmt::format("{} to stage.{}.{} one by one", first,
                                                                stages.size() - 1, staged.name))};
    }
  return std::nullopt;
}

}  // namespace

Result<Config> parse_recipe(std::string_view toml_text, std::string_view source,
                            std::span<const std::string> overrides) {
  const auto families = recipe_families();
  const std::string family = peek_string(toml_text, overrides, "family", families.front());
  const bool known = std::find(families.begin(), families.end(), family) != families.end();
  const AnyOptionSchema& options = recipe_options(known ? family : families.front());
  auto recipe = parse_config(options.schema(), toml_text, source, overrides);
  if (!recipe) return recipe;
  if (auto idle = idle_override(*recipe, options.stage_keys(), overrides)) return *idle;
  if (auto r = check_precision(*recipe); !r)
    return Error{r.error().code, fmt::format("{}: {}", source, r.error().message)};
  return recipe;
}

Result<void> check_precision(const Config& recipe) {
  using Single = std::numeric_limits<float>;
  using Double = std::numeric_limits<double>;
  if (recipe.string("precision") == name_of(kPrecisions, Precision::float64))
    return check_computed(recipe, {"float64", Double::min(), Double::max(), ""});
  return check_computed(recipe, {"float32", Single::min(), Single::max(), "precision = \"float64\""});
}

std::vector<std::string> recipe_warnings(const Config& recipe) {
  return idle_keys(recipe_options(recipe.string("family")), recipe);
}

namespace {

constexpr std::string_view kSeal = "# checksum of the lines above: ";

std::string seal_of(std::string_view text) {
  Checksum sum;
  sum.add(std::as_bytes(std::span(text)));
  return fmt::format("{}xxh3-64:{:016x}\n", kSeal, sum.value());
}

}  // namespace

std::string sealed_recipe(const Config& recipe) {
  const std::string text = recipe.to_toml();
  return text + seal_of(text);
}

bool is_edited_recipe(std::string_view text) {
  const std::size_t at = text.rfind(kSeal);
  return at != std::string_view::npos && text.substr(at) != seal_of(text.substr(0, at));
}

Result<Config> load_recipe(const std::string& name_or_path, std::span<const std::string> overrides, RecipeName naming) {
  const auto named = [&](const std::string& name) { return naming == RecipeName::own ? std::string() : name; };
  for (const ShippedRecipe& recipe : shipped_recipes())
    if (recipe.name == name_or_path)
      return parse_named(named(recipe.name), recipe.toml, "recipe " + recipe.name, overrides);
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(name_or_path) / "recipe.toml", ignored))
    return Error{ErrorCode::invalid_input,
                 fmt::format("{0} is a run folder, not a recipe: `gradloom resume {0}` continues it, `gradloom eval "
                             "{0}` measures it, and its recipe is {1}",
                             name_or_path, (std::filesystem::path(name_or_path) / "recipe.toml").string())};
  const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (!is_path) {
    std::vector<std::string> names;
    for (const ShippedRecipe& recipe : shipped_recipes()) names.push_back(recipe.name);
    const std::string near = near_name(name_or_path, names);
    return Error{ErrorCode::not_found,
                 fmt::format("there is no recipe '{}'; {}`gradloom recipes` lists all, and a file's name ends in .toml",
                             name_or_path, near.empty() ? "" : fmt::format("the nearest is '{}'; ", near))};
  }
  auto text = read_file(name_or_path, kMaxRecipeBytes);
  if (!text) return text.error();
  return parse_named(named(std::filesystem::path(name_or_path).stem().string()), *text, name_or_path, overrides);
}

}  // namespace gradloom::app
