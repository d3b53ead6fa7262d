#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/gradloom.h"
#include "gradloom/session/families/gates/family.h"
#include "gradloom/session/families/kan/family.h"

namespace gradloom {
namespace {

// Names the key and value of an option that no recipe could have.
template <class O>
void check_options(const O& options) {
  const OptionSchema<O>& schema = app::option_schema<O>();
  const Config config = config_from_json(schema.schema(), schema.to_json(options), "options").or_throw();
  app::check_precision(config).or_throw();
}

template <class O, class Make>
FittedModel fit_rows(const MatrixView& x, const TargetView& y, O options, const FitOptions& more, Make make) {
  const Task task = y.are_classes() ? Task::classification : Task::regression;
  options.task = task;
  for (O& stage : options.stages) stage.task = task;
  for (std::size_t s = 0; s < stage_count(options); ++s) check_options(stage_of(options, s));
  const LoadedRows rows{rows_from_memory(x, y, {more.features, more.targets}, more.weights), {}, {}};
  const RowSplits parts = split_rows(rows, options.data, data_seed(options)).or_throw();
  std::unique_ptr<Session> session = make(options, parts, more.session);
  session->preflight();

  struct Listener : SessionListener {
    const FitOptions& more;
    explicit Listener(const FitOptions& m) : more(m) {}
    void after_epoch(Session&, const EpochReport& report, const nlohmann::json&) override {
      if (more.after_epoch) more.after_epoch(report);
    }
  } listener(more);
  if (session->start() == TrainEnd::finished) train(*session, listener);
  return FittedModel(std::move(session));
}

}  // namespace

FittedModel fit(const MatrixView& x, const TargetView& y, const KanOptions& options, const FitOptions& more) {
  return fit_rows(x, y, options, more, make_session<KanFamily>);
}

FittedModel fit(const MatrixView& x, const TargetView& y, const GatesOptions& options, const FitOptions& more) {
  if (!y.are_classes()) throw_invalid("y holds numbers, but gates learn classes: pass integers, or names of classes");
  return fit_rows(x, y, options, more, make_session<GatesFamily>);
}

FittedModel load(const std::filesystem::path& path, const SessionOptions& settings) {
  return FittedModel(app::open_model(path, settings).or_throw());
}

void FittedModel::save(const std::filesystem::path& file) const {
  const app::AppFamily& family = app::find_family(session_->options().family);
  session_->save_model(file, family.options(*session_)).or_throw();
}

Prediction FittedModel::predict(const MatrixView& x) const {
  const ModelDescription about = session_->describe();
  const PredictedRows y = session_->predict(new_rows_from_memory(no_rows(about).train, x, nullptr));
  Prediction p;
  p.rows = x.rows();
  p.columns = about.classes.empty() ? about.targets.size() : about.classes.size();
  p.names = about.classes.empty() ? about.targets : about.classes;
  if (about.classes.empty()) {
    p.values = y.values;
    return p;
  }
  p.values.resize(p.rows * p.columns);
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::span<const double> logits(y.values.data() + r * y.width, y.width);
    app::to_probabilities(logits, std::span(p.values).subspan(r * p.columns, p.columns));
    p.label.push_back(app::chosen_class(logits));
  }
  return p;
}

PartMetrics FittedModel::measure(const MatrixView& x, const TargetView& y) const {
  return session_->measure(new_rows_from_memory(no_rows(session_->describe()).train, x, &y));
}

Metrics FittedModel::metrics() const {
  if (session_->samples() == 0)
    throw Exception(ErrorCode::unsupported, "a model from a file has no data; measure(x, y) takes some");
  return session_->metrics();
}

std::vector<std::string> FittedModel::features() const { return session_->describe().features; }
std::vector<std::string> FittedModel::targets() const { return session_->describe().targets; }
std::vector<std::string> FittedModel::classes() const { return session_->describe().classes; }

}  // namespace gradloom
