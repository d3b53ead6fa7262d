#include "tests/cli/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

namespace gradloom::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{1};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::filesystem::path capture_file(const char* what) {
  static std::atomic<int> counter{0};
  return std::filesystem::temp_directory_path() /
         ("gradloom-" + std::string(what) + "-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
}

// In the child, between fork and exec.
[[noreturn]] void become(const Launch& launch, int out, int err) {
  // Test runners in the background may have been started with signals ignored.
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(s, SIG_DFL);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (!launch.folder.empty() && ::chdir(launch.folder.c_str()) != 0) ::_exit(126);
  for (const auto& [name, value] : launch.environment)
    if (value.empty())
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), value.c_str(), 1);
  if (launch.file_size_limit) {
    const rlimit limit{*launch.file_size_limit, *launch.file_size_limit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::vector<char*> words{const_cast<char*>(launch.program.c_str())};
  for (const std::string& word : launch.arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(launch.program.c_str(), words.data());
  ::_exit(127);
}

}  // namespace

Process::Process(const Launch& launch) : out_(capture_file("out")), err_(capture_file("err")) {
  const int out = ::open(out_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  int err = -1;
  if (launch.terminal_columns) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(*launch.terminal_columns);
    size.ws_row = 24;
    if (::openpty(&terminal_, &err, nullptr, nullptr, &size) != 0) ADD_FAILURE() << "there is no terminal to be had";
    ::fcntl(terminal_, F_SETFD, FD_CLOEXEC);
    ::fcntl(terminal_, F_SETFL, O_NONBLOCK);
  } else {
    err = ::open(err_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  }
  pid_ = ::fork();
  if (pid_ == 0) become(launch, out, err);
  ::close(out);
  ::close(err);
  if (pid_ < 0) ADD_FAILURE() << "cannot fork";
}

Process::~Process() {
  if (running()) wait(std::chrono::seconds(0));
  if (terminal_ >= 0) ::close(terminal_);
  std::error_code ignored;
  std::filesystem::remove(out_, ignored);
  std::filesystem::remove(err_, ignored);
}

void Process::send(int signal) const { ::kill(pid_, signal); }

void Process::read_terminal() {
  if (terminal_ < 0) return;
  std::array<char, 4096> block;
  for (ssize_t n = 0; (n = ::read(terminal_, block.data(), block.size())) > 0;)
    terminal_text_.append(block.data(), static_cast<std::size_t>(n));
}

bool Process::running() {
  read_terminal();
  if (status_ || pid_ < 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = status;
  read_terminal();
  return false;
}

bool Process::wait_until(const std::function<bool()>& condition, std::chrono::seconds limit) {
  const auto end = Clock::now() + limit;
  while (running() && Clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

Ended Process::wait(std::chrono::seconds limit) {
  Ended ended;
  wait_until([] { return false; }, limit);
  if (running()) {
    ended.timed_out = true;
    send(SIGKILL);
    while (running()) std::this_thread::sleep_for(kPause);
  }
  if (status_ && WIFEXITED(*status_)) ended.code = WEXITSTATUS(*status_);
  if (status_ && WIFSIGNALED(*status_)) ended.signal = WTERMSIG(*status_);
  ended.out = content(out_);
  ended.err = terminal_ >= 0 ? terminal_text_ : content(err_);
  return ended;
}

}  // namespace gradloom::test
