#include "gradloom/circuit/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "gradloom/circuit/validate.h"
#include "gradloom/io/file.h"
#include "gradloom/io/json.h"

namespace gradloom::circuit {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "gradloom-circuit";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 29;

Error json_error(std::string message) { return {ErrorCode::invalid_input, "circuit: " + std::move(message)}; }

std::string head(std::string_view kind) {
  return fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": 1,\n  \"kind\": \"{}\",\n", kFormat, kind);
}

// One line, so that whoever compares circuits can leave it out.
std::string meaning_line(const Meaning& m) {
  if (m.empty()) return "";
  json inputs = json::array();
  for (const InputMeaning& input : m.inputs)
    inputs.push_back({{"column", input.column}, {"threshold", input.threshold}});
  const json object{{"inputs", inputs}, {"outputs", m.outputs}};
  return fmt::format("  \"meaning\": {},\n", object.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string body(const Circuit& c) {
  std::string text = meaning_line(c.meaning) + fmt::format("  \"inputs\": {},\n  \"gates\": [", c.inputs);
  for (std::size_t g = 0; g < c.gates.size(); ++g)
    text += fmt::format("{}{}[{}, {}, {}]", g == 0 ? "" : ",", g % 8 == 0 ? "\n    " : " ",
                        static_cast<unsigned>(c.gates[g].op), c.gates[g].a, c.gates[g].b);
  text += c.gates.empty() ? "],\n  \"outputs\": [" : "\n  ],\n  \"outputs\": [";
  for (std::size_t o = 0; o < c.outputs.size(); ++o) text += fmt::format("{}{}", o == 0 ? "" : ", ", c.outputs[o]);
  return text + "]\n}\n";
}

// Collects the first thing that is wrong, so that reading needs no chain of results.
class JsonReader {
 public:
  explicit JsonReader(const json& object) : object_(object) {}

  const json* find(const char* key, json::value_t type, const char* type_name) {
    if (error) return nullptr;
    const auto at = object_.find(key);
    if (at == object_.end()) {
      error = json_error(fmt::format("the key \"{}\" is missing", key));
      return nullptr;
    }
    if (at->type() == type) return &*at;
    error = json_error(fmt::format("\"{}\" must be {}, not {}", key, type_name, at->type_name()));
    return nullptr;
  }

  std::string text(const char* key) {
    const json* value = find(key, json::value_t::string, "a string");
    return value ? value->get<std::string>() : "";
  }

  std::uint32_t number(const char* key) {
    const json* value = find(key, json::value_t::number_unsigned, "a whole number from 0");
    return value ? number(*value, [&] { return fmt::format("\"{}\"", key); }) : 0;
  }

  template <class Where>
  std::uint32_t number(const json& value, Where&& where) {
    if (error) return 0;
    if (!value.is_number_unsigned()) {
      error = json_error(fmt::format("{} must be a whole number from 0, not {}", where(), shown(value)));
    } else if (value.get<std::uint64_t>() > UINT32_MAX) {
      error = json_error(fmt::format("{} is {}; numbers must be below 2^32", where(), value.get<std::uint64_t>()));
    } else {
      return static_cast<std::uint32_t>(value.get<std::uint64_t>());
    }
    return 0;
  }

  Circuit circuit() {
    Circuit c;
    c.inputs = number("inputs");
    const json* gates = find("gates", json::value_t::array, "an array");
    const json* outputs = find("outputs", json::value_t::array, "an array");
    if (error) return c;
    c.gates.reserve(gates->size());
    for (std::size_t g = 0; g < gates->size() && !error; ++g) {
      const json& gate = (*gates)[g];
      const auto where = [&] { return fmt::format("gate {}", g); };
      if (!gate.is_array() || gate.size() != 3) {
        error = json_error(fmt::format("gate {} must be an array [op, a, b], not {}", g, shown(gate)));
        break;
      }
      const std::uint32_t op = number(gate[0], where);
      if (!error && op > 15) error = json_error(fmt::format("gate {} has op {}; it must be 0 to 15", g, op));
      c.gates.push_back({static_cast<Op>(op & 15), number(gate[1], where), number(gate[2], where)});
    }
    for (std::size_t o = 0; o < outputs->size() && !error; ++o)
      c.outputs.push_back(number((*outputs)[o], [&] { return fmt::format("output {}", o); }));
    if (object_.contains("meaning")) read_meaning(c);
    return c;
  }

  std::optional<Error> error;

 private:
  void read_meaning(Circuit& c) {
    const json* meaning = find("meaning", json::value_t::object, "an object");
    if (!meaning) return;
    const auto wrong = [&](const std::string& what) { error = json_error("\"meaning\" " + what); };
    const auto list = [&](const char* key, std::size_t size) -> const json* {
      const auto at = meaning->find(key);
      if (at != meaning->end() && at->is_array() && (at->empty() || at->size() == size)) return &*at;
      wrong(fmt::format("needs \"{}\", an array of {} or none", key, size));
      return nullptr;
    };
    const json* inputs = list("inputs", c.inputs);
    const json* outputs = inputs ? list("outputs", c.outputs.size()) : nullptr;
    if (!outputs) return;
    if (meaning->size() != 2) return wrong("has a key other than \"inputs\" and \"outputs\"");
    for (const json& input : *inputs) {
      if (!input.is_object() || input.size() != 2 || !input.contains("column") || !input["column"].is_string() ||
          !input.contains("threshold") || !input["threshold"].is_number())
        return wrong(
            fmt::format("has the input {}; it must be {{\"column\": text, \"threshold\": number}}", shown(input)));
      c.meaning.inputs.push_back({input["column"].get<std::string>(), input["threshold"].get<double>()});
    }
    for (const json& output : *outputs) {
      if (!output.is_string()) return wrong(fmt::format("has the output {}, which is not a text", shown(output)));
      c.meaning.outputs.push_back(output.get<std::string>());
    }
  }

  static std::string shown(const json& value) {
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    return text;
  }

  const json& object_;
};

Result<AnyCircuit> read(const json& object) {
  JsonReader reader(object);
  static const std::set<std::string> kKeys = {"format", "version", "kind",    "channels", "boundary",
                                              "inputs", "gates",   "outputs", "about",    "meaning"};
  for (const auto& [key, value] : object.items())
    if (!kKeys.contains(key)) return json_error(fmt::format("the key \"{}\" is unknown", key));
  if (const std::string format = reader.text("format"); !reader.error && format != kFormat)
    return json_error(fmt::format("\"format\" is \"{}\", not \"{}\"", format, kFormat));
  if (const std::uint32_t version = reader.number("version"); !reader.error && version != 1)
    return Error{ErrorCode::invalid_input,
                 fmt::format("circuit: version {} is not known; this program reads version 1", version)};
  const std::string kind = reader.text("kind");
  if (reader.error) return *reader.error;

  if (kind == "circuit") {
    Circuit c = reader.circuit();
    if (reader.error) return *reader.error;
    if (auto r = validate(c); !r) return r.error();
    return AnyCircuit(std::move(c));
  }
  if (kind != "cell_rule")
    return json_error(fmt::format("\"kind\" is \"{}\"; it must be \"circuit\" or \"cell_rule\"", kind));
  CellRule rule;
  rule.channels = reader.number("channels");
  const auto boundary = value_of<Boundary>(kBoundaries, reader.text("boundary"), "\"boundary\"");
  rule.circuit = reader.circuit();
  if (reader.error) return *reader.error;
  if (!boundary) return json_error(boundary.error().message);
  rule.boundary = *boundary;
  if (auto r = validate(rule); !r) return r.error();
  return AnyCircuit(std::move(rule));
}

}  // namespace

std::string to_json(const Circuit& circuit) { return head("circuit") + body(circuit); }

std::string to_json(const CellRule& rule) {
  return head("cell_rule") +
         fmt::format("  \"channels\": {},\n  \"boundary\": \"{}\",\n", rule.channels,
                     name_of(kBoundaries, rule.boundary)) +
         body(rule.circuit);
}

std::string to_json(const AnyCircuit& any) {
  return std::visit([](const auto& c) { return to_json(c); }, any);
}

Result<AnyCircuit> parse_circuit_json(std::string_view text) {
  auto object = parse_json(text, "circuit");
  if (!object) return object.error();
  if (!object->is_object()) return json_error("the file must hold one JSON object");
  return read(*object);
}

Result<AnyCircuit> load_circuit(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::is_directory(file_or_folder, ignored) ? file_or_folder / "circuit.json" : file_or_folder;
  auto text = read_file(file, kMaxFileBytes);
  if (!text) return text.error();
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (*text)[first] != '{')
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: this is not a circuit; circuits are read from JSON files, files of other formats are "
                             "not read back",
                             file.string())};
  auto any = parse_circuit_json(*text);
  if (!any) return Error{any.error().code, fmt::format("{}: {}", file.string(), any.error().message)};
  return any;
}

Result<void> save_circuit(const std::filesystem::path& file, const AnyCircuit& any) {
  return write_file_atomic(file, to_json(any));
}

}  // namespace gradloom::circuit
