#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>

namespace gradloom::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};  // batch systems announce the end by the last

std::atomic<bool> stop_requested{false};
std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

std::array<struct sigaction, kSignals.size()> previous;
struct sigaction previous_pipe;

// Those of EndAtOnce; changed only while `ends_at_once` is false.
std::atomic<bool> ends_at_once{false};
std::vector<std::string> folders_to_remove;

void on_signal(int number) {
  if (ends_at_once.load()) {
    for (const std::string& folder : folders_to_remove) rmdir(folder.c_str());
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, number)) {
    stop_requested.store(true);
    return;
  }
  // The second one, of whatever kind: no more waiting. But a session that ends may send SIGHUP right after SIGTERM.
  if (number == SIGHUP) return;
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

StopSignals::StopSignals() {
  stop_requested = false;
  stop_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous_pipe);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  sigaction(SIGPIPE, &previous_pipe, nullptr);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

const std::atomic<bool>& StopSignals::requested() const { return stop_requested; }

int StopSignals::exit_code() const {
  const int signal = stop_signal.load(std::memory_order_relaxed);
  return 128 + (signal != 0 ? signal : SIGTERM);  // another rank was told to stop
}

EndAtOnce::EndAtOnce(std::vector<std::string> empty_folders) { folders_to_remove = std::move(empty_folders); }

EndAtOnce::~EndAtOnce() { end(); }

void EndAtOnce::begin() { ends_at_once = true; }
void EndAtOnce::end() { ends_at_once = false; }

bool open_closed_streams() {
  const bool has_output = fcntl(1, F_GETFD) >= 0;
  // open() takes the lowest number that is free.
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_RDONLY : O_WRONLY) < 0) break;
  return has_output;
}

void ignore_file_size_signal() { signal(SIGXFSZ, SIG_IGN); }

}  // namespace gradloom::cli
