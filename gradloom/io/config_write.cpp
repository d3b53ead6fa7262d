#include <fmt/format.h>

#include <algorithm>

#include "gradloom/io/config.h"
#include "gradloom/io/utf8.h"

namespace gradloom {
namespace {

std::string toml_quoted(std::string_view text) {
  if (!is_utf8(text)) throw_invalid(fmt::format("'{}' is not UTF-8, so it cannot be written as TOML", text));
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::string to_text(std::int64_t value) { return fmt::format("{}", value); }
std::string to_text(bool value) { return value ? "true" : "false"; }
std::string to_text(const std::string& value) { return toml_quoted(value); }
// The shortest digits that read back to the same double, and a mark that makes it a float in TOML.
std::string to_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}
template <class T>
std::string to_text(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + to_text(values[i]);
  return text + "]";
}
std::string to_text(std::monostate) { return ""; }

std::string parent_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? std::string_view() : path.substr(0, dot));
}

}  // namespace

std::string to_toml(const ConfigValue& value) {
  return std::visit([](const auto& v) { return to_text(v); }, value);
}

class ConfigWriter {
 public:
  explicit ConfigWriter(bool documented) : documented_(documented) {}

  std::string run(const Config& config) {
    std::vector<std::string> sections{""};
    for (const SchemaKey& key : config.schema().keys())
      if (auto s = parent_of(key.path); std::find(sections.begin(), sections.end(), s) == sections.end())
        sections.push_back(s);
    for (const std::string& section : sections) write_section(config, section);
    write_tables(config, "", documented_);
    return std::move(out_);
  }

 private:
  // Whether the key is a line of its own rather than `[[tables]]`, which must come after all lines of the table above.
  static bool is_line(const SchemaKey& key, const Config::Entry& entry) {
    return key.type != ValueType::tables || entry.tables.empty();
  }

  void write_section(const Config& config, const std::string& section) {
    std::string header = section.empty() ? "" : fmt::format("{}[{}]\n", out_.empty() ? "" : "\n", section);
    for (std::size_t i = 0; i < config.entries_.size(); ++i) {
      const SchemaKey& key = config.schema().keys()[i];
      if (parent_of(key.path) != section || !is_line(key, config.entries_[i])) continue;
      if (!documented_ && !config.has(key.path)) continue;
      out_ += header;
      after_header_ = after_header_ || !header.empty();
      header.clear();
      const std::string name = section.empty() ? key.path : key.path.substr(section.size() + 1);
      write_line(key, config.entries_[i], name, documented_);
    }
  }

  void write_line(const SchemaKey& key, const Config::Entry& entry, const std::string& name, bool documented) {
    if (documented) write_doc(key);
    after_header_ = false;
    const bool absent = key.type != ValueType::tables && std::holds_alternative<std::monostate>(entry.value);
    if (absent)
      out_ += documented_ ? fmt::format("# {} =\n", name) : "";
    else if (key.type == ValueType::tables)
      write_no_tables(key, name, documented);
    else
      out_ += fmt::format("{} = {}\n", name, std::visit([](const auto& v) { return to_text(v); }, entry.value));
  }

  void write_no_tables(const SchemaKey& key, const std::string& name, bool documented) {
    out_ += fmt::format("{} = []\n", name);
    if (!documented) return;
    out_ += fmt::format("# Written as [[{}]], each with any of these keys:\n", name);
    for (const SchemaKey& inner : key.tables->keys())
      out_ += fmt::format("#   {}: {} ({})\n", inner.path, inner.doc, inner.describe());
  }

  void write_doc(const SchemaKey& key) {
    if (!out_.empty() && !after_header_) out_ += '\n';
    std::string doc = key.doc;
    for (std::size_t at = 0; (at = doc.find('\n', at)) != std::string::npos; at += 3) doc.replace(at, 1, "\n# ");
    out_ += fmt::format("# {}\n# {}", doc, key.describe());
    const std::string fallback = std::visit([](const auto& v) { return to_text(v); }, key.fallback);
    if (!fallback.empty())
      out_ += fmt::format("; default {}\n", fallback);
    else
      out_ += key.must_be_set || key.type == ValueType::tables ? "\n" : "; not set by default\n";
  }

  // Keys of a table in a list are written dotted, so that a list's tables stay in one piece. Only the first one is
  // documented.
  void write_tables(const Config& config, const std::string& prefix, bool documented) {
    for (std::size_t i = 0; i < config.entries_.size(); ++i) {
      const SchemaKey& key = config.schema().keys()[i];
      const Config::Entry& entry = config.entries_[i];
      if (is_line(key, entry)) continue;
      bool first = documented;
      for (const Config& table : entry.tables) {
        if (first) write_doc(key);
        if (!first && !out_.empty()) out_ += '\n';
        out_ += fmt::format("[[{}{}]]\n", prefix, key.path);
        after_header_ = true;
        for (std::size_t k = 0; k < table.entries_.size(); ++k) {
          const SchemaKey& inner = table.schema().keys()[k];
          if (is_line(inner, table.entries_[k])) write_line(inner, table.entries_[k], inner.path, first);
        }
        write_tables(table, prefix + key.path + ".", first);
        first = false;
      }
    }
  }

  bool documented_, after_header_ = false;
  std::string out_;
};

std::string Config::to_toml() const { return ConfigWriter(false).run(*this); }
std::string Config::documented() const { return ConfigWriter(true).run(*this); }

}  // namespace gradloom
