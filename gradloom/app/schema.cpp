// The families that recipes can name, and the keys of each.
#include <fmt/format.h>

#include "gradloom/app/families/automaton/options.h"
#include "gradloom/app/families/gates/options.h"
#include "gradloom/app/families/graph/options.h"
#include "gradloom/app/families/kan/options.h"
#include "gradloom/app/families/pairs/options.h"
#include "gradloom/app/families/rewrite/options.h"
#include "gradloom/app/families/schemas.h"
#include "gradloom/app/recipe.h"

namespace gradloom::app {
namespace {

struct FamilyKeys {
  const char* name;
  const AnyOptionSchema& (*schema)();
};

template <class O>
const AnyOptionSchema& any_schema() {
  return option_schema<O>();
}

constexpr FamilyKeys kFamilyKeys[] = {
    {"kan", any_schema<KanOptions>},          {"automaton", any_schema<AutomatonOptions>},
    {"gates", any_schema<GatesOptions>},      {"graph", any_schema<GraphOptions>},
    {"graph-pairs", any_schema<PairOptions>}, {"graph-rewrite", any_schema<RewriteOptions>},
};

}  // namespace

std::vector<std::string> recipe_families() {
  std::vector<std::string> names;
  for (const FamilyKeys& family : kFamilyKeys) names.emplace_back(family.name);
  return names;
}

const AnyOptionSchema& recipe_options(std::string_view family) {
  for (const FamilyKeys& known : kFamilyKeys)
    if (known.name == family) return known.schema();
  throw Exception(ErrorCode::invalid_input,
                  fmt::format("there is no family \"{}\"; there are {}", family, fmt::join(recipe_families(), ", ")));
}

const Schema& recipe_schema(std::string_view family) { return recipe_options(family).schema(); }

}  // namespace gradloom::app
