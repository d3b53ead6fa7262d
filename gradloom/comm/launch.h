// What a launcher (mpirun, srun) tells a process about itself and its peers.
#pragma once

#include <optional>
#include <string>

#include "gradloom/base/function_ref.h"

namespace gradloom {

struct Launch {
  std::string launcher;  // "Open MPI", "MPICH", "Slurm"
  unsigned rank = 0, size = 1;
  unsigned local_size = 1;  // ranks on this machine, this one included; 1 where the launcher does not say
};

// Reads the environment through `variable`, which returns null for what is not set. None: no launcher, or one process.
// Throws invalid_input for variables that contradict each other.
std::optional<Launch> find_launch(FunctionRef<const char*(const char*)> variable);

// Threads of a rank: the processors it may use, divided by the ranks that share them; at least 1. `usable` is the
// number that the process may run on, `online` that of the machine.
unsigned threads_of_rank(const Launch& launch, unsigned usable, unsigned online);

}  // namespace gradloom
