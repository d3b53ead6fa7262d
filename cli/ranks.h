// Several processes that a launcher (mpirun, srun) started as one program: rank 0 speaks, the others are silent.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/output.h"

namespace gradloom::cli {

// Null: one process. Throws when a launcher started several and they cannot reach each other; where some never come,
// the process ends with a message.
std::unique_ptr<Comm> join_ranks(const Output& out);

// Before anything is printed: whether a launcher made this process one that is not to speak.
bool is_silent_rank();

// Sends standard output and standard error of this process nowhere.
void silence();

// For a rank that fails before it reaches the others, whose own failure rank 0 would not tell: standard error is back,
// after a moment in which the launcher ends all ranks if rank 0 has failed as well. Returns the name of this rank.
std::string speak_for_itself();

// What --threads 0 means: the processors that the launcher gave this rank. 0: no launcher, one thread per processor.
unsigned threads_of_this_rank();

// Whether all ranks see the folder, which rank 0 makes, and may write into it. Throws where rank 0 cannot.
bool all_see(Comm& comm, const std::filesystem::path& folder);

// The end of all ranks: waits for the others, as long as they take. Returns the exit code of rank 0.
int end_together(Comm& comm, int code);

}  // namespace gradloom::cli
