#include "gradloom/kernels/sinkhorn/sinkhorn.h"

#include "gradloom/kernels/dispatch.h"
#include "gradloom/kernels/sinkhorn/fast.h"

namespace gradloom::kernels::sinkhorn {

template <class T>
void scale_rows(Variant variant, const Costs<T>& c, const T* g, T* f) {
  GRADLOOM_CHOOSE(variant, scale_rows<T>)(c, g, f);
}

template <class T>
void scale_columns(Variant variant, const Costs<T>& c, const T* f, T* g) {
  GRADLOOM_CHOOSE(variant, scale_columns<T>)(c, f, g);
}

template <class T>
void matching(Variant variant, const Costs<T>& c, const T* f, const T* g, T* p) {
  GRADLOOM_CHOOSE(variant, matching<T>)(c, f, g, p);
}

template <class T>
void scale_columns_gradient(Variant variant, const Costs<T>& c, const T* f, const T* g, const T* dg, T* df, T* dk) {
  GRADLOOM_CHOOSE(variant, scale_columns_gradient<T>)(c, f, g, dg, df, dk);
}

template <class T>
void scale_rows_gradient(Variant variant, const Costs<T>& c, const T* f, const T* g, const T* df, T* dg, T* dk) {
  GRADLOOM_CHOOSE(variant, scale_rows_gradient<T>)(c, f, g, df, dg, dk);
}

GRADLOOM_INSTANTIATE(scale_rows);
GRADLOOM_INSTANTIATE(scale_columns);
GRADLOOM_INSTANTIATE(matching);
GRADLOOM_INSTANTIATE(scale_columns_gradient);
GRADLOOM_INSTANTIATE(scale_rows_gradient);

}  // namespace gradloom::kernels::sinkhorn
