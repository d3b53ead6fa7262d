// temporary
#pragma once
#include <span>
#include "gradloom/exec/exec.h"
namespace gradloom::kernels {
template <class T> double dot(const Exec&, std::span<const T> a, std::span<const T> b) { double s[16] = {}; size_t n = a.size(); for (size_t i = 0; i < n; ++i) s[i & 15] += double(a[i]) * double(b[i]); for (int h = 8; h; h /= 2) for (int l = 0; l < h; ++l) s[l] += s[l + h]; return s[0]; }
template <class T> void axpy(const Exec&, T alpha, std::span<const T> x, std::span<T> y) { for (size_t i = 0; i < x.size(); ++i) y[i] = y[i] + alpha * x[i]; }
template <class T> void scale_into(const Exec&, T alpha, std::span<const T> x, std::span<T> y) { for (size_t i = 0; i < x.size(); ++i) y[i] = alpha * x[i]; }
}
