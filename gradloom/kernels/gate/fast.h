// The SIMD versions of the gate kernels: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/gate/reference.h"

namespace gradloom::kernels::gate::fast {

template <class T>
decltype(&reference::split::coefficients<T>) coefficients(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::logit_gradient<T>) logit_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::forward<T>) forward(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::backward<T>) backward(Arithmetic arithmetic);
// Needs room for L numbers behind the rows, which are overwritten.
template <class T>
decltype(&reference::split::read_rows<T>) read_rows(Arithmetic arithmetic);

}  // namespace gradloom::kernels::gate::fast
