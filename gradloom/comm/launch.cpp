#include "gradloom/comm/launch.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

struct Variables {
  const char *launcher, *rank, *size, *local;
};

// mpirun inside of a Slurm job sets its own, so it comes first. srun alone sets those of a step; a job script has
// SLURM_NTASKS without being one of so many.
constexpr Variables kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
};

// The number that a text begins with: Slurm writes "4(x2)".
std::optional<unsigned> leading_number(const char* text) {
  unsigned value = 0;
  if (!text || std::from_chars(text, text + std::strlen(text), value).ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Launch> find_launch(FunctionRef<const char*(const char*)> variable) {
  for (const Variables& names : kLaunchers) {
    const auto rank = leading_number(variable(names.rank)), size = leading_number(variable(names.size));
    if (!rank || !size) continue;
    if (*rank >= *size)
      throw_invalid(std::string(names.rank) + " is " + std::to_string(*rank) + " and " + names.size + " is " +
                    std::to_string(*size) + "; the first must be smaller than the second");
    if (*size == 1) return std::nullopt;
    const unsigned local = leading_number(variable(names.local)).value_or(1);
    return Launch{names.launcher, *rank, *size, std::clamp(local, 1u, *size)};
  }
  return std::nullopt;
}

unsigned threads_of_rank(const Launch& launch, unsigned usable, unsigned online) {
  const bool own = usable * launch.local_size <= online;  // the launcher gave each rank processors of its own
  return std::max(1u, own ? usable : usable / launch.local_size);
}

}  // namespace gradloom
