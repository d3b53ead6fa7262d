#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gradloom/io/config.h"
#include "gradloom/io/nearest.h"
#include "gradloom/io/toml.h"
#include "gradloom/io/utf8.h"

namespace gradloom {
namespace {

constexpr std::size_t kLongestText = 1'000'000;
constexpr int kMostParts = 64;

// The last character of the string that begins at `i`, or the one before the line feed that cuts it off; counts lines.
std::size_t end_of_string(std::string_view text, std::size_t i, int& line) {
  const char quote = text[i];
  const bool triple = text.substr(i, 3) == std::string(3, quote);
  const std::string_view close = text.substr(i, triple ? 3 : 1);
  for (i += close.size(); i < text.size() && text.substr(i, close.size()) != close; ++i) {
    if (text[i] == '\n' && !triple) return i - 1;  // malformed; the parser will say so
    line += text[i] == '\n';
    if (text[i] == '\\' && quote == '"') ++i;
  }
  return i + close.size() - 1;
}

// toml++ nests one table per part of a key and destroys them recursively, so a key of a million parts would exhaust the
// stack: the line of the first key with too many, or 0.
int line_of_too_deep_key(std::string_view text) {
  int line = 1, dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      i = end_of_string(text, i, line);
    } else if (c == '.') {
      if (++dots >= kMostParts) return line;
    } else if (c == '\n' || c == ',' || c == '=' || c == '{') {
      line += c == '\n';
      dots = 0;
    }
  }
  return 0;
}

// toml++ 3.3.0 takes for granted that a key follows [ or [[ at the begin of a line: with another character, as in
// "[=]" or "[[[a]]]", it aborts where it has assertions, and elsewhere its behaviour is undefined. The line of the
// first header without a key, or 0.
int line_of_header_without_key(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  int line = 1, depth = 0;  // brackets of a value that are open
  bool at_begin = true;     // of a line, outside values
  for (std::size_t i = text.starts_with("\xef\xbb\xbf") ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      at_begin = depth == 0;
    } else if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (at_begin && c == '[') {
      const std::size_t key = text.find_first_not_of(kBlanks, text.substr(i).starts_with("[[") ? i + 2 : i + 1);
      if (key == std::string_view::npos) return 0;  // the parser will say so, as of a bracket that closes at once
      const char k = text[key];
      const bool is_bare = (k >= 'a' && k <= 'z') || (k >= 'A' && k <= 'Z') || (k >= '0' && k <= '9');
      if (!is_bare && std::string_view("_-\"']").find(k) == std::string_view::npos) return line;
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      i = end_of_string(text, i, line);
      at_begin = false;
    } else if (kBlanks.find(c) == std::string_view::npos && c != '\r') {
      at_begin = false;
      depth += c == '[' || c == '{';
      depth -= (c == ']' || c == '}') && depth > 0;
    }
  }
  return 0;
}

const char* type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

// " (1.5)" for a value that is short to tell.
std::string value_of(const toml::node& node) {
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format(" ({})", *whole);
  if (const auto number = node.value_exact<double>()) return fmt::format(" ({})", *number);
  if (const auto text = node.value_exact<std::string>()) return fmt::format(" ('{}')", text->substr(0, 40));
  if (const auto yes = node.value_exact<bool>()) return fmt::format(" ({})", *yes);
  return "";
}

std::string wanted(const SchemaKey& key) { return (key.type == ValueType::integer ? "an " : "a ") + key.describe(); }

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

namespace {

toml::table table_of(const nlohmann::json& object);
toml::array array_of(const nlohmann::json& list);

// Calls insert(x) with what the value is in TOML. Throws on null.
template <class Insert>
void put(const nlohmann::json& value, Insert insert) {
  if (value.is_object())
    insert(table_of(value));
  else if (value.is_array())
    insert(array_of(value));
  else if (value.is_string())
    insert(value.get<std::string>());
  else if (value.is_boolean())
    insert(value.get<bool>());
  else if (value.is_number_float() ||
           (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())))
    insert(value.get<double>());
  else if (value.is_number())
    insert(value.get<std::int64_t>());
  else
    throw_invalid("null is not a value; leave the key out");
}

