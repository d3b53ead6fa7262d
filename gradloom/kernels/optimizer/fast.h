// The SIMD version of the updates: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/optimizer/reference.h"

namespace gradloom::kernels::optimizer::fast {

template <class T>
decltype(&reference::split::update<T>) update(Arithmetic arithmetic);

}  // namespace gradloom::kernels::optimizer::fast
