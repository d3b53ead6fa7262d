#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "gradloom/app/recipe.h"
#include "gradloom/io/config.h"

namespace gradloom::cli {
namespace {

int list(const Output& out) {
  nlohmann::json recipes = nlohmann::json::array();
  const std::vector<std::string> families = app::recipe_families();
  for (const std::string& family : families) {
    out.print(fmt::format("{}family {}\n", family == families.front() ? "" : "\n", family));
    for (const app::ShippedRecipe& recipe : app::shipped_recipes()) {
      if (peek_string(recipe.toml, {}, "family", families.front()) != family) continue;
      recipes.push_back({{"name", recipe.name}, {"family", family}, {"summary", recipe.summary}});
      out.print(fmt::format("  {}\n    {}\n", out.paint(Paint::bold, recipe.name), recipe.summary));
    }
  }
  out.print(fmt::format("\n{}\n", out.paint(Paint::dim, "`gradloom recipes show NAME` prints one with all its keys.")));
  out.result({{"recipes", recipes}});
  return kDone;
}

int show(const Output& out, const RecipeFlags& flags) {
  const std::string text = load_recipe(flags, app::RecipeName::own).documented();
  // With --json the text is in the object; people would see it twice.
  if (!out.json()) out.print(text);
  out.result({{"name", flags.recipe}, {"toml", text}});
  return kDone;
}

}  // namespace

void add_recipes_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("recipes", "List the recipes, or show one with all its keys");
  add_output_options(*command, choice.flags);
  CLI::App* show_command = command->add_subcommand("show", "Print a recipe as TOML, every key with its meaning");
  auto flags = std::make_shared<RecipeFlags>();
  add_recipe_options(*show_command, *flags);
  add_output_options(*show_command, choice.flags);
  show_command->footer("Example:\n  gradloom recipes show kan-hello > mine.toml");
  command->footer("Examples:\n  gradloom recipes\n  gradloom recipes show kan-hello > mine.toml");
  show_command->callback([flags, &choice] { choice.run = [flags](const Output& out) { return show(out, *flags); }; });
  command->callback([&choice] {
    if (!choice.run) choice.run = list;
  });
}

}  // namespace gradloom::cli
