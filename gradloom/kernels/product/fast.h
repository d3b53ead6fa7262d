// The SIMD versions of the kernels of product.h: the bits of reference.h.
#pragma once

#include "gradloom/kernels/product/reference.h"

namespace gradloom::kernels::product::fast {

template <class T>
decltype(&reference::split::forward<T>) forward(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::backward<T>) backward(Arithmetic arithmetic);

}  // namespace gradloom::kernels::product::fast
