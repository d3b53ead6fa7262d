// Work of a search: counted in units of a million multiply-adds, never in seconds, so that the result is the same on a
// busy machine.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradloom/base/function_ref.h"
#include "gradloom/exec/exec.h"
#include "gradloom/formula/deal.h"

namespace gradloom::formula {

class Work {
 public:
  // `stop` may be null; it is looked at only where there is one rank.
  Work(const Exec& ex, double limit, std::function<void(double used, double limit)> progress = {}, Deal deal = {},
       const std::atomic<bool>* stop = nullptr)
      : ex_(ex),
        limit_(limit),
        progress_(std::move(progress)),
        deal_(std::move(deal)),
        stop_(deal_.ranks == 1 ? stop : nullptr) {}

  double used() const { return used_; }
  double limit() const { return limit_; }
  bool exhausted() const { return used_ >= limit_ || (stop_ && *stop_); }
  void spend(double units) { used_ += units; }
  void lower_limit(double limit) { limit_ = std::min(limit_, limit); }
  const Exec& exec() const { return ex_; }
  // What is left, for a task that runs beside others; what it used is added by who began it.
  Work part() const { return Work(ex_, limit_ - used_, {}, {}, stop_); }

  // The answer of the first task that has one. Tasks run in parallel, in batches of a fixed size; no batch begins
  // when the work is used up. A task adds what it computed to its argument.
  template <class T, class Task>
  std::optional<T> first_of(std::size_t tasks, const Task& task) {
    constexpr std::size_t kBatch = 8;
    for (std::size_t from = 0; from < tasks && !exhausted(); from += kBatch) {
      const std::size_t count = std::min(kBatch, tasks - from);
      std::vector<std::optional<T>> answers(count);
      std::vector<Outcome> outcomes(count);
      const std::size_t rank = deal_.rank, ranks = deal_.ranks;
      ex_.parallel_for((count + ranks - 1 - rank) / ranks, [&](std::size_t t, unsigned) {
        const std::size_t i = rank + t * ranks;
        answers[i] = task(from + i, outcomes[i].work);
        outcomes[i].found = answers[i].has_value();
      });
      if (ranks > 1) deal_.exchange(outcomes);
      for (const Outcome& o : outcomes) used_ += o.work;
      if (progress_) progress_(used_, limit_);
      for (std::size_t i = 0; i < count; ++i) {
        if (!outcomes[i].found) continue;
        double known = 0.0;  // what another one has answered is computed again
        return answers[i] ? std::move(answers[i]) : task(from + i, known);
      }
    }
    return std::nullopt;
  }

  // All of them, however much work it is.
  template <class T, class Task>
  std::vector<T> all_of(std::size_t tasks, const Task& task) {
    std::vector<T> answers(tasks);
    std::vector<double> work(tasks, 0.0);
    ex_.parallel_for(tasks, [&](std::size_t i, unsigned) { answers[i] = task(i, work[i]); });
    for (const double w : work) used_ += w;
    if (progress_) progress_(used_, limit_);
    return answers;
  }

 private:
  const Exec& ex_;
  double used_ = 0, limit_;
  std::function<void(double, double)> progress_;
  Deal deal_;
  const std::atomic<bool>* stop_;
};

}  // namespace gradloom::formula
