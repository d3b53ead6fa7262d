#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstddef>

#include "gradloom/exec/pool.h"

namespace gradloom {
namespace {

// Most threads of one process. Arenas alone do not raise oneTBB's limit above the number of cores, and of several
// limits the smallest counts: one for each pool would let a pool with one thread hold back all others.
constexpr std::size_t kMostThreads = 1024;

void raise_limit() {
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kMostThreads);
}

class TbbPool final : public Exec::Pool {
 public:
  explicit TbbPool(unsigned threads) : arena_(static_cast<int>(threads)) {
    raise_limit();
    arena_.initialize();
  }

  void run(unsigned workers, FunctionRef<void(unsigned)> run) override {
    arena_.execute([&] {
      tbb::parallel_for(
          0u, workers, [&](unsigned worker) { run(worker); }, tbb::simple_partitioner{});
    });
  }

 private:
  tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Exec::Pool> Exec::Pool::make(unsigned threads) { return std::make_unique<TbbPool>(threads); }

}  // namespace gradloom
