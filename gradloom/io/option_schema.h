// OptionSchema: binds the fields of a struct of options to the keys of a configuration. The struct knows the defaults,
// the schema the keys, ranges and meanings; parsing, documentation and reading follow from both.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/file_name.h"
#include "gradloom/io/config.h"

namespace gradloom {

// How long a value of a stage goes before that of the run: in its stage alone, or in all stages that follow too.
enum class Lasting { stage, rest };

// A key of `[[stage]]`, and the key of the run that it goes before.
struct StageKey {
  std::string name, key;
  Lasting lasting = Lasting::stage;
};

// What an OptionSchema is without the type of its options.
class AnyOptionSchema {
 public:
  using Setter = std::function<void(void* options, const ConfigValue& value)>;
  using Getter = std::function<ConfigValue(const void* options)>;
  // The bytes of the options that a key sets.
  struct Field {
    std::string key;
    std::size_t offset = 0, size = 0;
  };

  AnyOptionSchema(const AnyOptionSchema&) = delete;
  AnyOptionSchema& operator=(const AnyOptionSchema&) = delete;

  const Schema& schema() const { return schema_; }
  const std::vector<StageKey>& stage_keys() const { return stage_keys_; }
  const std::vector<Field>& fields() const { return fields_; }
  // The value of a key in this stage: the stage's own, else that of a stage before where it lasts, else the run's. A
  // run without stages has stage 0.
  const ConfigValue& value_in(const Config& config, std::size_t stage, std::string_view key) const;

 protected:
  AnyOptionSchema() = default;
  ~AnyOptionSchema() = default;

  SchemaKey& bind(Field field, ValueType type, ConfigValue fallback, std::string doc, Setter set, Getter get);
  // A key of a stage has type and range of the run's key, and no default.
  void bind_stage(StageKey stage, std::string doc);
  void add_stages();
  void read_run(const Config& config, void* options) const;
  // What the stages up to `stage` change.
  void read_stage(const Config& config, std::size_t stage, void* options) const;
  nlohmann::json write_run(const void* options) const;

 private:
  template <class P>
  friend class OptionPart;

  Schema schema_, stage_schema_;
  std::vector<Field> fields_;    // one for each key that is not `stage`
  std::vector<Setter> setters_;  // likewise
  std::vector<Getter> getters_;  // likewise
  std::vector<StageKey> stage_keys_;
};

// How a type of fields is stored in a configuration. An optional is a key without a default.
template <class V>
struct OptionType;

// A struct of options, or a struct in it, while its fields are bound.
template <class P>
class OptionPart {
 public:
  using Place = std::function<P*(void* options)>;
  OptionPart(AnyOptionSchema& schema, std::string prefix, Place place, void* defaults)
      : schema_(&schema), prefix_(std::move(prefix)), place_(std::move(place)), defaults_(defaults) {}

  // A struct in this one; `name` is the part of its keys before the dot, or empty when they have none.
  template <class Q, class B>
  OptionPart<Q> part(std::string_view name, Q B::*member) const {
    return {*schema_, name.empty() ? prefix_ : prefix_ + std::string(name) + '.',
            [place = place_, member](void* options) { return &(place(options)->*member); }, defaults_};
  }

  // The same struct, whose keys begin with `name` and a dot.
  OptionPart within(std::string_view name) const {
    return {*schema_, prefix_ + std::string(name) + '.', place_, defaults_};
  }

  // The same struct as one of its bases.
  template <class Q>
  requires std::is_base_of_v<Q, P> OptionPart<Q> as()
  const {
    return {*schema_, prefix_, [place = place_](void* options) -> Q* { return place(options); }, defaults_};
  }

  // An integer, number, boolean, string or list, as the field is; FileName is a string that names a file.
  template <class V, class B>
  SchemaKey& key(std::string_view name, V B::*field, std::string doc) const {
    SchemaKey& key = bind(name, field, OptionType<V>::kType, std::move(doc), OptionType<V>::write, OptionType<V>::read);
    key.names_file = OptionType<V>::kFile;
    return key;
  }

  // One value of a table.
  template <class E, class B>
  SchemaKey& choice(std::string_view name, E B::*field, std::type_identity_t<Choices<E>> table, std::string doc) const {
    const std::vector<Choice<E>> known(table.begin(), table.end());
    return bind(
               name, field, ValueType::string, std::move(doc),
               [known](E value) { return ConfigValue(std::string(name_of<E>(known, value))); },
               [known](const ConfigValue& value, const std::string& key) {
                 return value_of<E>(known, std::get<std::string>(value), key).or_throw();
               })
        .one_of(names(table));
  }

  // The same, or "auto", which leaves the field without a value.
  template <class E, class B>
  SchemaKey& choice_or_auto(std::string_view name, std::optional<E> B::*field, std::type_identity_t<Choices<E>> table,
                            std::string doc) const {
    std::vector<std::string> allowed = names(table);
    allowed.insert(allowed.begin(), "auto");
    return bind(
               name, field, ValueType::string, std::move(doc),
               [table](const std::optional<E>& value) {
                 return ConfigValue(std::string(value ? name_of<E>(table, *value) : "auto"));
               },
               [table](const ConfigValue& value, const std::string& key) -> std::optional<E> {
                 if (std::get<std::string>(value) == "auto") return std::nullopt;
                 return value_of<E>(table, std::get<std::string>(value), key).or_throw();
               })
        .one_of(std::move(allowed));
  }

