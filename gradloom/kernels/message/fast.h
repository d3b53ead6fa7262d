// The SIMD versions of the gathers: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/message/reference.h"

namespace gradloom::kernels::message::fast {

template <class T>
decltype(&reference::gather_rows<T>) gather_rows();
template <class T>
decltype(&reference::gather_segment<T>) gather_segment();

}  // namespace gradloom::kernels::message::fast
