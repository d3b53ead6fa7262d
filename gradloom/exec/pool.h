// Exec::Pool: the threads behind Exec. Implemented by exactly one of parallel_tbb.cpp and parallel_threads.cpp.
#pragma once

#include <atomic>
#include <exception>

#include "gradloom/base/float_mode.h"
#include "gradloom/exec/exec.h"

namespace gradloom {

class Exec::Pool {
 public:
  virtual ~Pool() = default;
  // Calls run(worker) once on each of up to `workers` threads, the caller's among them, and waits for all.
  virtual void run(unsigned workers, FunctionRef<void(unsigned worker)> run) = 0;

  static std::unique_ptr<Pool> make(unsigned threads);
};

unsigned default_threads();

}  // namespace gradloom
