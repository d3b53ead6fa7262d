# Writes OUTPUT, a C++ file with the text of every recipe in RECIPES.
set(entries "")
foreach(path IN LISTS RECIPES)
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  string(REGEX MATCH "^# ([^\n]*)" first "${text}")
  set(summary "${CMAKE_MATCH_1}")
  string(APPEND entries "    {\"${name}\", R\"recipe(${summary})recipe\", R\"recipe(${text})recipe\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"gradloom/app/recipe.h\"

namespace gradloom::app {

std::span<const ShippedRecipe> shipped_recipes() {
  static const std::vector<ShippedRecipe> recipes = {
${entries}  };
  return recipes;
}

}  // namespace gradloom::app
")
