// One table per choice: the values of an enum with the names that options, files and messages have for them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom {

// A table is an array of these beside its enum: `inline constexpr Choice<Norm> kNorms[] = {...}`. Names and values are
// different from each other; the order is that of lists in messages and documents.
template <class E>
struct Choice {
  E value;
  std::string_view name;
  std::string_view help;
};

template <class E>
using Choices = std::span<const Choice<E>>;

template <class E>
constexpr std::optional<E> find_choice(std::type_identity_t<Choices<E>> table, std::string_view name) {
  for (const Choice<E>& choice : table)
    if (choice.name == name) return choice.value;
  return std::nullopt;
}

// Throws when the table has no name for the value.
template <class E>
constexpr std::string_view name_of(std::type_identity_t<Choices<E>> table, E value) {
  for (const Choice<E>& choice : table)
    if (choice.value == value) return choice.name;
  throw_invalid("value " + std::to_string(static_cast<long long>(value)) + " has no name");
}

// "sgd, adam, adamw": all names in order.
template <class E>
std::string names_of(Choices<E> table) {
  std::string names;
  for (const Choice<E>& choice : table) names.append(names.empty() ? "" : ", ").append(choice.name);
  return names;
}

// Fails with invalid_input, telling the name and all that there are; `what` is the kind of thing: "kind of layer".
template <class E>
Result<E> value_of(Choices<E> table, std::string_view name, std::string_view what) {
  if (const auto value = find_choice<E>(table, name)) return *value;
  return Error{ErrorCode::invalid_input,
               "there is no " + std::string(what) + " '" + std::string(name) + "'; there are " + names_of(table)};
}

// A table without one of its values, where something cannot serve it.
template <class E>
std::vector<Choice<E>> without(std::type_identity_t<Choices<E>> table, E value) {
  std::vector<Choice<E>> rest;
  for (const Choice<E>& choice : table)
    if (choice.value != value) rest.push_back(choice);
  return rest;
}

}  // namespace gradloom
