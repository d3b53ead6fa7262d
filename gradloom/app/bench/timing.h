// How benchmarks measure: repetitions, their fastest and their spread, the share of work that is serial, and
// phases.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "gradloom/exec/buffer.h"
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

// Collects repetitions of one thing.
class Repetitions {
 public:
  Repetitions() { times_.reserve(1 << 20); }

  // Repeats f for about `seconds`, or until there are many.
  template <class F>
  void run(double seconds, F&& f) {
    for (const auto begin = BenchClock::now(); times_.size() < (1u << 20);) {
      const auto start = BenchClock::now();
      f();
      times_.push_back(microseconds_since(start));
      if (microseconds_since(begin) >= seconds * 1e6) break;
    }
  }
  std::size_t count() const { return times_.size(); }

  // The machine is shared: what its neighbours cost shows in the median, not in the fastest.
  Timing timing() {
    std::sort(times_.begin(), times_.end());
    const auto at = [&](double share) {
      return times_[static_cast<std::size_t>(share * static_cast<double>(times_.size() - 1))];
    };
    return {times_.front(), at(0.05), at(0.5), at(0.99)};
  }

 private:
  std::vector<double> times_;
};

// f for about `seconds`, at least 8 times.
template <class F>
Timing repeat(double seconds, F&& f) {
  Repetitions all;
  all.run(seconds, f);
  while (all.count() < 8) all.run(0.0, f);
  return all.timing();
}

// f and g in turn, for about twice `seconds` together and at least 8 times each (3 times, if that takes long): what
// disturbs one disturbs the other, so their ratio means something.
template <class F, class G>
std::pair<Timing, Timing> repeat_in_turn(double seconds, F&& f, G&& g) {
  constexpr double kSlice = 0.02;
  Repetitions of_f, of_g;
  const auto begin = BenchClock::now();
  do {
    of_f.run(kSlice, f);
    of_g.run(kSlice, g);
  } while (microseconds_since(begin) < 2e6 * seconds || of_g.count() < 3 ||
           (of_g.count() < 8 && microseconds_since(begin) < 8e6 * seconds));
  return {of_f.timing(), of_g.timing()};
}

// A step on several threads beside one on a single thread, which `make_one` returns; with one thread they are the same.
template <class Fast, class MakeOne>
std::pair<Timing, Timing> repeat_threads(double seconds, unsigned threads, Fast&& fast, MakeOne&& make_one) {
  if (threads == 1) {
    const Timing alone = repeat(seconds, fast);
    return {alone, alone};
  }
  auto one = make_one();
  one();
  return repeat_in_turn(seconds, fast, one);
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
