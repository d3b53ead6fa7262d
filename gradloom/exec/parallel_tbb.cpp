#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "gradloom/exec/pool.h"

namespace gradloom {
namespace {

class TbbPool final : public Exec::Pool {
 public:
  explicit TbbPool(unsigned threads)
      // The arena alone does not raise oneTBB's limit above the number of cores.
      : control_(tbb::global_control::max_allowed_parallelism, threads), arena_(static_cast<int>(threads)) {
    arena_.initialize();
  }

  void run(unsigned workers, FunctionRef<void(unsigned)> run) override {
    arena_.execute([&] {
      tbb::parallel_for(
          0u, workers, [&](unsigned worker) { run(worker); }, tbb::simple_partitioner{});
    });
  }

 private:
  tbb::global_control control_;
  tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Exec::Pool> Exec::Pool::make(unsigned threads) { return std::make_unique<TbbPool>(threads); }

}  // namespace gradloom
