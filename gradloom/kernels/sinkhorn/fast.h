// The SIMD versions of Sinkhorn's iteration: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/sinkhorn/reference.h"

namespace gradloom::kernels::sinkhorn::fast {

template <class T>
decltype(&reference::split::scale_rows<T>) scale_rows(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::scale_columns<T>) scale_columns(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::matching<T>) matching(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::scale_columns_gradient<T>) scale_columns_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::scale_rows_gradient<T>) scale_rows_gradient(Arithmetic arithmetic);

}  // namespace gradloom::kernels::sinkhorn::fast
