// The order in which a model evaluates its gates, kept as long as its wires stay the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "gradloom/kernels/gate/plan.h"

namespace gradloom::logic {

// The size of a tape's last batch when no forward pass came before, or it failed.
inline constexpr std::size_t kNoPass = ~std::size_t{0};

template <class T>
class PlannedWires {
 public:
  // `make` returns the plans of all layers for these buffers; it is called when they differ from those of the last call
  // (the wires of a run do not change). Only then is memory allocated.
  template <class Make>
  void update(std::span<const T> buffers, Make&& make) {
    if (!layers_.empty() && std::equal(buffers.begin(), buffers.end(), wires_.begin(), wires_.end())) return;
    layers_.clear();  // nothing is left of the old ones when `make` throws
    auto made = make();
    wires_.assign(buffers.begin(), buffers.end());
    layers_ = std::move(made);
  }
  std::span<const kernels::gate::LayerPlan> layers() const { return layers_; }

 private:
  std::vector<T> wires_;
  std::vector<kernels::gate::LayerPlan> layers_;
};

}  // namespace gradloom::logic
