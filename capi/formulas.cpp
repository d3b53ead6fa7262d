// Spline networks: scored, pruned, turned into formulas, exported.
#include <fmt/format.h>

#include "capi/arrays.h"
#include "capi/hooks.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/formula/stored.h"
#include "gradloom/app/model/export.h"
#include "gradloom/data/memory_rows.h"
#include "gradloom/io/json.h"

namespace gradloom::capi {
namespace {

// A row with the features and classes of a model.
RowDataset<double> rows_of_classes(const ModelDescription& about) {
  RowParts<double> one;
  one.size = 1, one.features = about.features.size(), one.label = {0};
  one.x.assign(one.features, 0.0);
  one.feature_names = about.features, one.class_names = about.classes;
  return RowDataset<double>(std::move(one));
}

// The caller's rows under the names of the model; none where x is NULL.
std::optional<RowDataset<double>> formula_rows(const Session& session, const gradloom_array* x,
                                               const gradloom_array* y) {
  if (!x) return std::nullopt;
  const ModelDescription about = session.describe();
  const MatrixView matrix_x = matrix(x, "x");
  if (!about.classes.empty()) {
    const TargetView classes = target_view(given(y, "y"), about.classes);
    if (matrix_x.columns() != about.features.size())
      throw_invalid(
          fmt::format("x has {} columns; the network has {} inputs", matrix_x.columns(), about.features.size()));
    return new_rows_from_memory(rows_of_classes(about), matrix_x, &classes);
  }
  const TargetView target = target_view(given(y, "y"), {});
  const std::size_t targets = target.are_classes() ? 0 : target.targets().columns();
  if (matrix_x.columns() != about.features.size() || targets != about.targets.size())
    throw_invalid(fmt::format("x has {} columns and y {}; the network has {} inputs and {} targets", matrix_x.columns(),
                              targets, about.features.size(), about.targets.size()));
  return rows_from_memory(matrix_x, target, {about.features, about.targets});
}

template <class T>
const T* pointer_to(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

}  // namespace
}  // namespace gradloom::capi

using namespace gradloom;
using namespace gradloom::capi;

int gradloom_scores(gradloom_handle model, const gradloom_array* x, const gradloom_array* y, char** json) {
  return call([&] {
    given(json, "json");
    const Used<ModelObject> used(model, "model");
    Session& session = used->fitted.session();
    const auto rows = formula_rows(session, x, y);
    *json = copy_text(to_json(app::session_scores(session, pointer_to(rows)).or_throw()).dump());
  });
}

int gradloom_formula(gradloom_handle model, const char* settings, const gradloom_array* x, const gradloom_array* y,
                     const gradloom_hooks* hooks, char** json) {
  return call([&] {
    given(json, "json");
    const Hooks listener(hooks);
    Settings s(settings);
    app::FormulaSearchOptions options;
    options.effort = s.value("effort", options.effort);
    options.threshold = s.value("threshold", options.threshold);
    options.functions = s.names("functions");
    options.define = s.names("define"), options.forbid = s.names("forbid"), options.fix = s.names("fix");
    s.done();
    if (!(options.effort >= 1)) throw_invalid(fmt::format("effort is {}; it must be 1 or more", options.effort));
    options.stop = &listener.stop()->set;
    const Used<ModelObject> used(model, "model");
    Session& session = used->fitted.session();
    const auto rows = formula_rows(session, x, y);
    const auto progress = [&](double work, double limit) {
      if (listener.wants_progress()) listener.tell({{"event", "search"}, {"work", work}, {"effort", limit}});
    };
    const Exec ex(used->settings.exec);
    *json = copy_text(app::session_formula(ex, session, pointer_to(rows), options, progress).or_throw().dump());
  });
}

int gradloom_formula_fit(const char* formula, const gradloom_array* x, const gradloom_array* y, char** json) {
  return call([&] {
    given(formula, "formula");
    given(json, "json");
    const app::StoredFormulas stored =
        app::formulas_from_json(parse_json(formula, "formula").or_throw(), "formula").or_throw();
    const MatrixView matrix_x = matrix(given(x, "x"), "x"), matrix_y = matrix(given(y, "y"), "y");
    if (matrix_x.columns() != stored.inputs.size() || matrix_y.columns() != stored.targets.size() ||
        matrix_x.rows() != matrix_y.rows() || matrix_x.rows() == 0)
      throw_invalid(fmt::format("x is {} x {} and y {} x {}; the formula has {} inputs and {} targets", matrix_x.rows(),
                                matrix_x.columns(), matrix_y.rows(), matrix_y.columns(), stored.inputs.size(),
                                stored.targets.size()));
    const auto columns = [](const MatrixView& m, const char* name) {
      const std::vector<double> values = m.finite_values(name);
      formula::Columns all(m.columns());
      for (std::size_t i = 0; i < values.size(); ++i) all[i % m.columns()].push_back(values[i]);
      return all;
    };
    *json = copy_text(app::fit_formulas(stored, columns(matrix_x, "x"), columns(matrix_y, "y")).dump());
  });
}

int gradloom_prune(gradloom_handle model, const char* settings, const gradloom_array* x, const gradloom_array* y,
                   char** json) {
  return call([&] {
    given(json, "json");
    Settings s(settings);
    app::PruneOptions options;
    options.out = s.value("out", std::string());
    if (options.out.empty()) throw_invalid("out is missing; it names the file of the smaller model");
    if (s.has("threshold")) options.threshold = s.value("threshold", 0.0);
    if (s.has("inputs")) options.inputs = s.value("inputs", std::uint64_t{0});
    if (s.has("worse")) options.worse = s.value("worse", 0.0);
    s.done();
    const Used<ModelObject> used(model, "model");
    Session& session = used->fitted.session();
    const auto rows = formula_rows(session, given(x, "x"), y);
    options.rows = pointer_to(rows);
    *json = copy_text(to_json(app::prune_session(session, {}, options).or_throw()).dump());
  });
}

int gradloom_export(gradloom_handle model, const char* settings, char** json) {
  return call([&] {
    given(json, "json");
    Settings s(settings);
    app::ExportNetworkOptions options;
    options.format =
        value_of<app::NetworkFormat>(app::kNetworkFormats, s.value("format", std::string("c")), "format").or_throw();
    options.out = s.value("out", std::string());
    options.name = s.value("name", options.name);
    s.done();
    if (options.out.empty()) throw_invalid("out is missing; it names the file to write");
    const Used<ModelObject> used(model, "model");
    Session& session = used->fitted.session();
    const app::AppFamily& family = app::find_family(session.options().family);
    if (!family.export_network)
      throw Exception(
          ErrorCode::unsupported,
          fmt::format("only spline networks can be exported in this format; this is a model of family \"{}\"",
                      family.name));
    *json = copy_text(to_json(family.export_network(session, options).or_throw()).dump());
  });
}
