// How benchmarks measure: repetitions, their fastest and their spread, the share of work that is serial, and
// phases.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "gradloom/exec/array.h"
#include "gradloom/exec/exec.h"
#include "gradloom/exec/profile.h"

namespace gradloom::app {

using BenchClock = std::chrono::steady_clock;

inline double microseconds_since(BenchClock::time_point start) {
  return std::chrono::duration<double, std::micro>(BenchClock::now() - start).count();
}

// What a set of repetitions took, in microseconds.
struct Timing {
  double fastest = 0.0, fifth_percentile = 0.0, median = 0.0, p99 = 0.0;
};

// Repeats f for about `seconds`. The machine is shared: what its neighbours cost shows in the median, not in the
// fastest.
template <class F>
Timing repeat(double seconds, F&& f) {
  std::vector<double> times;
  times.reserve(1 << 20);
  for (const auto begin = BenchClock::now();
       times.size() < 8 || (microseconds_since(begin) < seconds * 1e6 && times.size() < (1u << 20));) {
    const auto start = BenchClock::now();
    f();
    times.push_back(microseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {times.front(), at(0.05), at(0.5), at(0.99)};
}

struct SerialShare {
  double fraction = 0.0;    // of the time spent outside of parallel loops
  std::uint64_t tasks = 0;  // of parallel loops, in one call
};

// `ex` has two threads at least; `f` runs on it, `count` times after a first one that is not counted.
template <class F>
SerialShare serial_share(Exec& ex, int count, F&& f) {
  f();
  ex.set_timing(true);
  const ExecCounters before = ex.counters();
  const auto start = BenchClock::now();
  for (int i = 0; i < count; ++i) f();
  const double wall = microseconds_since(start);
  const ExecCounters after = ex.counters();
  ex.set_timing(false);
  const double inside = static_cast<double>(after.nanoseconds - before.nanoseconds) * 1e-3;
  return {std::clamp(1.0 - inside / wall, 0.0, 1.0), (after.tasks - before.tasks) / static_cast<std::uint64_t>(count)};
}

// Milliseconds of each phase of f, as the profile hears of them, over `count` calls after a first one.
template <class F>
nlohmann::json phases_of(Profile& profile, int count, F&& f) {
  f();
  profile.clear();
  for (int i = 0; i < count; ++i) f();
  nlohmann::json phases = nlohmann::json::object();
  for (const Profile::Entry& entry : profile.entries()) phases[entry.name] = entry.milliseconds / count;
  return phases;
}

template <class T>
bool same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace gradloom::app
