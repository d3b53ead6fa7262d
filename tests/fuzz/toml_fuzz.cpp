// Recipes: TOML against a schema with every type. What was accepted is written and read again.
#include "gradloom/io/config.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

namespace {

const Schema& schema() {
  static const Schema made = [] {
    Schema stage;
    stage.add("grid", ValueType::integer, std::int64_t{3}, "grid").at_least(1).at_most(1000);
    Schema s;
    s.add("seed", ValueType::integer, std::int64_t{0}, "seed");
    s.add("name", ValueType::string, std::string("a"), "name");
    s.add("kind", ValueType::string, std::string("x"), "kind").one_of({"x", "y"});
    s.add("flag", ValueType::boolean, false, "flag");
    s.add("optimizer.lr", ValueType::number, 0.1, "rate").above(0);
    s.add("model.hidden", ValueType::integers, std::vector<std::int64_t>{1}, "widths");
    s.add("model.range", ValueType::numbers, std::vector<double>{}, "range");
    s.add("data.drop", ValueType::strings, std::vector<std::string>{}, "columns");
    s.tables("stage", stage, "stages");
    return s;
  }();
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  (void)peek_string(text, {}, "name", "");
  if (const auto config = parse_config(schema(), text, "input")) {
    const auto again = parse_config(schema(), config->to_toml(), "written");
    fuzz::require(again.ok() && *again == *config, "a recipe comes back");
  }
  const std::string overrides[] = {std::string(text)};
  (void)parse_config(schema(), "", "input", overrides);
  return 0;
}
