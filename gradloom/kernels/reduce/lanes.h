// Sums over the columns of a row in 8 lanes, the order of dot8 (message/message.h).
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_REDUCE_LANES_H_
#define GRADLOOM_KERNELS_REDUCE_LANES_H_

#include <cstddef>

#include "gradloom/base/rounding.h"
#include "gradloom/kernels/mul_add.h"

namespace gradloom::kernels {

// The tree over 8 lanes: +4, +2, +1.
template <class T>
T add_eight_lanes(T* lane) {
  for (std::size_t half = 4; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
  return lane[0];
}

}  // namespace gradloom::kernels

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/reduce/lanes.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::GRADLOOM_ARITHMETIC {

// The sum over the columns [first, last) of a(f) b(f): lane f mod 8 adds by mul_add from zero, the tree follows. Where
// the columns begin or end within a group of 8, zeros are added for the others.
template <class A, class B>
auto lane_sum(std::size_t first, std::size_t last, A&& a, B&& b) {
  using T = decltype(a(first));
  T lane[8] = {};
  for (std::size_t f = first / 8 * 8; f < round_up(last, 8); ++f) {
    const bool inside = f >= first && f < last;
    lane[f % 8] = mul_add(inside ? a(f) : T(0), inside ? b(f) : T(0), lane[f % 8]);
  }
  return add_eight_lanes(lane);
}

// The same of x(f) alone, without products.
template <class X>
auto lane_sum(std::size_t first, std::size_t last, X&& x) {
  using T = decltype(x(first));
  T lane[8] = {};
  for (std::size_t f = first / 8 * 8; f < round_up(last, 8); ++f)
    lane[f % 8] = lane[f % 8] + (f >= first && f < last ? x(f) : T(0));
  return add_eight_lanes(lane);
}

}  // namespace gradloom::kernels::GRADLOOM_ARITHMETIC

#endif
