// The SIMD versions of attention: the bits of attention_reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/message/attention_reference.h"

namespace gradloom::kernels::message::fast {

template <class T>
decltype(&reference::split::attend<T>) attend(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::attend_gradient<T>) attend_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::attend_source_gradient<T>) attend_source_gradient(Arithmetic arithmetic);

}  // namespace gradloom::kernels::message::fast
