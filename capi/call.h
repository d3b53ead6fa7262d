// The frame of every function of the ABI: nothing is thrown across it, and what went wrong is kept for the thread.
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "capi/objects.h"
#include "gradloom/io/config.h"

namespace gradloom::capi {

// The status of what is being thrown; its message is what gradloom_last_error() returns from now on.
int failed() noexcept;

template <class Body>
int call(Body&& body) noexcept {
  try {
    body();
    return GRADLOOM_OK;
  } catch (...) {
    return failed();
  }
}

// Throws invalid_input when an argument is NULL.
template <class T>
T* given(T* pointer, const char* argument) {
  if (!pointer) throw_invalid(std::string(argument) + " is NULL");
  return pointer;
}

// Copies for the caller, who frees them by gradloom_free(). Throws bad_alloc.
void* copy_bytes(const void* bytes, std::size_t size);
char* copy_text(std::string_view text);

// JSON text; NULL or empty is an empty object. Throws invalid_input when it is something else, or what parse_json()
// refuses.
nlohmann::json parse_settings(const char* text);

// The value of an option as JSON; null where it has none.
nlohmann::json value_json(const ConfigValue& value);

// A member of the settings. done() refuses members that were not read.
class Settings {
 public:
  explicit Settings(const char* text) : Settings(parse_settings(text)) {}
  explicit Settings(nlohmann::json object) : object_(std::move(object)) {}

  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  const nlohmann::json& json(const char* key);  // null when it is missing
  template <class T>
  T value(const char* key, T fallback) {
    const nlohmann::json& found = json(key);
    if (found.is_null()) return fallback;
    check_type(found, key, type_name(fallback));
    return found.get<T>();
  }
  std::vector<std::string> names(const char* key);
  unsigned threads();  // 0: one per core
  // {threads, device, arithmetic}, which belong to every call that computes.
  SessionOptions session();
  void done() const;

 private:
  static const char* type_name(bool) { return "true or false"; }
  static const char* type_name(const std::string&) { return "a text"; }
  static const char* type_name(double) { return "a number"; }
  static const char* type_name(std::int64_t) { return "an integer"; }
  static const char* type_name(std::uint64_t) { return "an integer of 0 or more"; }
  static void check_type(const nlohmann::json& value, const char* key, const char* type);

  nlohmann::json object_;
  std::vector<std::string> known_;
};

}  // namespace gradloom::capi
