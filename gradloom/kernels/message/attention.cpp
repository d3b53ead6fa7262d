#include "gradloom/kernels/message/attention.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/message/attention_fast.h"

namespace gradloom::kernels::message {

template <class T>
void attend(Variant variant, const Attention<T>& p, std::size_t begin, std::size_t end) {
  GRADLOOM_CHOOSE(variant, attend<T>)(p, begin, end);
}

template <class T>
void attend_gradient(Variant variant, const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin,
                     std::size_t end) {
  GRADLOOM_CHOOSE(variant, attend_gradient<T>)(p, g, begin, end);
}

template <class T>
void attend_source_gradient(Variant variant, const Attention<T>& p, const AttentionGradient<T>& g, std::size_t begin,
                            std::size_t end) {
  GRADLOOM_CHOOSE(variant, attend_source_gradient<T>)(p, g, begin, end);
}

template <class T>
void attend_edge_gradient(Arithmetic arithmetic, const Attention<T>& p, const AttentionGradient<T>& g,
                          std::size_t begin, std::size_t end) {
  GRADLOOM_DEFINITION(arithmetic, attend_edge_gradient<T>)(p, g, begin, end);
}

template <class T>
std::uint64_t attention_branches(const Attention<T>& p, std::size_t rows) {
  return GRADLOOM_DEFINITION(default_arithmetic(), attention_branches<T>)(p, rows);
}

GRADLOOM_INSTANTIATE(attend);
GRADLOOM_INSTANTIATE(attend_gradient);
GRADLOOM_INSTANTIATE(attend_source_gradient);
GRADLOOM_INSTANTIATE(attend_edge_gradient);
GRADLOOM_INSTANTIATE(attention_branches);

}  // namespace gradloom::kernels::message
