// Gradient of the sums of a layer: gradloom/kernels/product/product.h, backward. An invocation owns a sum of a sample.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/product/layout.glsl"

layout(std430, binding = 0) readonly buffer Sums { real sums[]; };
layout(std430, binding = 1) readonly buffer Above { real dl_dnodes[]; };
layout(std430, binding = 2) writeonly buffer Below { real dl_dsums[]; };

void main() {
  const uint element = my_element(), s = element / sum_stride(), j = element % sum_stride();
  if (s >= shape.batch) return;
  real slope = real(0);
  if (j < shape.nodes + shape.products) {
    const bool second = j >= shape.nodes;
    const uint node = second ? j - shape.products : j, other = second ? node : j + shape.products;
    slope = dl_dnodes[s * node_stride() + node];
    if (j >= plain()) {
      precise real product = slope * sums[s * sum_stride() + other];
      slope = product;
    }
  }
  dl_dsums[element] = slope;
}
