// The SIMD versions of the functions of whole arrays: the bits of reference.h in the arithmetic of each instruction
// set.
#pragma once

#include "gradloom/kernels/elementary/reference.h"

namespace gradloom::kernels::elementary::fast {

template <class T>
decltype(&reference::split::exp<T>) exp(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::log<T>) log(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::sigmoid<T>) sigmoid(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::silu<T>) silu(Arithmetic arithmetic);

}  // namespace gradloom::kernels::elementary::fast
