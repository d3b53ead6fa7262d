#include "gradloom/circuit/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "gradloom/io/file.h"

namespace gradloom::circuit {
namespace {

constexpr std::streamoff kMaxOutput = 64 * 1024;

std::string tail_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg(), start = size > kMaxOutput ? size - kMaxOutput : 0;
  file.seekg(start);
  std::string text(static_cast<std::size_t>(size - start), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "gradloom-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw Exception(system_error("make a folder like", name, errno));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path find_program(std::string_view name) {
  for (const char* folder : {"/usr/local/bin", "/usr/bin"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Result<ProgramEnd> run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                               const std::filesystem::path& folder, double seconds) {
  const std::filesystem::path output = folder / "output.txt";
  SpawnSettings settings;
  posix_spawn_file_actions_addchdir_np(&settings.files, folder.c_str());
  posix_spawn_file_actions_addopen(&settings.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings.files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&settings.files, STDOUT_FILENO, STDERR_FILENO);
  // A group of its own, so that what it starts can be ended with it.
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&settings.attributes, 0);

  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + folder.string()};
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& word : environment) envp.push_back(word.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t pid = -1;
  if (const int code =
          ::posix_spawn(&pid, program.c_str(), &settings.files, &settings.attributes, argv.data(), envp.data());
      code != 0)
    return system_error("start", program, code);

  ProgramEnd end;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (pid_t done = 0; done == 0;) {
    done = ::waitpid(pid, &status, WNOHANG);
    if (done < 0 && errno == EINTR) done = 0;
    if (done < 0) return system_error("wait for", program, errno);
    if (done == 0 && std::chrono::steady_clock::now() > deadline && !end.timed_out) {
      end.timed_out = true;
      ::kill(-pid, SIGKILL);
    }
    const timespec pause{0, 2'000'000};
    if (done == 0) ::nanosleep(&pause, nullptr);
  }
  if (!end.timed_out && WIFEXITED(status)) end.code = WEXITSTATUS(status);
  end.output = tail_of(output);
  return end;
}

}  // namespace gradloom::circuit
