// The SIMD version of the dense product: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/dense/reference.h"

namespace gradloom::kernels::dense::fast {

template <class T>
decltype(&reference::multiply<T>) multiply();

}  // namespace gradloom::kernels::dense::fast
