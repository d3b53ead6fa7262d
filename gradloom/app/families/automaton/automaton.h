// What the application does with automata: the task that options name, and the pictures of a report.
#pragma once

#include <filesystem>

#include "gradloom/app/report/report.h"
#include "gradloom/base/result.h"
#include "gradloom/session/families/automaton/options.h"
#include "gradloom/session/families/automaton/study.h"

namespace gradloom::app {

// Fails when a picture cannot be read.
Result<GridTask> load_automaton(const AutomatonOptions& options, const std::filesystem::path& data_root);

// A strip of states and an animation; and curves of what the study found.
void describe_automaton(const Exec& ex, const AutomatonSubject& subject, const nlohmann::json& study, Report& report);

}  // namespace gradloom::app
