#include "gradloom/io/option_schema.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradloom {

SchemaKey& AnyOptionSchema::bind(Field field, ValueType type, ConfigValue fallback, std::string doc, Setter set,
                                 Getter get) {
  SchemaKey& key = schema_.add(field.key, type, std::move(fallback), std::move(doc));
  fields_.push_back(std::move(field));
  setters_.push_back(std::move(set));
  getters_.push_back(std::move(get));
  return key;
}

void AnyOptionSchema::bind_stage(StageKey stage, std::string doc) {
  const std::size_t at = schema_.find(stage.key);
  if (at == fields_.size())
    throw Exception(ErrorCode::not_found,
                    fmt::format("the key '{}' of a stage is for '{}', which is not bound", stage.name, stage.key));
  const SchemaKey& of_run = schema_.keys()[at];
  SchemaKey& key = stage_schema_.add(stage.name, of_run.type, {}, {});
  key = of_run;
  key.path = stage.name;
  key.fallback = {};
  key.doc = std::move(doc);
  stage_keys_.push_back(std::move(stage));
}

void AnyOptionSchema::add_stages() {
  schema_.tables("stage", stage_schema_, "Stages of the run, one after the other; none: a single stage.");
}

void AnyOptionSchema::read_run(const Config& config, void* options) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) setters_[i](options, config.value(fields_[i].key));
}

void AnyOptionSchema::read_stage(const Config& config, std::size_t stage, void* options) const {
  const std::vector<Config>& stages = config.tables("stage");
  for (const StageKey& key : stage_keys_)
    for (std::size_t s = key.lasting == Lasting::rest ? 0 : stage; s <= stage; ++s)
      if (stages[s].has(key.name)) setters_[schema_.find(key.key)](options, stages[s].value(key.name));
}

const ConfigValue& AnyOptionSchema::value_in(const Config& config, std::size_t stage, std::string_view key) const {
  const std::vector<Config>& stages = config.tables("stage");
  for (const StageKey& staged : stage_keys_)
    for (std::size_t s = stage + 1; staged.key == key && s-- > 0 && s < stages.size();) {
      if (stages[s].has(staged.name)) return stages[s].value(staged.name);
      if (staged.lasting == Lasting::stage) break;
    }
  return config.value(key);
}

nlohmann::json AnyOptionSchema::write_run(const void* options) const {
  nlohmann::json object = nlohmann::json::object();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    std::string place = "/" + fields_[i].key;
    std::replace(place.begin(), place.end(), '.', '/');
    std::visit(
        [&]<class V>(const V& value) {
          if constexpr (!std::is_same_v<V, std::monostate>) object[nlohmann::json::json_pointer(place)] = value;
        },
        getters_[i](options));
  }
  return object;
}

void refuse_integer(std::int64_t value, const std::string& key) {
  throw_invalid(fmt::format("'{}' is {}, which is too large or too small", key, value));
}

}  // namespace gradloom
