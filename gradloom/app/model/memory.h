// Sessions on data in memory: what gradloom.h and the C ABI open. All are ready to train (preflight() is done).
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gradloom/app/predict/table.h"
#include "gradloom/data/graph.h"
#include "gradloom/data/new_rows.h"
#include "gradloom/session/families/automaton/options.h"
#include "gradloom/session/families/gates/options.h"
#include "gradloom/session/families/graph/options.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/session/session.h"

namespace gradloom::app {

// Rows to learn from. The last `validation` of them are validation data; 0: the fraction data.validation of the rows.
struct MemoryRows {
  LoadedRows loaded;
  std::size_t validation = 0;
};

// The options' task follows from the rows; data.test says which part is held out. `from`: a trained model that training
// will start from, or null; its scaling of rows is kept. Throws invalid_input when something does not fit, and when
// model.size is "auto", which settle() replaces.
std::unique_ptr<Session> open_rows(const MemoryRows& rows, KanOptions options, const SessionOptions& settings,
                                   const Session* from);
std::unique_ptr<Session> open_rows(const MemoryRows& rows, GatesOptions options, const SessionOptions& settings,
                                   const Session* from);

// Options of which model.size = "auto" leaves nothing to the rows any more, and how they were found.
template <class O>
struct Settled {
  O options;
  nlohmann::json found;
};
// None: the recipe leaves nothing to the rows. O: KanOptions or GatesOptions.
template <class O>
std::optional<Settled<O>> settle(nlohmann::json recipe, const MemoryRows& rows, const SessionOptions& settings);

// Rows of a table, given as text with a header; what is missing is an empty cell. The options then say that the data
// are a file, so that new tables are matched by the names of columns.
template <class O>
LoadedRows rows_of_text(std::string text, O& options);

std::unique_ptr<Session> open_graphs(std::shared_ptr<const GraphSet> graphs, const GraphOptions& options,
                                     const SessionOptions& settings);

// A picture of bits (channels, height, width) to reach.
struct BitImage {
  std::size_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> bits;
};
std::unique_ptr<Session> open_image(BitImage image, AutomatonOptions options, const SessionOptions& settings);

// Trains to the end, or until a stop, from the beginning or from a trained model.
TrainEnd train_from(Session& session, const Session* from, SessionListener& listener);

// New rows of a table, for a model of rows; a missing value is an error unless data.missing is "mean". Throws
// unsupported for other models.
NewRows<double> new_rows_of_text(const Session& session, std::string text);

// What a model of graphs says of new ones: the array of a table of predictions. Throws unsupported for other models.
PredictedTable predict_graphs(const Session& session, GraphSet graphs);

// The embedding of each node or graph: the input of the model's head. Throws as predict_graphs does.
PredictedRows embed_graphs(const Session& session, GraphSet graphs);
// The width of these rows; 0 for models that have none.
std::size_t embedding_width(const Session& session);

// A spline network with `grid` grid intervals and the same functions; without data.
std::unique_ptr<Session> refine(const Session& session, std::size_t grid, const SessionOptions& settings);

}  // namespace gradloom::app
