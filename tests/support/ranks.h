// Ranks that are threads: run_ranks(4, [](Comm& comm) { ... }) runs the same function on each.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/comm/threads.h"

namespace gradloom::test {

// What each rank threw, or an empty text. A rank that throws leaves the others, as the program does.
inline std::vector<std::string> run_ranks(unsigned size, const std::function<void(Comm&)>& body, double seconds = 120,
                                          std::size_t piece_bytes = kPieceBytes) {
  auto ranks = make_thread_ranks(size, seconds, piece_bytes);
  std::vector<std::string> failures(size);
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[rank]);
      } catch (const std::exception& e) {
        failures[rank] = e.what();
        ranks[rank]->leave(e.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return failures;
}

}  // namespace gradloom::test