toml::table table_of(const nlohmann::json& object) {
  toml::table table;
  for (const auto& item : object.items())
    put(item.value(), [&](auto value) { table.insert_or_assign(item.key(), std::move(value)); });
  return table;
}

toml::array array_of(const nlohmann::json& list) {
  toml::array array;
  for (const nlohmann::json& element : list) put(element, [&](auto value) { array.push_back(std::move(value)); });
  return array;
}

}  // namespace

// Failures travel as exceptions inside, with `where_` as their place, and leave as a Result.
class ConfigParser {
 public:
  explicit ConfigParser(std::string_view source) : source_(source) {}

  Config parse(std::shared_ptr<const Schema> schema, std::string_view text) {
    Config config(std::move(schema));
    where_ = source_;
    if (text.size() > kLongestText) fail("is longer than {} bytes", kLongestText);
    if (const int line = line_of_too_deep_key(text)) {
      where_ = fmt::format("{}:{}", source_, line);
      fail("a key has more than {} parts", kMostParts);
    }
    if (const int line = line_of_header_without_key(text)) {
      where_ = fmt::format("{}:{}", source_, line);
      fail("not valid TOML: a key must follow the bracket of a table");
    }
    try {
      const toml::table root = toml::parse(text, source_);
      read_table(config, root, "");
    } catch (const toml::parse_error& e) {
      const auto at = e.source().begin;
      where_ = fmt::format("{}:{}:{}", source_, at.line, at.column);
      fail("not valid TOML: {}", e.description());
    }
    return config;
  }

  Config parse(std::shared_ptr<const Schema> schema, const nlohmann::json& object) {
    Config config(std::move(schema));
    has_lines_ = false;
    where_ = source_;
    if (!object.is_object()) fail("must be an object, not {}", object.type_name());
    toml::table root;
    try {
      root = table_of(object);
    } catch (const Exception& e) {
      fail("{}", e.what());
    }
    read_table(config, root, "");
    return config;
  }

