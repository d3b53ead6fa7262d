// What train() and resume() share: the session of a recipe, ranks that meet, and what follows training.
#pragma once

#include <memory>

#include "gradloom/app/families/families.h"
#include "gradloom/app/run/recorder.h"
#include "gradloom/app/run/run.h"

namespace gradloom::app {

const AppFamily& family_of(const Config& recipe);

// Fails as the family does, saying where files were looked for.
Result<std::unique_ptr<Session>> open_session(const Config& recipe, const RunOptions& options);

// Whether this is a rank other than 0.
bool follows(const RunOptions& options);

// Before ranks train together: they must be about to do the same, or this throws io. Where they cannot share the steps,
// rank 0 trains alone.
void meet_ranks(const Config& recipe, Session& session, const RunOptions& options);

// What a rank other than 0 does: its share of the steps, and of what follows.
RunSummary train_share(const AppFamily& family, Session& session, const RunOptions& options);

RunSummary interrupted(const Session& session, const RunFolder* folder, const RunRecorder& recorder);

// Trains to the end, or until a stop; then measures, and writes what a finished run leaves in its folder, if it has
// one (else null).
Result<RunSummary> run_session(const Config& recipe, Session& session, const RunOptions& options, RunRecorder& recorder,
                               const RunFolder* folder);

}  // namespace gradloom::app
