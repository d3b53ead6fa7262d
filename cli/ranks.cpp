#include "cli/ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/comm/launch.h"
#include "gradloom/comm/mpi.h"

namespace gradloom::cli {
namespace {

namespace fs = std::filesystem;

std::optional<Launch> this_launch() {
  return find_launch([](const char* name) -> const char* { return std::getenv(name); });
}

// GRADLOOM_MPI, else beside the program, in the folder of its libraries, and where the system looks.
std::vector<fs::path> plugin_places() {
  if (const char* given = std::getenv("GRADLOOM_MPI"); given && *given) return {given};
  const fs::path name = "libgradloom_mpi.so";
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> places;
  for (const fs::path& place : {program / name, program / ".." / GRADLOOM_LIBDIR / "gradloom" / name})
    if (fs::exists(place, ignored)) places.push_back(place);
  places.push_back(name);
  return places;
}

}  // namespace

bool is_silent_rank() {
  try {
    const auto launch = this_launch();
    return launch && launch->rank > 0;
  } catch (const Exception&) {
    return false;  // join_ranks() tells
  }
}

void silence() {
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere < 0) return;
  dup2(nowhere, 1), dup2(nowhere, 2);
  close(nowhere);
}

std::unique_ptr<Comm> join_ranks() {
  const auto launch = this_launch();
  if (!launch) return nullptr;
  return open_mpi(*launch, {.places = plugin_places(), .version = GRADLOOM_VERSION}).or_throw();
}

unsigned threads_of_this_rank() {
  const auto launch = this_launch();
  if (!launch) return 0;
  const long online = sysconf(_SC_NPROCESSORS_CONF);
  return threads_of_rank(*launch, std::max(1u, std::thread::hardware_concurrency()),
                         static_cast<unsigned>(std::max(1L, online)));
}

int end_together(Comm& comm, int code) {
  comm.barrier(Patience::unlimited);
  std::vector<int> codes(comm.size());
  comm.allgather(std::as_bytes(std::span(&code, 1)), std::as_writable_bytes(std::span(codes)));
  return codes[0];
}

}  // namespace gradloom::cli
