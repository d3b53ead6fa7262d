// When a search has to end.
#pragma once

#include <atomic>
#include <chrono>

namespace gradloom::ged {

// At a time, or once somebody asks for it by setting `stop`, which may be null and is not owned.
struct Deadline {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::time_point::max();
  const std::atomic<bool>* stop = nullptr;

  bool exists() const { return stop || time != std::chrono::steady_clock::time_point::max(); }
  bool asked() const { return stop && stop->load(std::memory_order_relaxed); }
  bool passed() const {
    return asked() ||
           (time != std::chrono::steady_clock::time_point::max() && std::chrono::steady_clock::now() >= time);
  }
};

}  // namespace gradloom::ged
