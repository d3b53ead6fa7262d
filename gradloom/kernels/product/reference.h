// The definition of the kernels of product.h.
#ifndef GRADLOOM_ARITHMETIC
#ifndef GRADLOOM_KERNELS_PRODUCT_REFERENCE_H_
#define GRADLOOM_KERNELS_PRODUCT_REFERENCE_H_

#include "gradloom/kernels/product/product.h"

namespace gradloom::kernels::product {

// The place of element j of sample s in a panel matrix.
inline std::size_t panel_at(std::size_t j, std::size_t s, std::size_t stride) {
  return (j / spline::kPanel * stride + s) * spline::kPanel + j % spline::kPanel;
}

}  // namespace gradloom::kernels::product

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/product/reference.h"
#include "gradloom/kernels/each_arithmetic.inc"

#endif
#else  // once for each arithmetic

namespace gradloom::kernels::product::reference::GRADLOOM_ARITHMETIC {

template <class T>
void forward(const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums, T* nodes) {
  for (std::size_t s = samples.begin; s < samples.end; ++s)
    for (std::size_t j = 0; j < padded(shape.nodes); ++j) {
      const T first = sums[panel_at(j, s, stride)];
      T& node = nodes[panel_at(j, s, stride)];
      if (j >= shape.nodes)
        node = T(0);
      else if (shape.multiplies(j))
        node = first * sums[panel_at(shape.second_factor(j), s, stride)];
      else
        node = first;
    }
}

template <class T>
void backward(const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums, const T* dl_dnodes,
              T* dl_dsums) {
  for (std::size_t s = samples.begin; s < samples.end; ++s) {
    for (std::size_t j = 0; j < shape.nodes; ++j) {
      const std::size_t at = panel_at(j, s, stride);
      if (!shape.multiplies(j)) {
        dl_dsums[at] = dl_dnodes[at];
        continue;
      }
      const std::size_t second = panel_at(shape.second_factor(j), s, stride);
      dl_dsums[at] = dl_dnodes[at] * sums[second];
      dl_dsums[second] = dl_dnodes[at] * sums[at];
    }
    for (std::size_t j = shape.sums(); j < padded(shape.sums()); ++j) dl_dsums[panel_at(j, s, stride)] = T(0);
  }
}

}  // namespace gradloom::kernels::product::reference::GRADLOOM_ARITHMETIC

#endif
