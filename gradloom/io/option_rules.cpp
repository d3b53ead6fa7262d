#include "gradloom/io/option_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gradloom {
namespace {

// What the rules of `key` say in a stage; empty: nothing.
std::string idle_reason(const AnyOptionSchema& schema, const Config& config, std::size_t stage, const SchemaKey& key) {
  const ConfigValues values = [&](std::string_view path) -> const ConfigValue& {
    return schema.value_in(config, stage, path);
  };
  for (const EffectRule& rule : key.effects)
    if (std::string reason = rule(values); !reason.empty()) return reason;
  return "";
}

std::vector<double> numbers_of(const ConfigValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return {*number};
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) return *numbers;
  return {};
}

Result<void> check_numbers(const Config& config, const FloatLimits& range, const std::string& place) {
  for (const SchemaKey& key : config.schema().keys()) {
    if (key.type == ValueType::tables) {
      const std::vector<Config>& tables = config.tables(key.path);
      for (std::size_t t = 0; t < tables.size(); ++t)
        if (auto r = check_numbers(tables[t], range, fmt::format("{}{}.{}.", place, key.path, t)); !r) return r;
      continue;
    }
    if (!key.is_computed) continue;
    for (const double number : numbers_of(config.value(key.path))) {
      const double size = std::abs(number);
      if (number == 0 || (size >= range.least && size <= range.most)) continue;
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}{} = {} is out of the range of {}, which is {:.3g} to {:.3g}: it would be {}; "
                               "set a {} value{}",
                               place, key.path, number, range.type, range.least, range.most,
                               size < range.least ? "0" : "infinite", size < range.least ? "larger" : "smaller",
                               range.remedy.empty() ? "" : ", or " + range.remedy)};
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> idle_keys(const AnyOptionSchema& schema, const Config& config) {
  std::vector<std::string> found;
  const std::vector<Config>& stages = config.tables("stage");
  for (const SchemaKey& key : schema.schema().keys()) {
    if (key.effects.empty()) continue;
    const auto staged = std::find_if(schema.stage_keys().begin(), schema.stage_keys().end(),
                                     [&](const StageKey& s) { return s.key == key.path; });
    std::string of_run;  // what is wrong in the first stage that takes the value of the run
    bool idle = true;
    for (std::size_t s = 0; s < std::max<std::size_t>(stages.size(), 1); ++s) {
      const std::string reason = idle_reason(schema, config, s, key);
      const bool own = s < stages.size() && staged != schema.stage_keys().end() && stages[s].has(staged->name);
      if (own && !reason.empty())
        found.push_back(
            fmt::format("stage.{}.{} = {} {}", s, staged->name, to_toml(stages[s].value(staged->name)), reason));
      if (&schema.value_in(config, s, key.path) != &config.value(key.path)) continue;
      idle = idle && !reason.empty();
      if (of_run.empty()) of_run = reason;
    }
    if (idle && !of_run.empty() && config.value(key.path) != key.fallback)
      found.push_back(fmt::format("{} = {} {}", key.path, to_toml(config.value(key.path)), of_run));
  }
  return found;
}

Result<void> check_computed(const Config& config, const FloatLimits& range) { return check_numbers(config, range, ""); }

}  // namespace gradloom
