// The SIMD versions of gathers and maxima: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/message/reference.h"

namespace gradloom::kernels::message::fast {

template <class T>
decltype(&reference::split::gather_rows<T>) gather_rows(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::gather_segment<T>) gather_segment(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::max_rows<T>) max_rows(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::max_gradient_rows<T>) max_gradient_rows(Arithmetic arithmetic);

}  // namespace gradloom::kernels::message::fast
