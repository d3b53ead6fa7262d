#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/model/memory.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/gradloom.h"
#include "gradloom/session/rows.h"

namespace gradloom {
namespace {

template <class O>
FittedModel fit_rows(const MatrixView& x, const TargetView& y, const O& options, const FitOptions& more) {
  const app::MemoryRows rows{{rows_from_memory(x, y, {more.features, more.targets}, more.weights), {}, {}}};
  const Session* from = more.from ? &more.from->session() : nullptr;
  std::unique_ptr<Session> session = app::open_rows(rows, options, more.session, from);

  struct Listener : SessionListener {
    const FitOptions& more;
    explicit Listener(const FitOptions& m) : more(m) {}
    void after_epoch(Session&, const EpochReport& report, const nlohmann::json&) override {
      if (more.after_epoch) more.after_epoch(report);
    }
  } listener(more);
  app::train_from(*session, from, listener);
  return FittedModel(std::move(session));
}

// Columns are targets, or probabilities of classes.
Prediction prediction_of(const ModelDescription& about, const PredictedRows& y, std::size_t rows) {
  Prediction p;
  p.rows = rows;
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

}  // namespace

FittedModel fit(const MatrixView& x, const TargetView& y, const KanOptions& options, const FitOptions& more) {
  return fit_rows(x, y, options, more);
}

FittedModel fit(const MatrixView& x, const TargetView& y, const GatesOptions& options, const FitOptions& more) {
  return fit_rows(x, y, options, more);
}

FittedModel load(const std::filesystem::path& path, const SessionOptions& settings) {
  return FittedModel(app::open_model(path, settings).or_throw());
}

void FittedModel::save(const std::filesystem::path& file) const {
  const app::AppFamily& family = app::find_family(session_->options().family);
  session_->save_model(file, family.options(*session_)).or_throw();
}

std::string FittedModel::save_bytes() const {
  const app::AppFamily& family = app::find_family(session_->options().family);
  return session_->model_bytes(family.options(*session_));
}

Prediction FittedModel::predict(const MatrixView& x) const {
  const ModelDescription about = session_->describe();
  return prediction_of(about, session_->predict(new_rows_from_memory(no_rows(about).train, x, nullptr)), x.rows());
}

Prediction FittedModel::predict_table(std::string csv) const {
  const NewRows<double> rows = app::new_rows_of_text(*session_, std::move(csv));
  return prediction_of(session_->describe(), session_->predict(rows.rows), rows.rows.size());
}

FittedModel FittedModel::refine(std::size_t grid, const SessionOptions& settings) const {
  return FittedModel(app::refine(*session_, grid, settings));
}

PartMetrics FittedModel::measure(const MatrixView& x, const TargetView& y) const {
  return session_->measure(new_rows_from_memory(no_rows(session_->describe()).train, x, &y));
}

Metrics FittedModel::metrics() const {
  if (session_->samples() == 0)
    throw Exception(ErrorCode::unsupported, "a model from a file has no data; pass some with measure(x, y)");
  return session_->metrics();
}

std::vector<std::string> FittedModel::features() const { return session_->describe().features; }
std::vector<std::string> FittedModel::targets() const { return session_->describe().targets; }
std::vector<std::string> FittedModel::classes() const { return session_->describe().classes; }

}  // namespace gradloom
