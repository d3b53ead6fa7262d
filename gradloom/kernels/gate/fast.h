// The SIMD versions of the gate kernels: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/gate/reference.h"

namespace gradloom::kernels::gate::fast {

template <class T>
decltype(&reference::coefficients<T>) coefficients();
template <class T>
decltype(&reference::logit_gradient<T>) logit_gradient();
template <class T>
decltype(&reference::forward<T>) forward();
template <class T>
decltype(&reference::backward<T>) backward();
// Needs room for L numbers behind the rows, which are overwritten.
template <class T>
decltype(&reference::read_rows<T>) read_rows();

}  // namespace gradloom::kernels::gate::fast
