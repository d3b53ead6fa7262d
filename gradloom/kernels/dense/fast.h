// The SIMD version of the dense product: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/dense/dense.h"

namespace gradloom::kernels::dense::fast {

void multiply(const Product<float>& p);
void multiply(const Product<double>& p);

}  // namespace gradloom::kernels::dense::fast
