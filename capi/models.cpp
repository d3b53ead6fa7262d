// Models: loaded, saved, asked.
#include <fmt/format.h>

#include <set>

#include "capi/arrays.h"
#include "capi/hooks.h"
#include "gradloom/app/families/families.h"
#include "gradloom/app/model/draw.h"
#include "gradloom/app/model/memory.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/io/fields.h"

namespace gradloom::capi {
namespace {

using nlohmann::json;

constexpr std::size_t kRowsAtOnce = 8192;  // of predictions: enough for all threads, little enough for a cache

// Some rows of a matrix.
MatrixView part_of(const gradloom_array& x, std::size_t first, std::size_t count) {
  gradloom_array part = x;
  part.data = static_cast<const char*>(x.data) + static_cast<std::int64_t>(first) * x.strides[0];
  part.shape[0] = static_cast<std::int64_t>(count);
  return matrix(&part, "x");
}

void write_rows(const Prediction& p, std::size_t first, const OutMatrix& out) {
  for (std::size_t r = 0; r < p.rows; ++r)
    for (std::size_t c = 0; c < p.columns; ++c) out.set(first + r, c, p(r, c));
}

std::size_t output_count(const ModelDescription& about) {
  return about.classes.empty() ? std::max<std::size_t>(1, about.targets.size()) : about.classes.size();
}

// The key is there only where there is something to say.
json with_warnings(json metrics, std::vector<std::string> warnings) {
  if (!warnings.empty()) metrics["warnings"] = std::move(warnings);
  return metrics;
}

json description_json(ModelObject& model) {
  Session& session = model.fitted.session();
  const app::AppFamily& family = app::find_family(session.options().family);
  const ModelDescription about = session.describe();
  const TrainPosition& at = session.position();
  return {{"family", session.options().family},
          {"precision", name_of(kPrecisions, session.options().precision)},
          {"options", family.options(session)},
          {"features", about.features},
          {"targets", about.targets},
          {"classes", about.classes},
          {"outputs", output_count(about)},
          {"embedding", app::embedding_width(session)},
          {"parameters", session.parameter_count()},
          {"epochs", at.run_epoch},
          {"stage", at.stage},
          {"finished", at.stage + 1 == session.stages() && at.stage_closed},
          {"stopped", model.stopped},
          {"settled", model.settled},
          {"samples", session.samples()},
          {"device", session.device()},
          {"warnings", session.samples() > 0 ? session.warnings() : std::vector<std::string>()}};
}

// A column for what every epoch has, and for each number that a family adds.
json history_json(const std::vector<EpochRow>& history) {
  std::set<std::string> added;
  for (const EpochRow& row : history)
    for (const auto& [key, value] : row.metrics.items())
      if (value.is_number()) added.insert(key);
  json columns{"stage", "epoch", "run_epoch", "loss", "validation", "lr"}, rows = json::array();
  for (const std::string& key : added) columns.push_back(key);
  for (const EpochRow& row : history) {
    const EpochReport& e = row.report;
    json line{
        e.position.stage, e.position.epoch, e.position.run_epoch, finite_or_null(e.loss), finite_or_null(e.validation),
        e.learning_rate};
    for (const std::string& key : added) line.push_back(row.metrics.value(key, json()));
    rows.push_back(std::move(line));
  }
  return {{"columns", columns}, {"rows", rows}};
}

}  // namespace
}  // namespace gradloom::capi

using namespace gradloom;
using namespace gradloom::capi;

int gradloom_load(const char* path, const char* settings, gradloom_handle* model) {
  return call([&] {
    given(model, "model");
    Settings s(settings);
    const SessionOptions session = s.session();
    s.done();
    auto opened = app::open_model(FilePlace(given(path, "path")), session).or_throw();
    *model = open_object(std::make_shared<ModelObject>(std::move(opened), session));
  });
}

int gradloom_load_bytes(const void* bytes, size_t size, const char* settings, gradloom_handle* model) {
  return call([&] {
    given(model, "model");
    Settings s(settings);
    const SessionOptions session = s.session();
    s.done();
    const std::span<const std::byte> all(static_cast<const std::byte*>(given(bytes, "bytes")), size);
    const TensorFile tensors = parse_safetensors(all, "the model").or_throw();
    auto opened = app::open_model(tensors, "the model", session).or_throw();
    *model = open_object(std::make_shared<ModelObject>(std::move(opened), session));
  });
}

int gradloom_save(gradloom_handle model, const char* path) {
  return call([&] { Used<ModelObject>(model, "model")->fitted.save(given(path, "path")); });
}

int gradloom_save_bytes(gradloom_handle model, void** bytes, size_t* size) {
  return call([&] {
    given(bytes, "bytes");
    given(size, "size");
    const Used<ModelObject> used(model, "model");
    const std::string content = used->fitted.save_bytes();
    *bytes = copy_bytes(content.data(), content.size());
    *size = content.size();
  });
}

int gradloom_describe(gradloom_handle model, char** json) {
  return call([&] {
    given(json, "json");
    *json = copy_text(description_json(*Used<ModelObject>(model, "model")).dump());
  });
}

