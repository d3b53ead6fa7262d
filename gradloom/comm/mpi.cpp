#include "gradloom/comm/mpi.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "gradloom/comm/mpi/plugin.h"

namespace gradloom {
namespace {

using Clock = std::chrono::steady_clock;

// Who a rank is: for a look whether it is alive, and for what must not differ.
struct Identity {
  char host[64] = {};
  char version[32] = {};
  std::int64_t process = 0;
};

class MpiComm final : public Comm {
 public:
  MpiComm(const GradloomMpi& mpi, unsigned rank, unsigned size, std::string library, double seconds)
      : Comm(rank, size, kPieceBytes), mpi_(mpi), library_(std::move(library)), seconds_(seconds) {}
  ~MpiComm() override {
    if (under_way()) {
      static auto* const kept = new std::deque<std::deque<Lists>>();
      kept->push_back(std::move(posts_));
      abandon_messages();
    }
    // Whoever waits for a dead rank in there waits for ever.
    if (!broken_ && !gone() && !under_way()) mpi_.close();
  }
  std::string library() const override { return library_; }

  // Behind this, ranks of this machine that die are noticed at once.
  void meet(const std::string& version) {
    Identity own;
    gethostname(own.host, sizeof(own.host) - 1);
    version.copy(own.version, sizeof(own.version) - 1);
    own.process = getpid();
    std::vector<Identity> all(size());
    allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
    for (unsigned other = 0; other < size(); ++other)
      if (std::strncmp(all[other].version, own.version, sizeof(own.version)) != 0)
        fail(other, std::string("runs version ") + all[other].version + " of gradloom, but rank " +
                        std::to_string(rank()) + " version " + own.version);
    // Processes of a container may have numbers that mean nothing here.
    for (Identity& other : all)
      if (std::strncmp(other.host, own.host, sizeof(own.host)) != 0 || !is_alive(other.process)) other.process = 0;
    peers_ = std::move(all);
  }

