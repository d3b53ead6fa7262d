// The SIMD versions of the operations on one chunk: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/reduce/reference.h"

namespace gradloom::kernels::reduce::fast {

template <class T>
decltype(&reference::chunk_dot<T>) chunk_dot();
template <class T>
decltype(&reference::chunk_max_abs<T>) chunk_max_abs();
template <class T>
decltype(&reference::chunk_axpy<T>) chunk_axpy();
template <class T>
decltype(&reference::chunk_scale<T>) chunk_scale();

}  // namespace gradloom::kernels::reduce::fast
