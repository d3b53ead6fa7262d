// The SIMD versions of the functions of whole arrays: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/elementary/reference.h"

namespace gradloom::kernels::elementary::fast {

template <class T>
decltype(&reference::exp<T>) exp();
template <class T>
decltype(&reference::log<T>) log();
template <class T>
decltype(&reference::sigmoid<T>) sigmoid();
template <class T>
decltype(&reference::silu<T>) silu();

}  // namespace gradloom::kernels::elementary::fast