 private:
  static bool is_alive(std::int64_t process) { return kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

  static void list_messages(std::span<const Part> parts, std::vector<GradloomMpiMessage>& all) {
    all.clear();
    for (const Part& p : parts) all.push_back({static_cast<int>(p.rank), p.bytes.data(), p.bytes.size()});
  }

  void check(const char* error) {
    if (!error) return;
    broken_ = true;
    throw Exception(ErrorCode::io, std::string("MPI failed: ") + error);
  }

  void post(std::span<const Part> out, std::span<Part> in) override {
    if (first_ == last_) first_ = last_ = 0;
    if (last_ == posts_.size()) posts_.emplace_back();
    Lists& lists = posts_[last_++];
    list_messages(out, lists.out), list_messages(in, lists.in);
    check(mpi_.post(lists.out.data(), static_cast<int>(lists.out.size()), lists.in.data(),
                    static_cast<int>(lists.in.size())));
  }

  bool test(std::span<Part> in) override {
    int done = 0, waiting_for = -1;
    check(mpi_.test(&done, &waiting_for));
    if (done) end_post(in);
    return done;
  }

  void wait(std::span<Part> in, Patience patience) override {
    sleep_until_done(patience);
    end_post(in);
  }

  void end_post(std::span<Part> in) {
    const Lists& lists = posts_[first_++];
    for (std::size_t i = 0; i < in.size(); ++i) in[i].received = lists.in[i].bytes;
  }

  // Asks at once, then sleeps longer and longer: on a machine with more ranks than cores, whoever spins keeps the
  // others from answering.
  void sleep_until_done(Patience patience) {
    constexpr auto kSpin = std::chrono::microseconds(20), kLongest = std::chrono::microseconds(500);
    const auto start = Clock::now();
    auto pause = std::chrono::microseconds(10), look = std::chrono::microseconds(500000);
    for (int done = 0, waiting_for = -1;;) {
      check(mpi_.test(&done, &waiting_for));
      if (done) return;
      const auto waited = Clock::now() - start;
      if (waited < kSpin) continue;
      std::this_thread::sleep_for(pause);
      pause = std::min(kLongest, pause * 3 / 2);
      if (waited > look) {
        look += std::chrono::milliseconds(500);
        look_for_dead(waiting_for);
      }
      if (patience == Patience::limited && waited > std::chrono::duration<double>(seconds_)) {
        broken_ = true;
        fail_silent(waiting_for < 0 ? rank() : static_cast<unsigned>(waiting_for), seconds_);
      }
    }
  }

  void look_for_dead(int waiting_for) {
    for (unsigned other = 0; other < peers_.size(); ++other) {
      if (peers_[other].process == 0 || is_alive(peers_[other].process)) continue;
      if (waiting_for != static_cast<int>(other)) continue;  // what it has sent may be on its way
      broken_ = true;
      fail(other, "(process " + std::to_string(peers_[other].process) + " on " + peers_[other].host + ") has died");
    }
  }

  void send_farewell(std::span<const Part> out) override {
    if (broken_) return;
    std::vector<GradloomMpiMessage> sends;
    list_messages(out, sends);
    check(mpi_.post_farewell(sends.data(), static_cast<int>(sends.size())));
    broken_ = true;  // others may have ended without a word
  }

  const GradloomMpi& mpi_;
  std::string library_;
  double seconds_;
  bool broken_ = false;  // no rank may wait for all others any more
  std::vector<Identity> peers_;
  struct Lists {
    std::vector<GradloomMpiMessage> out, in;
  };
  std::deque<Lists> posts_;  // of those that are under way: [first_, last_); memory is kept
  std::size_t first_ = 0, last_ = 0;
};

}  // namespace

Result<std::unique_ptr<Comm>> open_mpi(const Launch& launch, const MpiOptions& options) {
  const std::string who =
      "rank " + std::to_string(launch.rank) + " of " + std::to_string(launch.size) + ", started by " + launch.launcher;
  void* library = nullptr;
  std::string tried;
  for (const std::filesystem::path& place : options.places) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);  // parts of MPI look for its symbols
    if (library) break;
    tried += std::string(tried.empty() ? "" : "; ") + dlerror();
  }
  if (!library)
    return Error{ErrorCode::unsupported,
                 who + ", cannot reach the other ranks: libgradloom_mpi.so was not loaded (" + tried +
                     "); build gradloom where MPI is installed (Debian: libopenmpi-dev), or start one process"};
  using Entry = const GradloomMpi* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, kGradloomMpiSymbol));
  const GradloomMpi* mpi = entry ? entry() : nullptr;
  if (!mpi || mpi->abi != kGradloomMpiAbi || options.version != mpi->version)
    return Error{ErrorCode::unsupported,
                 "libgradloom_mpi.so is of version " +
                     std::string(mpi && mpi->abi == kGradloomMpiAbi ? mpi->version : "unknown") +
                     ", this program of version " + options.version + "; install both together"};
  int rank = 0, size = 0;
  const char* name = "";
  if (const char* error = mpi->open(&rank, &size, &name))
    return Error{ErrorCode::unsupported, who + ": MPI does not start: " + error};
  if (static_cast<unsigned>(size) != launch.size || static_cast<unsigned>(rank) != launch.rank) {
    mpi->close();
    return Error{ErrorCode::unsupported,
                 who + ", is rank " + std::to_string(rank) + " of " + std::to_string(size) + " for " + name +
                     ", which libgradloom_mpi.so was built with; start it with the mpirun of that MPI"};
  }
  auto comm = std::make_unique<MpiComm>(*mpi, launch.rank, launch.size, name, options.seconds);
  try {
    comm->meet(options.version);
  } catch (const Exception& e) {
    return e.error();
  }
  return std::unique_ptr<Comm>(std::move(comm));
}

}  // namespace gradloom