  void apply(Config& config, const std::string& assignment) {
    has_lines_ = false;
    where_ = fmt::format("override '{}'", assignment);
    if (!is_utf8(assignment)) fail("is not UTF-8, so the recipe could not be saved");
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) fail("must have the form key=value");
    assign(config, override_key(assignment), trim(std::string_view(assignment).substr(equals + 1)));
  }

  void check_required(const Config& config, const std::string& prefix) {
    where_ = source_;
    for (std::size_t i = 0; i < config.entries_.size(); ++i) {
      const SchemaKey& key = config.schema().keys()[i];
      const Config::Entry& entry = config.entries_[i];
      if (key.must_be_set && !entry.set) fail("the key '{}{}' is required: {}", prefix, key.path, key.doc);
      if (key.type == ValueType::tables && (entry.tables.size() < key.min_count || entry.tables.size() > key.max_count))
        fail("'{}{}' has {} tables, but must be {}", prefix, key.path, entry.tables.size(), wanted(key));
      for (std::size_t t = 0; t < entry.tables.size(); ++t)
        check_required(entry.tables[t], fmt::format("{}{}.{}.", prefix, key.path, t));
    }
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_invalid(fmt::format("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...)));
  }

  [[noreturn]] void fail_unknown(const Schema& schema, std::string_view path) const {
    const std::string nearest = nearest_name(path, schema.paths());
    if (nearest.empty()) fail("unknown key '{}'; no keys are allowed here", path);
    fail("unknown key '{}'; did you mean '{}'?", path, nearest);
  }

  void read_table(Config& config, const toml::table& table, const std::string& prefix) {
    const Schema& schema = config.schema();
    for (const auto& [key, node] : table) {
      const std::string path = prefix + std::string(key.str());
      if (has_lines_) where_ = fmt::format("{}:{}", source_, key.source().begin.line);
      const std::size_t i = schema.find(path);
      if (i < schema.keys().size())
        config.entries_[i] = read_entry(schema.keys()[i], node);
      else if (node.is_table() && leads_to_keys(schema, path + "."))
        read_table(config, *node.as_table(), path + ".");
      else
        fail_unknown(schema, path);
    }
  }

  static bool leads_to_keys(const Schema& schema, const std::string& prefix) {
    for (const SchemaKey& key : schema.keys())
      if (key.path.starts_with(prefix)) return true;
    return false;
  }

  Config::Entry read_entry(const SchemaKey& key, const toml::node& node) {
    Config::Entry entry;
    entry.set = true;
    if (key.type != ValueType::tables) {
      entry.value = read_value(key, node);
      return entry;
    }
    const toml::array* array = node.as_array();
    if (array == nullptr)
      fail("'{0}' must be a list of tables, each written as [[{0}]], not {1}", key.path, type_of(node));
    for (const toml::node& element : *array) {
      if (!element.is_table()) fail("'{}' must hold tables, not {}", key.path, type_of(element));
      read_table(entry.tables.emplace_back(Config(key.tables)), *element.as_table(), "");
    }
    return entry;
  }

  ConfigValue read_value(const SchemaKey& key, const toml::node& node) {
    switch (key.type) {
      case ValueType::integer:
        return read_integer(key, node);
      case ValueType::number:
        return read_number(key, node);
      case ValueType::boolean:
        if (const auto value = node.value_exact<bool>()) return *value;
        fail_type(key, node);
      case ValueType::string:
        return read_string(key, node);
      case ValueType::integers:
        return read_list<std::int64_t>(key, node, &ConfigParser::read_integer);
      case ValueType::numbers:
        return read_list<double>(key, node, &ConfigParser::read_number);
      case ValueType::strings:
      case ValueType::tables:  // whose entries are read by read_entry()
        break;
    }
    return read_list<std::string>(key, node, &ConfigParser::read_word);
  }

  template <class T>
  std::vector<T> read_list(const SchemaKey& key, const toml::node& node,
                           T (ConfigParser::*read)(const SchemaKey&, const toml::node&)) {
    std::vector<T> values;
    if (const toml::array* array = node.as_array())
      for (const toml::node& element : *array) values.push_back((this->*read)(key, element));
    else
      values.push_back((this->*read)(key, node));
    if (values.size() < key.min_count || values.size() > key.max_count)
      fail("'{}' has {} elements, but must be {}", key.path, values.size(), wanted(key));
    return values;
  }

  std::int64_t read_integer(const SchemaKey& key, const toml::node& node) {
    const auto value = node.value_exact<std::int64_t>();
    if (!value) fail_type(key, node);
    check_range(key, static_cast<double>(*value), fmt::format("{}", *value));
    return *value;
  }

  double read_number(const SchemaKey& key, const toml::node& node) {
    if (!node.is_number()) fail_type(key, node);
    const double value = *node.value<double>();
    if (!std::isfinite(value)) fail("'{}' is {}, but must be a finite number", key.path, value);
    check_range(key, value, fmt::format("{}", value));
    return value;
  }

  std::string read_string(const SchemaKey& key, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value) fail_type(key, node);
    check_choice(key, *value);
    return *value;
  }

  // An element of a list of strings. Columns are named by numbers too.
  std::string read_word(const SchemaKey& key, const toml::node& node) {
    if (const auto number = node.value_exact<std::int64_t>()) {
      check_choice(key, fmt::format("{}", *number));
      return fmt::format("{}", *number);
    }
    return read_string(key, node);
  }

  [[noreturn]] void fail_type(const SchemaKey& key, const toml::node& node) const {
    fail("'{}' must be {}, not {}{}", key.path, wanted(key), type_of(node), value_of(node));
  }

  void check_range(const SchemaKey& key, double value, const std::string& text) const {
    const bool low = key.low && (key.low_open ? !(value > *key.low) : !(value >= *key.low));
    const bool high = key.high && (key.high_open ? !(value < *key.high) : !(value <= *key.high));
    if (low || high) fail("'{}' is {}, but must be {}", key.path, text, wanted(key));
  }

  void check_choice(const SchemaKey& key, const std::string& value) const {
    if (key.choices.empty()) return;
    for (const std::string& choice : key.choices)
      if (choice == value) return;
    fail("'{}' is '{}', but must be one of {}; did you mean '{}'?", key.path, value, fmt::join(key.choices, ", "),
         nearest_name(value, key.choices));
  }

  // `path` is relative to `config`.
  void assign(Config& config, std::string_view path, std::string_view text) {
    const Schema& schema = config.schema();
    const std::size_t i = schema.find(path);
    if (i < schema.keys().size()) {
      config.entries_[i] = override_entry(schema.keys()[i], text);
      return;
    }
    for (std::size_t k = 0; k < schema.keys().size(); ++k) {
      const SchemaKey& key = schema.keys()[k];
      if (key.type != ValueType::tables || !path.starts_with(key.path + ".")) continue;
      std::string_view rest = path.substr(key.path.size() + 1);
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      if (error != std::errc() || !rest.starts_with('.'))
        fail("'{0}' is a list of tables; write {0}.0.NAME=value for its first", key.path);
      auto& tables = config.entries_[k].tables;
      if (index >= tables.size()) fail("'{}' has {} tables, so there is no number {}", key.path, tables.size(), index);
      config.entries_[k].set = true;
      assign(tables[index], rest.substr(1), text);
      return;
    }
    fail_unknown(schema, path);
  }

  Config::Entry override_entry(const SchemaKey& key, std::string_view text) {
    // One line: a line break would start another key.
    const bool one_line = text.find('\n') == std::string_view::npos && text.size() <= kLongestText;
    if (one_line && line_of_too_deep_key(text) == 0) {
      try {
        const toml::table parsed = toml::parse(fmt::format("v = {}", text));
        const toml::node& node = *parsed.get("v");
        // A number or date is a fine name of a file or column.
        if (key.type == ValueType::string && !node.is_string() && !node.is_array() && !node.is_table())
          return string_entry(key, text);
        return read_entry(key, node);
      } catch (const toml::parse_error&) {
        if (key.type != ValueType::string && key.type != ValueType::strings)
          fail("'{}' must be {}", key.path, wanted(key));
      }
    }
    if (key.type == ValueType::string) return string_entry(key, text);
    if (key.type != ValueType::strings) fail("'{}' must be {}", key.path, wanted(key));
    return strings_entry(key, text);
  }

  Config::Entry string_entry(const SchemaKey& key, std::string_view text) {
    check_choice(key, std::string(text));
    return {std::string(text), {}, true};
  }

  // `[a, b]` or `a`: words without quotes.
  Config::Entry strings_entry(const SchemaKey& key, std::string_view text) {
    toml::array words;
    if (text.starts_with('[') && text.ends_with(']')) {
      text = text.substr(1, text.size() - 2);
      while (!trim(text).empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        words.push_back(std::string(trim(text.substr(0, comma))));
        text.remove_prefix(std::min(comma + 1, text.size()));
      }
    } else {
      words.push_back(std::string(text));
    }
    return read_entry(key, words);
  }

  std::string source_;
  std::string where_;
  bool has_lines_ = true;
};

