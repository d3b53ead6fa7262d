#include "gradloom/io/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gradloom/io/nearest.h"

namespace gradloom {
namespace {

const char* type_name(ValueType type) {
  switch (type) {
    case ValueType::integer:
      return "integer";
    case ValueType::number:
      return "number";
    case ValueType::boolean:
      return "boolean";
    case ValueType::string:
      return "string";
    case ValueType::integers:
      return "list of integers";
    case ValueType::numbers:
      return "list of numbers";
    case ValueType::strings:
      return "list of strings";
    case ValueType::tables:
      return "list of tables";
  }
  return "";
}

bool valid_path(std::string_view path) {
  bool part_empty = true;
  for (char c : path) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!letter && (c != '.' || part_empty)) return false;
    part_empty = c == '.';
  }
  return !part_empty;
}

// Not 0, false or empty.
bool is_something(const ConfigValue& value) {
  return std::visit(
      []<class V>(const V& v) {
        if constexpr (std::is_same_v<V, std::monostate>)
          return false;
        else if constexpr (std::is_arithmetic_v<V>)
          return v != V();
        else
          return !v.empty();
      },
      value);
}

bool is_one_of(const ConfigValue& value, const std::vector<std::string>& values) {
  const auto* text = std::get_if<std::string>(&value);
  return text && std::find(values.begin(), values.end(), *text) != values.end();
}

bool is_parent(std::string_view parent, std::string_view child) {
  return child.size() > parent.size() && child.starts_with(parent) && child[parent.size()] == '.';
}

}  // namespace

SchemaKey& SchemaKey::above(double bound) { return low = bound, low_open = true, *this; }
SchemaKey& SchemaKey::at_least(double bound) { return low = bound, low_open = false, *this; }
SchemaKey& SchemaKey::below(double bound) { return high = bound, high_open = true, *this; }
SchemaKey& SchemaKey::at_most(double bound) { return high = bound, high_open = false, *this; }
SchemaKey& SchemaKey::one_of(std::vector<std::string> allowed) { return choices = std::move(allowed), *this; }
SchemaKey& SchemaKey::required() { return fallback = {}, must_be_set = true, *this; }
SchemaKey& SchemaKey::computed() { return is_computed = true, *this; }
SchemaKey& SchemaKey::effect(EffectRule rule) { return effects.push_back(std::move(rule)), *this; }
SchemaKey& SchemaKey::only_with(std::string other, std::vector<std::string> values) {
  return effect([other = std::move(other), values = std::move(values)](const ConfigValues& all) {
    return is_one_of(all(other), values)
               ? ""
               : fmt::format("has no effect: it is for {} = \"{}\"", other, fmt::join(values, "\" or \""));
  });
}
SchemaKey& SchemaKey::not_with(std::string other, std::vector<std::string> values) {
  return effect([other = std::move(other), values = std::move(values)](const ConfigValues& all) {
    return is_one_of(all(other), values) ? fmt::format("has no effect with {} = {}", other, to_toml(all(other))) : "";
  });
}
SchemaKey& SchemaKey::needs(std::string other) {
  return effect([other = std::move(other)](const ConfigValues& all) {
    if (is_something(all(other))) return std::string();
    const std::string value = to_toml(all(other));
    return value.empty() ? fmt::format("has no effect without {}", other)
                         : fmt::format("has no effect with {} = {}", other, value);
  });
}
SchemaKey& SchemaKey::count(std::size_t least, std::size_t most) {
  min_count = least;
  max_count = most;
  table_count = std::max(table_count, least);
  return *this;
}

std::string SchemaKey::describe() const {
  std::string text = type_name(type);
  if (low) text += fmt::format(", {} {}", low_open ? ">" : ">=", *low);
  if (high) text += fmt::format(", {} {}", high_open ? "<" : "<=", *high);
  if (!choices.empty()) text += fmt::format(", one of: {}", fmt::join(choices, ", "));
  if (min_count > 0 && min_count == max_count)
    text += fmt::format(", {} of them", min_count);
  else if (min_count > 0)
    text += fmt::format(", at least {} of them", min_count);
  if (max_count != SIZE_MAX && min_count != max_count) text += fmt::format(", at most {} of them", max_count);
  if (must_be_set) text += ", required";
  return text;
}

