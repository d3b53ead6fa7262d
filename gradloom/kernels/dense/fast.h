// The SIMD version of the dense product: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/dense/reference.h"

namespace gradloom::kernels::dense::fast {

template <class T>
decltype(&reference::split::multiply<T>) multiply(Arithmetic arithmetic);

}  // namespace gradloom::kernels::dense::fast
