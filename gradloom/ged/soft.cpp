#include "gradloom/ged/soft.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/base/error.h"
#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/elementary/elementary.h"
#include "gradloom/kernels/reduce/lanes.h"
#include "gradloom/kernels/sinkhorn/sinkhorn.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/ged/soft.inc"
#include "gradloom/kernels/each_arithmetic.inc"

namespace gradloom::ged {

template <class T>
T soft_cost(const SoftInputs<T>& in, std::span<const T> p, Arithmetic arithmetic) {
  return GRADLOOM_DEFINITION(arithmetic, soft_cost<T>)(in, p);
}

template <class T>
T soft_distance(const SoftInputs<T>& in, const SoftOptions& options, SoftTape<T>& tape) {
  return GRADLOOM_DEFINITION(options.variant.arithmetic, soft_distance<T>)(in, options, tape);
}

template <class T>
void soft_distance_backward(const SoftInputs<T>& in, const SoftOptions& options, SoftTape<T>& tape, T dl_dy,
                            std::span<T> dl_dcost, std::span<T> dl_da) {
  GRADLOOM_DEFINITION(options.variant.arithmetic, soft_distance_backward<T>)(in, options, tape, dl_dy, dl_dcost, dl_da);
}

template <class T>
void soft_node_costs(std::span<const T> label, std::span<const T> table, std::span<const T> insert, std::size_t n1,
                     std::span<T> cost, Arithmetic arithmetic) {
  GRADLOOM_DEFINITION(arithmetic, soft_node_costs<T>)(label, table, insert, n1, cost);
}

template <class T>
void soft_node_costs_backward(std::span<const T> table, std::span<const T> dl_dcost, std::size_t n1, std::size_t n2,
                              std::span<T> dl_dlabel, Arithmetic arithmetic) {
  GRADLOOM_DEFINITION(arithmetic, soft_node_costs_backward<T>)(table, dl_dcost, n1, n2, dl_dlabel);
}

#define GRADLOOM_SOFT(T)                                                                                               \
  template T soft_cost(const SoftInputs<T>&, std::span<const T>, Arithmetic);                                          \
  template T soft_distance(const SoftInputs<T>&, const SoftOptions&, SoftTape<T>&);                                    \
  template void soft_distance_backward(const SoftInputs<T>&, const SoftOptions&, SoftTape<T>&, T, std::span<T>,        \
                                       std::span<T>);                                                                  \
  template void soft_node_costs(std::span<const T>, std::span<const T>, std::span<const T>, std::size_t, std::span<T>, \
                                Arithmetic);                                                                           \
  template void soft_node_costs_backward(std::span<const T>, std::span<const T>, std::size_t, std::size_t,             \
                                         std::span<T>, Arithmetic)
GRADLOOM_SOFT(float);
GRADLOOM_SOFT(double);
#undef GRADLOOM_SOFT

}  // namespace gradloom::ged
