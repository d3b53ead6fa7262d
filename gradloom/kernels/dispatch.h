// From a kernel's name to the code that runs: the definition or the SIMD version, float or double, the best instruction
// set.
//
// A kernel `f` has its contract in the folder's header, its definition in reference.h as `reference::f<T>`, and its
// SIMD version, with the same signature, in a file *_fast.cpp. The folder's fast.h declares
//   template <class T> decltype(&reference::f<T>) f();        // in namespace fast
// which *_fast.cpp defines with GRADLOOM_EXPORT(f), and the contract's function calls
//   choose(variant, reference::f<T>, fast::f<T>)(arguments...).
#pragma once

#include "gradloom/exec/exec.h"

namespace gradloom::kernels {

template <class Function>
Function* choose(Variant variant, Function* definition, Function* (*fast)()) {
  return variant == Variant::fast ? fast() : definition;
}

}  // namespace gradloom::kernels

// Instantiates a function template that has one parameter, the type of its numbers, and no overloads.
#define GRADLOOM_INSTANTIATE(f)         \
  template decltype(f<float>) f<float>; \
  template decltype(f<double>) f<double>

// Defines fast::f: returns the version of f, a template in HWY_NAMESPACE, for the best instruction set that this file
// is compiled for and the processor has. Used once per file and kernel, in the namespace of the folder (HWY_ONCE).
// Highway has the same for templates from version 1.1 on.
#define GRADLOOM_EXPORT(f)                                                                           \
  template <class T>                                                                                 \
  decltype(&reference::f<T>) fast::f() {                                                             \
    static constexpr decltype(&reference::f<T>) versions[] = {nullptr, HWY_CHOOSE_TARGET_LIST(f<T>), \
                                                              HWY_CHOOSE_FALLBACK(f<T>)};            \
    hwy::ChosenTarget& chosen = hwy::GetChosenTarget();                                              \
    if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());                             \
    return versions[chosen.GetIndex()];                                                              \
  }                                                                                                  \
  GRADLOOM_INSTANTIATE(fast::f)
