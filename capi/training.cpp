// Training on data in memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capi/arrays.h"
#include "capi/hooks.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/model/memory.h"
#include "gradloom/app/recipe.h"
#include "gradloom/io/fields.h"

namespace gradloom::capi {
namespace {

using nlohmann::json;

// The members of `over` go before those of `base`; lists are replaced as a whole.
json merged(json base, const json& over) {
  for (const auto& [key, value] : over.items()) {
    if (value.is_object() && base.contains(key) && base[key].is_object())
      base[key] = merged(base[key], value);
    else
      base[key] = value;
  }
  return base;
}

// What every call of fit has in its settings.
struct FitSettings {
  Settings all;
  std::string family;
  json recipe;
  SessionOptions session;
  std::optional<Used<ModelObject>> from;
  std::optional<std::size_t> validation_from;  // the first of the rows that watch training
  bool batch_chosen = false;

  FitSettings(const char* text, const char* usual_family) : all(text) {
    recipe = all.json("recipe").is_null() ? json::object() : all.json("recipe");
    if (!recipe.is_object()) throw_invalid("settings: 'recipe' is not an object");
    batch_chosen = recipe.contains(json::json_pointer("/train/batch"));
    const std::string base = all.value("base", std::string());
    if (!base.empty()) recipe = merged(base_recipe(base), recipe);
    if (!recipe.contains("family")) recipe["family"] = usual_family;
    if (!recipe["family"].is_string()) throw_invalid("settings: 'recipe.family' is not a text");
    family = recipe["family"].get<std::string>();
    session = all.session();
    if (all.has("from")) from.emplace(all.value("from", gradloom_handle{0}), "from");
  }
  // Rows can say which of them watch training; grids and graphs cannot.
  void read_validation() {
    if (!all.has("validation_from")) return;
    validation_from = all.value("validation_from", std::size_t{0});
    const json::json_pointer fraction("/data/validation");
    if (recipe.contains(fraction) && recipe[fraction] != 0)
      throw_invalid(
          fmt::format("settings: 'validation_from' is {}, and data.validation is {}; set only one of them to choose "
                      "the validation data",
                      *validation_from, recipe[fraction].dump()));
  }
  const Session* trained() const { return from ? &(*from)->fitted.session() : nullptr; }

  template <class O>
  O options() const {
    return app::option_schema<O>().from_json(recipe, "recipe").or_throw();
  }
  // The same for these rows: a batch that the caller did not choose is not larger than what is trained on.
  template <class O>
  O options(const app::MemoryRows& rows) const {
    O o = options<O>();
    const double watch = rows.validation > 0 ? 0.0 : o.data.validation;
    const double count = static_cast<double>(rows.loaded.rows.size() - rows.validation);
    const double trained = count * (1.0 - watch - o.data.test) - 1.0;
    const auto fits = [&](O& part) {
      if (!batch_chosen && static_cast<double>(part.train.batch) > trained) part.train.batch = 0;
    };
    fits(o);
    for (O& stage : o.stages) fits(stage);
    return o;
  }
  app::MemoryRows memory(LoadedRows rows) const {
    if (!validation_from) return {std::move(rows)};
    const std::size_t first =
        rows.kept.empty()
            ? std::min(*validation_from, rows.rows.size())
            : static_cast<std::size_t>(std::lower_bound(rows.kept.begin(), rows.kept.end(), *validation_from) -
                                       rows.kept.begin());
    const std::size_t watching = rows.rows.size() - first;
    if (watching == 0 || first == 0)
      throw_invalid(
          fmt::format("settings: 'validation_from' is {}; of {} rows, {} are training data and {} validation data",
                      *validation_from, rows.rows.size(), first, watching));
    return {std::move(rows), watching};
  }

 private:
  // The keys that a shipped recipe sets, without the data that it names.
  static json base_recipe(const std::string& name) {
    for (const app::ShippedRecipe& shipped : app::shipped_recipes())
      if (shipped.name == name) {
        const std::vector<std::string> none;
        const Config config = app::parse_recipe(shipped.toml, name, none).or_throw();
        return set_keys(config);
      }
    throw Exception(ErrorCode::not_found, fmt::format("settings: there is no shipped recipe '{}'", name));
  }

  static json set_keys(const Config& config) {
    json object = json::object();
    for (const SchemaKey& key : config.schema().keys()) {
      if (!config.was_set(key.path)) continue;
      const auto pointer = [&] {
        std::string path = "/" + key.path;
        std::replace(path.begin(), path.end(), '.', '/');
        return json::json_pointer(path);
      }();
      if (key.type == ValueType::tables) {
        for (const Config& table : config.tables(key.path)) object[pointer].push_back(set_keys(table));
      } else if (!key.names_file && key.path != "data.formula" && key.path != "name") {
        object[pointer] = value_json(config.value(key.path));
      }
    }
    return object;
  }
};

// Keeps what is measured, tells the caller, and stops when he says so.
class Recorder final : public SessionListener {
 public:
  Recorder(const Hooks& hooks, ModelObject& model) : hooks_(hooks), model_(model) {}
  void after_epoch(Session& session, const EpochReport& report, const json& metrics) override {
    model_.history.push_back({report, metrics});
    if (!hooks_.wants_progress()) return;
    json line{{"stage", report.position.stage},
              {"stages", session.stages()},
              {"epoch", report.position.epoch},
              {"epochs", session.epochs(report.position.stage)},
              {"note", session.stage_note(report.position.stage)},
              {"loss", finite_or_null(report.loss)},
              {"validation", finite_or_null(report.validation)},
              {"lr", report.learning_rate}};
    line.update(metrics);
    hooks_.tell(line);
  }

