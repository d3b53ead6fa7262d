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
  // Starts to send and receive. Several posts may be under way; the lists and their memory stay as they are until
  // test() has said that a post is done. Messages have at most INT_MAX bytes.
  const char* (*post)(const GradloomMpiMessage* out, int outs, GradloomMpiMessage* in, int ins);
  // Makes progress. *done: 1 when the oldest post that was not done is all sent and received; the next call is about
  // the next one. *waiting_for: a rank whose message lacks in it, else one that has not taken its own, or -1.
  const char* (*test)(int* done, int* waiting_for);
  // Sends without anybody waiting for it; `data` may change afterwards.
  const char* (*post_farewell)(const GradloomMpiMessage* out, int outs);
  void (*close)();
};

// The one symbol of the plug-in.
const GradloomMpi* gradloom_mpi();
}

inline constexpr std::uint32_t kGradloomMpiAbi = 2;
inline constexpr const char* kGradloomMpiSymbol = "gradloom_mpi";
