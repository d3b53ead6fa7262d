// One step of 16 cells, and its gradient: pure functions of what they are given.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gradloom/kernels/gate/gate.h"

namespace gradloom::logic {

// The layers of a cell's circuit. Letters: C channels; S outputs of a perception kernel; K kernels; L = 16 lanes. The
// gates of all layers follow each other: perception first, layer by layer, gate (j, k) has number j K + k; then the
// update.
struct CellShape {
  std::size_t channels = 1;             // C
  std::vector<std::size_t> perception;  // gates of each layer, all kernels together; the last has S K
  std::vector<std::size_t> update;      // the last has C

  std::size_t update_inputs() const { return channels + channels * perception.back(); }
  std::size_t gates() const;
  // Numbers of scratch that tile_forward and tile_gradient need; they may hold anything.
  std::size_t scratch() const;
};

// The gates of all layers, each layer in its order of evaluation, and that order: perception first, then the update.
template <class T>
struct CellCircuit {
  std::span<const kernels::gate::Gate<T>> gates;
  std::span<const kernels::gate::LayerPlan> plans;
};

// patch (C, 9, L), out (C, L) is overwritten. Reads gates and patch, writes out and scratch only.
template <class T>
void tile_forward(Variant variant, const CellShape& shape, const CellCircuit<T>& circuit, const T* patch, T* scratch,
                  T* out);

template <class T>
struct TileGradient {
  const T* patch = nullptr;                           // (C, 9, L)
  const T* dl_dout = nullptr;                         // (C, L); 0 in lanes without a cell
  T* dl_dpatch = nullptr;                             // C * 9 rows of L, =
  T* sums = nullptr;                                  // (gates, 4, 2) in the order of evaluation, +=
  std::size_t dl_dpatch_step = kernels::gate::kTile;  // as LayerGradient::dl_din_step
};

// Runs the circuit again and goes back. Row (c, 4) of dl_dpatch starts with the update circuit's gradient of the
// centre, the others with -0; then the gates of the first perception layer add theirs. Sums of perception gates:
// channel C - 1 first. Reads gates, patch and dl_dout, writes dl_dpatch, sums and scratch only: called twice on equal
// sums it gives equal results.
template <class T>
void tile_gradient(Variant variant, const CellShape& shape, const CellCircuit<T>& circuit,
                   const TileGradient<T>& arrays, T* scratch);

}  // namespace gradloom::logic
