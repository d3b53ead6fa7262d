// The parts of a run's report that every family has: figures, loss curves, metrics, stages, time.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gradloom/app/options/family.h"
#include "gradloom/app/report.h"
#include "gradloom/io/run_folder.h"

namespace gradloom::app {

// `settings` is the recipe as text, `summary` as in RunOutcome; the curves come from the folder's log. `learned_from`
// says how much was trained on.
Report run_report(const FamilyOptions& options, std::string settings, const nlohmann::json& summary,
                  const RunFolder& folder, const std::string& learned_from);

// What the report of a run is titled: the recipe's name, which may be empty, and the folder's, unless that begins with
// it, as those do that we name ourselves.
std::string run_title(const std::string& name, const std::filesystem::path& folder);

// A time with no more digits than mean something.
Figure time_figure(double seconds);

// Where the time went, when the run was profiled.
void add_phases(const nlohmann::json& summary, Report& report);

}  // namespace gradloom::app
