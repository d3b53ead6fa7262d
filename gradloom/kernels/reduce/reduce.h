// Sums and other operations on whole flat arrays that do not depend on threads or instruction set.
//
// A sum is cut into chunks of kReduceChunk elements. Within a chunk 16 lanes, l = n mod 16, add their elements in order
// from zero, sum = mul_add(a, b, sum) (contract.h); a tree over lanes follows: +8, +4, +2, +1. The sums of
// the chunks are combined pairwise: neighbours 0+1, 2+3, ... then these, until one is left (an odd one is passed on).
// max_abs takes the largest in any order; a NaN anywhere gives NaN.
#pragma once

#include <cstddef>
#include <span>

#include "gradloom/base/rounding.h"
#include "gradloom/exec/exec.h"

namespace gradloom::kernels::reduce {

inline constexpr std::size_t kReduceChunk = 4096;

// How many elements of scratch a reduction over `size` elements needs.
inline constexpr std::size_t reduce_scratch(std::size_t size) { return divide_up(size, kReduceChunk); }

// a and b have equal sizes; scratch.size() >= reduce_scratch(a.size()). 0 for empty arrays.
template <class T>
T dot(const Exec& exec, std::span<const T> a, std::span<const T> b, std::span<T> scratch);

template <class T>
T sum_of_squares(const Exec& exec, std::span<const T> a, std::span<T> scratch);

template <class T>
T max_abs(const Exec& exec, std::span<const T> a, std::span<T> scratch);

// y = mul_add(factor, x, y).
template <class T>
void axpy(const Exec& exec, T factor, std::span<const T> x, std::span<T> y);

// x = factor * x.
template <class T>
void scale(const Exec& exec, T factor, std::span<T> x);

}  // namespace gradloom::kernels::reduce