 private:
  const Hooks& hooks_;
  ModelObject& model_;
};

// A session, and how its size was settled.
struct Opened {
  std::unique_ptr<Session> session;
  json settled = {};
};

// Trains what `open` opens, and hands it out.
template <class Open>
void fit(FitSettings& settings, const gradloom_hooks* given_hooks, gradloom_handle* out, Open&& open) {
  const Hooks hooks(given_hooks);
  settings.session.stop = &hooks.stop()->set;
  settings.session.log = hooks.log();
  Opened opened = open();
  auto model = std::make_shared<ModelObject>(std::move(opened.session), settings.session);
  model->settled = std::move(opened.settled);
  model->stop = hooks.stop();
  Session& session = model->fitted.session();
  Recorder recorder(hooks, *model);
  model->stopped = app::train_from(session, settings.trained(), recorder) == TrainEnd::stopped;
  settings.from.reset();
  *out = open_object(std::move(model));
}

template <class O>
Opened open_row_family(const FitSettings& settings, const app::MemoryRows& rows) {
  if (settings.trained()) {
    if (settings.options<O>().model.size == SizePolicy::automatic)
      throw_invalid("model.size is \"auto\", but training continues from a trained network, whose size is fixed");
  } else if (auto settled = app::settle<O>(settings.recipe, rows, settings.session)) {
    return {app::open_rows(rows, std::move(settled->options), settings.session, nullptr), std::move(settled->found)};
  }
  return {app::open_rows(rows, settings.options<O>(rows), settings.session, settings.trained()), {}};
}

Opened open_row_model(const FitSettings& settings, const app::MemoryRows& rows) {
  return settings.family == "kan" ? open_row_family<KanOptions>(settings, rows)
                                  : open_row_family<GatesOptions>(settings, rows);
}

void need_family(const FitSettings& settings, std::initializer_list<const char*> possible, const char* data) {
  for (const char* family : possible)
    if (settings.family == family) return;
  throw_invalid(fmt::format("settings: recipe.family is \"{}\"; {} are for {}", settings.family, data,
                            fmt::join(possible, ", ")));
}

}  // namespace

}  // namespace gradloom::capi

using namespace gradloom;
using namespace gradloom::capi;

int gradloom_fit_rows(const char* settings, const gradloom_array* x, const gradloom_array* y,
                      const gradloom_array* weights, const gradloom_hooks* hooks, gradloom_handle* model) {
  return call([&] {
    given(model, "model");
    FitSettings s(settings, "kan");
    const auto classes = s.all.names("classes"), features = s.all.names("features"), targets = s.all.names("targets");
    s.read_validation();
    s.all.done();
    need_family(s, {"kan", "gates"}, "rows");
    const MatrixView rows = matrix(x, "x");
    const std::vector<double> w = weights ? numbers(*weights, "weights", rows.rows()) : std::vector<double>();
    const app::MemoryRows memory =
        s.memory({rows_from_memory(rows, target_view(y, classes), {features, targets}, w), {}, {}});
    fit(s, hooks, model, [&] { return open_row_model(s, memory); });
  });
}

int gradloom_fit_table(const char* settings, const char* csv, size_t bytes, const gradloom_hooks* hooks,
                       gradloom_handle* model) {
  return call([&] {
    given(model, "model");
    FitSettings s(settings, "kan");
    s.read_validation();
    s.all.done();
    need_family(s, {"kan", "gates"}, "tables");
    const auto read = [&]<class O>(O options) {
      LoadedRows rows = app::rows_of_text(std::string(given(csv, "csv"), bytes), options);
      s.recipe["data"]["path"] = options.data.path->text;
      return rows;
    };
    const app::MemoryRows memory =
        s.memory(s.family == "kan" ? read(s.options<KanOptions>()) : read(s.options<GatesOptions>()));
    fit(s, hooks, model, [&] { return open_row_model(s, memory); });
  });
}

int gradloom_fit_grid(const char* settings, const gradloom_array* target, const gradloom_hooks* hooks,
                      gradloom_handle* model) {
  return call([&] {
    given(model, "model");
    FitSettings s(settings, "automaton");
    s.all.done();
    need_family(s, {"automaton"}, "grids");
    if (!target) {
      const Config recipe = config_from_json(app::recipe_schema(s.family), s.recipe, "recipe").or_throw();
      fit(s, hooks, model, [&] {
        auto session = app::find_family(s.family).open(recipe, ".", s.session).or_throw();
        session->preflight();
        return Opened{std::move(session)};
      });
      return;
    }
    const Strided<std::uint8_t> bits = strided<std::uint8_t>(target, "target", 3);
    app::BitImage image{bits.extent(0), bits.extent(1), bits.extent(2), {}};
    for (std::size_t c = 0; c < image.channels; ++c)
      for (std::size_t y = 0; y < image.height; ++y)
        for (std::size_t x = 0; x < image.width; ++x) {
          if (bits.at(c, y, x) > 1)
            throw_invalid(fmt::format("target ({}, {}, {}) is {}; it must be 0 or 1", c, y, x, bits.at(c, y, x)));
          image.bits.push_back(bits.at(c, y, x));
        }
    fit(s, hooks, model, [&] { return Opened{app::open_image(image, s.options<AutomatonOptions>(), s.session)}; });
  });
}

int gradloom_fit_graphs(const char* settings, gradloom_handle graphs, const gradloom_hooks* hooks,
                        gradloom_handle* model) {
  return call([&] {
    given(model, "model");
    FitSettings s(settings, "graph");
    s.all.done();
    need_family(s, {"graph"}, "graphs");
    const std::shared_ptr<const GraphSet> set = Used<GraphsObject>(graphs, "graphs")->finished();
    fit(s, hooks, model, [&] { return Opened{app::open_graphs(set, s.options<GraphOptions>(), s.session)}; });
  });
}
