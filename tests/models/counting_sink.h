// A sink that counts how often it hears of each element of a gradient, from any number of threads.
#pragma once

#include <atomic>
#include <vector>

#include "gradloom/models/model.h"

namespace gradloom::test {

class CountingSink final : public GradientSink {
 public:
  explicit CountingSink(std::size_t size) : seen_(size) {}
  void finished(std::size_t begin, std::size_t end, unsigned) override {
    for (std::size_t i = begin; i < end; ++i) seen_[i].fetch_add(1);
  }
  int seen(std::size_t i) const { return seen_[i].load(); }

 private:
  std::vector<std::atomic<int>> seen_;
};

}  // namespace gradloom::test
