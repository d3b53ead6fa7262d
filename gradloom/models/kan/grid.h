// Changing the grids of a trained spline network while keeping its function.
#pragma once

#include "gradloom/models/kan/network.h"

namespace gradloom::kan {

// A network with its own flat arrays, as the stages of a run hand it on.
template <class T>
struct Trained {
  Network<T> network;
  Buffer<T> parameters, buffers;
};

struct RefitOptions {
  double uniform_share = 0.05;  // free knots: 0 places knots at quantiles, 1 evenly
  double margin = 0.01;         // how far a grid reaches beyond the data, as a fraction of its range
  bool first_layer = true;      // adapt the first layer's grids too
};

// The same function on `grid` intervals: exact up to rounding where the new knots include the old ones (a multiple of
// the old number), otherwise by least squares over the whole range. Free knots are split where they are widest, so they
// always nest.
template <class T>
Trained<T> refine(const Network<T>& network, std::span<const T> parameters, std::span<const T> buffers, unsigned grid);

// Moves the grid of every input of every layer to where the data is: new range, and for free knots new knots at a
// mixture of quantiles and even spacing, never closer than 1e-4 of the range. Each spline is fitted to the old function
// over the new range. Constant, categorical and duplicated inputs are no problem; results are always finite. x (N, In),
// N >= 1.
template <class T>
Trained<T> refit(const Exec& ex, const Network<T>& network, std::span<const T> parameters, std::span<const T> buffers,
                 View<const T, 2> x, const RefitOptions& options = {});

}  // namespace gradloom::kan
