// The SIMD versions of the kernels of sparsity.h: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/sparsity/reference.h"

namespace gradloom::kernels::sparsity::fast {

template <class T>
decltype(&reference::split::strengths<T>) strengths(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::add_gradient<T>) add_gradient(Arithmetic arithmetic);

}  // namespace gradloom::kernels::sparsity::fast
