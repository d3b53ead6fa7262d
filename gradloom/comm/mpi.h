// Ranks of MPI, through the plug-in libgradloom_mpi.so.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/comm/comm.h"
#include "gradloom/comm/launch.h"

namespace gradloom {

struct MpiOptions {
  std::vector<std::filesystem::path> places;  // files to try in order; what has no slash is looked for by the system
  std::string version;                        // of this program; ranks of another one are refused
  double seconds = 600.0;                     // that a rank waits for another one
};

// Fails when there is no plug-in, it is of another version, MPI does not start, or sees another number of ranks than
// the launcher: then that belongs to another MPI.
Result<std::unique_ptr<Comm>> open_mpi(const Launch& launch, const MpiOptions& options);

}  // namespace gradloom
