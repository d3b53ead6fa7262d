// What the report shows of a formula that a run of a spline network found.
#pragma once

#include <nlohmann/json.hpp>

#include "gradloom/app/report/report.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {

// The formula typeset, the inputs by what they contribute, the network without edges that matter little, each edge that
// does with its candidate. `found` is what `gradloom formula --json` prints; `picture` is the whole network.
void add_formula_sections(const nlohmann::json& found, SplineNetwork picture, Report& report);

// The inputs and edges by what they contribute, of a network without a formula. `scores` has `columns` and `edges` as
// `found` has.
void add_score_sections(const nlohmann::json& scores, SplineNetwork picture, Report& report);

// Predicted against true, of the test rows or the training rows where there are none; `found` may be null. Of up to
// kMostConfused classes a table of counts.
inline constexpr std::size_t kMostConfused = 20;
template <class T>
void add_predictions(const TypedSession<KanFamily<T>>& session, const nlohmann::json& found, Report& report);

}  // namespace gradloom::app