int gradloom_history(gradloom_handle model, char** json) {
  return call([&] {
    given(json, "json");
    *json = copy_text(history_json(Used<ModelObject>(model, "model")->history).dump());
  });
}

int gradloom_metrics(gradloom_handle model, char** json) {
  return call([&] {
    given(json, "json");
    const Used<ModelObject> used(model, "model");
    const Metrics metrics = used->fitted.metrics();
    *json = copy_text(
        with_warnings(to_json(metrics), metric_warnings(metrics, used->fitted.session().options().precision)).dump());
  });
}

int gradloom_predict(gradloom_handle model, const gradloom_array* x, const gradloom_array* out) {
  return call([&] {
    const Used<ModelObject> used(model, "model");
    const MatrixView all = matrix(x, "x");
    const OutMatrix to(out, "out");
    if (used->outputs == 0) used->outputs = output_count(used->fitted.session().describe());
    to.check(all.rows(), used->outputs);
    for (std::size_t first = 0; first < all.rows() || first == 0; first += kRowsAtOnce) {
      const std::size_t count = std::min(kRowsAtOnce, all.rows() - first);
      write_rows(used->fitted.predict(part_of(*x, first, count)), first, to);
    }
  });
}

int gradloom_predict_table(gradloom_handle model, const char* csv, size_t bytes, const gradloom_array* out) {
  return call([&] {
    const Used<ModelObject> used(model, "model");
    const Prediction p = used->fitted.predict_table(std::string(given(csv, "csv"), bytes));
    const OutMatrix to(out, "out");
    to.check(p.rows, p.columns);
    write_rows(p, 0, to);
  });
}

int gradloom_predict_graphs(gradloom_handle model, gradloom_handle graphs, const gradloom_array* out) {
  return call([&] {
    const Used<ModelObject> used(model, "model");
    const std::shared_ptr<const GraphSet> set = Used<GraphsObject>(graphs, "graphs")->finished();
    const app::PredictedTable table = app::predict_graphs(used->fitted.session(), *set);
    const std::size_t columns = table.rows == 0 ? 0 : table.values.size() / table.rows;
    const OutMatrix to(out, "out");
    to.check(table.rows, columns);
    for (std::size_t i = 0; i < table.values.size(); ++i) to.set(i / columns, i % columns, table.values[i]);
  });
}

int gradloom_embed_graphs(gradloom_handle model, gradloom_handle graphs, const gradloom_array* out) {
  return call([&] {
    const Used<ModelObject> used(model, "model");
    const std::shared_ptr<const GraphSet> set = Used<GraphsObject>(graphs, "graphs")->finished();
    const PredictedRows rows = app::embed_graphs(used->fitted.session(), *set);
    if (rows.width == 0)
      throw Exception(ErrorCode::unsupported, "this network has no hidden layer, so it has no embedding");
    const OutMatrix to(out, "out");
    to.check(rows.values.size() / rows.width, rows.width);
    for (std::size_t i = 0; i < rows.values.size(); ++i) to.set(i / rows.width, i % rows.width, rows.values[i]);
  });
}

int gradloom_measure(gradloom_handle model, const char* settings, const gradloom_array* x, const gradloom_array* y,
                     char** json) {
  return call([&] {
    given(json, "json");
    Settings s(settings);
    const std::vector<std::string> classes = s.names("classes");
    s.done();
    const Used<ModelObject> used(model, "model");
    const PartMetrics metrics = used->fitted.measure(matrix(x, "x"), target_view(y, classes));
    const Precision precision = used->fitted.session().options().precision;
    *json = copy_text(with_warnings(to_json(metrics), metric_warnings(metrics, "the rows", precision)).dump());
  });
}

int gradloom_refine(gradloom_handle model, int64_t grid, gradloom_handle* refined) {
  return call([&] {
    given(refined, "refined");
    if (grid < 1) throw_invalid(fmt::format("grid is {}; it must be 1 or more", grid));
    const Used<ModelObject> used(model, "model");
    auto session = app::refine(used->fitted.session(), static_cast<std::size_t>(grid), used->settings);
    auto made = std::make_shared<ModelObject>(std::move(session), used->settings);
    made->stop = used->stop;
    made->history = used->history;
    if (used->settings.device) made->turn = used->turn;
    *refined = open_object(std::move(made));
  });
}

int gradloom_draw(gradloom_handle model, const char* format, char** text) {
  return call([&] {
    given(text, "text");
    const Used<ModelObject> used(model, "model");
    const std::string asked = given(format, "format");
    Session& session = used->fitted.session();
    std::vector<EpochReport> epochs;
    for (const EpochRow& row : used->history) epochs.push_back(row.report);
    if (asked == "svg")
      *text = copy_text(app::draw_network(session));
    else if (asked == "json")
      *text = copy_text(app::network_edges(session).dump());
    else if (asked == "html")
      *text = copy_text(app::model_page(session, epochs));
    else
      throw_invalid(fmt::format("format is \"{}\"; there are svg, json and html", asked));
  });
}
