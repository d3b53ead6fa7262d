// Sessions on data in memory: what gradloom.h and the C ABI open. All are ready to train (preflight() is done).
#pragma once

#include <memory>
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

// The options' task follows from the rows; data.validation and data.test say which part is held out. `from`: a trained
// model that training will start from, or null; its scaling of rows is kept. Throws invalid_input when something does
// not fit.
std::unique_ptr<Session> open_rows(const LoadedRows& rows, KanOptions options, const SessionOptions& settings,
                                   const Session* from);
std::unique_ptr<Session> open_rows(const LoadedRows& rows, GatesOptions options, const SessionOptions& settings,
                                   const Session* from);

// Rows of a table, given as text with a header. The options then say that the data are a file, so that new tables are
// matched by the names of columns.
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

// New rows of a table, for a model of rows. Throws unsupported for other models.
NewRows<double> new_rows_of_text(const Session& session, std::string text);

// What a model of graphs says of new ones: the array of a table of predictions. Throws unsupported for other models.
PredictedTable predict_graphs(const Session& session, GraphSet graphs);

// A spline network with so many grid intervals and the same functions; without data.
std::unique_ptr<Session> refine(const Session& session, std::size_t grid, const SessionOptions& settings);

}  // namespace gradloom::app
