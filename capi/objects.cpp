#include "capi/objects.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <unordered_map>

namespace gradloom::capi {
namespace {

struct Entry {
  std::shared_ptr<Object> object;
  pid_t process = 0;  // that opened it
};

struct Table {
  std::mutex lock;
  std::unordered_map<gradloom_handle, Entry> open;
  gradloom_handle last = 0;
};

// Never destroyed: other threads may still call while the process ends.
Table& table() {
  static Table* const made = [] {
    auto* t = new Table;  // NOLINT(cppcoreguidelines-owning-memory)
    // A child of a fork must not find the table half changed.
    pthread_atfork([] { table().lock.lock(); }, [] { table().lock.unlock(); }, [] { table().lock.unlock(); });
    return t;
  }();
  return *made;
}

bool lost_threads(const Entry& entry) { return entry.object->threaded && entry.process != getpid(); }

}  // namespace

gradloom_handle open_object(std::shared_ptr<Object> object) {
  const std::lock_guard guard(table().lock);
  table().open[++table().last] = {std::move(object), getpid()};
  return table().last;
}

void drop_closed(const std::shared_ptr<Turn>& turn) {
  for (;;) {
    {
      const std::unique_lock own(turn->use, std::try_to_lock);
      if (!own) return;  // whoever has it looks again
      std::vector<std::shared_ptr<Object>> closed;
      {
        const std::lock_guard guard(table().lock);
        closed.swap(turn->closed);
      }
    }
    const std::lock_guard guard(table().lock);
    if (turn->closed.empty()) return;
  }
}

void close_object(gradloom_handle handle) {
  std::shared_ptr<Turn> turn;
  {
    const std::lock_guard guard(table().lock);
    const auto found = table().open.find(handle);
    if (found == table().open.end())
      throw_invalid(fmt::format("{} is not an open handle: it was closed, or never opened", handle));
    Entry entry = std::move(found->second);
    table().open.erase(found);
    // Its destructor would wait for threads that are not here.
    if (lost_threads(entry)) {
      new std::shared_ptr<Object>(std::move(entry.object));  // NOLINT
      return;
    }
    turn = entry.object->turn;
    turn->closed.push_back(std::move(entry.object));
  }
  drop_closed(turn);
}

std::shared_ptr<Object> find_object(gradloom_handle handle, const char* argument, const char* kind) {
  const std::lock_guard guard(table().lock);
  const auto found = table().open.find(handle);
  if (found == table().open.end())
    throw_invalid(fmt::format("{}: {} is not an open {}: it was closed, or never opened", argument, handle, kind));
  if (lost_threads(found->second))
    throw Exception(
        ErrorCode::unsupported,
        fmt::format("{}: this {} was opened before the process was forked, so its threads do not exist here; "
                    "load it in this process, or open it with one thread",
                    argument, kind));
  return found->second.object;
}

void refuse_kind(gradloom_handle handle, const char* argument, const char* kind) {
  throw_invalid(fmt::format("{}: the handle {} is open, but is not a {}", argument, handle, kind));
}

}  // namespace gradloom::capi
