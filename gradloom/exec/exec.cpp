#include "gradloom/exec/exec.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <string>

#include "gradloom/base/error.h"
#include "gradloom/base/float_mode.h"
#include "gradloom/exec/pool.h"

namespace gradloom {

namespace {
constexpr unsigned kMaxThreads = 1024;
}

Exec::Exec(ExecOptions options)
    : threads_(options.threads == 0 ? default_threads() : options.threads), variant_(options.variant) {
  if (threads_ > kMaxThreads)
    throw_invalid(std::to_string(threads_) + " threads were requested; the maximum is " + std::to_string(kMaxThreads));
  if (!available(variant_.arithmetic))
    throw Exception(ErrorCode::unsupported,
                    "fused arithmetic was requested, but this build or processor does not have it");
  if (threads_ > 1) pool_ = std::make_unique<Pool>(threads_);
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
  std::exception_ptr failure;
  std::mutex failure_mutex;
  pool_->run(tasks, [&](std::size_t task, unsigned worker) {
    try {
      body(task, worker);
    } catch (...) {
      pool_->abandon();
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  ++counters_.regions;
  counters_.tasks += tasks;
  if (timing_)
    counters_.nanoseconds += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gradloom
