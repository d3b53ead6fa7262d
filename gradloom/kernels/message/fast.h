// The SIMD versions of the gathers: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/message/reference.h"

namespace gradloom::kernels::message::fast {

template <class T>
decltype(&reference::split::gather_rows<T>) gather_rows(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::gather_segment<T>) gather_segment(Arithmetic arithmetic);

}  // namespace gradloom::kernels::message::fast