SchemaKey& Schema::add(std::string path, ValueType type, ConfigValue fallback, std::string doc) {
  if (!valid_path(path)) throw_invalid(fmt::format("'{}' is not a valid key", path));
  for (const SchemaKey& key : keys_)
    if (key.path == path || is_parent(path, key.path) || is_parent(key.path, path))
      throw_invalid(fmt::format("the keys '{}' and '{}' exclude each other", key.path, path));
  SchemaKey& key = keys_.emplace_back();
  key.path = std::move(path);
  key.type = type;
  key.fallback = std::move(fallback);
  key.doc = std::move(doc);
  return key;
}

SchemaKey& Schema::tables(std::string path, Schema table, std::string doc, std::size_t fallback_count) {
  SchemaKey& key = add(std::move(path), ValueType::tables, {}, std::move(doc));
  key.tables = std::make_shared<const Schema>(std::move(table));
  key.table_count = fallback_count;
  return key;
}

std::size_t Schema::find(std::string_view path) const {
  const auto it = std::find_if(keys_.begin(), keys_.end(), [&](const SchemaKey& key) { return key.path == path; });
  return static_cast<std::size_t>(it - keys_.begin());
}

std::vector<std::string> Schema::paths() const {
  std::vector<std::string> paths;
  for (const SchemaKey& key : keys_) paths.push_back(key.path);
  return paths;
}

Config::Config(std::shared_ptr<const Schema> schema) : schema_(std::move(schema)) {
  for (const SchemaKey& key : schema_->keys()) {
    Entry& entry = entries_.emplace_back();
    entry.value = key.fallback;
    if (key.type == ValueType::tables) entry.tables.assign(key.table_count, Config(key.tables));
  }
}

const Config::Entry& Config::entry(std::string_view key) const {
  const std::size_t i = schema_->find(key);
  if (i == entries_.size())
    throw Exception(ErrorCode::not_found, fmt::format("the configuration has no key '{}'; the nearest is '{}'", key,
                                                      nearest_name(key, schema_->paths())));
  return entries_[i];
}

const Config::Entry& Config::entry(std::string_view key, ValueType type) const {
  const Entry& found = entry(key);
  const ValueType actual = schema_->keys()[schema_->find(key)].type;
  if (actual != type)
    throw_invalid(fmt::format("the key '{}' is a {}, not a {}", key, type_name(actual), type_name(type)));
  if (type != ValueType::tables && std::holds_alternative<std::monostate>(found.value))
    throw Exception(ErrorCode::not_found, fmt::format("the key '{}' has no value", key));
  return found;
}

bool Config::has(std::string_view key) const {
  const Entry& found = entry(key);
  return !std::holds_alternative<std::monostate>(found.value) ||
         schema_->keys()[schema_->find(key)].type == ValueType::tables;
}

bool Config::was_set(std::string_view key) const { return entry(key).set; }
const ConfigValue& Config::value(std::string_view key) const { return entry(key).value; }

std::int64_t Config::integer(std::string_view key) const {
  return std::get<std::int64_t>(entry(key, ValueType::integer).value);
}
const std::string& Config::string(std::string_view key) const {
  return std::get<std::string>(entry(key, ValueType::string).value);
}
const std::vector<Config>& Config::tables(std::string_view key) const { return entry(key, ValueType::tables).tables; }

bool Config::operator==(const Config& other) const {
  if (schema_->paths() != other.schema_->paths()) return false;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].value != other.entries_[i].value || entries_[i].tables != other.entries_[i].tables) return false;
  return true;
}

}  // namespace gradloom
