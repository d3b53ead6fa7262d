// From a kernel's name to the code that runs: the definition or the SIMD version, float or double, fused or split, the
// best instruction set.
//
// A kernel `f` has its contract in the folder's header, its definition in reference.h as `reference::split::f<T>` and
// `reference::fused::f<T>` (each_arithmetic.inc), and its SIMD version, with the same signature, in a file *_fast.cpp.
// The folder's fast.h declares
//   template <class T> decltype(&reference::split::f<T>) f(Arithmetic);        // in namespace fast
// which *_fast.cpp defines with GRADLOOM_EXPORT(f), and the contract's function calls
//   GRADLOOM_CHOOSE(variant, f<T>)(arguments...).
// A kernel without SIMD version calls GRADLOOM_DEFINITION(arithmetic, f<T>)(arguments...).
#pragma once

#include "gradloom/exec/exec.h"
#include "gradloom/kernels/contract.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::kernels {

template <class Function>
Function* choose(Variant variant, Function* definition, Function* (*fast)(Arithmetic)) {
  Function* const simd = variant == Variant::fast ? fast(variant.arithmetic) : nullptr;
  return simd ? simd : definition;  // ForceSimdTarget may have left none for this arithmetic
}

template <class Function>
Function* of_arithmetic(Arithmetic arithmetic, Function* fused, Function* split) {
  return arithmetic == Arithmetic::fused ? fused : split;
}

}  // namespace gradloom::kernels

#define GRADLOOM_DEFINITION(arithmetic, ...) \
  kernels::of_arithmetic(arithmetic, reference::fused::__VA_ARGS__, reference::split::__VA_ARGS__)
#define GRADLOOM_CHOOSE(variant, ...) \
  choose(variant, GRADLOOM_DEFINITION((variant).arithmetic, __VA_ARGS__), fast::__VA_ARGS__)

// Instantiates a function template that has one parameter, the type of its numbers, and no overloads.
#define GRADLOOM_INSTANTIATE(f)         \
  template decltype(f<float>) f<float>; \
  template decltype(f<double>) f<double>

// The place, in Highway's table of versions, of the best instruction set that this file is compiled for and the
// processor has, of those with this arithmetic; 0, the place of null, without one.
#define GRADLOOM_VERSION(arithmetic)                                                                                   \
  [&] {                                                                                                                \
    const std::int64_t targets = kernels::allowed_targets() & HWY_TARGETS &                                            \
                                 (arithmetic == Arithmetic::fused ? GRADLOOM_FUSED_TARGETS : ~GRADLOOM_FUSED_TARGETS); \
    hwy::ChosenTarget chosen;                                                                                          \
    chosen.Update(targets);                                                                                            \
    return targets == 0 ? std::size_t{0} : chosen.GetIndex();                                                          \
  }()

// Defines fast::f: returns that version of f, a template in HWY_NAMESPACE. Used once per file and kernel, in the
// namespace of the folder (HWY_ONCE). Highway has the same for templates from version 1.1 on.
#define GRADLOOM_EXPORT(f)                                                                                  \
  template <class T>                                                                                        \
  decltype(&reference::split::f<T>) fast::f(Arithmetic arithmetic) {                                        \
    static constexpr decltype(&reference::split::f<T>) versions[] = {nullptr, HWY_CHOOSE_TARGET_LIST(f<T>), \
                                                                     HWY_CHOOSE_FALLBACK(f<T>)};            \
    const std::size_t version = GRADLOOM_VERSION(arithmetic);                                               \
    return versions[version];                                                                               \
  }                                                                                                         \
  GRADLOOM_INSTANTIATE(fast::f)
