#include "cli/ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/comm/launch.h"
#include "gradloom/comm/mpi.h"
#include "gradloom/io/file.h"

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

// How long a rank waits for another one: GRADLOOM_MPI_SECONDS.
double patience() {
  const char* given = std::getenv("GRADLOOM_MPI_SECONDS");
  if (!given || !*given) return MpiOptions().seconds;
  double seconds = 0.0;
  const char* end = given + std::strlen(given);
  const auto read = std::from_chars(given, end, seconds);
  if (read.ec != std::errc() || read.ptr != end || !(seconds > 0 && seconds <= 1e6))
    throw_invalid(std::string("GRADLOOM_MPI_SECONDS is '") + given + "'; it must be a number of seconds above 0");
  return seconds;
}

// Ends the process unless it is destroyed in time: MPI starts when all ranks have come, and cannot be told to give up.
class StartWatch {
 public:
  StartWatch(double seconds, std::function<void()> tell)
      : thread_([this, seconds, tell = std::move(tell)] {
          std::unique_lock lock(mutex_);
          if (started_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done_; })) return;
          tell();
          std::fflush(stdout);
          _exit(kFailed);
        }) {}
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;
  ~StartWatch() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    started_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable started_;
  bool done_ = false;
  std::thread thread_;
};

int spoken_to = -1;  // standard error of a silent rank, as the launcher gave it

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
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  spoken_to = fcntl(2, F_DUPFD_CLOEXEC, 0);
  dup2(nowhere, 1), dup2(nowhere, 2);
  close(nowhere);
}

std::string speak_for_itself() {
  constexpr auto kMoment = std::chrono::seconds(2);
  std::this_thread::sleep_for(kMoment);
  if (spoken_to >= 0) dup2(spoken_to, 2);
  return fmt::format("rank {}", this_launch()->rank);
}

std::unique_ptr<Comm> join_ranks(const Output& out) {
  const auto launch = this_launch();
  if (!launch) return nullptr;
  const double seconds = patience();
  const StartWatch watch(seconds, [&] {
    out.fail(code_name(ErrorCode::io),
             fmt::format("not all of the {} ranks started within {} s, so MPI does not start", launch->size, seconds),
             "set GRADLOOM_MPI_SECONDS to wait longer");
  });
  return open_mpi(*launch, {.places = plugin_places(), .version = GRADLOOM_VERSION, .seconds = seconds}).or_throw();
}

unsigned threads_of_this_rank() {
  const auto launch = this_launch();
  if (!launch) return 0;
  const long online = sysconf(_SC_NPROCESSORS_CONF);
  return threads_of_rank(*launch, std::max(1u, std::thread::hardware_concurrency()),
                         static_cast<unsigned>(std::max(1L, online)));
}

bool all_see(Comm& comm, const fs::path& folder) {
  const std::string name = comm.broadcast(fmt::format(".ranks-{}", getpid()));
  std::error_code error;
  if (comm.rank() == 0) {
    fs::create_directories(folder, error);
    if (error) throw Exception(system_error("make the folder", folder, error.value()));
    write_file_atomic(folder / name, "").or_throw();
  }
  comm.barrier();
  const bool sees = fs::exists(folder / name, error) && access(folder.c_str(), W_OK) == 0;
  const bool all = comm.all_of(sees);
  if (comm.rank() == 0) fs::remove(folder / name, error);
  return all;
}

int end_together(Comm& comm, int code) {
  comm.barrier(Patience::unlimited);
  std::vector<int> codes(comm.size());
  comm.allgather(std::as_bytes(std::span(&code, 1)), std::as_writable_bytes(std::span(codes)));
  return codes[0];
}

}  // namespace gradloom::cli
