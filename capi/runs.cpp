// Runs in folders, and what can be said about recipes.
#include <fmt/format.h>

#include "capi/hooks.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/run.h"

namespace gradloom::capi {
namespace {

using nlohmann::json;

json progress_json(const app::Progress& p) {
  return {{"stage", p.stage},
          {"stages", p.stages},
          {"epoch", p.epoch},
          {"epochs", p.epochs},
          {"note", p.note},
          {"loss", finite_or_null(p.loss)},
          {"validation", finite_or_null(p.validation)},
          {"extra", p.extra},
          {"seconds", p.seconds},
          {"seconds_left", p.seconds_left}};
}

// Reads what both functions have in their settings.
app::RunOptions run_options(Settings& settings, const Hooks& hooks) {
  app::RunOptions options;
  static_cast<SessionOptions&>(options) = settings.session();
  options.data_root = settings.value("data_root", std::string("."));
  options.stop = &hooks.stop()->set;
  options.log = hooks.log();
  if (hooks.wants_progress()) options.progress = [&hooks](const app::Progress& p) { hooks.tell(progress_json(p)); };
  return options;
}

std::string text_setting(Settings& settings, const char* key) {
  const std::string value = settings.value(key, std::string());
  if (value.empty()) throw_invalid(fmt::format("settings: '{}' is missing", key));
  return value;
}

json keys_json(const Schema& schema) {
  json keys = json::array();
  for (const SchemaKey& key : schema.keys()) {
    json entry{{"key", key.path}, {"type", key.describe()}, {"doc", key.doc}};
    if (key.type == ValueType::tables)
      entry["keys"] = keys_json(*key.tables);
    else
      entry["default"] = value_json(key.fallback);
    if (!key.choices.empty()) entry["choices"] = key.choices;
    keys.push_back(std::move(entry));
  }
  return keys;
}

}  // namespace
}  // namespace gradloom::capi

using namespace gradloom;
using namespace gradloom::capi;

int gradloom_options(const char* family, char** json) {
  return call([&] {
    given(json, "json");
    *json = copy_text(keys_json(app::recipe_schema(given(family, "family"))).dump());
  });
}

int gradloom_recipes(char** json) {
  return call([&] {
    given(json, "json");
    nlohmann::json list = nlohmann::json::array();
    for (const app::ShippedRecipe& r : app::shipped_recipes())
      list.push_back({{"name", r.name},
                      {"summary", r.summary},
                      {"family", peek_string(r.toml, {}, "family", app::recipe_families().front())},
                      {"toml", r.toml}});
    *json = copy_text(list.dump());
  });
}

int gradloom_train(const char* settings, const gradloom_hooks* hooks, char** summary) {
  return call([&] {
    given(summary, "summary");
    const Hooks heard(hooks);
    Settings s(settings);
    const app::RunOptions options = run_options(s, heard);
    const std::string recipe = text_setting(s, "recipe"), folder = s.value("folder", std::string());
    const std::vector<std::string> overrides = s.names("overrides");
    s.done();
    const Config config = app::load_recipe(recipe, overrides).or_throw();
    *summary = copy_text(app::to_json(app::train(config, folder, options).or_throw()).dump());
  });
}

int gradloom_resume(const char* settings, const gradloom_hooks* hooks, char** summary) {
  return call([&] {
    given(summary, "summary");
    const Hooks heard(hooks);
    Settings s(settings);
    const app::RunOptions options = run_options(s, heard);
    const std::string folder = text_setting(s, "folder");
    s.done();
    *summary = copy_text(app::to_json(app::resume(folder, options).or_throw()).dump());
  });
}

int gradloom_predict_file(const char* settings, char** summary) {
  return call([&] {
    given(summary, "summary");
    const Hooks nobody(nullptr);
    Settings s(settings);
    const app::RunOptions options = run_options(s, nobody);
    app::PredictOptions what;
    const std::string model = text_setting(s, "model");
    what.file = text_setting(s, "data");
    what.out = s.value("out", std::string());
    what.distances = s.value("distances", std::string());
    what.nodes = s.value("nodes", std::string());
    what.folder = s.value("folder", std::string());
    s.done();
    *summary = copy_text(to_json(app::predict(model, options, what).or_throw()).dump());
  });
}
