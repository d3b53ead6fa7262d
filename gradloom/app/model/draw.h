// What a model in memory looks like: the drawing of a network, and a page with all that is known.
#pragma once

#include <string>
#include <vector>

#include "gradloom/session/session.h"

namespace gradloom::app {

// An SVG file: a spline network with the function of every edge. Where the session has no data, how much an edge
// matters is measured on random rows from the ranges of the training data. Throws unsupported for other families, and
// for a network too large to be drawn.
std::string draw_network(const Session& session);

// The edges of a spline network: a list of {layer, from, to, x, y, importance}. Throws unsupported for other families.
nlohmann::json network_edges(const Session& session);

// The page that a run folder would have as its report, as far as the session knows it.
std::string model_page(Session& session, const std::vector<EpochReport>& epochs);

}  // namespace gradloom::app
