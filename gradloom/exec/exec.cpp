#include "gradloom/exec/exec.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/exec/pool.h"

namespace gradloom {

namespace {

constexpr unsigned kMaxThreads = 1024;

// A pool ends the program when the system refuses it a thread. So as many are started here first, and stopped again: a
// refusal becomes an error that can be reported. What was proven is remembered, because pools are made often.
void prove_threads(unsigned wanted) {
  static std::mutex mutex;
  static unsigned proven = 1;
  const std::lock_guard lock(mutex);
  if (wanted <= proven) return;
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  threads.reserve(wanted - 1);
  std::string refusal;
  try {
    for (unsigned i = 1; i < wanted; ++i) threads.emplace_back([&go] { go.wait(false); });
  } catch (const std::exception& e) {
    refusal = e.what();
  }
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) thread.join();
  if (!refusal.empty())
    throw Exception(ErrorCode::unsupported, "the system refused a thread after " + std::to_string(threads.size() + 1) +
                                                " of " + std::to_string(wanted) + " (" + refusal +
                                                "); use fewer threads, or raise its limit on processes");
  proven = wanted;
}

}  // namespace

unsigned default_threads() {
  const unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : n;
}

Exec::Exec(ExecOptions options)
    : threads_(options.threads == 0 ? default_threads() : options.threads), variant_(options.variant) {
  if (threads_ > kMaxThreads)
    throw Exception(ErrorCode::invalid_input,
                    std::to_string(threads_) + " threads were asked for; the most is " + std::to_string(kMaxThreads));
  if (threads_ == 1) return;
  prove_threads(threads_);
  pool_ = Pool::make(threads_);
}

Exec::~Exec() = default;

void Exec::parallel_for(std::size_t tasks, FunctionRef<void(std::size_t, unsigned)> body) const {
  if (tasks == 0) return;
  if (!pool_ || tasks == 1) {
    const FlushSubnormals flush;
    for (std::size_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  const auto start = timing_ ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  auto work = [&](unsigned worker) {
    const FlushSubnormals flush;
    try {
      for (std::size_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(task, worker);
    } catch (...) {
      next.store(tasks, std::memory_order_relaxed);
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  pool_->run(static_cast<unsigned>(std::min<std::size_t>(tasks, threads_)), work);
  ++counters_.regions;
  counters_.tasks += tasks;
  if (timing_)
    counters_.nanoseconds += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gradloom
