#include "gradloom/exec/exec.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/base/float_mode.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/exec/profile.h"

namespace gradloom {
namespace {

TEST(Exec, RunsEveryTaskOnceOnAnyNumberOfThreads) {
  for (unsigned threads : {1u, 2u, 3u, 8u, 32u}) {  // the last ones are more than there are cores
    const Exec ex({.threads = threads});
    EXPECT_EQ(ex.threads(), threads);
    for (std::size_t tasks : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<std::atomic<int>> runs(tasks);
      ex.parallel_for(tasks, [&](std::size_t task, unsigned) { ++runs[task]; });
      for (std::size_t t = 0; t < tasks; ++t)
        ASSERT_EQ(runs[t].load(), 1) << "task " << t << ", " << threads << " threads";
    }
  }
}

TEST(Exec, WorkersAreInRangeAndNeverShared) {
  for (unsigned threads : {1u, 2u, 5u}) {
    const Exec ex({.threads = threads});
    std::vector<std::atomic<int>> busy(threads);
    std::atomic<bool> shared{false}, out_of_range{false};
    ex.parallel_for(300, [&](std::size_t, unsigned worker) {
      if (worker >= threads) {
        out_of_range = true;
        return;
      }
      if (++busy[worker] != 1) shared = true;
      std::this_thread::yield();
      --busy[worker];
    });
    EXPECT_FALSE(shared);
    EXPECT_FALSE(out_of_range);
  }
}

TEST(Exec, ReallyUsesSeveralThreads) {
  const Exec ex({.threads = 2});
  std::mutex mutex;
  std::set<std::thread::id> ids;
  // Other programs may keep a second thread from starting for a while.
  for (int attempt = 0; attempt < 100 && ids.size() < 2; ++attempt)
    ex.parallel_for(20, [&](std::size_t, unsigned) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
  EXPECT_EQ(ids.size(), 2u);
}

// Helpers come in time, late, and out of sleep; what a loop wrote is there when it returns.
TEST(Exec, ShortLoopsLoseNothingWhateverTheHelpersDo) {
  for (unsigned threads : {2u, 3u, 9u}) {
    const Exec ex({.threads = threads});
    std::vector<int> counts(64, 0);
    constexpr int kLoops = 3000;
    for (int loop = 0; loop < kLoops; ++loop) {
      const std::size_t tasks = 2 + static_cast<std::size_t>(loop) % 63;
      ex.parallel_for(tasks, [&](std::size_t task, unsigned) { ++counts[task]; });
      if (loop % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    for (std::size_t t = 0; t < counts.size(); ++t) {
      int expected = 0;
      for (int loop = 0; loop < kLoops; ++loop) expected += t < 2 + static_cast<std::size_t>(loop) % 63;
      ASSERT_EQ(counts[t], expected) << "task " << t << ", " << threads << " threads";
    }
  }
}

// The caller goes to sleep while the last task runs, and is woken by it.
TEST(Exec, WaitsForALongLastTask) {
  const Exec ex({.threads = 2});
  int helped = 0;
  // Other programs may keep the helper from coming in time.
  for (int i = 0; i < 1000 && helped < 3; ++i) {
    std::atomic<int> done{0}, by_helper{0};
    ex.parallel_for(2, [&](std::size_t task, unsigned worker) {
      by_helper += worker;
      if (task == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (task == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++done;
    });
    EXPECT_EQ(done.load(), 2);
    helped += by_helper == 1;
  }
  EXPECT_EQ(helped, 3);
}

TEST(Exec, RethrowsTheFirstExceptionAndStaysUsable) {
  for (unsigned threads : {1u, 2u, 4u}) {
    const Exec ex({.threads = threads});
    for (std::size_t tasks : {1u, 2u, 100u}) {
      std::atomic<std::size_t> runs{0};
      const auto throwing = [&] {
        ex.parallel_for(tasks, [&](std::size_t task, unsigned) {
          ++runs;
          if (task == tasks / 2) throw std::runtime_error("task " + std::to_string(task));
        });
      };
      try {
        throwing();
        ADD_FAILURE() << "no exception";
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(e.what(), "task " + std::to_string(tasks / 2));
      }
      EXPECT_LE(runs.load(), tasks);
      std::atomic<std::size_t> after{0};
      ex.parallel_for(50, [&](std::size_t, unsigned) { ++after; });
      EXPECT_EQ(after.load(), 50u);
    }
    // What nobody has begun is left out.
    std::atomic<std::size_t> begun{0};
    const auto first_throws = [&] {
      ex.parallel_for(1'000'000, [&](std::size_t task, unsigned) {
        ++begun;
        if (task == 0) throw std::runtime_error("at once");
      });
    };
    EXPECT_THROW(first_throws(), std::runtime_error);
    EXPECT_LT(begun.load(), 1'000'000u);
    // When every task throws, one of them arrives.
    EXPECT_THROW(ex.parallel_for(64, [](std::size_t, unsigned) { throw Exception(ErrorCode::numeric, "all"); }),
                 Exception);
  }
}

TEST(Exec, ALoopInsideItselfIsRefused) {
  const Exec ex({.threads = 2});
  const auto nested = [&] {
    ex.parallel_for(4, [&](std::size_t, unsigned) { ex.parallel_for(4, [](std::size_t, unsigned) {}); });
  };
  EXPECT_THROW(nested(), Exception);
  std::atomic<int> after{0};
  ex.parallel_for(10, [&](std::size_t, unsigned) { ++after; });
  EXPECT_EQ(after.load(), 10);
}

TEST(Exec, LoopsOfOtherExecsNest) {
  const Exec outer({.threads = 3});
  std::vector<std::unique_ptr<Exec>> inner;
  for (unsigned worker = 0; worker < 3; ++worker) inner.push_back(std::make_unique<Exec>(ExecOptions{.threads = 2}));
  std::vector<std::atomic<int>> runs(12 * 40);
  std::atomic<bool> wrong_worker{false};
  outer.parallel_for(12, [&](std::size_t task, unsigned worker) {
    inner[worker]->parallel_for(40, [&](std::size_t part, unsigned inner_worker) {
      if (inner_worker >= 2) wrong_worker = true;
      ++runs[task * 40 + part];
    });
  });
  for (const auto& r : runs) EXPECT_EQ(r.load(), 1);
  EXPECT_FALSE(wrong_worker);
}

TEST(Exec, SeveralMayRunAtTheSameTime) {
  std::vector<std::thread> threads;
  std::atomic<std::size_t> sum{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Exec ex({.threads = 3});
      for (int loop = 0; loop < 20; ++loop) ex.parallel_for(50, [&](std::size_t task, unsigned) { sum += task; });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), 4u * 20 * (49 * 50 / 2));
}

TEST(Exec, MayBeHandedFromOneThreadToTheNext) {
  const Exec ex({.threads = 2});
  std::atomic<int> runs{0};
  for (int t = 0; t < 3; ++t) std::thread([&] { ex.parallel_for(10, [&](std::size_t, unsigned) { ++runs; }); }).join();
  EXPECT_EQ(runs.load(), 30);
}

// The smallest normal number, halved: zero when subnormals are flushed.
double halved_smallest() {
  volatile double smallest = std::numeric_limits<double>::min();
  volatile double half = smallest * 0.5;
  return half;
}

TEST(Exec, FlushesSubnormalsInsideAndRestoresOutside) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  GTEST_SKIP() << "subnormals can be flushed on x86-64 and 64-bit ARM only";
#endif
  ASSERT_GT(halved_smallest(), 0.0);
  for (unsigned threads : {1u, 3u}) {
    const Exec ex({.threads = threads});
    for (std::size_t tasks : {1u, 64u}) {
      std::atomic<int> kept{0};
      ex.parallel_for(tasks, [&](std::size_t, unsigned) { kept += halved_smallest() != 0.0; });
      EXPECT_EQ(kept.load(), 0) << threads << " threads, " << tasks << " tasks";
      EXPECT_GT(halved_smallest(), 0.0);
    }
    EXPECT_THROW(ex.parallel_for(8, [](std::size_t, unsigned) { throw std::runtime_error("out"); }),
                 std::runtime_error);
    EXPECT_GT(halved_smallest(), 0.0) << "after an exception";
  }
  {
    const FlushSubnormals outer;
    { const FlushSubnormals inner; }
    EXPECT_EQ(halved_smallest(), 0.0) << "the end of the inner scope must not end the outer one";
  }
  EXPECT_GT(halved_smallest(), 0.0);
}

TEST(Exec, CountsLoopsThatWereShared) {
  Exec ex({.threads = 2});
  ex.parallel_for(1, [](std::size_t, unsigned) {});
  EXPECT_EQ(ex.counters().regions, 0u);
  ex.parallel_for(10, [](std::size_t, unsigned) {});
  EXPECT_EQ(ex.counters().regions, 1u);
  EXPECT_EQ(ex.counters().tasks, 10u);
  EXPECT_EQ(ex.counters().nanoseconds, 0u);
  ex.set_timing(true);
  ex.parallel_for(10, [](std::size_t, unsigned) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  EXPECT_GT(ex.counters().nanoseconds, 1'000'000u);
}

TEST(Exec, RefusesAnAbsurdNumberOfThreads) {
  EXPECT_THROW(Exec({.threads = 1'000'000}), Exception);
  EXPECT_GE(Exec().threads(), 1u);
}

TEST(ExecProfile, AddsUpOverWorkers) {
  Exec ex({.threads = 2});
  Profile profile(ex.threads());
  ex.set_profile(&profile);
  const std::size_t phase = profile.phase("work");
  EXPECT_EQ(profile.phase("work"), phase);
  ex.parallel_for(6, [&](std::size_t, unsigned worker) {
    const ProfileScope scope(ex, phase, worker);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  ASSERT_EQ(profile.entries().size(), 1u);
  EXPECT_EQ(profile.entries()[0].name, "work");
  EXPECT_GE(profile.entries()[0].milliseconds, 12.0);
  profile.clear();
  EXPECT_EQ(profile.entries()[0].milliseconds, 0.0);
}

TEST(ExecMemory, BuffersAreZeroedAlignedAndMovable) {
  for (std::size_t size : {1u, 7u, 1000u, 8191u, 8192u, 100000u}) {
    Buffer<float> a(size), other(size % 9);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % kMemoryAlignment, 0u);
    EXPECT_THAT(a.span(), ::testing::Each(0.0f));
    a[0] = 3.0f;
    Buffer<float> b(std::move(a));
    EXPECT_EQ(a.size(), 0u);
    EXPECT_EQ(b[0], 3.0f);
    a = std::move(b);
    EXPECT_EQ(a[0], 3.0f);
    a[size - 1] = 4.0f;
    other = std::move(a);
    EXPECT_EQ(other.size(), size);
    EXPECT_EQ(other[size - 1], 4.0f);
  }
  EXPECT_EQ(Buffer<double>(0).data(), nullptr);
  EXPECT_THROW(Buffer<double>(std::size_t{1} << 60), std::bad_alloc);
}

TEST(ExecMemory, ClaimedLinesKeepTheirBitsOnThreads) {
  std::vector<std::uint32_t> bits(1000);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint32_t>(i * 2654435761u);
  bits[16] = 0x80000000u, bits[32] = 0x7fa00001u;  // -0, a signalling NaN
  for (std::size_t size : {0u, 1u, 15u, 16u, 17u, 990u}) {
    std::vector<float> numbers(bits.size());
    std::memcpy(numbers.data(), bits.data(), bits.size() * sizeof(float));
    const Exec ex({.threads = 2});
    ex.parallel_for(2, [&](std::size_t half, unsigned) {
      const std::size_t from = 3 + half * size / 2, to = 3 + (half + 1) * size / 2;
      claim_lines(std::span<float>(numbers).subspan(from, to - from));
    });
    EXPECT_EQ(std::memcmp(numbers.data(), bits.data(), bits.size() * sizeof(float)), 0) << size;
  }
}

TEST(ExecMemory, WorkspacePiecesAreAlignedAndApart) {
  Workspace w;
  const std::size_t a = w.reserve<float>(3), nothing = w.reserve<double>(0), b = w.reserve<double>(5);
  w.allocate();
  float* x = w.at<float>(a);
  double* y = w.at<double>(b);
  EXPECT_EQ(nothing, b);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x) % kMemoryAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(y) % kMemoryAlignment, 0u);
  x[2] = 1.0f;
  y[4] = 2.0;
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(w.bytes(), 2 * kMemoryAlignment);
}

TEST(ExecMemory, WorkspaceTurnsToItsOtherCopyAndBack) {
  Workspace w;
  const std::size_t first = w.reserve<float>(100), second = w.reserve<float>(1);
  w.allocate(2);
  EXPECT_EQ(w.bytes(), 2 * w.reserved());
  float* here = w.at<float>(second);
  *here = 1.0f;
  w.turn();
  EXPECT_EQ(w.at<float>(first), here - (second - first) / sizeof(float) + w.reserved() / sizeof(float));
  EXPECT_EQ(*w.at<float>(second), 0.0f);
  *w.at<float>(second) = 2.0f;
  w.turn();
  EXPECT_EQ(w.at<float>(second), here);
  EXPECT_EQ(*here, 1.0f);

  Workspace alone;
  const std::size_t only = alone.reserve<float>(1);
  alone.allocate();
  float* there = alone.at<float>(only);
  alone.turn();
  EXPECT_EQ(alone.at<float>(only), there);
}

}  // namespace
}  // namespace gradloom
