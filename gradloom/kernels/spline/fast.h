// The SIMD versions of the spline kernels: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/spline/reference.h"

namespace gradloom::kernels::spline::fast {

template <class T>
decltype(&reference::split::evaluate_basis<T>) evaluate_basis(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::forward<T>) forward(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::input_gradient<T>) input_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::weight_gradient<T>) weight_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::bias_gradient<T>) bias_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::forward_single<T>) forward_single(Arithmetic arithmetic);

}  // namespace gradloom::kernels::spline::fast
