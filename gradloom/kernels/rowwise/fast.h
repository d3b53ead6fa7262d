// The SIMD versions of activation and normalisation: the bits of reference.h in the arithmetic of each instruction set.
#pragma once

#include "gradloom/kernels/rowwise/reference.h"

namespace gradloom::kernels::rowwise::fast {

template <class T>
decltype(&reference::split::activate<T>) activate(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::activate_gradient<T>) activate_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::layer_norm<T>) layer_norm(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::layer_norm_gradient<T>) layer_norm_gradient(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::squared_deviation<T>) squared_deviation(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::batch_norm<T>) batch_norm(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::batch_norm_sums<T>) batch_norm_sums(Arithmetic arithmetic);
template <class T>
decltype(&reference::split::batch_norm_gradient<T>) batch_norm_gradient(Arithmetic arithmetic);

}  // namespace gradloom::kernels::rowwise::fast
