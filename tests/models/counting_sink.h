// A sink that counts how often it hears of each element of a gradient, from any number of threads, and how often an
// element was announced.
#pragma once

#include <atomic>
#include <vector>

#include "gradloom/models/model.h"

namespace gradloom::test {

class CountingSink final : public GradientSink {
 public:
  explicit CountingSink(std::size_t size) : seen_(size), expected_(size) {}
  void expected(std::size_t begin, std::size_t end, unsigned) override {
    for (std::size_t i = begin; i < end; ++i) {
      if (seen_[i] != 0) late_ = true;
      expected_[i].fetch_add(1);
    }
  }
  void finished(std::size_t begin, std::size_t end, unsigned) override {
    for (std::size_t i = begin; i < end; ++i) seen_[i].fetch_add(1);
  }
  int seen(std::size_t i) const { return seen_[i].load(); }
  int announced(std::size_t i) const { return expected_[i].load(); }
  bool announced_late() const { return late_; }

 private:
  std::vector<std::atomic<int>> seen_, expected_;
  std::atomic<bool> late_ = false;
};

}  // namespace gradloom::test
