// The session of a run's folder, in the state of its last checkpoint.
#pragma once

#include <memory>
#include <new>

#include "gradloom/app/run/run.h"
#include "gradloom/io/run_folder.h"

namespace gradloom::app {

struct OpenedRun {
  Config recipe;
  std::unique_ptr<Session> session;
  bool data_changed = false;  // the training data are not those of the checkpoint
};

// Loads the data that the recipe names. Fails with not_found when there is no checkpoint yet.
Result<OpenedRun> open_run(const RunFolder& folder, const RunOptions& options);

// Runs `work`, which may throw, as a function that fails.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory,
                 "there is not enough memory for this model and batch; try a smaller train.batch"};
  }
}

}  // namespace gradloom::app
