#include "gradloom/app/families/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradloom/app/recipe.h"

namespace gradloom::app {

std::span<const AppFamily> families() {
#define GRADLOOM_FAMILY(name, Options) name##_family(),
  static const AppFamily all[] = {
#include "gradloom/app/families/list.inc"
  };
#undef GRADLOOM_FAMILY
  return all;
}

const AppFamily& find_family(std::string_view name) {
  for (const AppFamily& family : families())
    if (family.name == name) return family;
  throw_invalid(
      fmt::format("there is no family \"{}\"; the families are {}", name, fmt::join(recipe_families(), ", ")));
}

std::vector<std::string> recipe_families() {
  std::vector<std::string> names;
  for (const AppFamily& family : families()) names.emplace_back(family.name);
  return names;
}

const AnyOptionSchema& recipe_options(std::string_view family) { return find_family(family).schema(); }

const Schema& recipe_schema(std::string_view family) { return recipe_options(family).schema(); }

}  // namespace gradloom::app
