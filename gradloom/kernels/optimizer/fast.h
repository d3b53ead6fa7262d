// The SIMD version of the updates: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/optimizer/reference.h"

namespace gradloom::kernels::optimizer::fast {

template <class T>
decltype(&reference::update<T>) update();

}  // namespace gradloom::kernels::optimizer::fast
