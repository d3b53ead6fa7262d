#include "gradloom/exec/pool.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "gradloom/base/error.h"
#include "gradloom/base/float_mode.h"

namespace gradloom {
namespace {

// Some tens of microseconds: longer than the pause between two loops of a training step, and too short to be noticed.
constexpr unsigned kLooks = 4000;

void breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The caller opens a loop and closes it when it finds no more tasks. A helper enters while the loop is open, and the
// caller waits for those that are inside: one that comes late finds the door closed, and nobody has waited for it. One
// word holds it all: the loop's number (32 bits), helpers wanted (15), open (1), helpers inside (16).
constexpr std::uint64_t kOpen = 1u << 16;

std::uint64_t opened(std::uint64_t loop, unsigned helpers) { return loop << 32 | std::uint64_t{helpers} << 17 | kOpen; }
std::uint64_t loop_of(std::uint64_t state) { return state >> 32; }
bool takes(std::uint64_t state, unsigned helper) { return (state & kOpen) && helper <= (state >> 17 & 0x7fff); }
bool is_empty(std::uint64_t state) { return (state & (kOpen - 1)) == 0; }

}  // namespace

unsigned default_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// With more threads than cores, one that looks keeps another from working.
Exec::Pool::Pool(unsigned threads) : looks_(threads <= default_threads() ? kLooks : 0), shares_(threads) {
  try {
    for (unsigned helper = 1; helper < threads; ++helper) threads_.emplace_back([this, helper] { serve(helper); });
  } catch (const std::system_error& e) {
    stop();
    throw Exception(ErrorCode::unsupported, "the system refused a thread after " + std::to_string(threads_.size() + 1) +
                                                " of " + std::to_string(threads) + " (" + e.what() +
                                                "); use fewer threads, or raise its limit on processes");
  }
}

Exec::Pool::~Pool() { stop(); }

void Exec::Pool::stop() {
  stopped_ = true;
  wake();
  for (std::thread& thread : threads_) thread.join();
}

void Exec::Pool::run(std::size_t tasks, FunctionRef<void(std::size_t, unsigned)> body) {
  body_ = &body;
  workers_ = static_cast<unsigned>(std::min<std::size_t>(tasks, shares_.size()));
  for (unsigned k = 0; k < workers_; ++k) {
    shares_[k].next.store(tasks * k / workers_, std::memory_order_relaxed);
    shares_[k].end = tasks * (k + 1) / workers_;
  }
  loop_ = (loop_ + 1) & 0xffffffff;
  state_ = opened(loop_, workers_ - 1);
  if (asleep_ != 0) wake();
  work(0);
  state_ -= kOpen;
  wait_until([this] { return is_empty(state_); });
}

void Exec::Pool::abandon() {
  for (unsigned k = 0; k < workers_; ++k) shares_[k].next.store(shares_[k].end, std::memory_order_relaxed);
}

void Exec::Pool::work(unsigned worker) {
  const FlushSubnormals flush;
  for (unsigned k = 0; k < workers_; ++k) {
    Share& share = shares_[(worker + k) % workers_];
    for (std::size_t task; (task = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
      (*body_)(task, worker);
  }
}

void Exec::Pool::serve(unsigned helper) {
  std::uint64_t seen = 0;
  while (true) {
    std::uint64_t state = 0;
    wait_until([&] {
      state = state_;
      return stopped_ || (takes(state, helper) && loop_of(state) != seen);
    });
    if (stopped_) return;
    if (!state_.compare_exchange_strong(state, state + 1)) continue;
    seen = loop_of(state);
    work(helper);
    if (is_empty(--state_) && asleep_ != 0) wake();
  }
}

// A thread says that it sleeps before its last look, and who changes something asks for sleepers afterwards: one of the
// two sees the other.
template <class F>
void Exec::Pool::wait_until(F&& ready) {
  for (unsigned look = 0; look < looks_; ++look) {
    if (ready()) return;
    breathe();
  }
  std::unique_lock lock(mutex_);
  ++asleep_;
  changed_.wait(lock, ready);
  --asleep_;
}

void Exec::Pool::wake() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace gradloom
