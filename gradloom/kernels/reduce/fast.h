// The SIMD versions of the operations on one chunk: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/reduce/reference.h"

namespace gradloom::kernels::reduce::fast {

template <class T>
decltype(&reference::split::chunk_dot<T>) chunk_dot(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::chunk_max_abs<T>) chunk_max_abs(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::chunk_axpy<T>) chunk_axpy(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::chunk_scale<T>) chunk_scale(Arithmetic arithmetic);

}  // namespace gradloom::kernels::reduce::fast
