// The SIMD versions of the spline kernels: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/spline/reference.h"

namespace gradloom::kernels::spline::fast {

template <class T>
decltype(&reference::evaluate_basis<T>) evaluate_basis();
template <class T>
decltype(&reference::forward<T>) forward();
template <class T>
decltype(&reference::input_gradient<T>) input_gradient();
template <class T>
decltype(&reference::weight_gradient<T>) weight_gradient();
template <class T>
decltype(&reference::bias_gradient<T>) bias_gradient();
template <class T>
decltype(&reference::forward_single<T>) forward_single();

}  // namespace gradloom::kernels::spline::fast
