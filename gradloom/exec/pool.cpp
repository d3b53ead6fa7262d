#include "gradloom/exec/pool.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "gradloom/base/error.h"
#include "gradloom/base/float_mode.h"

namespace gradloom {
namespace {

// About a tenth of a millisecond: longer than the pause between two loops of a training step, too short to be noticed.
constexpr unsigned kSpinLimit = 4000;

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The caller opens a loop and closes it when it finds no more tasks. A helper enters while the loop is open, and the
// caller waits for those that are inside: one that comes late finds the door closed, and nobody has waited for it. One
// word holds it all: the loop's number (32 bits), helpers wanted (14), the end of the pool (1), open (1), helpers
// inside (16).
constexpr std::uint64_t kOpen = 1u << 16, kStopped = 1u << 17;

std::uint64_t opened(std::uint64_t loop, unsigned helpers) { return loop << 32 | std::uint64_t{helpers} << 18 | kOpen; }
std::uint64_t loop_of(std::uint64_t state) { return state >> 32; }
bool takes(std::uint64_t state, unsigned helper) { return (state & kOpen) && helper <= (state >> 18 & 0x3fff); }
bool is_empty(std::uint64_t state) { return (state & (kOpen - 1)) == 0; }

}  // namespace

unsigned default_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// With more threads than cores, a spinning thread would keep another from working.
Exec::Pool::Pool(unsigned threads) : spin_limit_(threads <= default_threads() ? kSpinLimit : 0), slots_(threads) {
  threads_.reserve(threads - 1);
  try {
    for (unsigned helper = 1; helper < threads; ++helper) threads_.emplace_back([this, helper] { serve(helper); });
  } catch (const std::exception& e) {
    stop();
    throw Exception(ErrorCode::unsupported, "the system refused a thread after " + std::to_string(threads_.size() + 1) +
                                                " of " + std::to_string(threads) + " (" + e.what() +
                                                "); use fewer threads, or raise its limits on processes and memory");
  }
}

Exec::Pool::~Pool() { stop(); }

void Exec::Pool::stop() {
  state_ = kStopped;
  for (unsigned helper = 1; helper < slots_.size(); ++helper) wake(helper);
  for (std::thread& thread : threads_) thread.join();
}

void Exec::Pool::run(std::size_t tasks, FunctionRef<void(std::size_t, unsigned)> body) {
  if (running_.exchange(true))
    throw_invalid("a parallel loop was started inside another parallel loop of the same Exec");
  body_ = &body;
  workers_ = static_cast<unsigned>(std::min<std::size_t>(tasks, slots_.size()));
  for (unsigned k = 0; k < workers_; ++k) {
    slots_[k].next.store(tasks * k / workers_, std::memory_order_relaxed);
    slots_[k].end = tasks * (k + 1) / workers_;
  }
  loop_ = (loop_ + 1) & 0xffffffff;
  state_ = opened(loop_, workers_ - 1);
  for (unsigned helper = 1; helper < workers_; ++helper) wake(helper);
  work(0);
  state_ -= kOpen;
  wait_until(0, [this] { return is_empty(state_); });
  running_ = false;
}

void Exec::Pool::abandon() {
  for (unsigned k = 0; k < workers_; ++k) slots_[k].next.store(slots_[k].end, std::memory_order_relaxed);
}

void Exec::Pool::work(unsigned worker) {
  const FlushSubnormals flush;
  for (unsigned k = 0; k < workers_; ++k) {
    WorkerSlot& slot = slots_[(worker + k) % workers_];
    for (std::size_t task; (task = slot.next.fetch_add(1, std::memory_order_relaxed)) < slot.end;)
      (*body_)(task, worker);
  }
}

void Exec::Pool::serve(unsigned helper) {
  std::uint64_t seen = 0;
  while (true) {
    std::uint64_t state = 0;
    wait_until(helper, [&] {
      state = state_;
      return (state & kStopped) || (takes(state, helper) && loop_of(state) != seen);
    });
    if (state & kStopped) return;
    if (!state_.compare_exchange_strong(state, state + 1)) continue;
    seen = loop_of(state);
    work(helper);
    const std::uint64_t left = --state_;
    if (is_empty(left) && !(left & kOpen)) wake(0);
  }
}

// A worker says that it sleeps before its last check, and whoever changes the state looks for sleepers afterwards: one
// of the two sees the other.
template <class F>
void Exec::Pool::wait_until(unsigned worker, F&& ready) {
  for (unsigned spin = 0; spin < spin_limit_; ++spin) {
    if (ready()) return;
    cpu_relax();
  }
  std::atomic<std::uint32_t>& asleep = slots_[worker].asleep;
  while (true) {
    asleep = 1;
    if (ready()) break;
    asleep.wait(1);
  }
  asleep = 0;
}

void Exec::Pool::wake(unsigned worker) {
  std::atomic<std::uint32_t>& asleep = slots_[worker].asleep;
  if (asleep == 0) return;
  asleep = 0;
  asleep.notify_one();
}

}  // namespace gradloom
