// Rows of samples to panel matrices and back, and how samples are cut; not part of the interface of spline networks.
#pragma once

#include <algorithm>

#include "gradloom/exec/exec.h"
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kan {

namespace spline = kernels::spline;
using spline::kPanel;

// Samples per task: enough to reuse weights in the cache, few enough to occupy the threads. On a large grid a row of
// weights serves few samples, so it takes more of them; so do kernels that sort samples by their intervals.
inline constexpr std::size_t kSmallTile = 32, kTile = 64, kLargeTile = 256;
inline constexpr unsigned kLargeGrid = 16;
inline std::size_t tile_size(const Exec& ex, unsigned grid, std::size_t batch) {
  if (grid > kLargeGrid) return std::clamp((batch / ex.threads() + 7) / 8 * 8, kSmallTile, kLargeTile);
  if (kernels::full_vectors()) {
    const std::size_t tasks = ex.threads() > 1 ? 2 * ex.threads() : 1;
    return std::clamp((batch / tasks + 7) / 8 * 8, kSmallTile, kLargeTile);
  }
  return ex.threads() > 1 && batch <= 256 ? kSmallTile : kTile;
}

// panel(i, s) = f(row(s)[i], i) for i < n, zero in the padding. `panels` is a panel matrix.
template <class T, class Row, class F>
void to_panels(spline::Range samples, std::size_t n, std::size_t stride, T* panels, Row&& row, F&& f) {
  for (std::size_t first = 0; first < n; first += kPanel, panels += stride * kPanel)
    for (std::size_t s = samples.begin; s < samples.end; ++s) {
      const T* from = row(s) + first;
      T* to = panels + s * kPanel;
      if (first + kPanel <= n) {
        for (std::size_t c = 0; c < kPanel; ++c) to[c] = f(from[c], first + c);
      } else {
        for (std::size_t c = 0; c < kPanel; ++c) to[c] = first + c < n ? f(from[c], first + c) : T(0);
      }
    }
}

// row(s)[i] = f(panel(i, s), i) for i < n.
template <class T, class Row, class F>
void from_panels(spline::Range samples, std::size_t n, std::size_t stride, const T* panels, Row&& row, F&& f) {
  for (std::size_t first = 0; first < n; first += kPanel, panels += stride * kPanel)
    for (std::size_t s = samples.begin; s < samples.end; ++s) {
      const T* from = panels + s * kPanel;
      T* to = row(s) + first;
      const std::size_t count = std::min(kPanel, n - first);
      for (std::size_t c = 0; c < count; ++c) to[c] = f(from[c], first + c);
    }
}

}  // namespace gradloom::kan
