// Structs as JSON objects: a struct lists its fields once, to_json() does the rest.
//
//   struct Outcome {
//     double seconds = 0.0;
//     std::optional<std::string> note;
//     Limits limits;
//     GRADLOOM_FIELDS(seconds, note, limits.memory)
//   };
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// Each field is a key, by the last part of its name.
#define GRADLOOM_FIELDS(...)                                    \
  static constexpr std::string_view kFieldNames = #__VA_ARGS__; \
  auto fields() const { return std::tie(__VA_ARGS__); }

namespace gradloom {

// NaN and infinity have no place in JSON.
inline nlohmann::json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// A key that is always there, and null without a value; an optional without a value has no key.
template <class V>
struct Nullable {
  std::optional<V> value;
};
template <class V>
void to_json(nlohmann::json& to, const Nullable<V>& from) {
  to = from.value ? nlohmann::json(*from.value) : nlohmann::json(nullptr);
}

template <class S>
concept HasFields = requires(const S& s) {
  s.fields();
};

template <HasFields S>
nlohmann::json to_json(const S& s);

namespace fields_detail {

template <class V>
void put(nlohmann::json& object, const std::string& name, const V& value) {
  object[name] = value;
}
inline void put(nlohmann::json& object, const std::string& name, double value) { object[name] = finite_or_null(value); }
template <HasFields S>
void put(nlohmann::json& object, const std::string& name, const S& value) {
  object[name] = to_json(value);
}
template <HasFields S>
void put(nlohmann::json& object, const std::string& name, const std::vector<S>& values) {
  nlohmann::json& list = object[name] = nlohmann::json::array();
  for (const S& value : values) list.push_back(to_json(value));
}
template <class V>
void put(nlohmann::json& object, const std::string& name, const std::optional<V>& value) {
  if (value) put(object, name, *value);
}

}  // namespace fields_detail

// An optional without a value has no key, a number that is not finite is null. Structs with fields are objects.
template <HasFields S>
nlohmann::json to_json(const S& s) {
  nlohmann::json object = nlohmann::json::object();
  std::string_view names = S::kFieldNames;
  const auto next_name = [&] {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    return std::string(name.substr(name.find_last_of(" .") + 1));
  };
  std::apply([&](const auto&... values) { (fields_detail::put(object, next_name(), values), ...); }, s.fields());
  return object;
}

}  // namespace gradloom
