// What the application does with automata: the task that options name, the pictures of a report, new starts.
#pragma once

#include <filesystem>

#include "gradloom/app/predict/table.h"
#include "gradloom/app/report/report.h"
#include "gradloom/app/text.h"
#include "gradloom/base/result.h"
#include "gradloom/session/families/automaton/options.h"
#include "gradloom/session/families/automaton/study.h"

namespace gradloom::app {

// Fails when a picture cannot be read.
Result<GridTask> load_automaton(const AutomatonOptions& options, const std::filesystem::path& data_root);

// A strip of states and an animation; and curves of what the study found.
void describe_automaton(const Exec& ex, const AutomatonSubject& subject, const nlohmann::json& study, Report& report);

// What an evaluation says beyond the metrics: a line for each finding.
std::vector<TextRow> automaton_rows(const nlohmann::json& study);

// Runs the starts of an array of bits. Fails with invalid_input on other arrays, and as read_npy() does.
Result<PredictedTable> run_automaton(const Exec& ex, const AutomatonSubject& subject,
                                     const std::filesystem::path& file);

}  // namespace gradloom::app
