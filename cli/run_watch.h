// Runs with progress, signals and a printed result, shared by train and resume.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/output.h"
#include "gradloom/app/run/run.h"

namespace gradloom::cli {

struct WatchedRun {
  app::RunSummary summary;
  int exit_code = kDone;  // that of the signal when it was interrupted
  int stop_code = kDone;  // the same for a signal that came when there was nothing left to train
  bool interrupted() const { return exit_code != kDone; }
};

// Calls work(options) with progress, log and stop filled in. Throws Failure when it fails, with advice about `folder`.
WatchedRun watch_run(const Output& out, const std::filesystem::path& folder, app::RunOptions options,
                     const std::function<Result<app::RunSummary>(const app::RunOptions&)>& work);

// What a run ended with, for people.
void print_run(const Output& out, const std::filesystem::path& folder, const WatchedRun& run);

}  // namespace gradloom::cli
