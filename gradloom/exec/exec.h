// Exec: where code runs: the number of threads, the variant of the kernels, and the profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gradloom/base/function_ref.h"
#include "gradloom/exec/arithmetic.h"

namespace gradloom {

class Profile;

// Which code of a kernel runs, and in which arithmetic. The bits follow from the arithmetic alone.
struct Variant {
  enum Code {
    fast,       // SIMD kernels
    reference,  // the scalar definition of every kernel; slow, with equal bits
  };

  Code code;
  Arithmetic arithmetic;

  Variant(Code which, Arithmetic rounding = default_arithmetic()) : code(which), arithmetic(rounding) {}
  friend bool operator==(const Variant& variant, Code which) { return variant.code == which; }
};

struct ExecOptions {
  unsigned threads = 0;  // 0: one per core
  Variant variant = Variant::fast;
};

// What ran so far. `regions` counts loops that were handed to more than one thread.
struct ExecCounters {
  std::uint64_t regions = 0;
  std::uint64_t tasks = 0;        // tasks of those loops
  std::uint64_t nanoseconds = 0;  // wall time inside those loops; counted only with timing on
};

// Results never depend on the number of threads: work is cut by the problem, and every output has one owner.
// An Exec is used by one thread at a time; it may be used from several in turn.
class Exec {
 public:
  // Throws unsupported when the system does not give that many threads, or the processor not that arithmetic.
  explicit Exec(ExecOptions options = {});
  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

  unsigned threads() const { return threads_; }
  Variant variant() const { return variant_; }
  Arithmetic arithmetic() const { return variant_.arithmetic; }

  // Calls body(task, worker) for task = 0..tasks-1, in any order, on up to threads() threads; worker < threads() and no
  // two calls that run at the same time share it; worker 0 is the caller. Returns when all are done. The first
  // exception thrown by a body is rethrown. Every body runs with subnormals flushed. Allocates nothing. A body may use
  // another Exec, not this one: with several threads that throws invalid_input.
  void parallel_for(std::size_t tasks, FunctionRef<void(std::size_t task, unsigned worker)> body) const;

  // Timing of parallel loops costs two clock reads each, so it is off by default.
  void set_timing(bool on) { timing_ = on; }
  const ExecCounters& counters() const { return counters_; }

  // Not owned; null: no profile.
  void set_profile(Profile* profile) { profile_ = profile; }
  Profile* profile() const { return profile_; }

  class Pool;  // the threads; see exec/pool.h

 private:
  unsigned threads_;
  Variant variant_;
  bool timing_ = false;
  Profile* profile_ = nullptr;
  mutable ExecCounters counters_;
  std::unique_ptr<Pool> pool_;  // null with one thread
};

}  // namespace gradloom
