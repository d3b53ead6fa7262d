// A library to be loaded before the C library (LD_PRELOAD): passes calls on, but lets one that changes files fail. The
// environment variable FILE_FAULT says which: fail=N (call N of this process fails with EIO, all others work), stop=N
// (call N and all later ones do not happen, as if the power had gone: the process ends), no-exchange (renameat2 says
// that the file system cannot exchange files; may stand before another, with a comma). FILE_FAULT_COUNT names a file
// into which the number of calls is written at the end. Calls on standard output and error are not counted.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// The number behind "NAME=", 1 for NAME alone, or 0.
unsigned long fault(const char* name) {
  const char* wanted = std::getenv("FILE_FAULT");
  const char* at = wanted ? std::strstr(wanted, name) : nullptr;
  if (!at) return 0;
  const std::size_t length = std::strlen(name);
  return at[length] == '=' ? std::strtoul(at + length + 1, nullptr, 10) : 1;
}

std::atomic<unsigned long> calls{0};

// Counts a call; true when it must fail.
bool fails() {
  const unsigned long number = ++calls;
  if (const unsigned long n = fault("stop"); n > 0 && number >= n) ::_exit(77);
  if (const unsigned long n = fault("fail"); n > 0 && number == n) {
    errno = EIO;
    return true;
  }
  return false;
}

struct Count {
  ~Count() {
    const char* name = std::getenv("FILE_FAULT_COUNT");
    if (!name) return;
    if (std::FILE* file = std::fopen(name, "w")) {
      std::fprintf(file, "%lu", calls.load());
      std::fclose(file);
    }
  }
} count;

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fd > 2 && fails()) return -1;
  return next<ssize_t (*)(int, const void*, size_t)>("write")(fd, bytes, size);
}

int fsync(int fd) { return fails() ? -1 : next<int (*)(int)>("fsync")(fd); }

int ftruncate(int fd, off_t size) noexcept { return fails() ? -1 : next<int (*)(int, off_t)>("ftruncate")(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept {
  return fails() ? -1 : next<int (*)(int, off64_t)>("ftruncate64")(fd, size);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return fails() ? -1 : next<int (*)(int, const char*, int, const char*)>("renameat")(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned int flags) noexcept {
  if (fault("no-exchange") > 0) {
    errno = EINVAL;
    return -1;
  }
  if (fails()) return -1;
  return next<int (*)(int, const char*, int, const char*, unsigned int)>("renameat2")(from_folder, from, to_folder, to,
                                                                                      flags);
}

int openat(int folder, const char* name, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list arguments;
    va_start(arguments, flags);
    mode = static_cast<mode_t>(va_arg(arguments, int));
    va_end(arguments);
    if (fails()) return -1;
  }
  return next<int (*)(int, const char*, int, ...)>("openat")(folder, name, flags, mode);
}

}  // extern "C"
