// Ranks that are threads of one process: for tests, and for ThreadSanitizer.
#pragma once

#include <memory>
#include <vector>

#include "gradloom/comm/comm.h"

namespace gradloom {

// One Comm for each rank, each for a thread of its own; all may outlive each other. A rank waits `seconds` at most.
// Messages of more than `piece_bytes` travel in pieces.
std::vector<std::unique_ptr<Comm>> make_thread_ranks(unsigned size, double seconds = 60.0,
                                                     std::size_t piece_bytes = kPieceBytes);

}  // namespace gradloom
