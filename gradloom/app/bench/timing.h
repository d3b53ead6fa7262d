// How benchmarks measure: repetitions, their fastest and their spread, and training in several ways.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gradloom/app/bench/bench.h"
#include "gradloom/exec/profile.h"
#include "gradloom/train/trainer.h"

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

template <class T>
bool same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// A model and its trainer. Benchmarks time single updates on the same data again and again, and look at gradients and
// tapes; a session hands out neither, and validates between epochs. So they drive a trainer themselves.
template <class M, class D>
struct BenchTraining {
  Exec ex;
  M model;
  TrainState<typename M::Scalar> state;
  Trainer<M, D> trainer;

  BenchTraining(const ExecOptions& exec, Profile* profile, M of, const D& data, const TrainOptions& options,
                TrainState<typename M::Scalar> start)
      : ex(exec),
        model(std::move(of)),
        state(std::move(start)),
        trainer((ex.set_profile(profile), ex), model, data, options, state) {}
  void step() {
    state.position.batch = 0;
    trainer.step();
  }
};

inline constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;  // epochs

// All samples in a step, and weights that stay as they are: every step is the same work.
inline TrainOptions steady_options() {
  TrainOptions options;
  options.batch = 0;
  options.epochs = kEndless;
  options.optimizer.lr = 1e-6;
  return options;
}

// Throws numeric when two trainings have not led to the same parameters by the same gradient.
template <class T>
void require_same_bits(const TrainState<T>& fast, const TrainState<T>& reference) {
  if (!same_bits(fast.parameters, reference.parameters) || !same_bits(fast.gradient, reference.gradient))
    throw Exception(ErrorCode::numeric,
                    "the fast kernels and the scalar reference differ: this build is broken, its speed means nothing");
}

// In what follows, make(ExecOptions, Profile*) returns a unique_ptr to a BenchTraining, and once(BenchTraining&) does
// with it what is timed.

// Over `count` calls after a first one.
template <class Make, class Once>
SerialShare serial_share(unsigned threads, int count, const Make& make, const Once& once) {
  const auto training = make(ExecOptions{.threads = std::max(2u, threads)}, nullptr);
  Exec& ex = training->ex;
  once(*training);
  ex.set_timing(true);
  const ExecCounters before = ex.counters();
  const auto start = BenchClock::now();
  for (int i = 0; i < count; ++i) once(*training);
  const double wall = microseconds_since(start);
  const ExecCounters after = ex.counters();
  ex.set_timing(false);
  const double inside = static_cast<double>(after.nanoseconds - before.nanoseconds) * 1e-3;
  return {std::clamp(1.0 - inside / wall, 0.0, 1.0), (after.tasks - before.tasks) / static_cast<std::uint64_t>(count)};
}

// Of one call, from `count` of them after a first one.
template <class Make, class Once>
std::map<std::string, double> phases_of(unsigned threads, int count, const Make& make, const Once& once) {
  Profile profile(threads);
  const auto training = make(ExecOptions{.threads = threads}, &profile);
  once(*training);
  profile.clear();
  for (int i = 0; i < count; ++i) once(*training);
  std::map<std::string, double> phases;
  for (const Profile::Entry& entry : profile.entries()) phases[entry.name] = entry.milliseconds / count;
  return phases;
}

// The fast kernels on some threads and the scalar reference, side by side, after two calls that led to the same bits.
template <class Make, class Once>
class TrainingPair {
 public:
  using Training = typename std::invoke_result_t<Make, ExecOptions, Profile*>::element_type;

  TrainingPair(unsigned threads, const Make& make, const Once& once)
      : threads_(threads),
        make_(make),
        once_(once),
        fast_(make(ExecOptions{.threads = threads}, nullptr)),
        reference_(make(ExecOptions{.threads = 1, .variant = Variant::reference}, nullptr)) {
    for (int i = 0; i < 2; ++i) once(*fast_), once(*reference_);
    require_same_bits(fast_->state, reference_->state);
  }

  Training& fast() { return *fast_; }
  // On all threads, and in turn with them on one; with one thread they are the same.
  std::pair<Timing, Timing> time(double seconds) {
    const auto fast = [&] { once_(*fast_); };
    if (threads_ == 1) {
      const Timing alone = repeat(seconds, fast);
      return {alone, alone};
    }
    const auto one = make_(ExecOptions{.threads = 1}, nullptr);
    once_(*one);
    return repeat_in_turn(seconds, fast, [&] { once_(*one); });
  }
  Timing time_reference(double seconds) {
    return repeat(seconds, [&] { once_(*reference_); });
  }

 private:
  unsigned threads_;
  const Make& make_;
  const Once& once_;
  std::unique_ptr<Training> fast_, reference_;
};

}  // namespace gradloom::app
