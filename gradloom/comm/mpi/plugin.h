// What libgradloom_mpi.so offers: a table of functions in plain C, so that program and plug-in may be built apart.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct GradloomMpiMessage {
  int rank;  // the other one
  void* data;
  std::size_t bytes;  // received: the most before, what came afterwards
};

// Texts are errors and live until the next call; null: none.
struct GradloomMpi {
  std::uint32_t abi;    // kGradloomMpiAbi
  const char* version;  // of gradloom
  const char* (*open)(int* rank, int* size, const char** library);
  // Starts to send and receive. Nothing else is under way; the lists and their memory stay as they are until test() is
  // done. Messages have at most INT_MAX bytes.
  const char* (*post)(const GradloomMpiMessage* out, int outs, GradloomMpiMessage* in, int ins);
  // Makes progress. *done: 1 when all is sent and received. *waiting_for: a rank whose message lacks, else one that has
  // not taken its own, or -1.
  const char* (*test)(int* done, int* waiting_for);
  // Sends without anybody waiting for it; `data` may change afterwards.
  const char* (*post_farewell)(const GradloomMpiMessage* out, int outs);
  void (*close)();
};

// The one symbol of the plug-in.
const GradloomMpi* gradloom_mpi();
}

inline constexpr std::uint32_t kGradloomMpiAbi = 1;
inline constexpr const char* kGradloomMpiSymbol = "gradloom_mpi";
