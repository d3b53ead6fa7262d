#include "gradloom/app/model/memory.h"

#include <fmt/format.h>

#include <numeric>

#include "gradloom/app/families/families.h"
#include "gradloom/app/families/gates/settle.h"
#include "gradloom/app/families/graph/load.h"
#include "gradloom/app/families/kan/settle.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/settings.h"
#include "gradloom/session/families/automaton/family.h"
#include "gradloom/session/families/gates/family.h"
#include "gradloom/session/families/graph/family.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

constexpr const char* kTextTable = "table.csv";  // what a table from memory is called

// Names the key and value of an option that no recipe could have.
template <class O>
void check_memory_options(const O& options) {
  const OptionSchema<O>& schema = option_schema<O>();
  for (std::size_t s = 0; s < stage_count(options); ++s) {
    const Config config = config_from_json(schema.schema(), schema.to_json(stage_of(options, s)), "options").or_throw();
    check_precision(config).or_throw();
  }
}

// Calls f with the family's session in its precision; false: it is of another family.
template <template <class> class F, class Call>
bool with_family(const Session& session, Call&& f) {
  if (!is_of<F>(session)) return false;
  with_typed<F>(session, f);
  return true;
}

[[noreturn]] void refuse_family(const Session& session, const char* what) {
  throw Exception(ErrorCode::unsupported,
                  fmt::format("a model of family \"{}\" takes no {}", session.options().family, what));
}

RowSplits split_memory(const MemoryRows& rows, const RowFamilyOptions& options) {
  const LoadedRows& all = rows.loaded;
  if (rows.validation == 0) return split_rows(all, options.data, data_seed(options)).or_throw();
  if (rows.validation >= all.rows.size())
    throw_invalid(
        fmt::format("{} of {} rows are validation data; none is left for training", rows.validation, all.rows.size()));
  std::vector<std::uint32_t> first(all.rows.size() - rows.validation), last(rows.validation);
  std::iota(first.begin(), first.end(), 0u);
  std::iota(last.begin(), last.end(), static_cast<std::uint32_t>(first.size()));
  RowDataOptions others = options.data;
  others.validation = 0.0;
  RowSplits parts = split_rows({all.rows.subset(first), all.code, {}}, others, data_seed(options)).or_throw();
  parts.validation = all.rows.subset(last);
  return parts;
}

// What follows from the rows, whatever the options say.
template <class O>
void adapt_to(const MemoryRows& rows, O& options) {
  options.task = rows.loaded.rows.is_classification() ? Task::classification : Task::regression;
  // Of an array nothing is missing, and no means are known that a model file could fill in.
  if (rows.loaded.code.features.empty()) options.data.source.missing = MissingPolicy::error;
}

void require_classes(const MemoryRows& rows) {
  if (!rows.loaded.rows.is_classification())
    throw_invalid("y holds numbers, but gates learn classes: pass integers, or names of classes");
}

template <template <class> class F, class O>
std::unique_ptr<Session> open_row_family(const MemoryRows& rows, O options, const SessionOptions& settings,
                                         const RowCentres* centres) {
  adapt_to(rows, options);
  for (O& stage : options.stages) adapt_to(rows, stage);
  check_memory_options(options);
  RowSplits parts = split_memory(rows, options);
  if (centres) parts.centres = *centres;
  std::unique_ptr<Session> session = make_session<F>(options, parts, settings);
  session->preflight();
  return session;
}

// Files write what is missing in many ways; a caller has texts, and leaves out what he does not have.
void take_texts_as_they_are(RowSource& source, std::vector<std::string> texts) {
  source.missing_words = {""};
  source.csv.texts = std::move(texts);
}

}  // namespace

std::unique_ptr<Session> open_rows(const MemoryRows& rows, KanOptions options, const SessionOptions& settings,
                                   const Session* from) {
  if (options.model.size == SizePolicy::automatic)
    throw Exception(ErrorCode::unsupported,
                    "model.size = \"auto\" belongs to recipes; in options set model.hidden and model.grid");
  const RowCentres* centres = nullptr;
  if (from) with_family<KanFamily>(*from, [&](const auto& typed) { centres = &typed.family().centres(); });
  return open_row_family<KanFamily>(rows, std::move(options), settings, centres);
}

std::unique_ptr<Session> open_rows(const MemoryRows& rows, GatesOptions options, const SessionOptions& settings,
                                   const Session* from) {
  if (from)
    throw Exception(ErrorCode::unsupported,
                    "training of gates cannot start from a trained model; only that of spline networks can");
  if (options.model.size == SizePolicy::automatic)
    throw Exception(ErrorCode::unsupported, "model.size = \"auto\" belongs to recipes; in options set model.gates");
  require_classes(rows);
  return open_row_family<GatesFamily>(rows, std::move(options), settings, nullptr);
}

template <class O>
std::optional<Settled<O>> settle(nlohmann::json recipe, const MemoryRows& rows, const SessionOptions& settings) {
  if constexpr (std::is_same_v<O, GatesOptions>) require_classes(rows);
  const OptionSchema<O>& schema = option_schema<O>();
  O adapted = schema.from_json(recipe, "recipe").or_throw();
  adapt_to(rows, adapted);
  recipe["task"] = name_of(kTasks, adapted.task);
  recipe["data"]["missing"] = name_of(kMissingPolicies, adapted.data.source.missing);
  const Config config = config_from_json(schema.schema(), recipe, "recipe").or_throw();
  check_precision(config).or_throw();
  const std::function<Result<RowSplits>(const O&)> split = [&](const O& options) -> Result<RowSplits> {
    return split_memory(rows, options);
  };
  const auto kind = rows.validation > 0 ? ValidationRows::given : ValidationRows::drawn;
  auto settled = settle_rows(config, split, kind, settings).or_throw();
  if (!settled) return std::nullopt;
  return Settled<O>{schema.read(settled->recipe), std::move(settled->found)};
}
template std::optional<Settled<KanOptions>> settle(nlohmann::json, const MemoryRows&, const SessionOptions&);
template std::optional<Settled<GatesOptions>> settle(nlohmann::json, const MemoryRows&, const SessionOptions&);

