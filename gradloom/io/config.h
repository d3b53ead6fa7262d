// Configurations in TOML, checked against a schema that knows every key, its type, default, range and meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gradloom/base/result.h"

namespace gradloom {

enum class ValueType { integer, number, boolean, string, integers, numbers, strings, tables };

// monostate: no value (an optional key that is not set).
using ConfigValue = std::variant<std::monostate, std::int64_t, double, bool, std::string, std::vector<std::int64_t>,
                                 std::vector<double>, std::vector<std::string>>;

class Schema;

// The values of all keys, by path.
using ConfigValues = std::function<const ConfigValue&(std::string_view path)>;
// What is wrong with a key under these values, as the rest of a sentence that begins with the key and its value: "has
// no effect: ..."; empty: nothing.
using EffectRule = std::function<std::string(const ConfigValues& values)>;

// One key of a schema. The functions refine it and return it, so that they chain; ranges and choices apply to each
// element of a list.
struct SchemaKey {
  std::string path;  // dotted: "optimizer.lr"
  ValueType type = ValueType::integer;
  ConfigValue fallback;  // monostate: absent unless set
  std::string doc;
  bool must_be_set = false;
  bool names_file = false;  // a string that names a file or folder to read
  std::optional<double> low, high;
  bool low_open = false, high_open = false;         // the bound itself is not allowed
  std::vector<std::string> choices;                 // of strings; empty: any
  std::size_t min_count = 0, max_count = SIZE_MAX;  // of lists and tables
  std::shared_ptr<const Schema> tables;             // of one table, for ValueType::tables
  std::size_t table_count = 0;                      // tables when the key is not set
  bool is_computed = false;                         // a number that is rounded to the precision of a run
  std::vector<EffectRule> effects;                  // when the key does something; read by idle_keys()

  SchemaKey& above(double bound);
  SchemaKey& at_least(double bound);
  SchemaKey& below(double bound);
  SchemaKey& at_most(double bound);
  SchemaKey& one_of(std::vector<std::string> allowed);
  SchemaKey& count(std::size_t least, std::size_t most = SIZE_MAX);
  SchemaKey& required();  // takes the default away
  SchemaKey& computed();
  // The key has an effect only where `other`, a string, has one of these values; has none of them; has a value that is
  // not 0, false or empty.
  SchemaKey& only_with(std::string other, std::vector<std::string> values);
  SchemaKey& not_with(std::string other, std::vector<std::string> values);
  SchemaKey& needs(std::string other);
  SchemaKey& effect(EffectRule rule);

  std::string describe() const;  // "number, > 0": type, range, choices
};

// The keys of a configuration, in the order in which they are written. Throws on a path that repeats, that is a parent
// of another, or whose parts are not letters, digits, `_` and `-`.
class Schema {
 public:
  // `fallback` is of the type, or monostate for a key without a default.
  SchemaKey& add(std::string path, ValueType type, ConfigValue fallback, std::string doc);
  // A list of tables, `[[path]]`; `fallback_count` tables of defaults when it is not set.
  SchemaKey& tables(std::string path, Schema table, std::string doc, std::size_t fallback_count = 0);

  const std::deque<SchemaKey>& keys() const { return keys_; }
  std::size_t find(std::string_view path) const;  // index of a key, or keys().size()
  std::vector<std::string> paths() const;

 private:
  std::deque<SchemaKey> keys_;  // add() must not move keys that chains still refer to
};

// The values of a schema's keys. Getters throw on a key that is not in the schema, is of another type, or has no value.
class Config {
 public:
  explicit Config(std::shared_ptr<const Schema> schema);  // all defaults

  bool has(std::string_view key) const;      // has a value
  bool was_set(std::string_view key) const;  // by the text or an override, rather than by default

  std::int64_t integer(std::string_view key) const;
  const std::string& string(std::string_view key) const;
  const std::vector<Config>& tables(std::string_view key) const;
  // Of any type but tables; monostate for a key without a value.
  const ConfigValue& value(std::string_view key) const;

  const Schema& schema() const { return *schema_; }

  // Every key with its value; absent ones are left out. Parses back to an equal Config. Throws on text that is not
  // UTF-8, which parse_config never gives.
  std::string to_toml() const;
  // The same, with meaning, type and range of each key as comments, and absent keys as commented lines.
  std::string documented() const;

  // Equal values; whether they were set does not matter.
  bool operator==(const Config& other) const;

 private:
  friend class ConfigParser;
  friend class ConfigWriter;

  struct Entry {
    ConfigValue value;
    std::vector<Config> tables;
    bool set = false;
  };
  const Entry& entry(std::string_view key) const;
  const Entry& entry(std::string_view key, ValueType type) const;

  std::shared_ptr<const Schema> schema_;
  std::vector<Entry> entries_;  // one for each key of the schema
};

// Reads `toml_text`, then applies `overrides` ("key=value", see docs/format.md) in order. Fails with invalid_input:
// malformed TOML, text that is not UTF-8, unknown key (names the nearest), wrong type, out of range, not a choice,
// required and missing;
// messages have `source` and line, or the override.
Result<Config> parse_config(const Schema& schema, std::string_view toml_text, std::string_view source,
                            std::span<const std::string> overrides = {});

// The same from an object of JSON, whose members are tables and values; it has no lines.
Result<Config> config_from_json(const Schema& schema, const nlohmann::json& object, std::string_view source);

// A value as TOML has it.
std::string to_toml(const ConfigValue& value);

// The key of an override.
std::string_view override_key(std::string_view assignment);

// The string that a top-level key would get from text and overrides, before anything is checked: to choose a schema by
// it. `fallback` when it is not set, is no string, or the text is not TOML; parse_config then says what is wrong.
std::string peek_string(std::string_view toml_text, std::span<const std::string> overrides, std::string_view key,
                        std::string fallback);

}  // namespace gradloom
