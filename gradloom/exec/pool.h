// Exec::Pool: the threads behind Exec. They spin for a while before they sleep, so that a loop of microseconds
// is worth sharing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "gradloom/exec/exec.h"

namespace gradloom {

unsigned default_threads();

class Exec::Pool {
 public:
  // Throws unsupported when the system refuses a thread.
  explicit Pool(unsigned threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls body(task, worker) for each task < tasks. A worker begins with a share of its own, the same tasks in every
  // loop of that size, because what they wrote in the last one is still in its cache; then it helps others. `body` must
  // not throw. Throws invalid_input when a loop is under way.
  void run(std::size_t tasks, FunctionRef<void(std::size_t task, unsigned worker)> body);
  // Of the loop that runs; called by a body. Tasks that nobody has begun are left out.
  void abandon();

 private:
  // A worker's share of the loop, and whether the worker sleeps; in a cache line of its own.
  struct alignas(64) WorkerSlot {
    std::atomic<std::size_t> next = 0;
    std::size_t end = 0;
    std::atomic<std::uint32_t> asleep = 0;
  };

  void serve(unsigned helper);
  void work(unsigned worker);
  void stop();
  void wake(unsigned worker);
  template <class F>
  void wait_until(unsigned worker, F&& ready);

  const unsigned spin_limit_;      // polls before a thread sleeps
  std::vector<WorkerSlot> slots_;  // 0: whoever calls run()
  // Written by run() while nobody is inside.
  const FunctionRef<void(std::size_t, unsigned)>* body_ = nullptr;
  unsigned workers_ = 0;
  std::uint64_t loop_ = 0;  // its number
  std::atomic<bool> running_ = false;
  alignas(64) std::atomic<std::uint64_t> state_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace gradloom