template <class O>
LoadedRows rows_of_text(std::string text, O& options) {
  options.data.path = FileName{kTextTable};
  for (O& stage : options.stages) stage.data.path = options.data.path;
  RowSource source = options.data.source;
  source.path = kTextTable;
  source.task = options.task;
  source.csv.header = CsvHeader::present;
  std::vector<std::string> texts = source.categorical;
  if (source.task == Task::classification) texts.insert(texts.end(), source.target.begin(), source.target.end());
  take_texts_as_they_are(source, std::move(texts));
  return rows_from_table(parse_csv(std::move(text), source.csv, kTextTable).or_throw(), source).or_throw();
}
template LoadedRows rows_of_text(std::string, KanOptions&);
template LoadedRows rows_of_text(std::string, GatesOptions&);

std::unique_ptr<Session> open_graphs(std::shared_ptr<const GraphSet> graphs, const GraphOptions& options,
                                     const SessionOptions& settings) {
  check_memory_options(options);
  auto session = make_session<GraphFamily>(options, std::move(graphs), settings);
  session->preflight();
  return session;
}

std::unique_ptr<Session> open_image(BitImage image, AutomatonOptions options, const SessionOptions& settings) {
  if (image.channels > options.model.channels)
    throw_invalid(fmt::format("the picture has {} channels, more than the {} of model.channels", image.channels,
                              options.model.channels));
  GridTask task = options.data.task;
  task.kind = GridTaskKind::picture;
  task.channels = options.model.channels;
  task.height = image.height;
  task.width = image.width;
  task.image = std::move(image.bits);
  options.data.task = task;
  options.data.task.image.clear();
  for (AutomatonOptions& stage : options.stages) stage.data.task = options.data.task;
  check_memory_options(options);
  auto session = make_session<AutomatonFamily>(options, task, settings);
  session->preflight();
  return session;
}

TrainEnd train_from(Session& session, const Session* from, SessionListener& listener) {
  if (from)
    session.start_from(*from);
  else if (session.start() == TrainEnd::stopped)
    return TrainEnd::stopped;
  return train(session, listener);
}

NewRows<double> new_rows_of_text(const Session& session, std::string text) {
  std::optional<NewRows<double>> rows;
  const auto read = [&](const auto& typed) {
    const auto& family = typed.family();
    RowSource source = family.options().data.source;
    source.task = family.options().task;
    if (family.options().data.path) source.path = kTextTable;
    LoadedRows training = family.schema().training;
    if (training.code.features.empty())  // rows from memory: each column is a feature
      for (const std::string& name : training.rows.feature_names()) training.code.features.push_back({name, {}, {}});
    std::vector<std::string> texts;
    for (const ColumnCode& column : training.code.features)
      if (!column.categories.empty()) texts.push_back(column.name);
    take_texts_as_they_are(source, std::move(texts));
    // The caller wants a prediction for each of his rows.
    if (source.missing == MissingPolicy::drop) source.missing = MissingPolicy::error;
    rows = new_rows_from_text(source, training, std::move(text), "the table", NewTargets::optional).or_throw();
  };
  if (!with_family<KanFamily>(session, read) && !with_family<GatesFamily>(session, read))
    refuse_family(session, "tables");
  return std::move(*rows);
}

PredictedTable predict_graphs(const Session& session, GraphSet graphs) {
  std::optional<PredictedTable> table;
  const auto ask = [&](const auto& typed) {
    table = predict_graph_set(typed, align_graphs(typed.family().layout(), std::move(graphs)).or_throw());
  };
  if (!with_family<GraphFamily>(session, ask)) refuse_family(session, "graphs");
  return std::move(*table);
}

PredictedRows embed_graphs(const Session& session, GraphSet graphs) {
  PredictedRows rows;
  const auto ask = [&](const auto& typed) {
    rows = embed_graph_set(typed, align_graphs(typed.family().layout(), std::move(graphs)).or_throw());
  };
  if (!with_family<GraphFamily>(session, ask)) refuse_family(session, "graphs");
  return rows;
}

std::size_t embedding_width(const Session& session) {
  std::size_t width = 0;
  with_family<GraphFamily>(session, [&](const auto& typed) {
    const auto model = typed.model();  // outlives the loop
    for (const graph::Tensor& part : model.embedding()) width += part.width;
  });
  return width;
}

std::unique_ptr<Session> refine(const Session& session, std::size_t grid, const SessionOptions& settings) {
  std::unique_ptr<Session> refined;
  const auto derive = [&](const auto& typed) {
    KanOptions options = stage_of(typed.family().options(), typed.position().stage);
    options.stages.clear();
    options.model.grid = static_cast<unsigned>(std::min<std::size_t>(grid, 1u << 30));
    check_memory_options(options);
    refined = derive_session<KanFamily>(options, session, settings);
  };
  if (!with_family<KanFamily>(session, derive)) refuse_family(session, "grid: only spline networks have a grid");
  return refined;
}

}  // namespace gradloom::app
