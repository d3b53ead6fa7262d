// The parts of a run's report that every family has: figures, loss curves, metrics, stages, time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/app/families/families.h"
#include "gradloom/app/report/report.h"
#include "gradloom/app/run/run.h"

namespace gradloom::app {

// `headlines` are the metrics shown first, `settings` is the recipe as text; the summary has a result; `folder` is
// that of the run, `log` the lines of its log.
Report run_report(const Session& session, std::span<const Headline> headlines, std::string settings,
                  const RunSummary& summary, const std::filesystem::path& folder,
                  const std::vector<nlohmann::json>& log);

// What the report of a run is titled: the recipe's name, which may be empty, and the folder's, unless that begins with
// it, as those do that we name ourselves.
std::string run_title(const std::string& name, const std::filesystem::path& folder);

// A time with no more digits than mean something.
Figure time_figure(double seconds);

// Where the time went, when the run was profiled.
void add_phases(const RunResult& result, Report& report);

}  // namespace gradloom::app
