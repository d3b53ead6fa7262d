// Every family, by the name that recipes have for it.
#pragma once

#include <fmt/format.h>

#include <type_traits>

#include "gradloom/app/automaton_family.h"
#include "gradloom/app/families/schemas.h"
#include "gradloom/app/gates_family.h"
#include "gradloom/app/graph_family.h"
#include "gradloom/app/kan_family.h"
#include "gradloom/app/pair_family.h"
#include "gradloom/app/rewrite_family.h"

namespace gradloom::app {

// Stands for a family before its scalar is chosen: FamilyTag<KanFamily>::In<float>.
template <template <class> class F>
struct FamilyTag {
  template <class T>
  using In = F<T>;
};

// use(FamilyTag<F>, options) for the family F of the recipe. The names are those of recipe_families().
template <class Use>
auto with_family(const Config& recipe, Use&& use) {
  const auto use_with = [&]<template <class> class F>(FamilyTag<F> tag) {
    return use(tag, option_schema<typename F<float>::Options>().read(recipe));
  };
  const std::string& name = recipe.string("family");
  if (name == "kan") return use_with(FamilyTag<KanFamily>());
  if (name == "automaton") return use_with(FamilyTag<AutomatonFamily>());
  if (name == "gates") return use_with(FamilyTag<GatesFamily>());
  if (name == "graph") return use_with(FamilyTag<GraphFamily>());
  if (name == "graph-pairs") return use_with(FamilyTag<PairFamily>());
  if (name == "graph-rewrite") return use_with(FamilyTag<RewriteFamily>());
  throw Exception(ErrorCode::invalid_input, fmt::format("there is no family \"{}\"", name));
}

}  // namespace gradloom::app