  // A boolean that chooses between two values.
  template <class E, class B>
  SchemaKey& flag(std::string_view name, E B::*field, E when_true, E when_false, std::string doc) const {
    return bind(
        name, field, ValueType::boolean, std::move(doc), [=](E value) { return ConfigValue(value == when_true); },
        [=](const ConfigValue& value, const std::string&) { return std::get<bool>(value) ? when_true : when_false; });
  }

  // Stages may have a value of their own for `key`, which is bound already.
  void stage(std::string name, std::string key, std::string doc, Lasting lasting = Lasting::stage) const {
    schema_->bind_stage({std::move(name), std::move(key), lasting}, std::move(doc));
  }

 private:
  template <class E>
  static std::vector<std::string> names(Choices<E> table) {
    std::vector<std::string> names;
    for (const Choice<E>& choice : table) names.emplace_back(choice.name);
    return names;
  }

  template <class V, class B, class Write, class Read>
  SchemaKey& bind(std::string_view name, V B::*field, ValueType type, std::string doc, Write write, Read read) const {
    const V& standard = place_(defaults_)->*field;
    const auto offset = reinterpret_cast<const char*>(&standard) - static_cast<const char*>(defaults_);
    const std::string key = prefix_ + std::string(name);
    return schema_->bind(
        {key, static_cast<std::size_t>(offset), sizeof(V)}, type, write(standard), std::move(doc),
        [place = place_, field, read, key](void* options, const ConfigValue& value) {
          place(options)->*field = read(value, key);
        },
        [place = place_, field, write](const void* options) -> ConfigValue {
          return write(place(const_cast<void*>(options))->*field);  // only read
        });
  }

  AnyOptionSchema* schema_;
  std::string prefix_;
  Place place_;
  void* defaults_;
};

// O is default-constructible; O::stages is a std::vector<O> of the options of each stage, complete; empty for a run of
// one stage.
template <class O>
class OptionSchema final : public AnyOptionSchema {
 public:
  // `bind_fields` binds every field but `stages`.
  explicit OptionSchema(void (*bind_fields)(const OptionPart<O>&)) {
    O defaults;
    bind_fields(OptionPart<O>(
        *this, "", [](void* options) { return static_cast<O*>(options); }, &defaults));
    add_stages();
  }

  // The options of a configuration of this schema. Throws on a number that its field cannot hold.
  O read(const Config& config) const {
    O options;
    read_run(config, &options);
    std::vector<O> stages(config.tables("stage").size(), options);
    for (std::size_t s = 0; s < stages.size(); ++s) read_stage(config, s, &stages[s]);
    options.stages = std::move(stages);
    return options;
  }

  // The options of one stage as an object, "model.grid" as {"model": {"grid": ...}}; fields without a value and
  // `stages` are left out.
  nlohmann::json to_json(const O& options) const { return write_run(&options); }
  // Back again; fails as parse_config does.
  Result<O> from_json(const nlohmann::json& object, std::string_view source) const {
    auto config = config_from_json(schema(), object, source);
    if (!config) return config.error();
    return read(*config);
  }
};

[[noreturn]] void refuse_integer(std::int64_t value, const std::string& key);

template <class V>
requires std::is_arithmetic_v<V> || std::is_same_v<V, std::string>
struct OptionType<V> {
  using Stored = std::conditional_t<std::is_integral_v<V> && !std::is_same_v<V, bool>, std::int64_t, V>;
  static constexpr bool kFile = false;
  static constexpr ValueType kType = std::is_same_v<Stored, std::int64_t> ? ValueType::integer
                                     : std::is_same_v<Stored, double>     ? ValueType::number
                                     : std::is_same_v<Stored, bool>       ? ValueType::boolean
                                                                          : ValueType::string;
  static constexpr ValueType kListType = kType == ValueType::integer  ? ValueType::integers
                                         : kType == ValueType::number ? ValueType::numbers
                                                                      : ValueType::strings;
  static ConfigValue write(const V& value) { return static_cast<Stored>(value); }
  static V read(const ConfigValue& value, const std::string& key) { return convert(std::get<Stored>(value), key); }
  static V convert(const Stored& value, const std::string& key) {
    if constexpr (std::is_same_v<Stored, std::int64_t>)
      if (!std::in_range<V>(value)) refuse_integer(value, key);
    return static_cast<V>(value);
  }
};

template <>
struct OptionType<FileName> {
  static constexpr ValueType kType = ValueType::string;
  static constexpr bool kFile = true;
  static ConfigValue write(const FileName& value) { return value.text; }
  static FileName read(const ConfigValue& value, const std::string&) { return {std::get<std::string>(value)}; }
};

template <class V>
struct OptionType<std::vector<V>> {
  using Stored = std::vector<typename OptionType<V>::Stored>;
  static constexpr ValueType kType = OptionType<V>::kListType;
  static constexpr bool kFile = false;
  static ConfigValue write(const std::vector<V>& values) { return Stored(values.begin(), values.end()); }
  static std::vector<V> read(const ConfigValue& value, const std::string& key) {
    std::vector<V> values;
    for (const auto& element : std::get<Stored>(value)) values.push_back(OptionType<V>::convert(element, key));
    return values;
  }
};

template <class V>
struct OptionType<std::optional<V>> {
  static constexpr ValueType kType = OptionType<V>::kType;
  static constexpr bool kFile = OptionType<V>::kFile;
  static ConfigValue write(const std::optional<V>& value) {
    return value ? OptionType<V>::write(*value) : ConfigValue();
  }
  static std::optional<V> read(const ConfigValue& value, const std::string& key) {
    if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
    return OptionType<V>::read(value, key);
  }
};

}  // namespace gradloom
