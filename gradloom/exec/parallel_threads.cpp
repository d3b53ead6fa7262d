#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "gradloom/exec/pool.h"

namespace gradloom {
namespace {

// Plain threads that wait for the next loop; ThreadSanitizer understands every one of its synchronisations.
class ThreadPool final : public Exec::Pool {
 public:
  explicit ThreadPool(unsigned threads) {
    for (unsigned worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
  }

  ~ThreadPool() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(unsigned workers, FunctionRef<void(unsigned)> run) override {
    {
      const std::lock_guard lock(mutex_);
      job_ = &run;
      workers_ = workers;
      pending_ = workers - 1;
      ++generation_;
    }
    wake_.notify_all();
    run(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return pending_ == 0; });
  }

 private:
  void serve(unsigned worker) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      if (worker >= workers_) continue;
      const FunctionRef<void(unsigned)>* job = job_;
      lock.unlock();
      (*job)(worker);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const FunctionRef<void(unsigned)>* job_ = nullptr;
  unsigned workers_ = 0, pending_ = 0;
  std::uint64_t generation_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Exec::Pool> Exec::Pool::make(unsigned threads) { return std::make_unique<ThreadPool>(threads); }

}  // namespace gradloom