std::string_view override_key(std::string_view assignment) { return trim(assignment.substr(0, assignment.find('='))); }

Result<Config> parse_config(const Schema& schema, std::string_view toml_text, std::string_view source,
                            std::span<const std::string> overrides) {
  try {
    ConfigParser parser(source);
    Config config = parser.parse(std::make_shared<const Schema>(schema), toml_text);
    for (const std::string& assignment : overrides) parser.apply(config, assignment);
    parser.check_required(config, "");
    return config;
  } catch (const Exception& e) {
    return e.error();
  }
}

Result<Config> config_from_json(const Schema& schema, const nlohmann::json& object, std::string_view source) {
  try {
    ConfigParser parser(source);
    Config config = parser.parse(std::make_shared<const Schema>(schema), object);
    parser.check_required(config, "");
    return config;
  } catch (const Exception& e) {
    return e.error();
  }
}

std::string peek_string(std::string_view toml_text, std::span<const std::string> overrides, std::string_view key,
                        std::string fallback) {
  if (toml_text.size() > kLongestText || line_of_too_deep_key(toml_text) != 0 ||
      line_of_header_without_key(toml_text) != 0)
    return fallback;
  try {
    const toml::table root = toml::parse(toml_text);
    if (const toml::node* node = root.get(key))
      if (const auto value = node->value_exact<std::string>()) fallback = *value;
  } catch (const toml::parse_error&) {
    return fallback;
  }
  for (const std::string& assignment : overrides) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || trim(std::string_view(assignment).substr(0, equals)) != key) continue;
    std::string_view value = trim(std::string_view(assignment).substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    fallback = value;
  }
  return fallback;
}

}  // namespace gradloom
