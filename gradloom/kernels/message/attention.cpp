#include "gradloom/kernels/message/attention.h"

#include <algorithm>

#include "gradloom/base/hash.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/elementary.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/message/attention.inc"
#include "gradloom/kernels/each_arithmetic.inc"

namespace gradloom::kernels::message {

template <class T>
void attend(Arithmetic arithmetic, const Attention<T>& p, std::size_t begin, std::size_t end) {
  GRADLOOM_DEFINITION(arithmetic, attend<T>)(p, begin, end);
}

template <class T>
void attend_gradient(Arithmetic arithmetic, const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin,
                     std::size_t end) {
  GRADLOOM_DEFINITION(arithmetic, attend_gradient<T>)(p, g, begin, end);
}

template <class T>
void attend_source_gradient(Arithmetic arithmetic, const Attention<T>& p, const AttentionGradient<T>& g,
                            std::size_t begin, std::size_t end) {
  GRADLOOM_DEFINITION(arithmetic, attend_source_gradient<T>)(p, g, begin, end);
}

template <class T>
std::uint64_t attention_branches(const Attention<T>& p, std::size_t rows) {
  return GRADLOOM_DEFINITION(default_arithmetic(), attention_branches<T>)(p, rows);
}

GRADLOOM_INSTANTIATE(attend);
GRADLOOM_INSTANTIATE(attend_gradient);
GRADLOOM_INSTANTIATE(attend_source_gradient);
GRADLOOM_INSTANTIATE(attention_branches);

}  // namespace gradloom::kernels::message
