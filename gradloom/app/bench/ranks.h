// How benchmarks measure steps that ranks share.
#pragma once

#include <string>

#include "gradloom/app/bench/timing.h"
#include "gradloom/comm/comm.h"

namespace gradloom::app {

// A call of once() that all ranks make together, in turn with the same call by rank 0 on as many threads, while the
// others sleep. make(ExecOptions, Profile*, Comm*) returns a unique_ptr to a BenchTraining; once() makes `steps` steps.
// Throws numeric when the ranks do not end with the bits of one process.
template <class Make, class Once>
RanksTiming time_ranks(Comm& comm, unsigned threads, double seconds, double steps, const Make& make, const Once& once) {
  constexpr int kRounds = 6;
  Profile profile(threads);
  const auto shared = make(ExecOptions{.threads = threads}, &profile, &comm);
  const auto alone = comm.rank() == 0 ? make(ExecOptions{.threads = threads * comm.size()}, nullptr, nullptr) : nullptr;
  once(*shared);
  const auto start = BenchClock::now();
  once(*shared);
  const double wanted = seconds * 1e6 / kRounds / std::max(1.0, microseconds_since(start));
  const int calls = std::stoi(comm.broadcast(std::to_string(std::clamp(static_cast<int>(wanted), 4, 100000))));
  const std::uint64_t bytes_before = comm.counters().bytes;
  comm.barrier();  // messages of a header alone
  const double barrier_bytes = static_cast<double>(comm.counters().bytes - bytes_before);
  const CommCounters before = comm.counters();
  profile.clear();
  Repetitions together, by_itself;
  if (alone) once(*alone), once(*alone);
  for (int round = 0; round < kRounds; ++round) {
    comm.barrier();
    for (int i = 0; i < calls; ++i) together.run(0.0, [&] { once(*shared); });
    comm.barrier();
    if (alone)
      for (int i = 0; i < calls; ++i) by_itself.run(0.0, [&] { once(*alone); });
  }
  comm.barrier();
  if (alone && !same_bits(shared->state.parameters, alone->state.parameters))
    throw Exception(ErrorCode::numeric, "the ranks do not end with the bits of one process: their speed means nothing");
  RanksTiming r;
  r.ranks = comm.size();
  const CommCounters after = comm.counters();
  const double count = kRounds * calls * steps, barriers = 2.0 * kRounds + 1.0, others = comm.size() - 1.0;
  r.messages_per_step = (static_cast<double>(after.messages - before.messages) - barriers * others) / count;
  r.bytes_sent_per_step = (static_cast<double>(after.bytes - before.bytes) - barriers * barrier_bytes) / count;
  const Timing of_all = together.timing();
  r.train_step_us = of_all.fastest / steps, r.train_step_median_us = of_all.median / steps;
  if (alone) r.alone_train_step_us = by_itself.timing().median / steps;
  r.ratio = r.alone_train_step_us / r.train_step_median_us;
  for (const Profile::Entry& entry : profile.entries())
    if (entry.name == "communication") r.communication_ms = entry.milliseconds / count;
  const double hidden_ms = static_cast<double>(after.hidden_nanoseconds - before.hidden_nanoseconds) / 1e6 / count;
  if (hidden_ms > 0) r.overlap = hidden_ms / (hidden_ms + r.communication_ms);
  return r;
}

}  // namespace gradloom::app
