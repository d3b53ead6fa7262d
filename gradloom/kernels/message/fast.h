// The SIMD versions of the gathers: the same bits as reference.h on every instruction set.
#pragma once

#include "gradloom/kernels/message/message.h"

namespace gradloom::kernels::message::fast {

#define GRADLOOM_DECLARE(T)                                                 \
  void gather_rows(const Gather<T>& g, std::size_t begin, std::size_t end); \
  void gather_segment(const Gather<T>& g, std::size_t row, std::size_t segment, T* sum);
GRADLOOM_DECLARE(float)
GRADLOOM_DECLARE(double)
#undef GRADLOOM_DECLARE

}  // namespace gradloom::kernels::message::fast
